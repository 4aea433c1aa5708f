// Formats the cost report as a table: the cost of groups of jobs, and their total.
//
// Threads: plain values, pure functions. Errors: invalid, for responses without the expected form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "cli/job_view.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {

struct CostLine {
  std::string key;
  std::string display_name;  // of a Batch job: its name; the key is its id
  int64_t jobs = 0, billable_seconds = 0, millionths = 0, on_demand_millionths = 0;
};

struct CostView {
  std::string currency;
  std::vector<CostLine> lines;  // the most expensive first; days by date
  CostLine total;
  std::vector<std::string> unpriced;
};

Result<CostView> cost_view(const Json& answer);
// Makes the view of one job's cost; for an array, of the cost of its children.
CostView cost_view_of(const JobView& job);
std::string cost_table(const OutputStyle& style, const std::string& by, const CostView& view);

}  // namespace trainyard::cli
