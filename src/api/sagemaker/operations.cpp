// Implements the operations on training jobs and their tags.
#include <list>
#include <unordered_map>

#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "sagemaker/new_job.hpp"
#include "sagemaker/operations.hpp"
#include "sagemaker/training_job.hpp"
#include "shapes/sagemaker.hpp"

namespace trainyard::api::sagemaker {
namespace {

namespace sagemaker = shapes::sagemaker;

constexpr size_t kViewsMax = 1024;  // cached descriptions, some 5 KiB each
// The maximum age of a running job's metrics; clients poll every 5 s.
constexpr Duration kMetricsFresh = 1s;
// How long after the job's end an agent's last points may arrive.
constexpr Duration kMetricsSettle = 60s;

Failure no_such_job() { return validation_exception("Requested resource not found."); }

// Converts an error of control: not_found becomes SageMaker's error, and others have the usual name
// of their kind.
template <class T>
Outcome<T> translated(const Error& error) {
  if (error.kind == Kind::not_found) return no_such_job();
  return error;
}

// Caches the constant part of descriptions and the last metrics of jobs. Both are costly to make
// and rarely change, and clients poll Describe.
//
// Threads: callable from anywhere; the parts are immutable and shared with their readers.
class Views {
 public:
  explicit Views(observe::Metrics& metrics) : metrics_(metrics) {}

  // `now` is in the job's own time.
  Outcome<sagemaker::DescribeTrainingJobResponse> describe_job(const domain::Job& job,
                                                               Instant now) {
    std::shared_ptr<const View> view = find(job.number);
    if (!view || stale(*view, job, now)) {
      auto made = std::make_shared<View>();
      made->echo = view ? view->echo : TRY(echo_of(job));
      made->metrics_at = now;
      TRY(read_metrics(job, made->echo));
      keep(job.number, made);
      view = made;
    }
    sagemaker::DescribeTrainingJobResponse out = view->echo;
    describe(job, now, out);
    return out;
  }

 private:
  struct View {
    sagemaker::DescribeTrainingJobResponse echo;
    Instant metrics_at;
  };

  static bool stale(const View& view, const domain::Job& job, Instant now) {
    if (job.spec.metrics.empty()) return false;
    if (job.finished() && view.metrics_at > job.modified + kMetricsSettle) return false;
    // its end brings the last points
    if (job.finished() && view.metrics_at <= job.modified) return true;
    return now > view.metrics_at + kMetricsFresh;
  }

  Result<void> read_metrics(const domain::Job& job, sagemaker::DescribeTrainingJobResponse& out) {
    std::vector<sagemaker::MetricData> list;
    for (const auto& metric : job.spec.metrics) {
      const auto last = TRY(metrics_.last({job.key.region,
                                           std::string(kMetricsNamespace),
                                           metric.name,
                                           {{"TrainingJobName", job.key.name}}}));
      if (last)
        list.push_back({metric.name, last->count == 0 ? 0 : last->sum / last->count, last->at});
    }
    if (!list.empty()) out.final_metric_data_list = std::move(list);
    return ok();
  }

  std::shared_ptr<const View> find(domain::JobNumber number) {
    const MutexLock lock(mutex_);
    const auto found = views_.find(number);
    if (found == views_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second.second);
    return found->second.first;
  }

  void keep(domain::JobNumber number, std::shared_ptr<const View> view) {
    const MutexLock lock(mutex_);
    if (const auto found = views_.find(number); found != views_.end()) {
      found->second.first = std::move(view);
      return;
    }
    if (views_.size() == kViewsMax) {
      views_.erase(order_.back());
      order_.pop_back();
    }
    order_.push_front(number);
    views_.emplace(number, std::pair(std::move(view), order_.begin()));
  }

