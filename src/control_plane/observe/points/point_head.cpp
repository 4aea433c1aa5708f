#include "observe/points/point_head.hpp"

#include <algorithm>

#include "observe/points/point_block.hpp"

namespace trainyard::observe {

void PointHead::clear() {
  // Assigned, not cleared: a burst does not keep its memory.
  series_ = {};
  details_ = {};
  plain_details_ = {};
  size_ = 0;
  last_points_ = nullptr;
  last_detail_ = 0;
}

uint32_t PointHead::detail_of(const Sample& sample) {
  const auto added = uint32_t(details_.size());
  if (!is_plain(sample)) {
    details_.push_back({sample.unit, false, sample.count, sample.minimum, sample.maximum});
    return added;
  }
  if (last_detail_ < details_.size() && details_[last_detail_].plain &&
      details_[last_detail_].unit == sample.unit)
    return last_detail_;
  const auto found = plain_details_.find(sample.unit);
  if (found != plain_details_.end()) return found->second;
  plain_details_.emplace(sample.unit, added);
  details_.push_back({.unit = sample.unit});
  return added;
}

void PointHead::add(int64_t series, const Sample& sample) {
  if (!last_points_ || series != last_series_) {
    last_points_ = &series_[series];
    last_series_ = series;
  }
  Points& points = *last_points_;
  last_detail_ = detail_of(sample);
  const int64_t at = to_milliseconds(sample.at);
  const bool in_order =
      points.sorted == points.all.size() && (points.all.empty() || at >= points.all.back().at);
  points.all.push_back({at, sample.sum, last_detail_});
  if (in_order) ++points.sorted;
  ++size_;
}

std::vector<int64_t> PointHead::series() const {
  std::vector<int64_t> all;
  all.reserve(series_.size());
  for (const auto& [series, points] : series_) all.push_back(series);
  std::ranges::sort(all);
  return all;
}

const std::vector<PointHead::Point>* PointHead::sorted(int64_t series) {
  const auto found = series_.find(series);
  if (found == series_.end()) return nullptr;
  auto& [all, length] = found->second;
  if (length < all.size()) {
    const auto earlier = [](const Point& a, const Point& b) { return a.at < b.at; };
    const auto rest = all.begin() + std::ptrdiff_t(length);
    std::stable_sort(rest, all.end(), earlier);
    std::inplace_merge(all.begin(), rest, all.end(), earlier);
    length = all.size();
  }
  return &all;
}

Sample PointHead::sample_of_point(const Point& point) const {
  const Detail& detail = details_[point.detail];
  return {.at = from_milliseconds(point.at),
          .count = detail.count,
          .sum = point.sum,
          .minimum = detail.plain ? point.sum : detail.minimum,
          .maximum = detail.plain ? point.sum : detail.maximum,
          .unit = detail.unit};
}

std::vector<Sample> PointHead::samples(int64_t series, int64_t from, int64_t to) {
  std::vector<Sample> found;
  const auto* all = sorted(series);
  if (!all) return found;
  for (auto point = std::ranges::lower_bound(*all, from, {}, &Point::at);
       point != all->end() && point->at < to; ++point)
    found.push_back(sample_of_point(*point));
  return found;
}

std::vector<Sample> PointHead::slice(int64_t series, size_t begin, size_t count) {
  std::vector<Sample> found;
  const auto* all = sorted(series);
  if (!all) return found;
  const size_t end = std::min(all->size(), begin + count);
  for (size_t i = begin; i < end; ++i) found.push_back(sample_of_point((*all)[i]));
  return found;
}

std::optional<Sample> PointHead::last(int64_t series) {
  const auto* all = sorted(series);
  if (!all) return std::nullopt;
  return sample_of_point(all->back());
}

}  // namespace trainyard::observe
