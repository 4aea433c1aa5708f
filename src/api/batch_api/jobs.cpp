// Submits, describes, lists, cancels and terminates Batch jobs.
#include <algorithm>

#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch/multinode.hpp"
#include "batch/status.hpp"
#include "batch_api/nodes.hpp"
#include "batch_api/requests.hpp"
#include "domain/stage.hpp"
#include "operations/shared_directories.hpp"
#include "sagemaker/training_job.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
using domain::JobKey;
using domain::Stage;

constexpr int64_t kListMaxBatch = 1'000;  // in a page without filters, as on AWS
constexpr size_t kUuidBytes = 16;
constexpr size_t kTagValueBytesMax = 256;  // as on AWS
constexpr size_t kReasonBytesMax = 1024;   // as on AWS

std::string new_id(Random& random) {
  std::string id = random.hex(kUuidBytes);
  for (const size_t dash : {20, 16, 12, 8}) id.insert(dash, 1, '-');
  return id;
}

// Finds the definition of a request. A name without a revision stands for the newest active
// revision.
Outcome<catalog::JobDefinition> find_definition(const Services& services, const Context& context,
                                                const std::string& text) {
  std::string name(catalog::name_in_arn(text, catalog::kDefinitionArn));
  ledger::DefinitionQuery query;
  query.region = context.region;
  query.active = true;
  query.definitions_max = 1;
  if (const size_t colon = name.rfind(':'); colon != std::string::npos) {
    query.revision = revision_in(std::string_view(name).substr(colon + 1));
    name.resize(colon);
  }
  query.name = name;
  auto found = TRY(services.control.definitions(query));
  if (found.empty() || name.empty())
    return client_exception("JobDefinition " + shorten(text, 256) +
                            " does not exist, or is not active");
  return std::move(found.front());
}

Outcome<control::CreateJob> new_job(const Services& services, const Context& context,
                                    const batch::SubmitJobRequest& request, const std::string& id,
                                    const Settings& settings) {
  const std::string& account = context.principal.account;
  const auto definition = TRY(find_definition(services, context, *request.job_definition));
  const std::string queue(catalog::name_in_arn(*request.job_queue, catalog::kQueueArn));
  control::CreateJob job;
  job.key = {context.region, id};
  job.spec = TRY(batch_spec_of(request, definition, queue, context.region, account, id, settings));
  job.spec.principal = context.principal.name;
  if (auto checked = check_shared_directories(settings, context.principal, job.spec); !checked)
    return client_exception(checked.error().message);
  job.tags = TRY(batch_tags_in(request.tags));
  for (const auto& [key, value] : job.tags) {
    if (!key.starts_with(kMetricTag)) continue;
    auto metric = sagemaker::metric_definition(key.substr(kMetricTag.size()), value);
    if (!metric) return client_exception("Tag " + key + ": " + metric.error().message);
    job.spec.metrics.push_back(*std::move(metric));
  }
  job.tags.push_back(
      {std::string(kCreatedByTag), context.principal.arn.substr(0, kTagValueBytesMax)});
  return job;
}

void submit(const Settings& settings, const Services& services, const Context& context,
            const batch::SubmitJobRequest& request, Answer<batch::SubmitJobResponse> answer) {
  auto job = new_job(services, context, request, new_id(services.random), settings);
  if (!job) return answer(std::move(job).error());
  services.control.create_job(*std::move(job),
                              [answer = std::move(answer)](Result<domain::Job> made) {
                                if (!made) return answer(std::move(made).error());
                                batch::SubmitJobResponse out;
                                out.job_arn = control::job_arn(*made);
                                out.job_id = made->key.name;
                                out.job_name = made->spec.display_name;
                                answer(std::move(out));
                              });
}

Result<domain::ChildCounts> counts_of(const Services& services, const domain::Job& job) {
  return job.is_array() ? services.control.count_children(job) : domain::ChildCounts();
}

bool is_node(const domain::Job& job, domain::HostIndex node) {
  return job.spec.main_host() && node < job.spec.hosts();
}

