// decoder: src/control_plane/alarms/rule.cpp
//
// Reads any rule, evaluates it, and searches its alarms for cycles. Input: the text.
#include <map>
#include <set>

#include "alarms/rule.hpp"
#include "base/check.hpp"

using namespace trainyard;
using namespace trainyard::alarms;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto rule = Rule::parse({reinterpret_cast<const char*>(data), size});
  if (!rule) {
    CHECK(rule.error().kind == Kind::invalid, "parse() has no other errors");
    return 0;
  }
  (void)rule->holds([&](const std::string& name) {
    CHECK(rule->alarms().contains(name), "alarms() has each alarm that holds() reads");
    return name.size() % 2 ? State::alarm : State::ok;
  });
  // Each alarm of the rule is composite, too; its children are the alarms with shorter names.
  std::map<std::string, std::set<std::string>> children_of;
  for (const std::string& name : rule->alarms())
    for (const std::string& other : rule->alarms())
      if (other.size() <= name.size()) children_of[name].insert(other);
  for (const std::string& name : rule->alarms())
    CHECK(!find_cycle(name, children_of[name], children_of).empty(), "each alarm is its own child");
  CHECK(find_cycle("", rule->alarms(), children_of).empty() || rule->alarms().contains(""),
        "a cycle has only alarms of the rule");
  return 0;
}
