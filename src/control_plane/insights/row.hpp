// A Row is one event, or one group of `stats`, on its way through a query: its columns by name.
//
// The fields of a message that is a JSON object are discovered when the first field that is not a
// column is read: {"a": {"b": [1]}} has a.b.0. Many queries need none of them.
//
// Threads: confined to one. Errors: none.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "insights/query.hpp"
#include "insights/value.hpp"

namespace trainyard::insights {

// Limits of discovery, for one event.
inline constexpr size_t kFieldsMax = 1'000;             // as AWS
inline constexpr size_t kDiscoveredBytesMax = 1 << 20;  // a longer message has no discovered fields

// One log event, with the positions and names of `observe`.
struct Event {
  std::string group;
  std::string log;  // "123456789012:group"
  std::string stream;
  uint64_t position = 0;
  int64_t at = 0;        // milliseconds
  int64_t ingested = 0;  // milliseconds
  std::string message;
};

// The value of @ptr: GetLogRecord finds the event by it.
std::string pointer_of(const Event& event);

class Row {
 public:
  using Cell = std::pair<std::string, Value>;

  Row() = default;
  explicit Row(std::shared_ptr<const Event> event) : event_(std::move(event)) {}

  Value field(const std::string& name) const;
  // Replaces a column of that name.
  void set(const std::string& name, Value value);
  const Event* event() const { return event_.get(); }  // nullptr: a group of stats
  // An estimate of the memory that only this row uses.
  size_t bytes() const;

 private:
  const std::map<std::string, Value>& discovered() const;

  std::vector<Cell> cells_;
  std::shared_ptr<const Event> event_;
  mutable std::shared_ptr<const std::map<std::string, Value>> discovered_;  // copies share it
};

// The fields of a JSON message, without an event's own ones; empty for any other message.
std::map<std::string, Value> discover_fields(std::string_view message);

Value evaluate(const Expression& expression, const Row& row, const CallContext& context);

}  // namespace trainyard::insights
