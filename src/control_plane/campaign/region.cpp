#include "campaign/region.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::campaign {
namespace {

using client::Service;

constexpr int kPageJobs = 100;
constexpr size_t kPagesMax = 1'000;       // of one listing: more than kRowsMax with all its retries
constexpr size_t kDescribedAtOnce = 100;  // as Batch

std::optional<double> number_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return {};
  return found->get<double>();
}

std::optional<Instant> instant_in(const Json& object, const char* name, double milliseconds) {
  const auto number = number_in(object, name);
  if (!number) return {};
  return from_milliseconds(int64_t(*number * milliseconds));
}

const Json& list_in(const Json& object, const char* name) {
  static const Json kNone = Json::array();
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? *found : kNone;
}

std::optional<double> cost_in(const Json& job) {
  const auto cost = job.find("Cost");
  if (cost == job.end() || !cost->is_object()) return {};
  const auto amount = parse_double(string_or(*cost, "Amount"));
  return amount ? std::optional(*amount) : std::nullopt;
}

// Returns true if a described job has the campaign's id, or the campaign has none.
bool is_ours(const Json& job, const char* member, const std::string& campaign_id) {
  if (campaign_id.empty()) return true;
  const auto tags = job.find(member);
  if (tags == job.end()) return false;
  if (tags->is_object()) return string_or(*tags, kCampaignTag) == campaign_id;  // as Batch has them
  return std::any_of(tags->begin(), tags->end(), [&](const Json& tag) {
    return string_or(tag, "Key") == kCampaignTag && string_or(tag, "Value") == campaign_id;
  });
}

// Returns the list to which the campaign's tag is added; nullptr if the campaign has no id, or the
// author's tags are not a list, which the region rejects.
Json* tags_of(Json& request, const char* member, const Json& none, const std::string& campaign_id) {
  if (campaign_id.empty()) return nullptr;
  Json& tags = request.emplace(member, none).first.value();
  return tags.type() == none.type() ? &tags : nullptr;
}

bool is_submitted(const Row& row) {
  return row.state == RowState::submitting || row.state == RowState::running;
}

Result<SeenJobs> look_at_training_jobs(client::Client& client, const Definition& definition,
                                       const std::string& campaign_id,
                                       const std::vector<Row>& rows) {
  SeenJobs seen;
  const auto note = [&](const std::string& name, const Json& job) {
    seen[name] = seen_training_job(job);
    seen[name].foreign = !is_ours(job, "Tags", campaign_id);
  };
  const auto submitted = size_t(std::count_if(rows.begin(), rows.end(), is_submitted));
  if (submitted <= kQueriedOneByOneMax) {
    for (const Row& row : rows) {
      if (!is_submitted(row)) continue;
      const std::string name = job_name(definition.name, row);
      const auto found = client.call(Service::trainyard, "DescribeJob", {{"JobName", name}});
      if (found)
        note(name, *found);
      else if (found.error().kind != Kind::not_found)
        return found.error();
    }
    return seen;
  }
  Json question{{"NameContains", definition.name + "-"}, {"MaxResults", kPageJobs}};
  for (size_t page = 0; page < kPagesMax; ++page) {
    const Json answer = TRY(client.call(Service::trainyard, "ListJobs", question));
    for (const Json& job : list_in(answer, "Jobs")) note(string_or(job, "Name"), job);
    const std::string token = string_or(answer, "NextToken");
    if (token.empty()) return seen;
    question["NextToken"] = token;
  }
  return exhausted("the region has more than " + std::to_string(kPagesMax * kPageJobs) +
                   " jobs whose names contain '" + definition.name +
                   "-': give the campaign a name of its own");
}

Result<Json> describe_batch_jobs(client::Client& client, const Json& ids) {
  const Json answer = TRY(client.call(Service::batch, "DescribeJobs", {{"jobs", ids}}));
  return list_in(answer, "jobs");
}

