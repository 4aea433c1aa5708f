// Implements the lists and descriptions of jobs of all kinds, with pending reasons, usage and cost.
#include "shapes/trainyard.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "batch/status.hpp"
#include "diagnosis/rank_faults.hpp"
#include "domain/array.hpp"
#include "domain/price.hpp"
#include "domain/stage.hpp"
#include "operations/listed_failure.hpp"
#include "sagemaker/training_job.hpp"
#include "trainyard_api/cost_view.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

constexpr int64_t kJobsDefault = 20;
constexpr size_t kScanJobs = 200;        // read from the ledger at a time, with a filter by tag
constexpr size_t kScanJobsMax = 20'000;  // read for one page; the client continues with its token
constexpr size_t kReportJobsMax = 1'000'000;
constexpr size_t kListedChildrenMax = 20'000;  // read for the costs of one list: about a second
constexpr size_t kArraySumsMax = 10'000;       // cached, of arrays that have ended
constexpr size_t kIdPrefixBytesMin = 4;        // shorter ones select too many jobs
constexpr size_t kUsageHostsMax = 128;         // hosts whose usage is read for one response
constexpr Duration kUsageSpan = 60min;
constexpr Duration kUsagePeriod = 1min;
constexpr const char* kUsageMetrics[] = {"CPUUtilization", "MemoryUtilization", "DiskUtilization",
                                         "GPUUtilization", "GPUMemoryUtilization"};

// Returns training and billable time, computed by SageMaker's API, so that the responses agree.
struct Seconds {
  int64_t training = 0, billable = 0;
};
Seconds seconds_of(const domain::Job& job, Instant now) {
  shapes::sagemaker::DescribeTrainingJobResponse described;
  sagemaker::describe(job, now, described);
  return {described.training_time_in_seconds.value_or(0),
          described.billable_time_in_seconds.value_or(0)};
}

// Returns the cost of some groups of a job. Attempts of a Batch job may have run on spot machines.
domain::Cost cost_of_groups(const domain::PriceTable& prices, const domain::Job& job,
                            const std::vector<domain::InstanceGroup>& groups, Instant now) {
  const Seconds seconds = seconds_of(job, now);
  const std::string& region = job.key.region;
  if (job.spec.spot)
    return domain::cost_of(prices, region, groups, true, seconds.training, seconds.billable);
  Duration ran_on_spot{};
  for (const domain::Attempt& attempt : job.attempts)
    if (job.on_spot(attempt)) ran_on_spot += attempt.ran(now);
  const int64_t spot =
      std::min(std::chrono::ceil<std::chrono::seconds>(ran_on_spot).count(), seconds.billable);
  domain::Cost cost = domain::cost_of(prices, region, groups, false, seconds.training - spot,
                                      seconds.billable - spot);
  if (spot > 0) cost.add(domain::cost_of(prices, region, groups, true, spot, spot));
  return cost;
}

domain::Cost cost_of_job(const domain::PriceTable& prices, const domain::Job& job, Instant now) {
  return cost_of_groups(prices, job, job.spec.groups, now);
}

std::string value_of(const std::vector<domain::Tag>& tags, std::string_view key) {
  for (const auto& tag : tags)
    if (tag.key == key) return tag.value;
  return "";
}

// Returns the last part of the creator's ARN: "root", "user/ann", "assumed-role/trainer/ann"; ""
// for old jobs without the tag.
std::string user_of(const std::vector<domain::Tag>& tags) {
  const std::string arn = value_of(tags, kCreatedByTag);
  return arn.substr(arn.rfind(':') + 1);
}

std::vector<own::Tag> to_shape(const std::vector<domain::Tag>& tags) {
  std::vector<own::Tag> out;
  for (const auto& tag : tags)
    if (tag.key != kCreatedByTag) out.push_back({tag.key, tag.value});
  return out;
}

