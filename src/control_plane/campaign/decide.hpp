// What to do next with the rows of one campaign in one region, from what is written down and what the region shows.
//
// Pure and level-triggered: no list of things to do is kept; asked twice about the same, it answers the same.
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

// A job as its region shows it.
struct SeenJob {
  enum class End { none, completed, failed, stopped };
  End end = End::none;
  std::string id;      // of Batch
  std::string status;  // the region's word
  std::string reason;  // why it failed
  std::optional<Instant> started, ended;
  std::optional<double> cost = {};  // nothing: not said
  int64_t hosts = 0;                // 0: not said
  bool foreign = false;  // it has the name and is not this campaign's: never stopped, never read as ours
};

// What a region shows, by job name. A name that is not there is a job that the region does not have.
using SeenJobs = std::map<std::string, SeenJob>;

struct Move {
  enum class Act { none, submit, stop };
  Row row;  // as it is to be written down before anything is done
  bool changed = false;
  Act act = Act::none;
};

// Of every row that is not over, in their order. `stopping`: the campaign was stopped.
std::vector<Move> decide(const Definition& definition, const std::vector<Row>& rows, const SeenJobs& seen,
                         bool stopping, Instant now);

// The row whose metric is best; nullptr when none has it.
const Row* best_row(const Wanted& wanted, const std::vector<Row>& rows);

// What a region's rows come to.
struct RegionSum {
  std::map<RowState, int64_t> rows;
  int64_t hosts = 0, gpus = 0;  // under way
  double rate = 0;              // of those under way, and of those that are over when none is
  double cost = 0, copy_cost = 0;
  int64_t bytes_total = 0, bytes_copied = 0;
  int64_t tried_again = 0;
};
std::map<std::string, RegionSum> sum_by_region(const Wanted& wanted, const std::vector<Row>& rows);

}  // namespace trainyard::campaign
