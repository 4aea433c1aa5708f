// A row of a campaign: what the query said, where it runs, and what became of it.
//
//   waiting ──► copying ──► ready ──► submitting ──► running ──► completed | failed | stopped
//      └───────────────────►─┘ ▲                        │
//                              └────── tried again ─────┘
//
//   waiting     its data lies elsewhere, and the copy has not begun
//   copying     the data is on its way
//   ready       it may start as soon as its region takes another job
//   submitting  its job's name is written down; whether the job exists is for its region to say
//   running     its region has shown it
//
// Since the name is durable before the region is asked, a server killed in between asks the region first: nothing is
// submitted twice.
//
// Threads: plain values. Errors: invalid, of records.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::campaign {

enum class RowState { waiting, copying, ready, submitting, running, completed, failed, stopped };
std::string_view to_string(RowState);
Result<RowState> parse_row_state(std::string_view);

struct Row {
  int64_t number = 0;  // from 1, in the query's order
  std::string label;   // for people, and a standing campaign's key
  std::vector<std::pair<std::string, Json>> columns;
  std::string data_region;  // where its data lies
  std::string region;       // where it runs
  std::string why;          // there, in words
  std::string data;         // s3:// URI, "" = none
  std::string copy_to;      // s3:// URI, "" = nothing is copied
  Json request;             // without the job's name
  std::string instance_type;
  int64_t hosts = 1;
  double price_per_hour = -1;  // of all hosts; below 0: not known
  double copy_price_per_gib = 0;

  RowState state = RowState::ready;
  int64_t attempt = 0;  // the number of jobs that were started for it
  std::string job_id;   // of Batch
  std::string status;   // the region's own word: "Downloading", "RUNNABLE"
  std::string reason;   // why it failed, or is tried again
  std::optional<Instant> started, ended;
  std::map<std::string, double> metrics;
  double cost = 0;                            // of all its attempts
  double cost_before = 0;                     // of those that are over, of `cost`
  int64_t gpus = 0;                           // of all its hosts
  int64_t bytes_total = 0, bytes_copied = 0;  // of the copy; copied: that are there
  int64_t bytes_moved = 0;                    // by all its tries, since what was there costs nothing
  int64_t objects_total = 0, objects_copied = 0;

  bool over() const { return state >= RowState::completed; }
};

// "streets-3", and "streets-3-2" for the second try.
std::string job_name(const std::string& campaign, const Row& row);

Json to_json(const Row&);
Result<Row> row_from_json(const Json&);

}  // namespace trainyard::campaign