Outcome<batch::DescribeJobsResponse> describe_jobs(const Services& services, const Context& context,
                                                   const batch::DescribeJobsRequest& request) {
  if (request.jobs->size() > size_t(kPageMaxBatch))
    return client_exception("jobs names at most " + std::to_string(kPageMaxBatch));
  batch::DescribeJobsResponse out;
  out.jobs.emplace();
  for (const auto& id : *request.jobs) {
    const auto [of_job, node] =
        catalog::split_node_id(std::string(catalog::name_in_arn(id, catalog::kJobArn)));
    const auto job = services.control.find({context.region, of_job}, context.may_see_job());
    if (!job && job.error().kind == Kind::not_found) continue;
    if (!job) return job.error();
    if ((*job)->spec.contract == domain::Contract::training || (node && !is_node(**job, *node)))
      continue;
    auto detail = TRY(node ? describe_node(**job, *node) : describe(**job));
    add_array(detail, **job, TRY(counts_of(services, **job)), context.now);
    std::map<std::string, std::string> tags;
    for (const auto& tag : TRY(services.control.tags(control::job_arn(**job))))
      if (tag.key != kCreatedByTag) tags[tag.key] = tag.value;
    detail.tags = std::move(tags);
    out.jobs->push_back(std::move(detail));
  }
  return out;
}

// -- ListJobs

// The filters that the ledger cannot apply.
struct JobFilters {
  std::vector<std::string> names, definitions;  // patterns; empty: all
  std::vector<std::string> shares;              // empty: all

  bool matches(const domain::Job& job) const {
    const auto any = [](const std::vector<std::string>& patterns,
                        std::initializer_list<std::string> texts) {
      return patterns.empty() || std::ranges::any_of(patterns, [&](const auto& pattern) {
               return std::ranges::any_of(
                   texts, [&](const auto& text) { return domain::matches(pattern, text); });
             });
    };
    const std::string with_revision(
        catalog::name_in_arn(job.spec.definition, catalog::kDefinitionArn));
    return any(names, {job.spec.display_name}) &&
           (shares.empty() || std::ranges::find(shares, job.spec.queue->share) != shares.end()) &&
           any(definitions,
               {job.spec.definition, with_revision, catalog::definition_name(job.spec.definition)});
  }
};

Outcome<JobFilters> read_filters(const batch::ListJobsRequest& request, ledger::JobQuery& query) {
  JobFilters wanted;
  const auto filters = request.filters.value_or(std::vector<batch::KeyValuesPair>());
  if (filters.size() > 1)
    return client_exception("filters accepts one filter, not " + std::to_string(filters.size()));
  for (const auto& filter : filters) {
    const auto values = filter.values.value_or(std::vector<std::string>());
    const std::string name = filter.name.value_or("");
    if (values.empty())
      return client_exception("the filter " + shorten(name, 60) + " needs a value");
    if (name == "JOB_NAME") {
      wanted.names = values;
    } else if (name == "JOB_DEFINITION") {
      wanted.definitions = values;
    } else if (name == "SHARE_IDENTIFIER") {
      wanted.shares = values;
    } else if (name == "BEFORE_CREATED_AT" || name == "AFTER_CREATED_AT") {
      (name == "BEFORE_CREATED_AT" ? query.created_before : query.created_after) =
          TRY(filter_instant(name, values.front()));
    } else {
      return client_exception("the filter " + shorten(name, 60) +
                              " is not one of JOB_NAME, JOB_DEFINITION, BEFORE_CREATED_AT, "
                              "AFTER_CREATED_AT, SHARE_IDENTIFIER");
    }
  }
  // With a filter AWS ignores the status, except with the filter by share. Without a filter the
  // default is RUNNING.
  if (!filters.empty() && (wanted.shares.empty() || !request.job_status)) return wanted;
  const std::string status = request.job_status.value_or("RUNNING");
  for (int i = 0; i <= int(Stage::failed); ++i)
    if (catalog::status_name(Stage(i)) == status) query.stage = Stage(i);
  if (!query.stage) return client_exception("'" + shorten(status, 60) + "' is not a job status");
  return wanted;
}

Outcome<Done> add_summary(const Services& services, const Context& context, const domain::Job& job,
                          batch::ListJobsResponse& out) {
  auto summary = summary_of_batch(job);
  add_array(summary, job, TRY(counts_of(services, job)), context.now);
  out.job_summary_list->push_back(std::move(summary));
  return Done{};
}

