// Reports how the time of jobs was spent: of one job, and summed over many.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "domain/array.hpp"
#include "domain/job_time.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;
using domain::JobTime;
using domain::TimeUse;

constexpr size_t kTimedJobsMax = 1'000'000;     // one report
constexpr size_t kIntervalsShownMax = 1'000;    // one job: the last intervals
constexpr std::string_view kWithoutQueue = "";  // the key of jobs without a queue

std::vector<own::TimeUse> shown_uses(const JobTime& time) {
  std::vector<own::TimeUse> uses;
  for (const TimeUse use : enumerators<TimeUse>())
    if (time.in(use) > Duration{})
      uses.push_back({std::string(to_string(use)), int64_t(time.in(use).count())});
  return uses;
}

void add(JobTime& sum, const JobTime& more) {
  for (size_t use = 0; use < sum.of.size(); ++use) sum.of[use] += more.of[use];
  sum.wall += more.wall;
  sum.held += more.held;
  sum.lost_is_known &= more.lost_is_known;
}

// Calls visit(child, time) for each existing child of an array. Returns the number of them.
template <class Visit>
Result<size_t> each_timed_child(control::Control& control, const domain::Job& array,
                                const Context& context, size_t children_max, const Visit& visit) {
  ledger::ChildQuery query;
  query.end = array.children_made;
  query.children_max = ledger::kPageJobsMax;
  size_t read = 0;
  while (query.first < query.end && read < children_max) {
    for (const domain::Job& child : TRY(control.children(array, query)))
      visit(child, domain::time_of(child, context.own_time(child.clock_offset)));
    query.first += uint32_t(query.children_max);
    read += query.children_max;
  }
  return read;
}

own::JobTime to_shape(const std::string& name, const JobTime& time) {
  own::JobTime out;
  out.job_name = name;
  out.wall_milliseconds = time.wall.count();
  out.held_milliseconds = time.held.count();
  out.uses = shown_uses(time);
  out.effective_training_time_ratio = time.effective_ratio();
  out.goodput = time.goodput();
  out.lost_work_is_known = time.lost_is_known;
  return out;
}

Outcome<own::JobTime> describe_job_time(const Services& services, const Context& context,
                                        const own::DescribeJobTimeRequest& request) {
  const auto found = services.control.find({context.region, *request.job_name});
  if (!found && found.error().kind == Kind::not_found)
    return validation_exception("Requested resource not found.");
  if (!found) return found.error();
  const domain::Job& job = **found;
  if (job.is_array()) {
    JobTime sum;
    TRY(each_timed_child(services.control, job, context, kTimedJobsMax,
                         [&](const domain::Job&, const JobTime& time) { add(sum, time); }));
    return to_shape(job.key.name, sum);
  }
  const Instant now = context.own_time(job.clock_offset);
  own::JobTime out = to_shape(job.key.name, domain::time_of(job, now));
  out.intervals.emplace();
  const auto intervals = domain::time_intervals(job, now);
  const size_t first = intervals.size() - std::min(intervals.size(), kIntervalsShownMax);
  for (size_t i = first; i < intervals.size(); ++i) {
    own::TimeInterval& one = out.intervals->emplace_back();
    one.use = to_string(intervals[i].use);
    if (intervals[i].attempt > 0) one.attempt_number = int64_t(intervals[i].attempt);
    one.start_time = intervals[i].begin;
    one.milliseconds = (intervals[i].end - intervals[i].begin).count();
  }
  return out;
}

// Sums the time of jobs by user, queue, month or job.
class TimeReport {
 public:
  TimeReport(const Services& services, std::string group_by)
      : services_(services), by_(std::move(group_by)) {}

  // Adds a job. The time of a child counts for its array. `named`: the job that selects the group.
  Result<void> add_job(const domain::Job& job, const domain::Job& named, const JobTime& time) {
    Sum& group = groups_[TRY(key_of(job, named))];
    group.add(job, time);
    total_.add(job, time);
    if (by_ == "job" && named.spec.queue) group.display_name = named.spec.display_name;
    return {};
  }

