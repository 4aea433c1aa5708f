// OperationsWorld calls operations like dispatch, with real logs and metrics in a temporary
// directory.
//
//   struct World : OperationsWorld {
//     World() : OperationsWorld(logs::add_operations) {}
//   };
//
// Threads: confined to the test's thread.
#pragma once

#include <gtest/gtest.h>

#include "objects/memory.hpp"
#include "observe/testing/test_world.hpp"
#include "operations/identity_store.hpp"
#include "operations/services.hpp"
#include "operations/table.hpp"
#include "operations/testing/fake_control.hpp"
#include "policy/identity_seed.hpp"

namespace trainyard::api {

struct OperationsWorld {
  observe::TemporaryDirectory directory;
  TestClock clock{in_memory::kStart};
  SeededRandom random{1};
  in_memory::PlainControl control{clock};
  std::unique_ptr<objects::Objects> objects = objects::make_memory(clock, random);
  std::unique_ptr<observe::Logs> logs = *observe::open_logs(directory.path() + "/logs", clock);
  std::unique_ptr<observe::Metrics> metrics = *observe::open_metrics(directory.path() + "/metrics");
  IdentityStore store{control, std::string(32, 'k'), *policy::identities_of("123456789012", {}),
                      random};
  Settings settings;
  Services services{.control = control,
                    .logs = *logs,
                    .metrics = *metrics,
                    .objects = *objects,
                    .clock = clock,
                    .random = random,
                    .identities = &store};
  OperationTable table;
  Context context{.principal = {.account = "123456789012", .name = "owner"},
                  .region = "eu-west-1",
                  .now = clock.now()};

  // For derived worlds that add their operations after they have set more of `services`.
  OperationsWorld() = default;
  // `add`: a service's add_operations.
  explicit OperationsWorld(void (&add)(OperationTable&, const Settings&, const Services&)) {
    add(table, settings, services);
  }

  template <class Operation>
  Outcome<typename Operation::Output> call(const typename Operation::Input& input) {
    context.now = clock.now();
    Outcome<typename Operation::Output> outcome = internal("not answered");
    table.find(Operation::shape())
        ->call(
            context,
            [&](void* to) {
              *static_cast<typename Operation::Input*>(to) = input;
              return std::optional<Failure>();
            },
            [&](const void* output, const Failure* failure) {
              if (failure) {
                outcome = *failure;
              } else {
                outcome = *static_cast<const typename Operation::Output*>(output);
              }
            });
    return outcome;
  }

  // Calls an operation that must fail, and returns "Code: message".
  template <class Operation>
  std::string refusal(const typename Operation::Input& input) {
    const auto outcome = call<Operation>(input);
    if (outcome) return "it succeeded";
    const Failure failure = outcome.failure(*Operation::shape().service);
    return failure.code + ": " + failure.message;
  }
};

}  // namespace trainyard::api
