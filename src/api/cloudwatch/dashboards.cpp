// Implements the operations on dashboards.
#include "shapes/cloudwatch.hpp"

#include <algorithm>
#include <utility>

#include "alarms/dashboards.hpp"
#include "base/text.hpp"
#include "cloudwatch/common.hpp"
#include "cloudwatch/dashboard_body.hpp"
#include "cloudwatch/families.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;

constexpr int64_t kDashboardPageMax = 1000;

Failure no_dashboard(const std::string& name) {
  return not_found_failure("Dashboard " + shorten(name, 255) + " does not exist");
}

bool is_dashboard_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && std::ranges::all_of(name, [](unsigned char each) {
    return (each >= '0' && each <= '9') || (each >= 'A' && each <= 'Z') ||
           (each >= 'a' && each <= 'z') || each == '-' || each == '_';
  });
}

// Makes one failure that lists all faults, as on AWS.
Failure invalid_body(const std::vector<BodyFault>& faults) {
  std::string text = "The field DashboardBody must be a valid JSON object";
  for (size_t i = 0; i < faults.size(); ++i)
    text += (i ? ", " : ": ") + (faults[i].path.empty() ? "" : faults[i].path + " ") +
            faults[i].message;
  return {400, "InvalidParameterInput", shorten(text, 2000)};
}

Outcome<aws::PutDashboardOutput> put_dashboard(alarms::Dashboards& dashboards,
                                               const Context& context,
                                               const aws::PutDashboardInput& in) {
  if (!is_dashboard_name(*in.dashboard_name))
    return Failure{400, "InvalidParameterInput",
                   "The value " + shorten(*in.dashboard_name, 255) +
                       " for field DashboardName contains invalid characters. It can only contain "
                       "alphanumerics, dash (-) and underscore (_)."};
  if (in.dashboard_body->size() > alarms::kDashboardBytesMax)
    return Failure{400, "InvalidParameterInput",
                   "The field DashboardBody must not have more than " +
                       std::to_string(alarms::kDashboardBytesMax) + " bytes"};
  const BodyCheck check = check_body(*in.dashboard_body);
  if (!check.errors.empty()) return invalid_body(check.errors);
  alarms::Tags tags;
  if (in.tags)
    for (const aws::Tag& each : *in.tags) tags[*each.key] = *each.value;
  const auto stored = dashboards.put(*in.dashboard_name, *in.dashboard_body, tags, context.now);
  if (!stored && stored.error().kind == Kind::exhausted)
    return Failure{400, "LimitExceeded", stored.error().message};
  if (!stored) return stored.error();
  aws::PutDashboardOutput out;
  out.dashboard_validation_messages.emplace();
  for (const BodyFault& each : check.warnings)
    out.dashboard_validation_messages->push_back({.data_path = each.path, .message = each.message});
  return out;
}

Outcome<aws::GetDashboardOutput> get_one(alarms::Dashboards& dashboards, const Context& context,
                                         const aws::GetDashboardInput& in) {
  auto body = dashboards.body(*in.dashboard_name);
  if (!body && body.error().kind == Kind::not_found) return no_dashboard(*in.dashboard_name);
  if (!body) return body.error();
  return aws::GetDashboardOutput{.dashboard_arn = dashboard_arn(context, *in.dashboard_name),
                                 .dashboard_body = *std::move(body),
                                 .dashboard_name = *in.dashboard_name};
}

Outcome<aws::ListDashboardsOutput> list_all(alarms::Dashboards& dashboards, const Context& context,
                                            const aws::ListDashboardsInput& in) {
  std::string after;
  if (in.next_token) {
    auto name = from_base64(*in.next_token);
    if (!name) return Failure{400, "InvalidParameterValue", "Invalid NextToken"};
    after = std::move(*name);
  }
  auto found =
      TRY(dashboards.list(in.dashboard_name_prefix.value_or(""), after, kDashboardPageMax + 1));
  aws::ListDashboardsOutput out;
  out.dashboard_entries.emplace();
  if (int64_t(found.size()) > kDashboardPageMax) {
    found.pop_back();
    out.next_token = to_base64(found.back().name);
  }
  for (const auto& each : found)
    out.dashboard_entries->push_back({.dashboard_name = each.name,
                                      .dashboard_arn = dashboard_arn(context, each.name),
                                      .last_modified = each.modified,
                                      .size = each.bytes});
  return out;
}

Outcome<aws::DeleteDashboardsOutput> remove_all(alarms::Dashboards& dashboards, const Context&,
                                                const aws::DeleteDashboardsInput& in) {
  if (in.dashboard_names->empty())
    return invalid_parameter_value("The parameter DashboardNames must have at least one name.");
  const auto removed = dashboards.remove(*in.dashboard_names);
  if (!removed && removed.error().kind == Kind::not_found)
    return no_dashboard(removed.error().message);
  if (!removed) return removed.error();
  return aws::DeleteDashboardsOutput{};
}

}  // namespace

void add_dashboard_operations(OperationTable& table, const Services& services) {
  const auto with = [&services](auto function) {
    return [&services, function](
               const Context& context,
               const auto& in) -> decltype(function(*services.dashboards, context, in)) {
      if (!services.dashboards) return unavailable("dashboards are not available on this server");
      return function(*services.dashboards, context, in);
    };
  };
  table.add<aws::PutDashboard>(with(put_dashboard));
  table.add<aws::GetDashboard>(with(get_one));
  table.add<aws::ListDashboards>(with(list_all));
  table.add<aws::DeleteDashboards>(with(remove_all));
}

}  // namespace trainyard::api::cloudwatch
