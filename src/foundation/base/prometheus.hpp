// Collects durations in histograms, and formats metrics in Prometheus' text format 0.0.4.
//
// Format: https://prometheus.io/docs/instrumenting/exposition_formats/
//
// Threads: a Histogram is callable from anywhere; a PrometheusText is confined to one. Errors:
// none. Units: seconds.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace trainyard {

// Counts durations in buckets from 0.5 ms to 60 s.
class Histogram {
 public:
  static constexpr std::array<double, 15> kBounds = {.0005, .001, .0025, .005, .01, .025, .05, .1,
                                                     .25,   .5,   1,     2.5,  5,   10,   60};

  void add(double seconds);

  // Returns the number of durations of at most kBounds[index]; for index == kBounds.size(), the
  // number of all durations.
  uint64_t count_to(size_t index) const;
  double sum() const { return double(nanoseconds_.load(std::memory_order_relaxed)) / 1e9; }

 private:
  std::array<std::atomic<uint64_t>, kBounds.size() + 1> counts_{};
  std::atomic<uint64_t> nanoseconds_{0};
};

class PrometheusText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Writes the HELP and TYPE lines above a metric's samples. `type`: "counter", "gauge",
  // "histogram".
  void begin(std::string_view name, std::string_view type, std::string_view help);
  void sample(std::string_view name, Labels labels, double value);
  // Writes the samples of one histogram.
  void histogram(std::string_view name, Labels labels, const Histogram& histogram);

  const std::string& text() const { return text_; }

 private:
  void line(std::string_view name, std::string_view suffix, Labels labels, std::string_view bound,
            double value);

  std::string text_;
};

}  // namespace trainyard