// Returns the id of the campaign's job with this name in the row's queue; "" if there is none.
// Other users of the queue may have any number of jobs of that name.
Result<std::string> find_batch_job(client::Client& client, const Definition& definition,
                                   const std::string& campaign_id, const Row& row) {
  Json question{
      {"jobQueue", string_or(row.request, "jobQueue")},
      {"filters", {{{"name", "JOB_NAME"}, {"values", {job_name(definition.name, row)}}}}}};
  for (size_t page = 0; page < kPagesMax; ++page) {
    const Json answer = TRY(client.call(Service::batch, "ListJobs", question));
    Json ids = Json::array();
    for (const Json& job : list_in(answer, "jobSummaryList"))
      ids.push_back(string_or(job, "jobId"));
    if (!ids.empty())
      for (const Json& job : TRY(describe_batch_jobs(client, ids)))
        if (is_ours(job, "tags", campaign_id)) return string_or(job, "jobId");
    const std::string token = string_or(answer, "nextToken");
    if (token.empty()) return std::string();
    question["nextToken"] = token;
  }
  return exhausted("the queue has more than " + std::to_string(kPagesMax) +
                   " pages of jobs named " + job_name(definition.name, row) +
                   ": the campaign's job was not found");
}

Result<SeenJobs> look_at_batch_jobs(client::Client& client, const Definition& definition,
                                    const std::string& campaign_id, const std::vector<Row>& rows) {
  std::map<std::string, std::string> names;  // by id
  for (const Row& row : rows) {
    if (!is_submitted(row)) continue;
    const std::string id =
        row.job_id.empty() ? TRY(find_batch_job(client, definition, campaign_id, row)) : row.job_id;
    if (!id.empty()) names[id] = job_name(definition.name, row);
  }
  SeenJobs seen;
  for (auto at = names.begin(); at != names.end();) {
    Json ids = Json::array();
    for (; at != names.end() && ids.size() < kDescribedAtOnce; ++at) ids.push_back(at->first);
    for (const Json& job : TRY(describe_batch_jobs(client, ids))) {
      const auto name = names.find(string_or(job, "jobId"));
      if (name != names.end()) seen[name->second] = seen_batch_job(job);
    }
  }
  return seen;
}

}  // namespace

SeenJob seen_training_job(const Json& job) {
  SeenJob seen;
  const std::string status = string_or(job, "Status");
  if (status == "Completed") seen.end = SeenJob::End::completed;
  if (status == "Failed") seen.end = SeenJob::End::failed;
  if (status == "Stopped") seen.end = SeenJob::End::stopped;
  seen.status = string_or(job, "SecondaryStatus");
  seen.reason = string_or(job, "FailureReason");
  if (seen.reason.empty()) seen.reason = string_or(job, "WaitReason");
  constexpr double kPerSecond = 1000;
  seen.started = instant_in(job, "TrainingStartTime", kPerSecond);
  seen.ended = instant_in(job, "TrainingEndTime", kPerSecond);
  seen.cost = cost_in(job);
  return seen;
}

SeenJob seen_batch_job(const Json& job) {
  SeenJob seen;
  seen.id = string_or(job, "jobId");
  seen.status = string_or(job, "status");
  if (seen.status == "SUCCEEDED") seen.end = SeenJob::End::completed;
  if (seen.status == "FAILED") seen.end = SeenJob::End::failed;
  seen.reason = seen.end == SeenJob::End::completed ? "" : string_or(job, "statusReason");
  if (const auto container = job.find("container");
      container != job.end() && container->is_object())
    if (const auto why = string_or(*container, "reason");
        !why.empty() && seen.end == SeenJob::End::failed)
      seen.reason += (seen.reason.empty() ? "" : ": ") + why;
  if (const auto nodes = job.find("nodeProperties"); nodes != job.end())
    seen.hosts = int64_t(number_in(*nodes, "numNodes").value_or(0));
  seen.started = instant_in(job, "startedAt", 1);
  seen.ended = instant_in(job, "stoppedAt", 1);
  return seen;
}

