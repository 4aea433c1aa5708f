// Uses a region's API for a campaign: finds its jobs, starts and stops them, reads their results.
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

// Up to this number, jobs are queried one by one; for more, all jobs of the campaign are listed,
// page by page.
inline constexpr size_t kQueriedOneByOneMax = 50;

// The tag of each job that has the campaign's id. It distinguishes the job from others of its name,
// which another server's campaign or a user may have submitted.
inline constexpr std::string_view kCampaignTag = "trainyard:campaign";

// Finds the submitted jobs of rows. A training job with the right name that belongs to another
// campaign or user is returned as foreign. Such Batch jobs are left out, since any number may share
// a name.
Result<SeenJobs> find_jobs(client::Client& client, const Definition& definition,
                           const std::string& campaign_id, const std::vector<Row>& rows);
// Submits the row's job and returns the id of a Batch job. A name in use is not an error: the next
// find_jobs() shows whether the job with that name is foreign.
Result<std::string> submit(client::Client& client, const Definition& definition,
                           const std::string& campaign_id, const Row& row);
Result<void> stop(client::Client& client, const Definition& definition, const Row& row);

// The metrics and cost of a job, which are expensive to query.
struct Report {
  // For an array: the metrics of the child that is best by Definition::result_metrics, and its
  // index as kBestChild.
  std::map<std::string, double> metrics;
  std::optional<double> cost;
  std::string failure;  // the reason of a failed job; "": it has not failed, or has no reason
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
