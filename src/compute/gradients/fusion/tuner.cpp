#include "gradients/fusion/tuner.hpp"

#include <algorithm>
#include <bit>

namespace trainyard::gradients {
namespace {

constexpr int kFusionPoints = std::countr_zero(Tuner::kFusionBytesMax / Tuner::kFusionBytesMin) + 1;
constexpr int kCyclePoints =
    std::bit_width(Tuner::kCycleMicrosecondsMax / Tuner::kCycleMicrosecondsMin);

int nearest(uint64_t value, uint64_t smallest, int points) {
  const uint64_t times = std::max<uint64_t>(value / smallest, 1);
  return std::min(int(std::bit_width(times)) - 1, points - 1);
}

}  // namespace

Tuner::Tuner(Settings first, uint64_t seed)
    : random_(seed),
      at_{nearest(first.fusion_bytes, kFusionBytesMin, kFusionPoints),
          nearest(first.cycle_microseconds, kCycleMicrosecondsMin, kCyclePoints)} {}

Settings Tuner::settings_at(Point point) {
  return {kFusionBytesMin << point.fusion, kCycleMicrosecondsMin << point.cycle};
}

bool Tuner::was_tried(Point point) const {
  return std::find(tried_points_.begin(), tried_points_.end(), point) != tried_points_.end();
}

std::optional<Settings> Tuner::sample(uint64_t bytes, std::chrono::nanoseconds time) {
  if (done_) return {};
  bytes_ += bytes;
  time_ += time;
  // Windows in which nothing is reduced are ignored.
  if (time_ < kWindow || bytes_ == 0) return {};
  const double rate = double(bytes_) / (double(time_.count()) * 1e-9);
  bytes_ = 0;
  time_ = {};
  if (settling_) {
    settling_ = false;
    // The first setting is measured as it was given, later ones as powers of two.
    return tried_.empty() ? std::optional(settings_at(at_)) : std::nullopt;
  }
  windows_.push_back(rate);
  if (windows_.size() < kWindowsPerSetting) return {};
  std::nth_element(windows_.begin(), windows_.begin() + kWindowsPerSetting / 2, windows_.end());
  tried_.push_back({settings_at(at_), windows_[kWindowsPerSetting / 2]});
  tried_points_.push_back(at_);
  windows_.clear();
  settling_ = true;
  if (tried_.back().bytes_per_second > tried_[best_].bytes_per_second * kBetterBy)
    best_ = tried_.size() - 1;
  return next();
}

std::optional<Settings> Tuner::next() {
  if (tried_.size() <= size_t(kDrawnMax)) {
    Point drawn;
    do {
      drawn = {int(random_.below(kFusionPoints)), int(random_.below(kCyclePoints))};
    } while (was_tried(drawn));
    at_ = drawn;
    return settings_at(at_);
  }
  while (tried_.size() < size_t(kTriesMax) && step_ > 0) {
    const Point best = tried_points_[best_];
    for (const Point offset : {Point{step_, 0}, {-step_, 0}, {0, step_}, {0, -step_}}) {
      const Point point{std::clamp(best.fusion + offset.fusion, 0, kFusionPoints - 1),
                        std::clamp(best.cycle + offset.cycle, 0, kCyclePoints - 1)};
      if (was_tried(point)) continue;
      at_ = point;
      return settings_at(at_);
    }
    --step_;  // no better setting in this distance
  }
  done_ = true;
  at_ = tried_points_[best_];
  return settings_at(at_);
}

}  // namespace trainyard::gradients
