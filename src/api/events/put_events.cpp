// Implements PutEvents, TestEventPattern, and the operations on the default event bus.
#include "base/json.hpp"
#include "base/text.hpp"
#include "events/common.hpp"
#include "events/job_event.hpp"

namespace trainyard::api::events {
namespace {

using notify::Event;
using notify::EventBus;

constexpr size_t kEntriesMax = 10;              // AWS's limit for a request
constexpr size_t kEntriesBytesMax = 256 << 10;  // together, as on AWS
constexpr size_t kResourcesMax = 100;

size_t bytes_of(const aws::PutEventsRequestEntry& entry) {
  size_t bytes = entry.time ? 14 : 0;
  for (const auto* text : {&entry.source, &entry.detail_type, &entry.detail})
    if (*text) bytes += (*text)->size();
  if (entry.resources)
    for (const auto& each : *entry.resources) bytes += each.size();
  return bytes;
}

Outcome<Event> event_of(const Context& context, const aws::PutEventsRequestEntry& entry) {
  const auto missing = [](const char* name) {
    return events_failure("InvalidArgument", "Parameter " + std::string(name) +
                                                 " is not valid. Reason: " + name +
                                                 " is a required argument.");
  };
  if (!entry.source || entry.source->empty()) return missing("Source");
  if (!entry.detail_type || entry.detail_type->empty()) return missing("DetailType");
  if (!entry.detail) return missing("Detail");
  if (entry.source->starts_with("aws.") || *entry.source == kOwnSource)
    return events_failure("NotAuthorizedForSourceException",
                          "Not authorized for the source: trainyard, and sources that begin with "
                          "aws., are the server's own.");
  auto detail = parse_json(*entry.detail);
  if (!detail || !detail->is_object())
    return events_failure("MalformedDetail", "Detail is malformed.");
  if (entry.resources && entry.resources->size() > kResourcesMax)
    return events_failure("InvalidArgument", "Resources has " +
                                                 std::to_string(entry.resources->size()) +
                                                 " entries: at most " +
                                                 std::to_string(kResourcesMax) + " are allowed.");
  if (const auto bus = check_bus(context, entry.event_bus_name); !bus)
    return bus.failure(shapes::events::kService);
  Event event;
  event.region = context.region;
  event.source = *entry.source;
  event.detail_type = *entry.detail_type;
  event.time = entry.time.value_or(context.now);
  if (entry.resources) event.resources = *entry.resources;
  event.detail = std::move(*detail);
  return event;
}

Outcome<aws::PutEventsResponse> put_events(EventBus& bus, const Context& context,
                                           const aws::PutEventsRequest& in) {
  if (in.entries->empty() || in.entries->size() > kEntriesMax)
    return events_failure("ValidationException",
                          "1 validation error detected: Value at 'entries' failed to satisfy "
                          "constraint: Member must have length less than or equal to 10");
  size_t bytes = 0;
  for (const auto& entry : *in.entries) bytes += bytes_of(entry);
  if (bytes > kEntriesBytesMax)
    return events_failure("ValidationException",
                          "Total size of the entries in the request is over the limit.");
  aws::PutEventsResponse out{.failed_entry_count = 0,
                             .entries = std::vector<aws::PutEventsResultEntry>()};
  std::vector<Event> events;
  std::vector<size_t> places;
  for (const auto& entry : *in.entries) {
    auto event = event_of(context, entry);
    auto& result = out.entries->emplace_back();
    if (event) {
      places.push_back(out.entries->size() - 1);
      events.push_back(std::move(*event));
      continue;
    }
    const Failure failure = event.failure(shapes::events::kService);
    result.error_code = failure.code;
    result.error_message = failure.message;
    ++*out.failed_entry_count;
  }
  const auto ids = bus.put(std::move(events));
  if (!ids) return failure_for(ids.error());
  for (size_t i = 0; i < places.size(); ++i) (*out.entries)[places[i]].event_id = (*ids)[i];
  return out;
}

Outcome<aws::TestEventPatternResponse> test_pattern(const aws::TestEventPatternRequest& in) {
  const auto pattern = notify::Pattern::compile(*in.event_pattern, notify::kEventPatternBytesMax);
  if (!pattern)
    return events_failure("InvalidEventPatternException",
                          "Event pattern is not valid. Reason: " + pattern.error().message);
  const auto event = parse_json(*in.event);
  if (!event || !event->is_object())
    return events_failure("ValidationException",
                          "Parameter Event is not valid. Reason: it is not "
                          "a JSON object.");
  for (const char* name : {"id", "account", "source", "time", "region", "detail-type"})
    if (!event->contains(name))
      return events_failure("ValidationException",
                            "Parameter Event is not valid. Reason: it has "
                            "no '" +
                                std::string(name) + "'.");
  const auto matched = pattern->matches(*event);
  if (!matched) return failure_for(matched.error());
  return aws::TestEventPatternResponse{.result = *matched};
}

}  // namespace

void add_put_events(OperationTable& table, const Services& services) {
  table.add<aws::PutEvents>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::PutEventsResponse> {
        return put_events(*TRY(bus_of(services)), context, in);
      });
  table.add<aws::TestEventPattern>(
      [](const Context&, const auto& in) -> Outcome<aws::TestEventPatternResponse> {
        return test_pattern(in);
      });
  table.add<aws::DescribeEventBus>(
      [](const Context& context, const auto& in) -> Outcome<aws::DescribeEventBusResponse> {
        TRY(check_bus(context, in.name));
        return aws::DescribeEventBusResponse{.name = "default", .arn = bus_arn(context)};
      });
  table.add<aws::ListEventBuses>(
      [](const Context& context, const auto& in) -> Outcome<aws::ListEventBusesResponse> {
        aws::ListEventBusesResponse out{.event_buses = std::vector<aws::EventBus>()};
        if (std::string("default").starts_with(in.name_prefix.value_or("")))
          out.event_buses->push_back({.name = "default", .arn = bus_arn(context)});
        return out;
      });
}

}  // namespace trainyard::api::events
