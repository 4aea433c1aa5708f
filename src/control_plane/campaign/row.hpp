// Row is a row of a campaign: the columns of the query, its region, and its state.
//
//   waiting ──► copying ──► ready ──► submitting ──► running ──► completed | failed | stopped
//      └───────────────────►─┘ ▲                        │
//                              └────── tried again ─────┘
//
//   waiting     its data is elsewhere, and the copy has not begun
//   copying     the data is being copied
//   ready       it may start as soon as its region takes another job
//   submitting  its job's name is stored; only its region knows if the job exists
//   running     its region has listed it
//
// The name is durable before the job is submitted, so a server that was killed in between queries
// the region first: nothing is submitted twice.
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

inline constexpr double kGibibyte = double(1 << 30);

enum class RowState { waiting, copying, ready, submitting, running, completed, failed, stopped };
std::string_view to_string(RowState);
Result<RowState> parse_row_state(std::string_view);

struct Row {
  int64_t number = 0;  // from 1, in the query's order
  std::string label;   // for people, and a standing campaign's key
  std::vector<std::pair<std::string, Json>> columns;
  std::string data_region;  // where its data lies
  std::string region;       // where it runs
  std::string why;          // why there, as users see it
  std::string data;         // s3:// URI, "": none
  std::string copy_to;      // s3:// URI, "": nothing is copied
  Json request;             // without the job's name
  std::string instance_type;
  int64_t hosts = 1;
  double price_per_hour = -1;  // of all hosts; below 0: unknown
  double copy_price_per_gib = 0;

  RowState state = RowState::ready;
  int64_t attempt = 0;  // the number of jobs that were started for it
  std::string job_id;   // the id of a Batch job
  std::string status;   // the region's own term: "Downloading", "RUNNABLE"
  std::string reason;   // why it failed, or is retried
  std::optional<Instant> started, ended;
  std::map<std::string, double> metrics;
  double cost = 0;                            // of all its attempts
  double cost_before = 0;                     // of ended attempts, part of `cost`
  int64_t gpus = 0;                           // of all its hosts
  int64_t bytes_total = 0, bytes_copied = 0;  // of the copy; copied: that exist
  // by all its tries, since existing objects cost nothing
  int64_t bytes_moved = 0;
  int64_t objects_total = 0, objects_copied = 0;

  bool over() const { return state >= RowState::completed; }
};

// "streets-3", and "streets-3-2" for the second try.
std::string job_name(const std::string& campaign, const Row& row);

Json to_json(const Row&);
Result<Row> row_from_json(const Json&);

}  // namespace trainyard::campaign
