// Translates between a campaign and its region's API: which of its jobs exist, start one, stop one.
//
// Threads: as the client's. Errors: the client's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "campaign/decide.hpp"
#include "campaign/plan.hpp"
#include "client/client.hpp"

namespace trainyard::campaign {

// Up to this many jobs are queried one by one; for more, all jobs of the campaign are listed, page
// by page.
inline constexpr size_t kQueriedOneByOneMax = 50;

// Each job has the campaign's id as this tag, which distinguishes it from others of its name:
// another server's campaign may use the same name, and a user may use any.
inline constexpr std::string_view kCampaignTag = "trainyard:campaign";

// Finds the jobs of rows that have submitted one. A training job of its name that belongs to
// another campaign or user is returned as foreign; a Batch job is left out, since any number may
// share a name.
Result<SeenJobs> look(client::Client& client, const Definition& definition,
                      const std::string& campaign_id, const std::vector<Row>& rows);
// Returns the id of a Batch job. A taken name is not an error: the next look() shows whose job has
// it.
Result<std::string> submit(client::Client& client, const Definition& definition,
                           const std::string& campaign_id, const Row& row);
Result<void> stop(client::Client& client, const Definition& definition, const Row& row);

// The metrics and cost of a job, which are expensive to query.
struct Report {
  // For an array, those of the child that is best by Definition::result_metrics, and its index
  // (kBestChild).
  std::map<std::string, double> metrics;
  std::optional<double> cost;
  std::string failure;  // "": it has not failed, or gives no reason
};
inline constexpr std::string_view kBestChild = "best child";
// Requires: the row of a Batch job has its job_id.
Result<Report> report_of(client::Client& client, const Definition& definition, const Row& row);

// Queries the region's prices and capacity (DescribeRegion).
Result<RegionOffers> offers_of(client::Client& client);

// -- pure parts, for tests
SeenJob seen_training_job(const Json& described);  // an element of ListJobs
SeenJob seen_batch_job(const Json& described);     // an element of DescribeJobs
Report report_in(const Json& described,
                 const ResultMetrics& result_metrics);  // DescribeJob's answer

}  // namespace trainyard::campaign
