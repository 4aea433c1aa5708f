// Compiles any condition, and evaluates it if it is valid. Input, a line each: operator, condition
// key, values as JSON, then values of the request.
// decoder: src/control_plane/policy/condition.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/text.hpp"
#include "policy/condition.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const auto lines = split({reinterpret_cast<const char*>(data), size}, '\n');
  if (lines.size() < 3) return 0;
  const auto wanted = parse_json(lines[2]);
  if (!wanted) return 0;
  for (const bool variables : {false, true}) {
    const auto condition = policy::Condition::compile(lines[0], lines[1], *wanted, variables);
    if (!condition) {
      CHECK(!condition.error().message.empty(), "an error has a message");
      continue;
    }
    policy::ConditionValues values;
    values.set("aws:username", "ana*");
    std::vector<std::string> found(lines.begin() + 3, lines.end());
    values.set(lines[1], found);
    std::vector<std::string> keys;
    condition->add_keys(keys);
    CHECK(!keys.empty(), "a condition has a key");
    const bool allows = condition->holds(values, false), denies = condition->holds(values, true);
    (void)condition->limits_callers();
    CHECK(denies || !allows, "a condition that is true in an Allow is true in a Deny");
  }
  return 0;
}
