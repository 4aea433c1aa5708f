// decoder: src/control_plane/alarms/rule.cpp
//
// Reads any rule and evaluates it. Input: the text.
#include "alarms/rule.hpp"
#include "base/check.hpp"

using namespace trainyard;
using namespace trainyard::alarms;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto rule = Rule::parse({reinterpret_cast<const char*>(data), size});
  if (!rule) {
    CHECK(rule.error().kind == Kind::invalid, "people are told what is wrong");
    return 0;
  }
  (void)rule->holds([&](const std::string& name) {
    CHECK(rule->alarms().contains(name), "the rule tells its alarms");
    return name.size() % 2 ? State::alarm : State::ok;
  });
  return 0;
}
