// Decides whether a request is allowed by the policies that concern it.
//
// The order is AWS's for a principal and a resource of one account:
//   1. a matching Deny in any policy: denied (explicitly);
//   2. a resource policy that allows the user or the role session itself: allowed;
//   3. an identity policy or a resource policy (of the role) must allow, and so must the
//      permissions boundary and the session policies, where they are set: else denied (implicitly).
// A resource policy that names the account, not the principal, delegates to the account's identity
// policies: it allows nothing by itself. A trust policy must allow in any case; one that names the
// account needs an identity policy as well.
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
// Errors:  none; a value of the request that an operator cannot read (text where a number is
//          compared) does not match.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/condition_values.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {

struct Request {
  std::string
      principal_arn;  // arn:aws:iam::ACCOUNT:user/NAME,
                      // arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION; empty: without credentials
  // of a session: arn:aws:iam::ACCOUNT:role/ROLE (Principal elements may name either)
  std::string role_arn;
  std::string account;     // of the principal
  std::string action;      // "s3:GetObject"
  std::string resource;    // ARN, or "*" for an action without a resource
  ConditionValues values;  // global keys and the service's
  // "sagemaker.amazonaws.com" when a service makes the request; then no principal_arn
  std::string service;
  // the identity provider of an AssumeRoleWith* request; then no principal_arn
  std::string federated;
};

struct Policies {  // borrowed pointers, which outlive the call
  // of the user and the user's groups, or of the role
  std::vector<const Policy*> identity;
  std::vector<const Policy*> resource;  // of the bucket; the trust policy of a role
  // given with AssumeRole; unset: none was given
  std::optional<std::vector<const Policy*>> session;
  const Policy* boundary = nullptr;
};

enum class Verdict { allowed, implicitly_denied, explicitly_denied };

// The type of the policy that decided: "identity-based policy", "resource-based policy", "session
// policy", "permissions boundary" or "trust policy". It is the type that allowed, that denied
// explicitly, or the first that did not allow.
struct Decision {
  Verdict verdict = Verdict::implicitly_denied;
  std::string_view reason_policy_type;  // static text
  // Sid of the deciding statement; empty where it has none or none matched
  std::string statement_id;
};

Decision evaluate(const Request& request, const Policies& policies);

// AWS's text of AccessDenied: principal, action, resource and the type of policy; nothing about
// what exists.
// Requires: decision.verdict is not allowed.
std::string describe_denial(const Request& request, const Decision& decision);

}  // namespace trainyard::policy
