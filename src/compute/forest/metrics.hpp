// Computes metrics of scores and labels by the rule of SageMaker's documentation: a row counts as
// anomalous if its score is more than three standard deviations above the mean score of the test
// rows.
//
// Threads: pure functions. Errors: none. Metrics that divide by zero are 0.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trainyard::forest {

struct ScoredRow {
  double score = 0;
  bool is_anomaly = false;  // the label
};

struct Evaluation {
  double threshold = 0;
  uint64_t true_positives = 0, false_positives = 0, true_negatives = 0, false_negatives = 0;

  double accuracy() const;
  double precision() const;
  double recall() const;
  double f1() const;
};

// Evaluates the scores. The result does not depend on the order of the rows.
Evaluation evaluate(std::vector<ScoredRow> rows);

// Returns the evaluation of the detection of normal rows: positives and negatives are exchanged.
Evaluation evaluation_of_normal_rows(const Evaluation& evaluation);

}  // namespace trainyard::forest
