// Finds the part of a query's filters that needs nothing of an event but its message.
//
// It is applied while events are read, so that an event that does not pass costs no copies. The
// query is evaluated over the others as a whole.
//
// Threads: pure; the result is immutable. Errors: none. Lifetime: the result shares the query.
#pragma once

#include <memory>

#include "insights/query.hpp"
#include "observe/logs.hpp"

namespace trainyard::insights {

// Returns a condition that each event has to meet which any command of the query uses; nullptr if
// the query has none.
observe::ChooseMessage message_filter(std::shared_ptr<const Query> query);

}  // namespace trainyard::insights
