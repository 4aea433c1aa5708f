// A Tuner finds the fusion size and the cycle time with the highest throughput in bytes per second.
//
// It does no I/O: its input are measurements, and its output are the next settings. It first tries
// a few random settings that are far from each other. Then it moves from the best of them in
// smaller and smaller steps along both axes. The score of a setting is the median of several
// windows, so a single disturbance does not matter; a better setting must be better by more than
// noise.
//
//   tries: kDrawnMax random settings --> steps of a factor of 8, 4, 2 around the best
//          --> done: keeps the best
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

  // Adds the bytes that were reduced since the last call. Returns the settings to use from now on,
  // if they change.
  std::optional<Settings> sample(uint64_t bytes, std::chrono::nanoseconds time);

  bool done() const { return done_; }
  struct Tried {
    Settings settings;
    double bytes_per_second = 0;
  };
  // Returns all settings that were measured, in order.
  const std::vector<Tried>& tried() const { return tried_; }

  // The ends of both axes, which consist of powers of two.
  // smaller buffers are not worth a copy
  static constexpr uint64_t kFusionBytesMin = uint64_t{64} << 10;
  static constexpr uint64_t kFusionBytesMax = uint64_t{128} << 20;
  static constexpr uint32_t kCycleMicrosecondsMin = 125;
  static constexpr uint32_t kCycleMicrosecondsMax = 32'000;  // as long as a step of a small model
  // Long enough for some training steps, short enough that tuning ends within a minute.
  static constexpr std::chrono::milliseconds kWindow{250};
  // after one more window in which caches and buffers settle
  static constexpr int kWindowsPerSetting = 5;
  static constexpr int kDrawnMax = 4;
  static constexpr int kTriesMax = 30;
  static constexpr double kBetterBy = 1.02;  // the medians of one setting differ by less

 private:
  struct Point {
    int fusion = 0;  // powers of two above the minimum
    int cycle = 0;
    bool operator==(const Point&) const = default;
  };
  static Settings settings_at(Point point);
  std::optional<Settings> next();
  bool was_tried(Point point) const;

  SeededRandom random_;
  std::vector<Tried> tried_;
  std::vector<Point> tried_points_;
  Point at_;  // the point that is measured now
  size_t best_ = 0;
  int step_ = 3;  // distance from the best point, in powers of two
  bool done_ = false;

  uint64_t bytes_ = 0;  // bytes in the current window
  std::chrono::nanoseconds time_{};
  std::vector<double> windows_;
  bool settling_ = true;
};

}  // namespace trainyard::gradients
