// Provides a short notation for policies and requests to the module's tests.
//
// Threads: pure functions.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/evaluate.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy::test {

using Owned = std::shared_ptr<const Policy>;

inline Owned parse(std::string_view json, PolicyKind kind = PolicyKind::identity) {
  auto parsed = parse_policy(json, kind);
  EXPECT_TRUE(parsed) << parsed.error().message << " in " << json;
  return parsed ? *parsed : nullptr;
}

// Makes a policy of one statement in the current version.
inline Owned statement(const std::string& members, PolicyKind kind = PolicyKind::identity) {
  return parse(R"({"Version": "2012-10-17", "Statement": [{)" + members + "}]}", kind);
}

using Values = std::vector<std::pair<std::string, std::vector<std::string>>>;

inline Request by_user(const std::string& name, std::string action, std::string resource,
                       const Values& values = {}) {
  Request request{.principal_arn = "arn:aws:iam::111122223333:user/" + name,
                  .account = "111122223333",
                  .action = std::move(action),
                  .resource = std::move(resource)};
  request.values.set("aws:username", name);
  for (const auto& [key, list] : values) request.values.set(key, list);
  return request;
}

inline Request by_session(const std::string& role, std::string action, std::string resource) {
  return {.principal_arn = "arn:aws:sts::111122223333:assumed-role/" + role + "/session",
          .role_arn = "arn:aws:iam::111122223333:role/" + role,
          .account = "111122223333",
          .action = std::move(action),
          .resource = std::move(resource)};
}

inline Verdict verdict(const Request& request, const Owned& identity) {
  Policies policies;
  policies.identity = {identity.get()};
  return evaluate(request, policies).verdict;
}

}  // namespace trainyard::policy::test
