// Declares the helpers of CloudWatch's operations: ARNs, dimensions, statistics and pages.
//
// Threads: pure functions.
#pragma once

#include "shapes/cloudwatch.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "alarms/alarm.hpp"
#include "operations/context.hpp"
#include "protocol/errors.hpp"

namespace trainyard::api::cloudwatch {

std::string alarm_arn(const std::string& account, const alarms::AlarmKey& key);
std::string dashboard_arn(const Context& context, const std::string& name);

std::map<std::string, std::string> to_map(
    const std::optional<std::vector<shapes::cloudwatch::Dimension>>& dimensions);

// Rounds down to whole seconds, as CloudWatch does for the times of queries.
Instant to_seconds_only(Instant at);

// Returns whether a query may have this period: 1, 5, 10, 20, 30 or a multiple of 60 seconds.
bool is_period(int64_t seconds);

Failure validation_error(std::string message);   // ValidationError
Failure not_found_failure(std::string message);  // ResourceNotFound

// Convert enums to CloudWatch's texts and back: "OK", "GreaterThanThreshold", "notBreaching".
std::string_view to_text(alarms::State state);
Result<alarms::State> parse_state(std::string_view text);
std::string_view to_text(alarms::Comparison comparison);
Result<alarms::Comparison> parse_comparison(std::string_view text);
std::string_view to_text(alarms::Missing missing);
Result<alarms::Missing> parse_missing(std::string_view text);

// Formats "2026-11-27T10:00:00.000+0000", as in notifications and reasons.
std::string offset_time_text(Instant at);

}  // namespace trainyard::api::cloudwatch
