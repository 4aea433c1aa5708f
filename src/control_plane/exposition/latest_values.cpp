#include "exposition/latest_values.hpp"

#include <algorithm>

#include "contract/aws_texts.hpp"

namespace trainyard::exposition {

std::optional<MetricOwner> owner_of(const observe::MetricKey& key) {
  if (key.name_space != contract::kTrainingMetricNamespace || key.dimensions.size() != 1)
    return std::nullopt;
  const auto& [dimension, value] = *key.dimensions.begin();
  if (dimension == "TrainingJobName") return MetricOwner{{key.region, value}, ""};
  const size_t slash = value.rfind('/');
  if (dimension != "Host" || slash == value.npos) return std::nullopt;
  return MetricOwner{{key.region, value.substr(0, slash)}, value.substr(slash + 1)};
}

void LatestValues::take(const std::vector<observe::MetricRecord>& records) {
  const MutexLock lock(mutex_);
  for (const auto& [key, sample] : records)
    if (const auto owner = owner_of(key)) take(*owner, key.name, sample);
}

void LatestValues::take(const MetricOwner& owner, const std::string& metric,
                        const observe::Sample& sample) {
  if (sample.count <= 0) return;
  SeriesName name{metric, owner.host};
  auto found = jobs_.find(owner.job);
  if (found == jobs_.end() || !found->second.values.contains(name)) {
    const bool fits =
        (found == jobs_.end() || found->second.values.size() < limits_.series_of_job_max) &&
        admit(owner.job);
    Job& job = jobs_[owner.job];
    if (!fits) {
      ++job.points_left_out;
      ++left_out_;
      return;
    }
    job.values.emplace(name, Value{.value = 0, .total = 0, .at = sample.at});
    ++series_;
    found = jobs_.find(owner.job);
  }
  Job& job = found->second;
  Value& value = job.values.at(name);
  value.total += sample.sum;
  job.last_point = std::max(job.last_point, sample.at);
  if (sample.at < value.at) return;
  value.value = sample.sum / sample.count;
  value.at = sample.at;
}

bool LatestValues::admit(const domain::JobKey& job) {
  while (series_ >= limits_.series_max) {
    auto oldest = jobs_.end();
    for (auto each = jobs_.begin(); each != jobs_.end(); ++each)
      if (each->first != job && !each->second.values.empty() &&
          (oldest == jobs_.end() || each->second.last_point < oldest->second.last_point))
        oldest = each;
    if (oldest == jobs_.end()) return false;
    erase(oldest);
  }
  return true;
}

void LatestValues::erase(std::map<domain::JobKey, Job>::iterator job) {
  series_ -= job->second.values.size();
  jobs_.erase(job);
}

Result<void> LatestValues::restore(observe::Metrics& metrics, const std::string& region,
                                   const std::function<bool(const domain::JobKey&)>& wanted) {
  const auto keys = TRY(metrics.list(region, std::string(contract::kTrainingMetricNamespace), ""));
  for (const auto& key : keys) {
    const auto owner = owner_of(key);
    if (!owner || !wanted(owner->job)) continue;
    const auto sample = TRY(metrics.last(key));
    if (!sample) continue;
    const MutexLock lock(mutex_);
    const auto job = jobs_.find(owner->job);
    if (job != jobs_.end() && job->second.values.contains({key.name, owner->host})) continue;
    take(*owner, key.name, *sample);
  }
  return ok();
}

void LatestValues::forget(const domain::JobKey& job) {
  const MutexLock lock(mutex_);
  if (const auto found = jobs_.find(job); found != jobs_.end()) erase(found);
}

JobValues LatestValues::values_of(const domain::JobKey& job) const {
  JobValues out;
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return out;
  out.points_left_out = found->second.points_left_out;
  out.last_point = found->second.last_point;
  out.values.reserve(found->second.values.size());
  for (const auto& [name, value] : found->second.values)
    out.values.push_back({name.first, name.second, value.value, value.total, value.at});
  return out;
}

uint64_t LatestValues::points_left_out() const {
  const MutexLock lock(mutex_);
  return left_out_;
}

}  // namespace trainyard::exposition
