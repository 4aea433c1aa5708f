#include "cli/tensorboard/job_events.hpp"

#include <algorithm>
#include <utility>

#include "cli/job_view.hpp"
#include "cli/tensorboard/event_file.hpp"
#include "domain/job.hpp"

namespace trainyard::cli::tensorboard {
namespace {

constexpr const char* kNamespace = "/aws/sagemaker/TrainingJobs";
constexpr Duration kPeriods[] = {1s, 5s, 10s, 30s};  // of CloudWatch, below a minute
// The last value may have the time of the end, and belongs to the period that begins there.
constexpr Duration kAfterEnd = 1min;

Result<Instant> instant_at(const Json& json, const char* member) {
  const auto found = json.find(member);
  if (found == json.end() || !found->is_number())
    return invalid(std::string(member) + " is not a time");
  return from_milliseconds(int64_t(found->get<double>() * 1000));
}

Instant before(Instant at, Duration period) {
  return Instant{at.time_since_epoch() / period * period};
}

Duration period_for(Duration time) {
  const Duration needed = time / kPointsMax;
  for (const Duration each : kPeriods)
    if (each >= needed) return each;
  return (needed + 1min - 1ms) / 1min * 1min;
}

Json dimensions(const std::string& job) {
  Json one{{"Name", "TrainingJobName"}, {"Value", job}};
  Json all = Json::array();
  all.push_back(std::move(one));
  return all;
}

}  // namespace

Result<void> JobEvents::start(const Json& job, Instant until) {
  const Instant created = TRY(instant_at(job, "CreationTime"));
  period_ = period_for(until - created);
  std::map<std::string, std::string> hyperparameters;
  const Json given = job.value("HyperParameters", Json::object());
  for (const auto& [name, value] : given.items())
    if (value.is_string()) hyperparameters[name] = value;
  first_ = before(created, period_);
  const std::string output =
      job.value("TensorBoardOutputConfig", Json::object()).value("S3OutputPath", "");
  if (!output.empty())
    own_files_ = TRY(objects::parse_s3_uri(domain::tensorboard_uri(output, job_)));
  records_ = start_record(created) + hyperparameters_record(created, job_, hyperparameters);
  return {};
}

Result<std::vector<std::string>> JobEvents::metrics() {
  std::vector<std::string> names;
  Json question{{"Namespace", kNamespace}, {"Dimensions", dimensions(job_)}};
  for (;;) {
    const Json answer = TRY(client_.call(client::Service::cloudwatch, "ListMetrics", question));
    for (const Json& each : answer.value("Metrics", Json::array()))
      // Metrics with further dimensions belong to its hosts.
      if (each.value("Dimensions", Json::array()).size() == 1)
        names.push_back(TRY(string_at(each, "MetricName")));
    const std::string next = answer.value("NextToken", "");
    if (next.empty()) return names;
    question["NextToken"] = next;
  }
}

Result<void> JobEvents::read(const std::string& metric, Progress& progress, Instant until) {
  while (progress.read < until) {
    const Instant to = std::min(until, progress.read + kPointsOfAnswerMax * period_);
    const Json answer = TRY(client_.call(client::Service::cloudwatch, "GetMetricStatistics",
                                         {{"Namespace", kNamespace},
                                          {"MetricName", metric},
                                          {"Dimensions", dimensions(job_)},
                                          {"StartTime", to_milliseconds(progress.read) / 1000},
                                          {"EndTime", to_milliseconds(to) / 1000},
                                          {"Period", period_ / 1s},
                                          {"Statistics", {"Average", "SampleCount"}}}));
    std::map<Instant, std::pair<double, int64_t>> points;  // CloudWatch gives them in no order
    for (const Json& each : answer.value("Datapoints", Json::array())) {
      const Instant at = TRY(instant_at(each, "Timestamp"));
      points[at] = {each.value("Average", 0.0), int64_t(each.value("SampleCount", 1.0))};
    }
    for (const auto& [at, point] : points) {
      progress.steps += point.second;
      records_ += scalar_record(at, progress.steps, metric, point.first);
    }
    progress.read = to;
  }
  return {};
}

Result<std::string> JobEvents::next(Instant now) {
  const Json job = TRY(
      client_.call(client::Service::sagemaker, "DescribeTrainingJob", {{"TrainingJobName", job_}}));
  const std::string status = TRY(string_at(job, "TrainingJobStatus"));
  const bool over = has_ended(status);
  // A job that was stopped while it waited has no TrainingEndTime.
  const char* const last = job.contains("TrainingEndTime") ? "TrainingEndTime" : "LastModifiedTime";
  const Instant end = over ? TRY(instant_at(job, last)) : now;
  if (!first_) TRY(start(job, end));
  const Instant until = before(over ? end + kAfterEnd : now - kLateValues, period_);
  for (const std::string& metric : TRY(metrics())) {
    Progress& progress = progress_.try_emplace(metric, Progress{*first_, 0}).first->second;
    TRY(read(metric, progress, until));
  }
  if (over && !ended_) records_ += end_record(end, status == "Completed");
  ended_ = over;
  return std::exchange(records_, "");
}

}  // namespace trainyard::cli::tensorboard