// Lists the children of an array. The token is the next index.
Outcome<batch::ListJobsResponse> list_children(const Services& services, const Context& context,
                                               const batch::ListJobsRequest& request,
                                               size_t results_max) {
  const std::string id(catalog::name_in_arn(*request.array_job_id, catalog::kJobArn));
  const auto array = services.control.find(JobKey{context.region, id});
  if (!array && array.error().kind != Kind::not_found) return array.error();
  if (!array || !(*array)->is_array())
    return client_exception("the array job " + shorten(id, 128) + " does not exist");
  ledger::JobQuery filters;
  const JobFilters wanted = TRY(read_filters(request, filters));
  const Instant created = (*array)->created;
  const bool none = (filters.created_after && created <= *filters.created_after) ||
                    (filters.created_before && created >= *filters.created_before) ||
                    !wanted.matches(**array);
  ledger::ChildQuery query;
  query.stage = filters.stage;
  query.children_max = results_max;
  if (request.next_token) {
    const auto first = parse_int(*request.next_token);
    if (!first || *first < 0 || *first > domain::kArraySizeMax)
      return client_exception(
          "nextToken is not valid for this list: use the nextToken of its previous page");
    query.first = uint32_t(*first);
  }
  batch::ListJobsResponse out;
  out.job_summary_list.emplace();
  if (none) return out;
  const auto children = TRY(services.control.children(**array, query));
  for (const domain::Job& child : children)
    TRY(add_summary(services, context, *current_job(services, context, child), out));
  if (children.size() == results_max) {
    const uint32_t next = domain::array_index(children.back()) + 1;
    if (next < (*array)->spec.array.size) out.next_token = std::to_string(next);
  }
  return out;
}

// Lists the nodes of a job by index. The token is the last index.
Outcome<batch::ListJobsResponse> list_nodes(const Services& services, const Context& context,
                                            const batch::ListJobsRequest& request,
                                            size_t results_max) {
  if (request.filters && !request.filters->empty())
    return client_exception(
        "filters cannot be used with multiNodeJobId: they apply to the jobs of a jobQueue");
  const JobKey key{context.region,
                   std::string(catalog::name_in_arn(*request.multi_node_job_id, catalog::kJobArn))};
  batch::ListJobsResponse out;
  out.job_summary_list.emplace();
  const auto job = services.control.find(key);
  if (!job && job.error().kind != Kind::not_found) return job.error();
  if (!job || !(*job)->spec.queue || !(*job)->spec.main_host()) return out;
  const std::string status = request.job_status.value_or("RUNNING");
  const auto after = parse_int(request.next_token.value_or("-1"));
  if (!after || *after < -1)
    return client_exception(
        "nextToken is not valid for this list: use the nextToken of its previous page");
  for (int64_t node = *after + 1; node < int64_t((*job)->spec.hosts()); ++node) {
    auto summary = summary_of_node(**job, domain::HostIndex(node));
    if (summary.status != status) continue;
    if (out.job_summary_list->size() == results_max) {
      out.next_token = std::to_string(*out.job_summary_list->back().node_properties->node_index);
      break;
    }
    out.job_summary_list->push_back(std::move(summary));
  }
  return out;
}

Outcome<batch::ListJobsResponse> list_jobs(const Services& services, const Context& context,
                                           const batch::ListJobsRequest& request) {
  if (int(bool(request.job_queue)) + int(bool(request.array_job_id)) +
          int(bool(request.multi_node_job_id)) !=
      1)
    return client_exception("ListJobs needs one of jobQueue, arrayJobId and multiNodeJobId");
  const int64_t most = request.filters && !request.filters->empty() ? kPageMaxBatch : kListMaxBatch;
  if (request.max_results && (*request.max_results < 1 || *request.max_results > most))
    return client_exception("maxResults must be between 1 and " + std::to_string(most));
  const auto results_max = size_t(request.max_results.value_or(most));
  if (request.array_job_id) return list_children(services, context, request, results_max);
  if (request.multi_node_job_id) return list_nodes(services, context, request, results_max);
  const JobKey queue{context.region,
                     std::string(catalog::name_in_arn(*request.job_queue, catalog::kQueueArn))};
  if (!services.control.batch_catalog()->queue(queue))
    return client_exception("the job queue " + shorten(queue.name, 128) + " does not exist");
  ledger::JobQuery query;
  query.region = context.region;
  query.queue = queue.name;
  query.token = request.next_token.value_or("");
  const JobFilters wanted = TRY(read_filters(request, query));

  batch::ListJobsResponse out;
  out.job_summary_list.emplace();
  for (const auto& job :
       TRY(scan_jobs(services, context, query, results_max,
                     [&](const domain::Job& each) { return wanted.matches(each); })))
    TRY(add_summary(services, context, *job, out));
  if (!query.token.empty()) out.next_token = query.token;
  return out;
}