  observe::Metrics& metrics_;
  Mutex mutex_;
  std::list<domain::JobNumber> order_ GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<domain::JobNumber,
                     std::pair<std::shared_ptr<const View>, std::list<domain::JobNumber>::iterator>>
      views_ GUARDED_BY(mutex_);
};

void create_training_job(const Settings& settings, const Services& services, const Context& context,
                         const sagemaker::CreateTrainingJobRequest& request,
                         Answer<sagemaker::CreateTrainingJobResponse> answer) {
  auto job = new_job_of(request, settings, services, context);
  if (!job) return answer(std::move(job).error());
  const std::string arn = control::job_arn(context.principal.account, job->key);
  services.control.create_job(
      *std::move(job), [answer = std::move(answer), arn](Result<domain::Job> made) {
        if (made) return answer(sagemaker::CreateTrainingJobResponse{.training_job_arn = arn});
        answer(creation_failure(made.error(), arn));
      });
}

Outcome<sagemaker::ListTrainingJobsResponse> list_training_jobs(
    const Services& services, const Context& context,
    const sagemaker::ListTrainingJobsRequest& request) {
  using domain::JobState;
  sagemaker::ListTrainingJobsResponse out;
  out.training_job_summaries.emplace();
  // No job of this server has a training plan.
  if (request.training_plan_arn_equals) return out;

  ledger::JobQuery query;
  query.region = context.region;
  query.training = true;
  query.name_contains = request.name_contains.value_or("");
  query.created_after = request.creation_time_after;
  query.created_before = request.creation_time_before;
  query.modified_after = request.last_modified_time_after;
  query.modified_before = request.last_modified_time_before;
  if (request.status_equals) {
    for (const auto state : {JobState::waiting, JobState::active, JobState::stopping,
                             JobState::completed, JobState::failed, JobState::stopped})
      if (status_of(state) == *request.status_equals) query.states.push_back(state);
    if (query.states.empty()) return out;  // "Deleting"
  }
  if (request.warm_pool_status_equals)
    query.warm_pool = TRY(domain::parse_warm_pool_state(*request.warm_pool_status_equals));
  const std::string sort = request.sort_by.value_or("CreationTime");
  query.sort = sort == "Name"     ? ledger::JobQuery::Sort::name
               : sort == "Status" ? ledger::JobQuery::Sort::state
                                  : ledger::JobQuery::Sort::created;
  query.descending = request.sort_order.value_or("Descending") == "Descending";
  query.token = request.next_token.value_or("");
  query.jobs_max = static_cast<size_t>(request.max_results.value_or(10));
  const auto page = services.control.list(query);
  if (!page) {
    if (page.error().kind == Kind::invalid)
      return validation_exception("Invalid pagination token: " + page.error().message);
    return page.error();
  }
  for (const auto& job : page->jobs)
    out.training_job_summaries->push_back(summary_of(job, context.own_time(job.clock_offset)));
  if (!page->next_token.empty()) out.next_token = page->next_token;
  return out;
}

void stop_training_job(const Services& services, const Context& context,
                       const sagemaker::StopTrainingJobRequest& request,
                       Answer<shapes::sagemaker::Nothing> answer) {
  const domain::JobKey key{context.region, *request.training_job_name};
  if (const auto found = services.control.find(key);
      found && (*found)->spec.contract == domain::Contract::plain)
    return answer(no_such_job());
  services.control.stop_job(key, [answer = std::move(answer), key,
                                  &control = services.control](Result<domain::Job> job) {
    if (job) return answer(shapes::sagemaker::Nothing{});
    if (job.error().kind != Kind::conflict)
      return answer(translated<shapes::sagemaker::Nothing>(job.error()));
    const auto found = control.find(key);
    answer(validation_exception("The request was rejected because the training job is in status " +
                                std::string(found ? status_of((*found)->state) : "unknown") + "."));
  });
}

void update_training_job(const Services& services, const Context& context,
                         const sagemaker::UpdateTrainingJobRequest& request,
                         Answer<sagemaker::UpdateTrainingJobResponse> answer) {
  const domain::JobKey key{context.region, *request.training_job_name};
  if (request.profiler_config || request.profiler_rule_configurations ||
      request.remote_debug_config)
    return answer(validation_exception(
        "Only ResourceConfig can be updated by this server: leave ProfilerConfig, "
        "ProfilerRuleConfigurations and "
        "RemoteDebugConfig out"));
  if (!request.resource_config)
    return answer(
        validation_exception("At least one field to update must be provided: ResourceConfig"));
  services.control.keep_alive(
      key, *request.resource_config->keep_alive_period_in_seconds,
      [answer = std::move(answer), key,
       account = context.principal.account](Result<domain::Job> job) {
        if (job)
          return answer(sagemaker::UpdateTrainingJobResponse{.training_job_arn =
                                                                 control::job_arn(account, key)});
        if (job.error().kind != Kind::conflict)
          return answer(translated<sagemaker::UpdateTrainingJobResponse>(job.error()));
        answer(validation_exception("KeepAlivePeriodInSeconds of training job " + key.name +
                                    " cannot be updated: " + job.error().message));
      });
}

// Finds the job of an ARN. Errors: ValidationException.
Outcome<domain::JobKey> tagged_job(const Services& services, const Context& context,
                                   const std::string& arn) {
  const auto parts = split(arn, ':');
  const std::string prefix = "training-job/";
  if (parts.size() != 6 || parts[0] != "arn" || parts[2] != "sagemaker" ||
      !parts[5].starts_with(prefix))
    return validation_exception("Resource " + shorten(arn, 256) +
                                " is not a training job: this server tags training jobs");
  const domain::JobKey key{std::string(parts[3]), std::string(parts[5].substr(prefix.size()))};
  if (parts[4] != context.principal.account || key.region != context.region) return no_such_job();
  const auto found = services.control.find(key);
  if (!found) return translated<domain::JobKey>(found.error());
  if ((*found)->spec.contract == domain::Contract::plain) return no_such_job();
  return key;
}

std::vector<sagemaker::Tag> to_shape(const std::vector<domain::Tag>& tags) {
  std::vector<sagemaker::Tag> out;
  for (const auto& tag : tags)
    if (tag.key != kCreatedByTag) out.push_back({tag.key, tag.value});
  return out;
}

void add_tags(const Services& services, const Context& context,
              const sagemaker::AddTagsInput& request, Answer<sagemaker::AddTagsOutput> answer) {
  auto key = tagged_job(services, context, *request.resource_arn);
  if (!key) return answer(std::move(key).error());
  auto tags = tags_of(*request.tags);
  if (!tags) return answer(std::move(tags).error());
  auto present = services.control.tags(*request.resource_arn);
  if (!present) return answer(std::move(present).error());
  size_t total = tags->size();
  for (const auto& tag : *present) {
    bool replaced = false;
    for (const auto& added : *tags) replaced = replaced || added.key == tag.key;
    if (tag.key == kCreatedByTag) continue;
    total += !replaced;
  }
  if (total > kTagsMax)
    return answer(
        resource_limit_exceeded("A resource has at most " + std::to_string(kTagsMax) + " tags"));
  services.control.set_tags(*request.resource_arn, std::move(*tags), {},
                            [answer = std::move(answer)](Result<std::vector<domain::Tag>> all) {
                              if (!all)
                                return answer(translated<sagemaker::AddTagsOutput>(all.error()));
                              answer(sagemaker::AddTagsOutput{.tags = to_shape(*all)});
                            });
}

void delete_tags(const Services& services, const Context& context,
                 const sagemaker::DeleteTagsInput& request,
                 Answer<sagemaker::DeleteTagsOutput> answer) {
  auto key = tagged_job(services, context, *request.resource_arn);
  if (!key) return answer(std::move(key).error());
  for (const auto& name : *request.tag_keys)
    if (name.starts_with("aws:"))
      return answer(validation_exception("Tag keys that begin with aws: are reserved: " + name));
  services.control.set_tags(*request.resource_arn, {}, *request.tag_keys,
                            [answer = std::move(answer)](Result<std::vector<domain::Tag>> all) {
                              if (!all)
                                return answer(translated<sagemaker::DeleteTagsOutput>(all.error()));
                              answer(sagemaker::DeleteTagsOutput{});
                            });
}

}  // namespace

void add_operations(OperationTable& table, const Settings& settings, const Services& services) {
  // Owned by the functions of the table, and destroyed with the table.
  const auto views = std::make_shared<Views>(services.metrics);

  table.add_later<sagemaker::CreateTrainingJob>(
      [&](const Context& context, sagemaker::CreateTrainingJobRequest request, auto answer) {
        create_training_job(settings, services, context, request, std::move(answer));
      });
  table.add_quick<sagemaker::DescribeTrainingJob>(
      [&, views](const Context& context, const sagemaker::DescribeTrainingJobRequest& request)
          -> Outcome<sagemaker::DescribeTrainingJobResponse> {
        const auto job = services.control.find({context.region, *request.training_job_name},
                                               context.may_see_job());
        if (!job) return translated<sagemaker::DescribeTrainingJobResponse>(job.error());
        if ((*job)->spec.contract == domain::Contract::plain) return no_such_job();
        return views->describe_job(**job, context.own_time((*job)->clock_offset));
      });
  table.add<sagemaker::ListTrainingJobs>(
      [&](const Context& context, const sagemaker::ListTrainingJobsRequest& request) {
        return list_training_jobs(services, context, request);
      });
  table.add_later<sagemaker::StopTrainingJob>(
      [&](const Context& context, sagemaker::StopTrainingJobRequest request, auto answer) {
        stop_training_job(services, context, request, std::move(answer));
      });
  table.add_later<sagemaker::UpdateTrainingJob>(
      [&](const Context& context, sagemaker::UpdateTrainingJobRequest request, auto answer) {
        update_training_job(services, context, request, std::move(answer));
      });
  table.add_later<sagemaker::AddTags>(
      [&](const Context& context, sagemaker::AddTagsInput request, auto answer) {
        add_tags(services, context, request, std::move(answer));
      });
  table.add<sagemaker::ListTags>(
      [&](const Context& context,
          const sagemaker::ListTagsInput& request) -> Outcome<sagemaker::ListTagsOutput> {
        TRY(tagged_job(services, context, *request.resource_arn));
        return sagemaker::ListTagsOutput{
            .tags = to_shape(TRY(services.control.tags(*request.resource_arn)))};
      });
  table.add_later<sagemaker::DeleteTags>(
      [&](const Context& context, sagemaker::DeleteTagsInput request, auto answer) {
        delete_tags(services, context, request, std::move(answer));
      });
}

}  // namespace trainyard::api::sagemaker
