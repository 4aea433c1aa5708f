// A Row has the columns of one event, or of one group of `stats`, during a query.
//
// If a message is a JSON object, its fields are discovered when the first field that is not a
// column is read, since many queries need no such fields. For example, {"a": {"b": [1]}} has the
// field a.b.0.
//
// Threads: confined to one thread. Errors: none.
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
inline constexpr size_t kDiscoveredBytesMax = 1 << 20;  // fields of longer messages are not found

// One log event, with its position and the names of its group and stream.
struct Event {
  std::string group;
  std::string log;  // "123456789012:group"
  std::string stream;
  uint64_t position = 0;
  int64_t at = 0;        // milliseconds
  int64_t ingested = 0;  // milliseconds
  std::string message;
};

// Returns the value of @ptr, with which GetLogRecord finds the event.
std::string pointer_of(const Event& event);

class Row {
 public:
  using Cell = std::pair<std::string, Value>;

  Row() = default;
  explicit Row(std::shared_ptr<const Event> event) : event_(std::move(event)) {}

  Value field(const std::string& name) const;
  // Adds a column, or replaces the column with this name.
  void set(const std::string& name, Value value);
  const Event* event() const { return event_.get(); }  // nullptr: the row is a group of stats
  // Estimates the memory that is used only by this row.
  size_t bytes() const;

 private:
  const std::map<std::string, Value>& discovered() const;

  std::vector<Cell> cells_;
  std::shared_ptr<const Event> event_;
  mutable std::shared_ptr<const std::map<std::string, Value>> discovered_;  // copies share it
};

// Returns the fields of a message that is a JSON object; empty for other messages.
std::map<std::string, Value> discover_fields(std::string_view message);

Value evaluate(const Expression& expression, const Row& row, const CallContext& context);

}  // namespace trainyard::insights