// -- cancel and terminate

// AWS's model does not constrain these texts; its service does.
std::optional<Failure> check_cancellation(const std::string& id, const std::string& reason) {
  const auto empty = [](const std::string& member) {
    return client_exception("'" + member + "' is a required field (cannot be an empty string)");
  };
  if (id.empty()) return empty("jobId");
  if (trim(reason).empty()) return empty("reason");
  if (reason.size() > kReasonBytesMax)
    return client_exception("reason has " + std::to_string(reason.size()) + " bytes, but at most " +
                            std::to_string(kReasonBytesMax) + " are allowed");
  return {};
}

// A job that does not exist or has finished is not an error, as on AWS.
template <class Output>
void cancel(const Services& services, const Context& context, const std::string& id,
            domain::Cancellation how, const std::string& reason, Answer<Output> answer) {
  if (auto refused = check_cancellation(id, reason)) return answer(std::move(*refused));
  if (const auto [job, node] =
          catalog::split_node_id(std::string(catalog::name_in_arn(id, catalog::kJobArn)));
      node)
    return answer(client_exception(
        "The nodes of a multi-node parallel job end together: name the job, " + shorten(job, 128)));
  const JobKey key{context.region, std::string(catalog::name_in_arn(id, catalog::kJobArn))};
  if (const auto found = services.control.find(key);
      !found || (*found)->spec.contract == domain::Contract::training) {
    if (found || found.error().kind == Kind::not_found) return answer(Output{});
    return answer(found.error());
  }
  services.control.cancel_job(key, how, reason,
                              [answer = std::move(answer)](Result<domain::Job> job) {
                                if (job || job.error().kind == Kind::conflict)
                                  return answer(Output{});
                                answer(std::move(job).error());
                              });
}

// Cancels or terminates several jobs: CancelJobs and TerminateJobs.
template <class Response, class Detail>
void cancel_many(const Services& services, const Context& context,
                 const std::vector<std::string>& ids, domain::Cancellation how,
                 const std::string& reason, Answer<Response> answer) {
  change_each_job<Response, Detail>(
      ids,
      [&](const std::string& id, std::function<void(Outcome<Done>)> done) {
        cancel<Done>(services, context, id, how, reason, std::move(done));
      },
      std::move(answer));
}

}  // namespace

void add_jobs(OperationTable& table, const Settings& settings, const Services& services) {
  table.add_later<batch::SubmitJob>(
      [&](const Context& context, batch::SubmitJobRequest request, auto answer) {
        submit(settings, services, context, request, std::move(answer));
      });
  table.add<batch::DescribeJobs>(
      [&](const Context& context, const batch::DescribeJobsRequest& request) {
        return describe_jobs(services, context, request);
      });
  table.add<batch::ListJobs>([&](const Context& context, const batch::ListJobsRequest& request) {
    return list_jobs(services, context, request);
  });
  table.add_later<batch::CancelJob>(
      [&](const Context& context, batch::CancelJobRequest request, auto answer) {
        cancel<batch::CancelJobResponse>(services, context, *request.job_id,
                                         domain::Cancellation::cancelled, *request.reason,
                                         std::move(answer));
      });
  table.add_later<batch::CancelJobs>(
      [&](const Context& context, batch::CancelJobsRequest request, auto answer) {
        cancel_many<batch::CancelJobsResponse, batch::CancelJobsErrorDetail>(
            services, context, *request.jobs, domain::Cancellation::cancelled, *request.reason,
            std::move(answer));
      });
  table.add_later<batch::TerminateJobs>(
      [&](const Context& context, batch::TerminateJobsRequest request, auto answer) {
        cancel_many<batch::TerminateJobsResponse, batch::TerminateJobsErrorDetail>(
            services, context, *request.jobs, domain::Cancellation::terminated, *request.reason,
            std::move(answer));
      });
  table.add_later<batch::TerminateJob>(
      [&](const Context& context, batch::TerminateJobRequest request, auto answer) {
        cancel<batch::TerminateJobResponse>(services, context, *request.job_id,
                                            domain::Cancellation::terminated, *request.reason,
                                            std::move(answer));
      });
}

}  // namespace trainyard::api::batch_api
