// Computes the metrics that SageMaker adds to those of XGBoost's library: accuracy, f1, r2 and the
// like, as scikit-learn defines them, without weights.
//
// MetricSums holds sums over rows, so those of several hosts are added.
//
// Threads: plain values. Errors: none.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace trainyard::boosting {

// True for a metric of this file.
bool is_own_metric(std::string_view metric);

class MetricSums {
 public:
  // `classes`: 0 for problems without classes, 2 for binary ones.
  explicit MetricSums(size_t classes);

  // Requires: label and prediction are classes, if there are any.
  void add(double label, double prediction);
  // To be added element by element to those of other hosts.
  std::span<double> sums() { return sums_; }
  // Returns NaN where the metric is undefined: without rows, or of classes where there are none.
  double value(std::string_view metric) const;

 private:
  // Per class: rows that are it and were predicted as it, rows predicted as it, rows that are it.
  double right(size_t each) const { return sums_[kCommon + each]; }
  double predicted(size_t each) const { return sums_[kCommon + classes_ + each]; }
  double actual(size_t each) const { return sums_[kCommon + 2 * classes_ + each]; }
  double precision(size_t each) const;
  double recall(size_t each) const;
  double f1(size_t each) const;
  double r2() const;
  template <class Score>
  double macro(Score score) const;

  static constexpr size_t kCommon = 5;  // rows, right ones, squared errors, labels, their squares
  size_t classes_;
  std::vector<double> sums_;
};

}  // namespace trainyard::boosting
