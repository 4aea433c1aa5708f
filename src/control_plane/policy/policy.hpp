// A Policy is a parsed IAM policy document.
//
// parse_policy() checks what AWS checks when a document is stored, so that evaluation has no
// errors: elements, versions, actions and condition keys with a service prefix, resources in ARN
// form, principals, condition operators and the form of their values. A repeated member of an
// object is an error, since JSON parsers disagree about its value.
//
// Threads: immutable after parsing, shared freely.
// Errors:  invalid, with AWS's text for MalformedPolicyDocument.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::policy {

// The kind decides which elements a document may have: an identity policy has resources and no
// principal, a resource policy (of a bucket) has both, a trust policy (of a role) has a principal
// and no resource. Session policies and permissions boundaries are identity policies.
enum class PolicyKind { identity, resource, trust };

// AWS's quotas, in bytes without white space between tokens, as IAM counts them.
constexpr size_t kManagedPolicyBytesMax = 6'144;
constexpr size_t kUserInlineBytesMax = 2'048;   // all inline policies of a user together
constexpr size_t kGroupInlineBytesMax = 5'120;  // all inline policies of a group
constexpr size_t kRoleInlineBytesMax = 10'240;  // all inline policies of a role
constexpr size_t kSessionPolicyBytesMax = 2'048;
constexpr size_t kTrustPolicyBytesMax = 4'096;  // AWS's maximum
constexpr size_t kBucketPolicyBytesMax = 20'480;
// The limit on PolicyDocument in requests, including white space.
constexpr size_t kDocumentBytesMax = 131'072;
constexpr size_t kStatementsMax = 500;  // more do not fit into the largest document
constexpr size_t kValuesMax = 1'000;    // for one element or condition key
// document, statements, statement, Condition, operator, key, values
constexpr size_t kDepthMax = 8;

struct Statement;  // policy/statement.hpp

class Policy {
 public:
  Policy(PolicyKind kind, std::string document, std::string version, std::string id,
         std::vector<Statement> statements);
  ~Policy();
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  PolicyKind kind() const { return kind_; }
  // Returns the document exactly as it was passed to parse_policy().
  const std::string& document() const { return document_; }
  const std::string& version() const { return version_; }
  const std::string& id() const { return id_; }
  const std::vector<Statement>& statements() const { return statements_; }

  // Returns the distinct condition keys that conditions and variables of this document read, in the
  // spelling of the document.
  std::vector<std::string> context_keys() const;

 private:
  const PolicyKind kind_;
  const std::string document_, version_, id_;
  const std::vector<Statement> statements_;
};

// Parses a document. Its size is checked with the largest quota of the kind; the caller checks
// narrower quotas (policy_size).
Result<std::shared_ptr<const Policy>> parse_policy(std::string_view json, PolicyKind kind);

// Returns the size of a document in bytes, without white space between its tokens.
size_t policy_size(std::string_view json);

}  // namespace trainyard::policy
