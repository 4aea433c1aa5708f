#include "events/common.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::api::events {

Outcome<notify::EventBus*> bus_of(const Services& services) {
  if (services.events) return services.events;
  return events_failure("InternalException", "This server offers no event bus.");
}

std::string bus_arn(const Context& context) {
  return "arn:aws:events:" + context.region + ":" + context.principal.account +
         ":event-bus/default";
}

Outcome<Done> check_bus(const Context& context, const std::optional<std::string>& name) {
  if (!name || *name == "default" || *name == bus_arn(context)) return Done{};
  return events_failure("ResourceNotFoundException",
                        "Event bus " + shorten(*name, 200) + " does not exist.");
}

Failure unknown_rule(const std::string& name) {
  return events_failure("ResourceNotFoundException",
                        "Rule " + name + " does not exist on EventBus default.");
}

Failure failure_for(const Error& error) {
  if (error.kind == Kind::not_found)
    return events_failure("ResourceNotFoundException", error.message);
  if (error.is(notify::NotifyFault::rule_limit))
    return events_failure("LimitExceededException", error.message);
  if (error.kind == Kind::conflict) return events_failure("ValidationException", error.message);
  return failure_of(shapes::events::kService, error);
}

Outcome<PageOf> page_of(const std::vector<std::string>& names,
                        const std::optional<std::string>& token,
                        const std::optional<int64_t>& limit) {
  PageOf page;
  if (token) {
    const auto last = from_base64(*token);
    if (!last)
      return events_failure("ValidationException",
                            "Invalid NextToken: use the NextToken of the list's previous page");
    page.first = size_t(std::ranges::upper_bound(names, *last) - names.begin());
  }
  const size_t items = limit ? std::min(size_t(*limit), kListMax) : kListMax;
  page.end = std::min(names.size(), page.first + items);
  if (page.end < names.size()) page.next_token = to_base64(names[page.end - 1]);
  return page;
}

}  // namespace trainyard::api::events
