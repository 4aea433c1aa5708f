// Parses any bytes as a policy document of each kind, and evaluates and simulates valid ones.
// decoder: src/control_plane/policy/parse.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "policy/policy.hpp"
#include "policy/simulate.hpp"
#include "policy/statement.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::policy;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Request request{.principal_arn = "arn:aws:sts::111122223333:assumed-role/train/one",
                  .role_arn = "arn:aws:iam::111122223333:role/train",
                  .account = "111122223333",
                  .action = "s3:GetObject",
                  .resource = "arn:aws:s3:::data/ana/x?*"};
  request.values.set("aws:username", "ana*");
  request.values.set("aws:SourceIp", "::ffff:192.0.2.1");
  request.values.set("aws:CurrentTime", "2024-01-01T00:00:00Z");
  request.values.set("aws:TagKeys", std::vector<std::string>{"a", "b"});
  for (const PolicyKind kind : {PolicyKind::identity, PolicyKind::resource, PolicyKind::trust}) {
    const auto parsed = parse_policy(text, kind);
    if (!parsed) {
      CHECK(!parsed.error().message.empty(), "an error has a message");
      continue;
    }
    const Policy& policy = **parsed;
    CHECK(policy_size(text) <= text.size(), "the size without white space is not larger");
    CHECK(statement_spans(text).size() == policy.statements().size(),
          "each statement has a position");
    SimulatedPolicies policies;
    (kind == PolicyKind::identity ? policies.identity
                                  : policies.resource) = {{"p", "none", &policy}};
    const Simulation simulation = simulate(request, policies);
    if (kind != PolicyKind::trust && simulation.decision.verdict != Verdict::implicitly_denied)
      CHECK(!simulation.matched.empty(), "a statement decided");
  }
  return 0;
}