Result<SeenJobs> find_jobs(client::Client& client, const Definition& definition,
                           const std::string& campaign_id, const std::vector<Row>& rows) {
  return definition.request_kind == RequestKind::training_job
             ? look_at_training_jobs(client, definition, campaign_id, rows)
             : look_at_batch_jobs(client, definition, campaign_id, rows);
}

Result<std::string> submit(client::Client& client, const Definition& definition,
                           const std::string& campaign_id, const Row& row) {
  Json request = row.request;
  const std::string name = job_name(definition.name, row);
  if (definition.request_kind == RequestKind::batch_job) {
    request["jobName"] = name;
    if (Json* tags = tags_of(request, "tags", Json::object(), campaign_id))
      (*tags)[std::string(kCampaignTag)] = campaign_id;
    return string_or(TRY(client.call(Service::batch, "SubmitJob", request)), "jobId");
  }
  request["TrainingJobName"] = name;
  if (Json* tags = tags_of(request, "Tags", Json::array(), campaign_id))
    tags->push_back({{"Key", kCampaignTag}, {"Value", campaign_id}});
  const auto made = client.call(Service::sagemaker, "CreateTrainingJob", request);
  if (!made && made.error().kind != Kind::conflict) return made.error();
  return std::string();
}

Result<void> stop(client::Client& client, const Definition& definition, const Row& row) {
  const std::string name = job_name(definition.name, row);
  const auto stopped =
      definition.request_kind == RequestKind::batch_job
          ? client.call(Service::batch, "TerminateJob",
                        {{"jobId", row.job_id}, {"reason", "its campaign was stopped"}})
          : client.call(Service::sagemaker, "StopTrainingJob", {{"TrainingJobName", name}});
  // The region rejects a stop if the job is stopping or has ended; the next query shows which.
  if (!stopped &&
      (stopped.error().kind == Kind::unavailable || stopped.error().kind == Kind::denied))
    return stopped.error();
  return {};
}

Result<Report> report_of(client::Client& client, const Definition& definition, const Row& row) {
  const std::string name = definition.request_kind == RequestKind::batch_job
                               ? row.job_id
                               : job_name(definition.name, row);
  return report_in(TRY(client.call(Service::trainyard, "DescribeJob", {{"JobName", name}})),
                   definition.result_metrics);
}

Report report_in(const Json& job, const ResultMetrics& result_metrics) {
  Report report;
  report.cost = cost_in(job);
  report.failure = string_or(job, "FailureReason");
  for (const Json& metric : list_in(job, "Metrics"))
    if (const auto value = number_in(metric, "Value"))
      report.metrics[string_or(metric, "Name")] = *value;
  const auto array = job.find("Array");
  if (array == job.end() || !array->is_object()) return report;
  for (const Json& metric : list_in(*array, "Metrics")) {
    const std::string name = string_or(metric, "Name");
    const auto best = number_in(metric, result_metrics.highest ? "Highest" : "Lowest");
    if (!best) continue;
    report.metrics[name] = *best;
    const auto child = number_in(metric, result_metrics.highest ? "HighestIndex" : "LowestIndex");
    if (name == result_metrics.best && child) report.metrics[std::string(kBestChild)] = *child;
  }
  return report;
}

Result<RegionOffers> offers_of(client::Client& client) {
  const Json answer = TRY(client.call(Service::trainyard, "DescribeRegion", Json::object()));
  RegionOffers found;
  found.known = true;
  for (const Json& type : list_in(answer, "InstanceTypes")) {
    Offer offer;
    offer.on_demand = number_in(type, "OnDemandPerHour");
    offer.spot = number_in(type, "SpotPerHour");
    if (const auto total = number_in(type, "HostsTotal")) offer.hosts_total = int64_t(*total);
    if (const auto free = number_in(type, "HostsFree")) offer.hosts_free = int64_t(*free);
    found.offers[string_or(type, "InstanceType")] = offer;
  }
  return found;
}

}  // namespace trainyard::campaign
