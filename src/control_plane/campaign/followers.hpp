// Defines the loops that follow campaigns: each is short, around the decisions of decide.hpp,
// copy.hpp and plan.hpp.
//
// Threads: each function is one iteration, repeated by a thread of its own (campaigns.cpp). Errors:
// they are recorded in the state that users see; the next iteration tries again. A denied right
// stops the campaign.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "campaign/campaign_table.hpp"
#include "campaign/campaigns.hpp"

namespace trainyard::campaign {

// Follows one region: queries its jobs, decides, stores, acts.
class RegionFollower {
 public:
  RegionFollower(std::string region, const Settings& settings, CampaignTable& table, Clock& clock)
      : region_(std::move(region)), settings_(settings), table_(table), clock_(clock) {}
  // Returns how long to rest before the next iteration.
  Duration iterate();

 private:
  // Uses the principal's keys, which expire: a new client after Settings::client_lifetime.
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
  std::set<std::string> buckets_;          // that exist
  std::string failed_;  // the campaign that could not be followed last; "": none yet
  std::map<std::string, std::chrono::nanoseconds> reports_queried_;  // job -> when; of active jobs
};

// Copies data to one region, row by row.
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

// Repeats the watches and queries of standing campaigns: new objects become rows of the catalogue,
// new rows become jobs.
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
  Result<void> look_at(const Campaign& campaign, const Watch& watch);
  Result<void> refresh(const Campaign& campaign);
  // Stops the campaign when its principal lacks the right.
  Result<void> require(const Campaign& campaign, std::string_view action);
  Result<void> stop_denied(const Campaign& campaign, const Error& denial);

  const Settings& settings_;
  CampaignTable& table_;
  Catalogue& catalogue_;
  Clock& clock_;
  const RunQuery run_query_;
  const ReadInputs read_inputs_;
  // Objects seen before, so that the catalogue is queried for new ones only: "table/uri".
  std::set<std::string> known_;
};

// The row of the catalogue for an object.
Result<std::map<std::string, std::string>> row_of_object(const Watch& watch,
                                                         const std::string& region,
                                                         const objects::ObjectInfo& object);

}  // namespace trainyard::campaign