// Calls visit(child) for each existing child, up to about children_max. Returns the number of
// children read.
template <class Visit>
Result<size_t> each_child(control::Control& control, const domain::Job& array, size_t children_max,
                          const Visit& visit) {
  ledger::ChildQuery query;
  query.end = array.children_made;
  query.children_max = ledger::kPageJobsMax;
  size_t looked_at = 0;
  while (query.first < query.end && looked_at < children_max) {
    for (const domain::Job& child : TRY(control.children(array, query))) TRY(visit(child));
    query.first += uint32_t(query.children_max);
    looked_at += query.children_max;
  }
  return looked_at;
}

Result<std::vector<own::Metric>> metrics_of(observe::Metrics& metrics, const domain::Job& job) {
  std::vector<own::Metric> out;
  for (const auto& metric : job.spec.metrics) {
    const auto last = TRY(metrics.last({job.key.region,
                                        std::string(sagemaker::kMetricsNamespace),
                                        metric.name,
                                        {{"TrainingJobName", job.key.name}}}));
    if (last && last->count > 0) out.push_back({metric.name, last->sum / last->count, last->at});
  }
  return out;
}

// The cost and the run time of an array's children.
struct ChildrenSum {
  domain::Cost cost;
  Seconds seconds;
  void add(const domain::PriceTable& prices, const domain::Job& child, Instant now) {
    const Seconds of_child = seconds_of(child, now);
    seconds.training += of_child.training;
    seconds.billable += of_child.billable;
    cost.add(cost_of_job(prices, child, now));
  }
  // Replaces the cost and the time of the array's own record.
  void put(own::Job& out) const {
    out.training_time_in_seconds = seconds.training;
    out.billable_time_in_seconds = seconds.billable;
    out.cost->amount = decimal(cost.millionths);
    out.cost->on_demand_amount = decimal(cost.on_demand_millionths);
  }
};

// Sums over the children of arrays, for lists. The sums of ended arrays are cached, since they no
// longer change.
//
// Threads: callable from any.
class ArraySums {
 public:
  // Returns nothing if the array has more children than `children_left`, which is reduced by them.
  Result<std::optional<ChildrenSum>> of(const domain::PriceTable& prices, control::Control& control,
                                        const domain::Job& array, Instant now,
                                        size_t& children_left) {
    {
      const MutexLock lock(mutex_);
      if (const auto kept = ended_.find(array.number); kept != ended_.end())
        return std::optional(kept->second);
    }
    if (array.children_made > children_left) return std::optional<ChildrenSum>();
    children_left -= array.children_made;
    ChildrenSum sum;
    TRY(each_child(control, array, array.children_made,
                   [&](const domain::Job& child) -> Result<void> {
                     sum.add(prices, child, now);
                     return {};
                   }));
    if (array.finished()) {
      const MutexLock lock(mutex_);
      if (ended_.size() >= kArraySumsMax) ended_.clear();
      ended_.emplace(array.number, sum);
    }
    return std::optional(sum);
  }

 private:
  Mutex mutex_;
  std::map<domain::JobNumber, ChildrenSum> ended_ GUARDED_BY(mutex_);
};

// Adds the metrics, time and cost of an array's children, which the array's own record lacks.
Result<void> add_children(const Settings& settings, const Services& services,
                          const domain::Job& array, Instant now, own::Job& out) {
  std::map<std::string, own::ArrayMetric> by_name;
  ChildrenSum sum;
  TRY(each_child(services.control, array, kReportJobsMax,
                 [&](const domain::Job& child) -> Result<void> {
                   sum.add(settings.prices, child, now);
                   const auto index = int64_t(domain::array_index(child));
                   for (const own::Metric& metric : TRY(metrics_of(services.metrics, child))) {
                     own::ArrayMetric& seen = by_name[*metric.name];
                     seen.name = metric.name;
                     if (!seen.highest || *metric.value > *seen.highest)
                       seen.highest = metric.value, seen.highest_index = index;
                     if (!seen.lowest || *metric.value < *seen.lowest)
                       seen.lowest = metric.value, seen.lowest_index = index;
                   }
                   return {};
                 }));
  sum.put(out);
  if (by_name.empty()) return {};
  out.array->metrics.emplace();
  for (auto& [name, metric] : by_name) out.array->metrics->push_back(std::move(metric));
  return {};
}

