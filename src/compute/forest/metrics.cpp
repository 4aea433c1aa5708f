#include "forest/metrics.hpp"

#include <algorithm>
#include <cmath>

namespace trainyard::forest {
namespace {

constexpr double kStandardDeviations = 3;

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

double Evaluation::accuracy() const {
  const uint64_t correct = true_positives + true_negatives;
  return ratio(double(correct), double(correct + false_positives + false_negatives));
}

double Evaluation::precision() const {
  return ratio(double(true_positives), double(true_positives + false_positives));
}

double Evaluation::recall() const {
  return ratio(double(true_positives), double(true_positives + false_negatives));
}

double Evaluation::f1() const {
  return ratio(2 * double(true_positives),
               2 * double(true_positives) + double(false_positives + false_negatives));
}

Evaluation evaluate(std::vector<ScoredRow> rows) {
  // A sum in ascending order is equal for any order of the rows.
  std::ranges::sort(rows, {}, &ScoredRow::score);
  double sum = 0, squares = 0;
  for (const ScoredRow& row : rows) sum += row.score;
  const double mean = ratio(sum, double(rows.size()));
  for (const ScoredRow& row : rows) squares += (row.score - mean) * (row.score - mean);
  Evaluation evaluation;
  evaluation.threshold =
      mean + kStandardDeviations * std::sqrt(ratio(squares, double(rows.size())));
  for (const ScoredRow& row : rows) {
    const bool is_found = row.score > evaluation.threshold;
    uint64_t& count =
        is_found ? (row.is_anomaly ? evaluation.true_positives : evaluation.false_positives)
                 : (row.is_anomaly ? evaluation.false_negatives : evaluation.true_negatives);
    ++count;
  }
  return evaluation;
}

Evaluation evaluation_of_normal_rows(const Evaluation& evaluation) {
  return {evaluation.threshold, evaluation.true_negatives, evaluation.false_negatives,
          evaluation.true_positives, evaluation.false_positives};
}

}  // namespace trainyard::forest
