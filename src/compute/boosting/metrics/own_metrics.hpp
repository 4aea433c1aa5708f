// Computes the metrics that SageMaker adds to the metrics of XGBoost's library: accuracy, f1, r2
// and others, as scikit-learn defines them, without weights.
//
// MetricSums has only sums over rows, so the sums of several hosts can be added.
//
// Threads: plain values. Errors: none.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace trainyard::boosting {

// Returns true for a metric that this file computes.
bool is_own_metric(std::string_view metric);

class MetricSums {
 public:
  // `classes`: 0 for regression, 2 for binary classification.
  explicit MetricSums(size_t classes);

  // Requires: label and prediction are classes, if `classes` is not 0.
  void add(double label, double prediction);
  // Returns the sums, which are added element by element to the sums of other hosts.
  std::span<double> sums() { return sums_; }
  // Returns NaN if the metric is undefined: without rows, or a classification metric with `classes`
  // 0.
  double value(std::string_view metric) const;

 private:
  // Counts of rows per class: true positives, rows predicted as the class, rows of the class.
  double right(size_t each) const { return sums_[kCommon + each]; }
  double predicted(size_t each) const { return sums_[kCommon + classes_ + each]; }
  double actual(size_t each) const { return sums_[kCommon + 2 * classes_ + each]; }
  double precision(size_t each) const;
  double recall(size_t each) const;
  double f1(size_t each) const;
  double r2() const;
  template <class Score>
  double macro(Score score) const;

  // rows, correct rows, squared errors, labels, squared labels
  static constexpr size_t kCommon = 5;
  size_t classes_;
  std::vector<double> sums_;
};

}  // namespace trainyard::boosting