Result<own::ArrayProgress> progress_of(control::Control& control, const domain::Job& array) {
  using domain::Stage;
  const auto counts = TRY(control.count_children(array));
  own::ArrayProgress progress;
  progress.size = array.spec.array.size;
  progress.running = counts.in(Stage::starting) + counts.in(Stage::running);
  progress.succeeded = counts.in(Stage::succeeded);
  progress.failed = counts.in(Stage::failed);
  return progress;
}

own::Job to_shape(const Settings& settings, const domain::Job& job,
                  const std::vector<domain::Tag>& tags, Instant now) {
  own::Job out;
  out.name = job.key.name;
  if (job.spec.queue) out.display_name = job.spec.display_name;
  out.arn = control::job_arn(job);
  out.status = sagemaker::status_of(job.state);
  out.secondary_status = domain::to_string(job.phase());
  out.creation_time = job.created;
  out.training_start_time = job.training_start;
  out.training_end_time = job.training_end;
  out.instance_groups.emplace();
  for (const auto& group : job.spec.groups)
    out.instance_groups->push_back({group.name, group.instance_type, int64_t(group.count)});
  const Seconds seconds = seconds_of(job, now);
  out.training_time_in_seconds = seconds.training;
  out.billable_time_in_seconds = seconds.billable;
  out.spot = job.spec.spot || (job.attempt() && job.on_spot(*job.attempt()));
  out.attempts = int64_t(job.attempts.size());
  set_unless_empty(out.wait_reason, job.state == domain::JobState::waiting
                                        ? job.wait_reason
                                        : sagemaker::describe_stop(job, now));
  set_unless_empty(out.failure_reason, job.failure_reason);
  if (job.spec.contract == domain::Contract::plain)
    set_unless_empty(out.status_reason, batch::status_reason(job));
  set_unless_empty(out.note, job.note);
  const auto cost = cost_of_job(settings.prices, job, now);
  out.cost = cost_view(cost, settings.prices.currency);
  if (auto those = to_shape(tags); !those.empty()) out.tags = std::move(those);
  set_unless_empty(out.user, user_of(tags));
  return out;
}

bool has_tag(const std::vector<domain::Tag>& tags, const std::string& key,
             const std::optional<std::string>& value) {
  return std::any_of(tags.begin(), tags.end(), [&](const domain::Tag& tag) {
    return tag.key == key && (!value || tag.value == *value);
  });
}

// Adds the progress and the cost of an array to its entry in a list. Beyond the limit for one
// response, arrays have no cost.
Result<void> add_array(const Settings& settings, const Services& services, ArraySums& sums,
                       const domain::Job& array, Instant now, size_t& children_left,
                       own::Job& out) {
  out.array = TRY(progress_of(services.control, array));
  const auto sum = TRY(sums.of(settings.prices, services.control, array, now, children_left));
  if (sum)
    sum->put(out);
  else
    out.cost.reset();
  return {};
}

