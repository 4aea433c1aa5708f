// Decides the next step of each row of one campaign in one region, from the stored rows and the
// region's jobs.
//
// Pure and level-triggered: no list of actions is kept; the same arguments give the same answer.
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
  std::string status;  // the region's own term
  std::string reason;  // why it failed
  std::optional<Instant> started, ended;
  std::optional<double> cost = {};  // nothing: not said
  int64_t hosts = 0;                // unset: unknown
  bool foreign =
      // it has the name and belongs to another campaign or user: never stopped, never read as ours
      false;
};

// The jobs of a region, by name. A missing name is a job that the region does not have.
using SeenJobs = std::map<std::string, SeenJob>;

struct Move {
  enum class Act { none, submit, stop };
  Row row;  // to be stored before the action
  bool changed = false;
  Act act = Act::none;
};

// Returns a move for every row that is not over, in their order. `stopping`: the campaign was
// stopped.
std::vector<Move> decide(const Definition& definition, const std::vector<Row>& rows,
                         const SeenJobs& seen, bool stopping, Instant now);

// The row whose metric is best; nullptr when none has it.
const Row* best_row(const ResultMetrics& result_metrics, const std::vector<Row>& rows);

// The totals of a region's rows.
struct RegionSum {
  std::map<RowState, int64_t> rows;
  int64_t hosts = 0, gpus = 0;  // of active rows
  double rate = 0;              // of active rows, or of ended ones when none is active
  double cost = 0, copy_cost = 0;
  int64_t bytes_total = 0, bytes_copied = 0;
  int64_t tried_again = 0;
};
std::map<std::string, RegionSum> sum_by_region(const ResultMetrics& result_metrics,
                                               const std::vector<Row>& rows);

}  // namespace trainyard::campaign
