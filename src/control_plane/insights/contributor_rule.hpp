// A ContributorRule is a rule of CloudWatch's Contributor Insights. It selects events of log
// groups, and determines the contributor and the value of each.
//
//   {"Schema": {"Name": "CloudWatchLogRule", "Version": 1}, "LogGroupNames": ["/web/*"],
//    "LogFormat": "JSON", "Contribution": {"Keys": ["$.ip"], "ValueOf": "$.bytes",
//    "Filters": [{"Match": "$.status", "GreaterThan": 499}]}, "AggregateOn": "Sum"}
//
// Rules with the format CLF give names to fields, which are separated by spaces, by their numbers
// (Fields). In addition to AWS, "Filter" may be a filter pattern; Keys may then name its fields.
//
// Threads: immutable once parsed. Errors: invalid, with a message for the client.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "observe/filter_pattern.hpp"

namespace trainyard::insights {

// Limits of one rule, as on AWS.
inline constexpr size_t kRuleBytesMax = 8192;
inline constexpr size_t kRuleKeysMax = 4;
inline constexpr size_t kRuleFiltersMax = 4;
inline constexpr size_t kRuleGroupsMax = 100;
inline constexpr size_t kRuleFieldsMax = 100;

struct Contribution {
  std::vector<std::string> keys;  // the keys of the contributor
  double value = 1;
};

class ContributorRule {
 public:
  static Result<ContributorRule> parse(std::string_view text);

  // Returns the names of log groups, which may end with '*'.
  const std::vector<std::string>& groups() const { return groups_; }
  const std::vector<std::string>& key_labels() const { return key_labels_; }
  bool counts() const { return !value_; }  // false: the rule sums values
  // Returns the contribution of an event, or nullopt if the rule does not select it.
  std::optional<Contribution> of(std::string_view message) const;

 private:
  // A condition on one value of an event.
  struct Filter {
    enum class Test { in, not_in, starts_with, greater, less, present };
    observe::FilterSelector selector;
    Test test = Test::in;
    std::vector<std::string> texts;
    double number = 0;
    bool present = true;
    bool holds(const std::optional<std::string>& value) const;
  };
  struct Reader;

  std::vector<std::string> groups_, key_labels_;
  std::optional<observe::FilterPattern> pattern_;
  std::vector<observe::FilterSelector> keys_;
  std::optional<observe::FilterSelector> value_;
  std::vector<Filter> filters_;
};

}  // namespace trainyard::insights
