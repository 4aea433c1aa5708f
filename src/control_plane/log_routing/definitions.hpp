// Defines metric filters, subscription filters and their destinations, and how they are stored.
//
// Threads: plain values. Errors: invalid.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::log_routing {

// Limits of one log group, as on AWS.
inline constexpr size_t kMetricFiltersMax = 100;
inline constexpr size_t kSubscriptionFiltersMax = 2;
inline constexpr size_t kDimensionsMax = 3;
// Destinations of a region: a hundred times the subscription filters of a log group.
inline constexpr size_t kDestinationsMax = 200;

struct MetricFilter {
  std::string pattern;
  std::string metric_namespace;
  std::string metric_name;
  std::string value;  // a number, or a selector: "$.bytes", "$bytes"
  std::optional<double> default_value;
  std::map<std::string, std::string> dimensions;  // name -> selector
  std::string unit = "None";
  Instant created;

  std::string text() const;  // the stored form
  static Result<MetricFilter> from(std::string_view text);
  // Errors: invalid, with a message for the client.
  Result<void> check() const;
};

struct SubscriptionFilter {
  std::string pattern;
  std::string destination_arn;
  // The name of a webhook in the configuration, in filters that earlier versions stored; "": the
  // target is determined by `destination_arn`.
  std::string target;
  std::string role_arn;
  std::string distribution = "ByLogStream";
  Instant created;

  std::string text() const;
  static Result<SubscriptionFilter> from(std::string_view text);
};

// A LogDestination is a name for a target of subscription filters. Its target may be changed.
struct LogDestination {
  std::string target_arn;
  std::string role_arn;
  std::string access_policy;  // stored, but unused: it would grant other accounts access
  std::map<std::string, std::string> tags;
  Instant created;

  std::string text() const;
  static Result<LogDestination> from(std::string_view text);
};

}  // namespace trainyard::log_routing
