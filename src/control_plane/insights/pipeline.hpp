// A Pipeline evaluates a Query over a stream of events in the order of time.
//
// It has neither threads nor a clock: equal events give equal results. Limits bounds its memory for
// all events.
//
// Threads: confined to one thread. Errors: exhausted, if a query exceeds a limit.
// Lifetime: the query outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "insights/aggregates.hpp"
#include "insights/parser.hpp"
#include "insights/query.hpp"
#include "insights/row.hpp"

namespace trainyard::insights {

struct Limits {
  size_t rows_max = kRowsMax;          // in the result
  size_t groups_max = 10'000;          // for each stats; events of further groups are skipped
  size_t memory_bytes_max = 64 << 20;  // for rows and groups
};

using ResultRow = std::vector<std::pair<std::string, std::string>>;  // columns and their texts

class Pipeline {
 public:
  Pipeline(const Query& query, Instant now, const Limits& limits);

  // Processes the next event. Returns false if no later event can change the result.
  Result<bool> take(std::shared_ptr<const Event> event);
  // Returns the result. take() must not be called afterwards.
  Result<std::vector<ResultRow>> finish();

  // Returns the number of events that passed the filters before the first command that groups,
  // orders or limits events.
  uint64_t matched() const { return matched_; }
  // Returns the number of events that were skipped, since they belong to groups beyond the limit.
  uint64_t skipped() const { return skipped_; }

 private:
  struct Group {
    Row key;
    std::vector<Accumulator> accumulators;
  };
  struct HeldRow {
    std::vector<Value> keys;
    Row row;
    size_t bytes = 0;
  };
  // The state of one command.
  struct Stage {
    const Command* command = nullptr;
    std::unordered_map<std::string, size_t> group_of;
    std::vector<Group> groups;
    std::vector<HeldRow> rows;             // for sort
    size_t rows_max = 0;                   // for sort; 0: all, within the memory
    size_t rows_bytes = 0;                 // for sort: the memory that its rows use
    uint64_t passed = 0;                   // for limit: the rows passed on so far
    std::unordered_set<std::string> seen;  // for dedup: the keys seen so far
  };

  Result<void> push(size_t stage, Row row);
  // Returns false if the row ends here.
  Result<bool> apply(Stage& stage, Row& row);
  Result<void> group(Stage& stage, const StatsCommand& stats, const Row& row);
  Result<void> hold(Stage& stage, const SortCommand& sort, Row row);
  Result<bool> is_first(Stage& stage, const DedupCommand& dedup, const Row& row);
  static void sort_rows(Stage& stage, const SortCommand& sort);
  Result<void> use(size_t bytes);
  void find_columns(const Query& query);
  Result<void> add_result(const Row& row);

  CallContext context_;
  const Limits limits_;
  std::vector<Stage> stages_;
  size_t whole_stages_ = 0;  // the number of leading stages that process each row separately
  std::vector<std::string> columns_;  // the columns of the result
  bool shows_pointer_ = true;         // false: rows are groups
  std::vector<ResultRow> results_;
  size_t memory_bytes_ = 0;
  uint64_t matched_ = 0, skipped_ = 0;
  bool full_ = false;
};

}  // namespace trainyard::insights
