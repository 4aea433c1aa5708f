// A PointHead contains the points that were appended since the last seal, by metric, in memory.
//
// Threads: confined to one thread at a time. Errors: none. A point uses 24 bytes, and 64 more if it
// has several values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "observe/metrics.hpp"

namespace trainyard::observe {

class PointHead {
 public:
  PointHead() { clear(); }

  // Adds a sample after those of the same time.
  void add(int64_t series, const Sample& sample);
  void clear();
  size_t size() const { return size_; }
  size_t series_count() const { return series_.size(); }
  // Returns the metrics that have points, in ascending order.
  std::vector<int64_t> series() const;

  // Returns the samples of a metric with from <= at < to, in the order of time and appends.
  std::vector<Sample> samples(int64_t series, int64_t from, int64_t to);
  // Returns at most `count` samples of a metric from index `begin` in that order; none at the end.
  std::vector<Sample> slice(int64_t series, size_t begin, size_t count);
  std::optional<Sample> last(int64_t series);

 private:
  // The values of a point in addition to its sum. All plain points with the same unit share one.
  struct Detail {
    std::string unit;
    bool plain = true;
    double count = 1, minimum = 0, maximum = 0;
  };
  struct Point {
    int64_t at;
    double sum;
    uint32_t detail;  // in details_
  };
  struct Points {
    std::vector<Point> all;
    size_t sorted = 0;  // the length of the prefix that is in the order of time
  };
  // Returns the points of a metric in the order of time and appends; nullptr if it has none.
  const std::vector<Point>* sorted(int64_t series);
  uint32_t detail_of(const Sample& sample);
  Sample sample_of_point(const Point& point) const;

  std::unordered_map<int64_t, Points> series_;
  std::vector<Detail> details_;
  std::map<std::string, uint32_t, std::less<>> plain_details_;  // by unit
  size_t size_ = 0;
  // A cache for the next point, which often has the metric or the unit of the last point.
  Points* last_points_ = nullptr;
  int64_t last_series_ = 0;
  uint32_t last_detail_ = 0;
};

}  // namespace trainyard::observe
