// Decides the next step of each row of one campaign in one region, from the stored rows and the
// region's jobs.
//
// The decisions are level-triggered: they depend only on the arguments, not on earlier decisions.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "campaign/definition.hpp"
#include "campaign/row.hpp"

namespace trainyard::campaign {

// A job as its region describes it.
struct SeenJob {
  enum class End { none, completed, failed, stopped };
  End end = End::none;
  std::string id;      // the id of a Batch job
  std::string status;  // the region's term: "Downloading", "RUNNABLE"
  std::string reason;  // why it failed
  std::optional<Instant> started, ended;
  std::optional<double> cost = {};  // nullopt: unknown
  int64_t hosts = 0;                // 0: unknown
  // The job has the name but belongs to another campaign or user. It is never stopped, and its
  // results are not used.
  bool foreign = false;
};

// The jobs of a region, by name. The region has no job of a missing name.
using SeenJobs = std::map<std::string, SeenJob>;

struct Move {
  enum class Act { none, submit, stop };
  Row row;  // stored before the action
  bool changed = false;
  Act act = Act::none;
};

// Returns a move for every row that has not ended, in their order. `stopping`: the campaign was
// stopped.
std::vector<Move> decide(const Definition& definition, const std::vector<Row>& rows,
                         const SeenJobs& seen, bool stopping, Instant now);

// Returns the row with the best value of the metric; nullptr if none has it.
const Row* best_row(const ResultMetrics& result_metrics, const std::vector<Row>& rows);

// The totals of a region's rows.
struct RegionSum {
  std::map<RowState, int64_t> rows;
  int64_t hosts = 0, gpus = 0;  // of active rows
  double rate = 0;              // of active rows; if there are none, of ended ones
  double cost = 0, copy_cost = 0;
  int64_t bytes_total = 0, bytes_copied = 0;
  int64_t tried_again = 0;  // retries
};
std::map<std::string, RegionSum> sum_by_region(const ResultMetrics& result_metrics,
                                               const std::vector<Row>& rows);

}  // namespace trainyard::campaign
