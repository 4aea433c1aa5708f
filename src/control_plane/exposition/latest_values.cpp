#include "exposition/latest_values.hpp"

#include <algorithm>
#include <utility>

#include "contract/aws_texts.hpp"

namespace trainyard::exposition {

std::optional<MetricOwner> owner_of(const observe::MetricKey& key) {
  if (key.name_space != contract::kTrainingMetricNamespace || key.dimensions.size() != 1)
    return std::nullopt;
  const auto& [dimension, value] = *key.dimensions.begin();
  if (dimension == contract::kTrainingJobDimension) return MetricOwner{{key.region, value}, ""};
  const size_t slash = value.rfind('/');
  if (dimension != "Host" || slash == value.npos) return std::nullopt;
  return MetricOwner{{key.region, value.substr(0, slash)}, value.substr(slash + 1)};
}

void LatestValues::add(const domain::JobKey& job) {
  const MutexLock lock(mutex_);
  jobs_.try_emplace(job);
}

void LatestValues::record(const observe::MetricKey& key, std::span<const observe::Sample> samples) {
  const auto owner = owner_of(key);
  if (!owner) return;
  const MutexLock lock(mutex_);
  const auto job = jobs_.find(owner->job);
  if (job == jobs_.end()) return;
  for (const auto& sample : samples) record(*job, {key.name, owner->host}, sample, sample.sum);
}

void LatestValues::record(const std::vector<observe::MetricRecord>& records) {
  for (const auto& [key, sample] : records) record(key, {&sample, 1});
}

void LatestValues::record(Jobs::value_type& job, SeriesName name, const observe::Sample& sample,
                          double total) {
  if (sample.count <= 0) return;
  Job& of = job.second;
  auto found = of.values.find(name);
  if (found == of.values.end()) {
    if (of.values.size() >= limits_.series_of_job_max || !make_space(job)) {
      ++of.points_left_out;
      ++left_out_;
      return;
    }
    found =
        of.values.emplace(std::move(name), Value{.value = 0, .total = 0, .at = sample.at}).first;
    ++series_;
  }
  note_arrival(job);
  Value& value = found->second;
  value.total += total;
  of.last_point = std::max(of.last_point, sample.at);
  if (sample.at < value.at) return;
  value.value = sample.sum / sample.count;
  value.at = sample.at;
}

void LatestValues::note_arrival(Jobs::value_type& job) {
  // This is the common case: most points belong to the same job as the previous point.
  if (!by_arrival_.empty() && by_arrival_.rbegin()->second == &job) return;
  by_arrival_.erase(job.second.arrival);
  job.second.arrival = ++arrivals_;
  by_arrival_.emplace(job.second.arrival, &job);
}

bool LatestValues::make_space(const Jobs::value_type& job) {
  while (series_ >= limits_.series_max) {
    auto oldest = by_arrival_.begin();
    if (oldest != by_arrival_.end() && oldest->second == &job) ++oldest;
    if (oldest == by_arrival_.end()) return false;
    clear(*oldest->second);
  }
  return true;
}

void LatestValues::clear(Jobs::value_type& job) {
  series_ -= job.second.values.size();
  job.second.values.clear();
  by_arrival_.erase(job.second.arrival);
  job.second.arrival = 0;
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
    SeriesName name{key.name, owner->host};
    if (job == jobs_.end() || job->second.values.contains(name)) continue;
    record(*job, std::move(name), *sample, 0);
  }
  return ok();
}

void LatestValues::forget(const domain::JobKey& job) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  clear(*found);
  jobs_.erase(found);
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
