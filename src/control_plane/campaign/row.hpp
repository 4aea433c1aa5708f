// Row is a row of a campaign: the columns of the query, its region, and its state.
//
//   waiting ──► copying ──► ready ──► submitting ──► running ──► completed | failed | stopped
//      └───────────────────►─┘ ▲                        │
//                              └────── tried again ─────┘
//
//   waiting     its data is elsewhere, and the copy has not begun
//   copying     the data is being copied
//   ready       it may start as soon as its region has fewer than `at_once` active jobs
//   submitting  its job's name is stored; whether the job exists is not known yet
//   running     its region has listed it
//
// The name is durable before the job is submitted. A server that was killed in between queries the
// region first, so that no job is submitted twice.
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
  std::string data_region;  // the region of its data
  std::string region;       // the region where its job runs
  std::string why;          // the reason for that region, as users see it
  std::string data;         // s3:// URI; "": none
  std::string copy_to;      // s3:// URI; "": nothing is copied
  Json request;             // the job's request, without its name
  std::string instance_type;
  int64_t hosts = 1;
  double price_per_hour = -1;  // of all hosts; below 0: unknown
  double copy_price_per_gib = 0;

  RowState state = RowState::ready;
  int64_t attempt = 0;  // the number of jobs that were started for it
  std::string job_id;   // the id of a Batch job
  std::string status;   // the region's term: "Downloading", "RUNNABLE"
  std::string reason;   // why it failed, or is retried
  std::optional<Instant> started, ended;
  std::map<std::string, double> metrics;
  double cost = 0;                            // of all its attempts
  double cost_before = 0;                     // the part of `cost` of ended attempts
  int64_t gpus = 0;                           // of all its hosts
  int64_t bytes_total = 0, bytes_copied = 0;  // of the copy; copied: at the destination
  // Transferred by all tries of the copy; only these bytes cost.
  int64_t bytes_moved = 0;
  int64_t objects_total = 0, objects_copied = 0;

  bool over() const { return state >= RowState::completed; }
};

// Returns "streets-3", and "streets-3-2" for the second try.
std::string job_name(const std::string& campaign, const Row& row);

Json to_json(const Row&);
Result<Row> row_from_json(const Json&);

}  // namespace trainyard::campaign
