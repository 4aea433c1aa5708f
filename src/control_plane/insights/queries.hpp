// Queries runs Logs Insights queries in the background, and keeps their results for an hour.
//
// A few threads run the queries. The next query is chosen from the principals with waiting queries
// in rotation, and the queries of one principal never use all threads. So a request never waits for
// a query, and the queries of one principal do not block those of others.
//
// Threads: callable from anywhere; the destructor waits until the current pages of events are read.
// Errors: exhausted (too many queries), not_found (a group or a query). Lifetime: logs, clock and
// random outlive it.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "insights/insight_rules.hpp"
#include "insights/pipeline.hpp"
#include "insights/query.hpp"
#include "observe/logs.hpp"

namespace trainyard::insights {

struct QuerySettings {
  size_t threads = 2;                     // at least 2, so that two principals' queries run at once
  size_t queries_per_principal_max = 30;  // waiting and running queries; as on AWS
  size_t queries_max = 200;               // waiting and running queries of all principals
  size_t kept_max = 1'000;                // ended queries
  size_t kept_bytes_max = 256 << 20;      // the results of ended queries
  Duration kept_time = 1h;
  Duration run_time_max = 15min;
  uint64_t scanned_bytes_max = uint64_t{256} << 30;
  Limits limits;
};

struct QueryRequest {
  std::string region, account;
  std::string principal;  // a name; only this principal and the owner may read the results
  std::string principal_arn;
  std::vector<std::string> groups;  // at least one
  std::string text;
  std::shared_ptr<const Query> query;  // the parsed text
  Instant from, to;                    // both inclusive
  size_t rows_max = kRowsMax;
};

enum class QueryState { scheduled, running, complete, failed, cancelled, timed_out };

struct QueryStatistics {
  uint64_t matched = 0;        // events
  uint64_t scanned = 0;        // events
  uint64_t scanned_bytes = 0;  // the bytes of messages, and 26 for each event
  uint64_t skipped = 0;        // events of groups beyond the limit
  double progress = 0;         // 0 to 1: the part of the time range that was scanned
};

struct QueryReport {
  std::string id;
  QueryRequest request;
  QueryState state = QueryState::scheduled;
  Instant created;
  Duration took{};
  QueryStatistics statistics;
  std::string why;                                     // why the query failed
  std::shared_ptr<const std::vector<ResultRow>> rows;  // nullptr unless complete
};

class Queries {
 public:
  Queries(observe::Logs& logs, Clock& clock, Random& random, QuerySettings settings = {});
  ~Queries();
  Queries(const Queries&) = delete;

  // Starts a query, and returns its id. Errors: exhausted.
  Result<std::string> start(QueryRequest request);
  // Waits until the query has ended, or until this time has passed.
  void wait(const std::string& id, Duration at_most);
  std::optional<QueryReport> find(const std::string& id);
  // Stops a query. Returns false if it has already ended. Errors: not_found.
  Result<bool> stop(const std::string& id);
  // Stops and removes the queries that read a group, after the group was removed.
  void forget(const std::string& region, const std::string& group);
  // Returns the queries of a region without their results, the latest first.
  std::vector<QueryReport> list(const std::string& region);
  // Returns the rules of Contributor Insights.
  InsightRules& rules() { return rules_; }

 private:
  struct Run;
  void work();
  std::shared_ptr<Run> next_locked() REQUIRES(mutex_);
  void forget_locked() REQUIRES(mutex_);
  Result<std::vector<ResultRow>> execute(Run& run);
  void end(const std::shared_ptr<Run>& run, Result<std::vector<ResultRow>> result);
  static QueryReport report_of(const Run& run);

  observe::Logs& logs_;
  Clock& clock_;
  Random& random_;
  const QuerySettings settings_;
  InsightRules rules_{logs_};

  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::map<std::string, std::shared_ptr<Run>> runs_ GUARDED_BY(mutex_);  // by id
  std::deque<std::string> order_ GUARDED_BY(mutex_);                     // ids, oldest first
  // ids of scheduled queries, by principal
  std::map<std::string, std::deque<std::string>> waiting_ GUARDED_BY(mutex_);
  std::map<std::string, size_t> running_ GUARDED_BY(mutex_);  // by principal
  std::string last_served_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // last: they use the members above
};

// Returns the event to which a value of @ptr refers. Errors: invalid (the pointer), not_found.
Result<Event> find_record(observe::Logs& logs, const std::string& region,
                          const std::string& account, const std::string& pointer);

}  // namespace trainyard::insights
