// A Rule decides from the states of other alarms whether a composite alarm is in the ALARM state:
// ALARM("gpu hot") AND NOT (OK(disk) OR INSUFFICIENT_DATA(disk)).
//
//   either: both {"OR" both}        both: one {"AND" one}
//   one:    "NOT" one | "(" either ")" | "TRUE" | "FALSE" | STATE "(" alarm ")"
//   STATE:  "ALARM" | "OK" | "INSUFFICIENT_DATA"      alarm: a name or ARN, in quotes if it needs any
//
// Threads: immutable after parse(). Errors: invalid, with the error in the rule.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "alarms/alarm.hpp"

namespace trainyard::alarms {

inline constexpr size_t kRuleBytesMax = 10'240;  // as on AWS
inline constexpr size_t kRuleAlarmsMax = 100;    // as on AWS
inline constexpr int kRuleLevelsMax = 64;

class Rule {
 public:
  static Result<Rule> parse(std::string_view text);
  // Returns whether the rule is true. `state_of` returns the state of an alarm by its name.
  bool holds(const std::function<State(const std::string& name)>& state_of) const;
  const std::set<std::string>& alarms() const { return alarms_; }

  struct Node;

 private:
  std::shared_ptr<const Node> root_;
  std::set<std::string> alarms_;
};

// Returns the name in an alarm's ARN. A text that is not an ARN is returned unchanged.
std::string alarm_name_in(std::string_view name_or_arn);

// Returns the cycle that an alarm `name` which depends on `children` would be part of, such as
// "a -> b -> a", or "". `children_of`: the alarms on which the existing alarms depend.
std::string find_cycle(const std::string& name, const std::set<std::string>& children,
                       const std::map<std::string, std::set<std::string>>& children_of);

}  // namespace trainyard::alarms
