#include "gradients/fusion/tuner.hpp"

#include <algorithm>
#include <bit>

namespace trainyard::gradients {
namespace {

constexpr int fusion_points =
    std::countr_zero(Tuner::fusion_bytes_max / Tuner::fusion_bytes_min) + 1;
constexpr int cycle_points =
    std::bit_width(Tuner::cycle_microseconds_max / Tuner::cycle_microseconds_min);

int nearest(uint64_t value, uint64_t smallest, int points) {
  const uint64_t times = std::max<uint64_t>(value / smallest, 1);
  return std::min(int(std::bit_width(times)) - 1, points - 1);
}

}  // namespace

Tuner::Tuner(Settings first, uint64_t seed)
    : random_(seed),
      at_{nearest(first.fusion_bytes, fusion_bytes_min, fusion_points),
          nearest(first.cycle_microseconds, cycle_microseconds_min, cycle_points)} {}

Settings Tuner::settings_at(Point point) {
  return {fusion_bytes_min << point.fusion, cycle_microseconds_min << point.cycle};
}

bool Tuner::was_tried(Point point) const {
  return std::find(tried_points_.begin(), tried_points_.end(), point) != tried_points_.end();
}

std::optional<Settings> Tuner::sample(uint64_t bytes, std::chrono::nanoseconds time) {
  if (done_) return {};
  bytes_ += bytes;
  time_ += time;
  // Windows in which nothing is reduced are ignored.
  if (time_ < window || bytes_ == 0) return {};
  const double rate = double(bytes_) / (double(time_.count()) * 1e-9);
  bytes_ = 0;
  time_ = {};
  if (settling_) {
    settling_ = false;
    // The first setting is measured as it was given, later ones as powers of two.
    return tried_.empty() ? std::optional(settings_at(at_)) : std::nullopt;
  }
  windows_.push_back(rate);
  if (windows_.size() < windows_per_setting) return {};
  std::nth_element(windows_.begin(), windows_.begin() + windows_per_setting / 2, windows_.end());
  tried_.push_back({settings_at(at_), windows_[windows_per_setting / 2]});
  tried_points_.push_back(at_);
  windows_.clear();
  settling_ = true;
  if (tried_.back().bytes_per_second > tried_[best_].bytes_per_second * better_by)
    best_ = tried_.size() - 1;
  return next();
}

std::optional<Settings> Tuner::next() {
  if (tried_.size() <= size_t(drawn_max)) {
    Point drawn;
    do {
      drawn = {int(random_.below(fusion_points)), int(random_.below(cycle_points))};
    } while (was_tried(drawn));
    at_ = drawn;
    return settings_at(at_);
  }
  while (tried_.size() < size_t(tries_max) && step_ > 0) {
    const Point best = tried_points_[best_];
    for (const Point offset : {Point{step_, 0}, {-step_, 0}, {0, step_}, {0, -step_}}) {
      const Point point{std::clamp(best.fusion + offset.fusion, 0, fusion_points - 1),
                        std::clamp(best.cycle + offset.cycle, 0, cycle_points - 1)};
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
