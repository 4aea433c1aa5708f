// What a campaign says to a region: which of its jobs are there, start this one, stop that one. Words of the API in,
// nouns of the campaign out.
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

// Up to so many jobs are asked for one by one; beyond, all of the campaign are listed, page by page.
inline constexpr size_t kAskedOneByOneMax = 50;

// Each job has the campaign's id as this tag, and by it is told from others of its name: another server's campaign may
// have the same one, and a person may use any.
inline constexpr std::string_view kCampaignTag = "trainyard:campaign";

// The jobs of rows that have asked for one. A training job of its name that is not this campaign's is there as foreign;
// one of Batch is left out, since there any number may have a name.
Result<SeenJobs> look(client::Client& client, const Definition& definition, const std::string& campaign_id,
                      const std::vector<Row>& rows);
// The job's id, of Batch. That the name is taken is no error: whose job has it is for the next look to say.
Result<std::string> submit(client::Client& client, const Definition& definition,
                           const std::string& campaign_id, const Row& row);
Result<void> stop(client::Client& client, const Definition& definition, const Row& row);

// What a job has reached and cost, which is dear to ask for.
struct Report {
  // Of an array: the best of its children for Definition::wanted, and kBestChild which of them has it.
  std::map<std::string, double> metrics;
  std::optional<double> cost;
  std::string failure;  // "" = it has not failed, or not said
};
inline constexpr std::string_view kBestChild = "best child";
// Requires: of Batch, the row has its job_id.
Result<Report> report_of(client::Client& client, const Definition& definition, const Row& row);

// Prices and capacity, as the region tells them (DescribeRegion).
Result<RegionFacts> facts_of(client::Client& client);

// -- decided apart from asking, for tests
SeenJob seen_training_job(const Json& described);               // an element of ListJobs
SeenJob seen_batch_job(const Json& described);                  // an element of DescribeJobs
Report report_in(const Json& described, const Wanted& wanted);  // DescribeJob's answer

}  // namespace trainyard::campaign