Outcome<own::ListJobsResponse> list_jobs(const Settings& settings, const Services& services,
                                         ArraySums& sums, const Context& context,
                                         const own::ListJobsRequest& request) {
  using domain::JobState;
  ledger::JobQuery query;
  query.region = context.region;
  query.names = request.names.value_or(std::vector<std::string>());
  query.name_contains = request.name_contains.value_or("");
  query.or_display_name_contains = true;
  query.display_name = request.job_reference.value_or("");
  if (query.display_name.size() >= kIdPrefixBytesMin &&
      query.display_name.find_first_not_of("0123456789abcdef-") == std::string::npos)
    query.id_prefix = query.display_name;
  query.created_after = request.creation_time_after;
  query.created_before = request.creation_time_before;
  if (request.status_equals)
    for (const auto state : {JobState::waiting, JobState::active, JobState::stopping,
                             JobState::completed, JobState::failed, JobState::stopped})
      if (sagemaker::status_of(state) == *request.status_equals) query.states.push_back(state);
  const auto wanted = size_t(request.max_results.value_or(kJobsDefault));
  query.token = request.next_token.value_or("");

  own::ListJobsResponse out;
  out.jobs.emplace();
  size_t children_left = kListedChildrenMax;
  for (size_t scanned = 0; scanned < kScanJobsMax;) {
    // With a filter by tag, a page of the ledger may have no matching job.
    query.jobs_max =
        request.tag_key_equals ? std::min(kScanJobs, wanted - out.jobs->size()) : wanted;
    const auto page = services.control.list(query);
    if (!page && page.error().kind == Kind::invalid)
      return validation_exception("Invalid pagination token: " + page.error().message);
    if (!page) return page.error();
    for (const auto& kept : page->jobs) {
      const auto tags = TRY(services.control.tags(control::job_arn(kept)));
      if (request.tag_key_equals &&
          !has_tag(tags, *request.tag_key_equals, request.tag_value_equals))
        continue;
      // The ledger does not store pending reasons.
      const auto live = services.control.find(kept.key, context.may_see_job());
      const Instant now = context.own_time(kept.clock_offset);
      own::Job& each = out.jobs->emplace_back(to_shape(settings, live ? **live : kept, tags, now));
      if (each.failure_reason) each.failure_reason = listed_failure(*each.failure_reason);
      if (kept.is_array()) TRY(add_array(settings, services, sums, kept, now, children_left, each));
    }
    scanned += page->jobs.size();
    query.token = page->next_token;
    if (query.token.empty() || out.jobs->size() >= wanted) break;
  }
  if (!query.token.empty()) out.next_token = query.token;
  return out;
}

Result<std::vector<own::Utilization>> usage_of(observe::Metrics& metrics, const domain::Job& job,
                                               domain::HostIndex host, Instant now) {
  std::vector<own::Utilization> out;
  const Instant to =
      job.training_end ? std::min(now, *job.training_end + kUsagePeriod) : now + kUsagePeriod;
  for (const char* metric : kUsageMetrics) {
    observe::StatisticsQuery query;
    query.key = {job.key.region,
                 std::string(sagemaker::kMetricsNamespace),
                 metric,
                 {{"Host", job.key.name + "/" + domain::host_name(host)}}};
    query.from = to - kUsageSpan;
    query.to = to;
    query.period = kUsagePeriod;
    own::Utilization one{metric, std::vector<double>()};
    for (const auto& point : TRY(metrics.statistics(query))) one.values->push_back(point.average());
    if (!one.values->empty()) out.push_back(std::move(one));
  }
  return out;
}

int64_t seconds_in(Duration age) {
  return std::chrono::duration_cast<std::chrono::seconds>(age).count();
}

// Adds how long ago the running hosts and their ranks were last active.
void add_activity(const std::vector<gateway::HostActivity>& activities,
                  std::vector<own::Host>& hosts) {
  for (const auto& [host, activity, faults] : activities) {
    if (host >= hosts.size() || hosts[host].state != domain::to_string(domain::HostState::running))
      continue;
    own::Host& out = hosts[host];
    if (activity.output) out.seconds_since_output = seconds_in(*activity.output);
    for (const wire::RankActivity& rank : activity.ranks) {
      if (!out.ranks) out.ranks.emplace();
      own::HostRank& shown = out.ranks->emplace_back();
      shown.rank = rank.rank;
      if (rank.output) shown.seconds_since_output = seconds_in(*rank.output);
      if (rank.collective) shown.seconds_since_collective = seconds_in(*rank.collective);
      shown.collectives = int64_t(std::min<uint64_t>(rank.collectives, INT64_MAX));
    }
    for (const diagnosis::RankFault& fault : faults) {
      if (!out.faults) out.faults.emplace();
      own::RankFault& shown = out.faults->emplace_back();
      shown.fault = diagnosis::to_string(fault.kind);
      shown.rank = fault.rank;
      shown.peer_rank = fault.peer;
      shown.message = fault.text;
    }
  }
}

