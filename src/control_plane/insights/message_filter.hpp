// Extracts the part of a query's filters that depends only on the messages of events.
//
// This part is applied while events are read, so that other events are not copied. The whole query
// is then evaluated over the events that passed.
//
// Threads: pure; the result is immutable. Errors: none. Lifetime: the result shares the query.
#pragma once

#include <memory>

#include "insights/query.hpp"
#include "observe/logs.hpp"

namespace trainyard::insights {

// Returns a condition that is true for each event that can affect the result of the query, or
// nullptr if there is no such condition.
observe::ChooseMessage message_filter(std::shared_ptr<const Query> query);

}  // namespace trainyard::insights
