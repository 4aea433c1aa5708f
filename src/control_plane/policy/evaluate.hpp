// Decides whether the policies that apply to a request allow it.
//
// The order is AWS's for a principal and a resource of one account:
//   1. a matching Deny in any policy: denied (explicitly);
//   2. a resource policy that allows the user or the role session itself: allowed;
//   3. an identity policy, or a resource policy that names the role, must allow the request, and so
//      must the permissions boundary and the session policies if they are set; otherwise it is
//      denied (implicitly).
// A resource policy that names the account, not the principal, delegates to the account's identity
// policies: it allows nothing by itself. A trust policy must always allow the request; if it names
// the account, an identity policy must allow it, too.
//
//   Request request{.principal_arn = "arn:aws:iam::123456789012:user/ana",
//                   .account = "123456789012",
//                   .action = "s3:GetObject",
//                   .resource = "arn:aws:s3:::data/a.csv"};
//   Policies policies;
//   policies.identity = {policy.get()};
//   if (evaluate(request, policies).verdict != Verdict::allowed) ...
//
// Threads: pure, call from anywhere.
// Errors:  none. A value of the request that an operator cannot parse (such as text for a numeric
//          operator) does not match.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/condition_values.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {

struct Request {
  // arn:aws:iam::ACCOUNT:user/NAME or arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION; "": the
  // request has no credentials
  std::string principal_arn;
  // for a session: arn:aws:iam::ACCOUNT:role/ROLE (Principal elements may name either)
  std::string role_arn;
  std::string account;     // the account of the principal
  std::string action;      // "s3:GetObject"
  std::string resource;    // ARN, or "*" for an action without a resource
  ConditionValues values;  // the global keys and those of the service
  // "sagemaker.amazonaws.com" if a service makes the request; principal_arn is then ""
  std::string service;
  // the identity provider of an AssumeRoleWith* request; principal_arn is then ""
  std::string federated;
};

struct Policies {  // borrowed pointers, which outlive the call
  // policies of the user and the user's groups, or of the role
  std::vector<const Policy*> identity;
  std::vector<const Policy*> resource;  // the policy of a bucket, or the trust policy of a role
  // policies that AssumeRole set for the session; nullopt: none were set
  std::optional<std::vector<const Policy*>> session;
  const Policy* boundary = nullptr;
};

enum class Verdict { allowed, implicitly_denied, explicitly_denied };

struct Decision {
  Verdict verdict = Verdict::implicitly_denied;
  // The type of the policy that decided: the one that allowed, that denied explicitly, or the first
  // that did not allow. It is "identity-based policy", "resource-based policy", "session policy",
  // "permissions boundary" or "role trust policy"; the text is static.
  std::string_view reason_policy_type;
  // the Sid of the deciding statement; "" if it has none or no statement decided
  std::string statement_id;
};

Decision evaluate(const Request& request, const Policies& policies);

// Returns AWS's text of AccessDenied with the principal, action, resource and type of policy. It
// does not reveal whether the resource exists. Requires: decision.verdict is not allowed.
std::string describe_denial(const Request& request, const Decision& decision);

}  // namespace trainyard::policy
