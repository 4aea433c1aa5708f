#include "boosting/metrics/own_metrics.hpp"

#include <algorithm>
#include <limits>

namespace trainyard::boosting {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

constexpr std::string_view kOwnMetrics[] = {"accuracy",
                                            "balanced_accuracy",
                                            "f1",
                                            "f1_binary",
                                            "f1_macro",
                                            "mse",
                                            "precision",
                                            "r2",
                                            "recall",
                                            "precision_macro",
                                            "precision_micro",
                                            "recall_macro",
                                            "recall_micro"};

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

bool is_own_metric(std::string_view metric) {
  return std::ranges::find(kOwnMetrics, metric) != std::end(kOwnMetrics);
}

MetricSums::MetricSums(size_t classes) : classes_(classes), sums_(kCommon + 3 * classes) {}

void MetricSums::add(double label, double prediction) {
  sums_[0] += 1;
  sums_[1] += label == prediction ? 1 : 0;
  sums_[2] += (label - prediction) * (label - prediction);
  sums_[3] += label;
  sums_[4] += label * label;
  if (classes_ == 0) return;
  const auto is = size_t(label), found = size_t(prediction);
  if (is >= classes_ || found >= classes_) return;
  if (is == found) sums_[kCommon + is] += 1;
  sums_[kCommon + classes_ + found] += 1;
  sums_[kCommon + 2 * classes_ + is] += 1;
}

double MetricSums::precision(size_t each) const { return share(right(each), predicted(each)); }
double MetricSums::recall(size_t each) const { return share(right(each), actual(each)); }
double MetricSums::f1(size_t each) const {
  return share(2 * right(each), predicted(each) + actual(each));
}

double MetricSums::r2() const {
  const double spread = sums_[4] - sums_[3] * sums_[3] / sums_[0];
  if (spread > 0) return 1 - sums_[2] / spread;
  return sums_[2] > 0 ? 0 : 1;
}

// Returns the mean score of the classes that occur among the labels or the predictions.
template <class Score>
double MetricSums::macro(Score score) const {
  double sum = 0, count = 0;
  for (size_t each = 0; each < classes_; ++each) {
    if (actual(each) + predicted(each) == 0) continue;
    sum += score(each);
    count += 1;
  }
  return count > 0 ? sum / count : kUndefined;
}

double MetricSums::value(std::string_view metric) const {
  if (sums_[0] == 0) return kUndefined;
  if (metric == "mse") return sums_[2] / sums_[0];
  if (metric == "r2") return r2();
  if (classes_ == 0) return kUndefined;
  if (metric == "accuracy" || metric == "precision_micro" || metric == "recall_micro")
    return sums_[1] / sums_[0];
  if (metric == "balanced_accuracy") {
    double sum = 0, count = 0;
    for (size_t each = 0; each < classes_; ++each) {
      if (actual(each) == 0) continue;
      sum += recall(each);
      count += 1;
    }
    return sum / count;
  }
  if (metric == "f1" || metric == "f1_macro") return macro([&](size_t each) { return f1(each); });
  if (metric == "precision_macro") return macro([&](size_t each) { return precision(each); });
  if (metric == "recall_macro") return macro([&](size_t each) { return recall(each); });
  if (classes_ != 2) return kUndefined;
  if (metric == "f1_binary") return f1(1);
  return metric == "precision" ? precision(1) : recall(1);
}

}  // namespace trainyard::boosting
