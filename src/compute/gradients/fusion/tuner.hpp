// Finds the fusion size and the cycle under which the most bytes a second are carried out.
//
// Touches nothing: what was measured goes in, what to try next comes out. First a few settings that are drawn at
// random, far from each other; then from the best of them in smaller and smaller steps along both axes. A setting's
// worth is the median of some windows, so that one disturbance does not decide; a better one must be better by more
// than noise.
//
//   TRIES: drawn_max at random --> steps of a factor of 8, 4, 2 around the best --> done: the best, for good
//
// Threads: confined to one at a time. Errors: none. Equal samples and seeds give equal settings.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "gradients/fusion/request.hpp"

namespace trainyard::gradients {

class Tuner {
 public:
  Tuner(Settings first, uint64_t seed);

  // What was carried out since the last call. Returns what to work with from now on, when that changes.
  std::optional<Settings> sample(uint64_t bytes, std::chrono::nanoseconds time);

  bool done() const { return done_; }
  struct Tried {
    Settings settings;
    double bytes_per_second = 0;
  };
  // All settings that were measured, in their order.
  const std::vector<Tried>& tried() const { return tried_; }

  // The ends of both axes, which are walked in powers of two.
  static constexpr uint64_t fusion_bytes_min = uint64_t{64} << 10;  // less is not worth a copy
  static constexpr uint64_t fusion_bytes_max = uint64_t{128} << 20;
  static constexpr uint32_t cycle_microseconds_min = 125;
  static constexpr uint32_t cycle_microseconds_max = 32'000;  // as long as a step of a small model
  // Long enough for some steps of training, short enough to be done within a minute.
  static constexpr std::chrono::milliseconds window{250};
  static constexpr int windows_per_setting = 5;  // and one more before them, while caches and buffers settle
  static constexpr int drawn_max = 4;
  static constexpr int tries_max = 30;
  static constexpr double better_by = 1.02;  // two medians of one setting differ by less

 private:
  struct Point {
    int fusion = 0;  // powers of two above the smallest
    int cycle = 0;
    bool operator==(const Point&) const = default;
  };
  static Settings settings_at(Point point);
  std::optional<Settings> next();
  bool was_tried(Point point) const;

  SeededRandom random_;
  std::vector<Tried> tried_;
  std::vector<Point> tried_points_;
  Point at_;  // that is measured now
  size_t best_ = 0;
  int step_ = 3;  // powers of two from the best one
  bool done_ = false;

  uint64_t bytes_ = 0;  // of the window under way
  std::chrono::nanoseconds time_{};
  std::vector<double> windows_;
  bool settling_ = true;
};

}  // namespace trainyard::gradients
