// Declares the helpers of EventBridge's operations: the bus, errors and pages.
//
// Threads: pure functions; the add functions are called before requests arrive. Private to this
// module.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "notify/event_bus.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"
#include "operations/table.hpp"
#include "protocol/errors.hpp"
#include "shapes/events.hpp"

namespace trainyard::api::events {

namespace aws = shapes::events;

inline constexpr size_t kListMax = 100;  // items of a page, as on AWS
inline constexpr size_t kTagsMax = 50;   // AWS's limit for a rule

void add_rules(OperationTable& table, const Services& services);
void add_targets(OperationTable& table, const Services& services);
void add_put_events(OperationTable& table, const Services& services);

// Errors: InternalException, if the server has no event bus.
Outcome<notify::EventBus*> bus_of(const Services& services);
// Checks that a request names the default bus, by name, ARN or not at all. Errors:
// ResourceNotFoundException.
Outcome<Done> check_bus(const Context& context, const std::optional<std::string>& name);
std::string bus_arn(const Context& context);

// Converts an error of notify to EventBridge's failure.
Failure failure_for(const Error& error);
Failure unknown_rule(const std::string& name);

// PageOf is the range of one page in a list that is ordered by name. The token is the last name of
// the previous page.
struct PageOf {
  size_t first = 0, end = 0;
  std::optional<std::string> next_token;
};
Outcome<PageOf> page_of(const std::vector<std::string>& names,
                        const std::optional<std::string>& token,
                        const std::optional<int64_t>& limit);

}  // namespace trainyard::api::events
