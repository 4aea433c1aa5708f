#include "exposition/job_families.hpp"

#include <map>

#include "base/text.hpp"
#include "exposition/point_series.hpp"

namespace trainyard::exposition {
namespace {

struct LabelledJob {
  const ExposedJob& exposed;
  SharedLabels labels;
};
using Jobs = std::vector<LabelledJob>;

// Adds one series for each job for which the value is known.
template <class ValueOf>
void add_each(const Jobs& jobs, Families& families, std::string_view name, FamilyType type,
              std::string_view help, const ValueOf& value_of) {
  Family* family = nullptr;
  for (const LabelledJob& each : jobs) {
    const std::optional<double> value = value_of(each.exposed);
    if (!value) continue;
    if (!family) family = &families.add(name, type, help);
    family->sample(each.labels, Labels(), *value);
  }
}

void add_progress(const Jobs& jobs, Families& families) {
  using Value = std::optional<double>;
  Family* info = nullptr;
  for (const LabelledJob& each : jobs) {
    const domain::Job& job = *each.exposed.job;
    if (!info)
      info = &families.add("trainyard_job_info", FamilyType::gauge,
                           "A running job, with its properties; always 1.");
    Labels labels;
    labels.reserve(3);
    labels.emplace_back("state", domain::to_string(job.state));
    labels.emplace_back("instance_type",
                        job.spec.groups.empty() ? "" : job.spec.groups[0].instance_type);
    labels.emplace_back("display_name", shorten(job.spec.display_name, kLabelBytesMax));
    info->sample(each.labels, std::move(labels), 1);
  }
  add_each(jobs, families, "trainyard_job_hosts", FamilyType::gauge, "Hosts of a running job.",
           [](const ExposedJob& each) { return Value(each.job->spec.hosts()); });
  add_each(jobs, families, "trainyard_job_attempts_total", FamilyType::counter,
           "Attempts of a job, including the current one.",
           [](const ExposedJob& each) { return Value(double(each.job->attempts.size())); });
  add_each(jobs, families, "trainyard_job_created_timestamp_seconds", FamilyType::gauge,
           "When a job was created, since 1970.",
           [](const ExposedJob& each) { return Value(to_seconds(each.job->created)); });
  add_each(jobs, families, "trainyard_job_training_start_timestamp_seconds", FamilyType::gauge,
           "When the first host of a job began to run, since 1970.", [](const ExposedJob& each) {
             const auto& start = each.job->training_start;
             return start ? Value(to_seconds(*start)) : std::nullopt;
           });
  add_each(jobs, families, "trainyard_job_last_metric_timestamp_seconds", FamilyType::gauge,
           "When the last point of a job's metrics was measured, since 1970.",
           [](const ExposedJob& each) {
             if (each.values.values.empty()) return Value();
             return Value(to_seconds(each.values.last_point));
           });
  add_each(jobs, families, "trainyard_job_points_left_out_total", FamilyType::counter,
           "Points of a job's metrics that were dropped, since the job has too many metrics.",
           [](const ExposedJob& each) { return Value(double(each.values.points_left_out)); });
}

// ValueFamilies collects the samples of jobs' metrics by family, since the samples of a family must
// be written together.
class ValueFamilies {
 public:
  explicit ValueFamilies(size_t series_max) : series_max_(series_max) {}

  void add(const LabelledJob& job) {
    for (const LatestValue& each : job.exposed.values.values) {
      if (series_ >= series_max_) {
        ++left_out_;
        continue;
      }
      ++series_;
      add(job, each);
    }
  }

  void move_to(Families& families) && {
    for (const HostMetric& metric : host_metrics())
      put(families, metric.family, metric.is_counter() ? FamilyType::counter : FamilyType::gauge,
          metric.help);
    put(families, kJobMetric, FamilyType::gauge, "Latest value of a metric of a job.");
    put(families, kHostMetric, FamilyType::gauge, "Latest value of another metric of a host.");
    families.gauge("trainyard_job_series_left_out",
                   "Series of jobs that this scrape left out, since it would have too many.",
                   double(left_out_));
  }

 private:
  void add(const LabelledJob& job, const LatestValue& each) {
    PointSeries series = series_of(each.metric, each.host);
    const double value = series.counter ? each.total : each.value * series.factor;
    samples_[series.family].push_back({"", job.labels, std::move(series.labels), value});
  }

  void put(Families& families, std::string_view name, FamilyType type, std::string_view help) {
    const auto found = samples_.find(name);
    if (found == samples_.end()) return;
    families.add(name, type, help).samples = std::move(found->second);
  }

  const size_t series_max_;
  size_t series_ = 0, left_out_ = 0;
  std::map<std::string_view, std::vector<FamilySample>> samples_;
};

}  // namespace

SharedLabels labels_of(const domain::Job& job) {
  Labels labels;
  labels.reserve(4);
  labels.emplace_back("region", job.key.region);
  labels.emplace_back("job_name", job.key.name);
  labels.emplace_back("user", shorten(job.spec.principal, kLabelBytesMax));
  labels.emplace_back("queue", job.spec.queue ? job.spec.queue->name : "");
  return std::make_shared<const Labels>(std::move(labels));
}

void add_job_families(const std::vector<ExposedJob>& jobs, size_t series_max, Families& families) {
  Jobs labelled;
  labelled.reserve(jobs.size());
  ValueFamilies values(series_max);
  for (const ExposedJob& each : jobs) labelled.push_back({each, labels_of(*each.job)});
  for (const LabelledJob& each : labelled) values.add(each);
  add_progress(labelled, families);
  std::move(values).move_to(families);
}

}  // namespace trainyard::exposition
