// Lists the latest events, for clients that follow them.
#include "base/text.hpp"
#include "notify/event_bus.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

constexpr size_t kEventsDefault = 100;

Outcome<own::ListEventsResponse> list_events(notify::EventBus& bus, const Context& context,
                                             const own::ListEventsRequest& in) {
  own::ListEventsResponse out{.events = std::vector<std::string>()};
  std::optional<notify::Pattern> pattern;
  if (in.event_pattern) {
    auto compiled = notify::Pattern::compile(*in.event_pattern, notify::kEventPatternBytesMax);
    if (!compiled) return validation_exception("EventPattern: " + compiled.error().message);
    pattern = std::move(*compiled);
  }
  uint64_t position = bus.position();
  if (in.position) {
    const auto given = parse_int(*in.position);
    if (!given || *given < 0)
      return validation_exception("Position: must be the Position of an earlier response");
    position = uint64_t(*given);
  }
  const size_t wanted = in.max_results ? size_t(*in.max_results) : kEventsDefault;
  const auto found = bus.follow(position, context.region, wanted);
  for (const auto& event : found.events) {
    if (pattern) {
      const auto matched = pattern->matches(*event);
      if (!matched || !*matched) continue;
    }
    out.events->push_back(dump(*event));
  }
  out.position = std::to_string(found.position);
  if (found.missed) out.events_missed = true;
  return out;
}

}  // namespace

void add_events(OperationTable& table, const Services& services) {
  table.add<own::ListEvents>(
      [&services](const Context& context,
                  const own::ListEventsRequest& in) -> Outcome<own::ListEventsResponse> {
        if (!services.events)
          return validation_exception("Events are not available on this server.");
        return list_events(*services.events, context, in);
      });
}

}  // namespace trainyard::api::trainyard_api