Outcome<own::Job> describe_job(const Settings& settings, const Services& services,
                               const Context& context, const own::DescribeJobRequest& request) {
  const auto found =
      services.control.find({context.region, *request.job_name}, context.may_see_job());
  if (!found && found.error().kind == Kind::not_found)
    return validation_exception("Requested resource not found.");
  if (!found) return found.error();
  const domain::Job& job = **found;
  const auto tags = TRY(services.control.tags(control::job_arn(job)));
  const Instant now = context.own_time(job.clock_offset);
  own::Job out = to_shape(settings, job, tags, now);
  if (job.is_array()) {
    out.array = TRY(progress_of(services.control, job));
    TRY(add_children(settings, services, job, now, out));
  }
  if (auto metrics = TRY(metrics_of(services.metrics, job)); !metrics.empty())
    out.metrics = std::move(metrics);
  if (!job.spec.notes.empty()) out.notes = job.spec.notes;
  const domain::Attempt* attempt = job.attempt();
  if (!attempt) return out;
  out.hosts.emplace();
  for (domain::HostIndex i = 0; i < attempt->hosts.size(); ++i) {
    const domain::Host& host = attempt->hosts[i];
    own::Host one;
    one.name = domain::host_name(i);
    one.instance_type = job.spec.instance_type(i);
    one.machine = host.machine;
    one.state = domain::to_string(host.state);
    one.state_since = host.state_since;
    if (host.exit_code) one.exit_code = *host.exit_code;
    set_unless_empty(one.failure_reason, host.failure);
    one.cpus = host.share.cpus;
    one.memory_in_bytes = host.share.memory_bytes;
    one.gpus = host.share.gpus;
    if (i < kUsageHostsMax) one.utilization = TRY(usage_of(services.metrics, job, i, context.now));
    out.hosts->push_back(std::move(one));
  }
  if (services.activity) add_activity(services.activity(job.number), *out.hosts);
  if (services.progress) {
    out.progress.emplace();
    for (const auto& moved : services.progress(job.number)) {
      own::Progress one{domain::host_name(moved.host), moved.what, int64_t(moved.done_bytes)};
      if (moved.total_bytes > 0) one.total_bytes = int64_t(moved.total_bytes);
      one.finished = moved.finished;
      out.progress->push_back(std::move(one));
    }
  }
  return out;
}

// -- the cost report

struct Sum {
  int64_t jobs = 0, host_seconds = 0, millionths = 0, on_demand_millionths = 0;
  std::string display_name;  // set if the group is one Batch job
  void add(const domain::Cost& cost, int64_t seconds) {
    ++jobs;
    host_seconds += seconds;
    millionths += cost.millionths;
    on_demand_millionths += cost.on_demand_millionths;
  }
  own::CostGroup to_shape(const std::string& key) const {
    own::CostGroup group{key, jobs, host_seconds, decimal(millionths),
                         decimal(on_demand_millionths)};
    set_unless_empty(group.display_name, display_name);
    return group;
  }
};

// Sums the costs of jobs in groups: by day, user, tag, instance or job.
class CostReport {
 public:
  CostReport(const Settings& settings, const Services& services, const Context& context,
             std::string group_by)
      : settings_(settings),
        services_(services),
        context_(context),
        by_(std::move(group_by)),
        tag_(by_.starts_with("tag:") ? by_.substr(4) : "") {}

