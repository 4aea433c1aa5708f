// Defines the loops that follow campaigns; decide.hpp, copy.hpp and plan.hpp make the decisions.
//
// Threads: iterate() is one iteration, which a thread per object repeats (campaigns.cpp).
// Errors:  are recorded in the state that users see; the next iteration tries again. A denied
//          request stops the campaign.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "campaign/campaign_table.hpp"
#include "campaign/campaigns.hpp"

namespace trainyard::campaign {

// RegionFollower starts, watches and stops the jobs of all campaigns in one region.
class RegionFollower {
 public:
  RegionFollower(std::string region, const Settings& settings, CampaignTable& table, Clock& clock)
      : region_(std::move(region)), settings_(settings), table_(table), clock_(clock) {}
  // Returns the time until the next iteration.
  Duration iterate();

 private:
  // Returns a client with the principal's keys. They expire, so it is replaced after
  // Settings::client_lifetime.
  Result<client::Client*> client_of(const Principal& principal);
  Result<void> follow(const Work& work);
  void add_reports(const Work& work, client::Client& client, const SeenJobs& seen,
                   std::vector<Move>& moves);
  Result<void> act(const Work& work, client::Client& client, const Move& move);
  Result<void> ensure_output(const Work& work, const Row& row);
  Result<void> end_denied(const Work& work, const Error& denial);

  const std::string region_;
  const Settings& settings_;
  CampaignTable& table_;
  Clock& clock_;
  struct Opened {
    std::unique_ptr<client::Client> client;
    std::chrono::nanoseconds at;
  };
  std::map<std::string, Opened> clients_;  // by the record of the principal
  std::set<std::string> buckets_;          // buckets that are known to exist
  std::string failed_;                     // the campaign that failed last; "": none yet
  // By active job: when its results were queried last.
  std::map<std::string, std::chrono::nanoseconds> reports_queried_;
};

// CopyFollower copies data to one region, row by row.
class CopyFollower {
 public:
  CopyFollower(std::string region, const Settings& settings, CampaignTable& table, Clock& clock)
      : region_(std::move(region)), settings_(settings), table_(table), clock_(clock) {}
  Duration iterate();

 private:
  Result<void> copy(const Work& work, const Row& row);

  const std::string region_;
  const Settings& settings_;
  CampaignTable& table_;
  Clock& clock_;
};

// Watcher repeats the watches and queries of standing campaigns: new objects become rows of the
// catalogue, new rows become jobs.
class Watcher {
 public:
  using RunQuery = std::function<Result<QueryResult>(const Definition&, const Principal&)>;
  using ReadInputs = std::function<PlanInputs(const Definition&, const Principal&)>;
  Watcher(const Settings& settings, CampaignTable& table, Catalogue& catalogue, Clock& clock,
          RunQuery run_query, ReadInputs read_inputs)
      : settings_(settings),
        table_(table),
        catalogue_(catalogue),
        clock_(clock),
        run_query_(std::move(run_query)),
        read_inputs_(std::move(read_inputs)) {}
  Duration iterate();

 private:
  // Adds rows to the catalogue for new objects.
  Result<void> add_objects(const Campaign& campaign, const Watch& watch);
  // Adds jobs for new rows of the query.
  Result<void> refresh(const Campaign& campaign);
  // Stops the campaign if its principal lacks the right.
  Result<void> require(const Campaign& campaign, std::string_view action);
  Result<void> stop_denied(const Campaign& campaign, const Error& denial);

  const Settings& settings_;
  CampaignTable& table_;
  Catalogue& catalogue_;
  Clock& clock_;
  const RunQuery run_query_;
  const ReadInputs read_inputs_;
  // Objects that the catalogue has, so that it is queried only for new ones: "table/uri".
  std::set<std::string> known_;
};

// Returns the row of the catalogue for an object.
Result<std::map<std::string, std::string>> row_of_object(const Watch& watch,
                                                         const std::string& region,
                                                         const objects::ObjectInfo& object);

}  // namespace trainyard::campaign