  // Orders months by time, and other groups by their host time, the highest first.
  own::GetTimeReportResponse response() const {
    std::vector<std::pair<std::string, Sum>> ordered(groups_.begin(), groups_.end());
    if (by_ != "month")
      std::ranges::stable_sort(ordered, [](const auto& a, const auto& b) {
        return a.second.held_host > b.second.held_host;
      });
    own::GetTimeReportResponse out;
    out.groups.emplace();
    for (const auto& [key, sum] : ordered) out.groups->push_back(sum.to_shape(key));
    out.total = total_.to_shape("");
    return out;
  }

 private:
  struct Sum {
    int64_t jobs = 0;
    JobTime time;
    double held_host = 0, trained_host = 0;  // milliseconds times hosts
    std::string display_name;

    void add(const domain::Job& job, const JobTime& more) {
      ++jobs;
      trainyard_api::add(time, more);
      const double hosts = job.spec.hosts();
      held_host += hosts * double(more.held.count());
      trained_host += hosts * double(more.in(TimeUse::training).count());
    }
    own::TimeGroup to_shape(const std::string& key) const {
      own::TimeGroup group;
      group.key = key;
      set_unless_empty(group.display_name, display_name);
      group.jobs = jobs;
      group.wall_milliseconds = time.wall.count();
      group.uses = shown_uses(time);
      group.held_host_milliseconds = int64_t(held_host);
      group.effective_training_time_ratio = time.effective_ratio();
      group.goodput = held_host > 0 ? trained_host / held_host : 0;
      group.lost_work_is_known = time.lost_is_known;
      return group;
    }
  };

  Result<std::string> key_of(const domain::Job& job, const domain::Job& named) const {
    if (by_ == "month") return to_iso8601(job.created).substr(0, 7);
    if (by_ == "queue")
      return named.spec.queue ? named.spec.queue->name : std::string(kWithoutQueue);
    if (by_ == "job") return named.key.name;
    for (const auto& tag : TRY(services_.control.tags(control::job_arn(named))))
      if (tag.key == kCreatedByTag) return tag.value.substr(tag.value.rfind(':') + 1);
    return std::string();
  }

  const Services& services_;
  const std::string by_;
  std::map<std::string, Sum> groups_;
  Sum total_;
};

// Adds a job of the ledger, or the children of an array. Returns the number of jobs read.
Result<size_t> add_to_report(const Services& services, const Context& context,
                             const domain::Job& job, size_t jobs_max, TimeReport& report) {
  if (!job.is_array()) {
    TRY(report.add_job(job, job, domain::time_of(job, context.own_time(job.clock_offset))));
    return size_t(1);
  }
  Result<void> added = ok();
  const size_t read = TRY(each_timed_child(services.control, job, context, jobs_max,
                                           [&](const domain::Job& child, const JobTime& time) {
                                             if (added) added = report.add_job(child, job, time);
                                           }));
  TRY(added);
  return read + 1;
}

Outcome<own::GetTimeReportResponse> time_report(const Services& services, const Context& context,
                                                const own::GetTimeReportRequest& request) {
  ledger::JobQuery query;
  query.region = context.region;
  query.created_after = request.creation_time_after;
  query.created_before = request.creation_time_before;
  query.jobs_max = ledger::kPageJobsMax;
  TimeReport report(services, *request.group_by);
  size_t read = 0;
  do {
    const auto page = TRY(services.control.list(query));
    for (const domain::Job& job : page.jobs) {
      if (read >= kTimedJobsMax) break;
      read += TRY(add_to_report(services, context, job, kTimedJobsMax - read, report));
    }
    query.token = page.next_token;
  } while (!query.token.empty() && read < kTimedJobsMax);
  if (!query.token.empty() || read >= kTimedJobsMax)
    return Error(
        exhausted("more than " + std::to_string(kTimedJobsMax) + " jobs: choose a shorter period"));
  return report.response();
}

}  // namespace

void add_time_reports(OperationTable& table, const Settings&, const Services& services) {
  table.add<own::DescribeJobTime>(
      [&](const Context& context, const own::DescribeJobTimeRequest& request) {
        return describe_job_time(services, context, request);
      });
  table.add<own::GetTimeReport>(
      [&](const Context& context, const own::GetTimeReportRequest& request) {
        return time_report(services, context, request);
      });
}

}  // namespace trainyard::api::trainyard_api