  // Adds a job. The cost of a child counts for its array. `named`: the job whose name and tags
  // select the group.
  Result<void> add(const domain::Job& job, const domain::Job& named) {
    const Instant now = context_.own_time(job.clock_offset);
    const Seconds seconds = seconds_of(job, now);
    const auto cost = cost_of_job(settings_.prices, job, now);
    for (const auto& type : cost.unpriced)
      if (std::find(unpriced_.begin(), unpriced_.end(), type) == unpriced_.end())
        unpriced_.push_back(type);
    total_.add(cost, seconds.billable * int64_t(job.spec.hosts()));
    if (by_ == "instance") {
      for (const auto& group : job.spec.groups)
        groups_[group.instance_type].add(cost_of_groups(settings_.prices, job, {group}, now),
                                         seconds.billable * int64_t(group.count));
      return {};
    }
    Sum& group = groups_[TRY(key_of(job, named))];
    group.add(cost, seconds.billable * int64_t(job.spec.hosts()));
    if (by_ == "job" && named.spec.queue) group.display_name = named.spec.display_name;
    return {};
  }

  // Orders days by time, and other groups by cost, the most expensive first.
  own::GetCostReportResponse response() const {
    own::GetCostReportResponse out;
    out.currency = settings_.prices.currency;
    out.groups.emplace();
    std::vector<std::pair<std::string, Sum>> ordered(groups_.begin(), groups_.end());
    if (by_ != "day")
      std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
        return a.second.millionths > b.second.millionths;
      });
    for (const auto& [key, sum] : ordered) out.groups->push_back(sum.to_shape(key));
    out.total = total_.to_shape("");
    if (!unpriced_.empty()) out.unpriced = unpriced_;
    return out;
  }

 private:
  Result<std::string> key_of(const domain::Job& job, const domain::Job& named) const {
    if (by_ == "day") return to_iso8601(job.created).substr(0, 10);
    if (by_ != "user" && tag_.empty()) return named.key.name;
    const auto tags = TRY(services_.control.tags(control::job_arn(named)));
    return tag_.empty() ? user_of(tags) : value_of(tags, tag_);
  }

  const Settings& settings_;
  const Services& services_;
  const Context& context_;
  const std::string by_, tag_;
  std::map<std::string, Sum> groups_;
  Sum total_;
  std::vector<std::string> unpriced_;
};

Outcome<own::GetCostReportResponse> cost_report(const Settings& settings, const Services& services,
                                                const Context& context,
                                                const own::GetCostReportRequest& request) {
  ledger::JobQuery query;
  query.region = context.region;
  query.created_after = request.creation_time_after;
  query.created_before = request.creation_time_before;
  query.jobs_max = ledger::kPageJobsMax;
  CostReport report(settings, services, context, *request.group_by);
  size_t looked_at = 0;
  do {
    const auto page = TRY(services.control.list(query));
    for (const domain::Job& job : page.jobs) {
      if (!job.is_array()) {
        TRY(report.add(job, job));
        continue;
      }
      looked_at += TRY(each_child(
          services.control, job, looked_at < kReportJobsMax ? kReportJobsMax - looked_at : 0,
          [&](const domain::Job& child) { return report.add(child, job); }));
    }
    looked_at += page.jobs.size();
    query.token = page.next_token;
  } while (!query.token.empty() && looked_at < kReportJobsMax);
  if (!query.token.empty() || looked_at >= kReportJobsMax)
    return Error(exhausted("more than " + std::to_string(kReportJobsMax) +
                           " jobs: choose a shorter period"));
  return report.response();
}

}  // namespace

void add_job_reports(OperationTable& table, const Settings& settings, const Services& services) {
  table.add<own::ListJobs>([&, sums = std::make_shared<ArraySums>()](
                               const Context& context, const own::ListJobsRequest& request) {
    return list_jobs(settings, services, *sums, context, request);
  });
  table.add<own::DescribeJob>([&](const Context& context, const own::DescribeJobRequest& request) {
    return describe_job(settings, services, context, request);
  });
  table.add<own::GetCostReport>(
      [&](const Context& context, const own::GetCostReportRequest& request) {
        return cost_report(settings, services, context, request);
      });
}

}  // namespace trainyard::api::trainyard_api
