// Opens metrics whose new points are passed to a function after each append, or written to a
// durable journal.
//
// Threads, errors: as metrics.hpp and point_journal.hpp.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "observe/metrics.hpp"
#include "observe/point_journal.hpp"

namespace trainyard::observe {

// Called after an append, for each of its metrics, with the points that became durable. Points that
// are not finite or exceed a limit are left out. It must return soon, and may be called by many
// threads at once.
using PointsAppended = std::function<void(const MetricKey&, std::span<const Sample>)>;

struct MetricFollowers {
  PointsAppended appended = nullptr;
  JournalSettings journal = {};
};

struct FollowedMetrics {
  std::unique_ptr<Metrics> metrics;
  // nullptr if the settings name no reader. Lifetime: it is valid as long as the metrics.
  PointJournal* journal = nullptr;
};

Result<FollowedMetrics> open_followed_metrics(const std::string& directory,
                                              const MetricSettings& settings,
                                              const MetricFollowers& followers);

}  // namespace trainyard::observe
