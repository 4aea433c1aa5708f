// A RowScorer scores rows in batches, on several threads, and returns the scores in the order of
// the rows.
//
// Threads: confined to one; scoring uses up to `threads` threads. Errors: none of its own.
// Lifetime: the forest outlives it. Memory: one batch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "forest/trees/forest.hpp"
#include "os/parallel.hpp"

namespace trainyard::forest {

class RowScorer {
 public:
  using Take = std::function<void(double score, double label)>;
  static constexpr size_t kBatchBytes = 8 << 20;
  static constexpr size_t kRowsOfPart = 256;

  RowScorer(const Forest& forest, size_t threads)
      : forest_(forest),
        threads_(threads),
        dimensions_(forest.options().dimensions),
        rows_max_(std::max<size_t>(1, kBatchBytes / (dimensions_ * sizeof(float)))) {}

  Result<void> add(std::span<const float> features, double label, const Take& take) {
    rows_.insert(rows_.end(), features.begin(), features.end());
    labels_.push_back(label);
    return labels_.size() < rows_max_ ? ok() : finish(take);
  }

  // Scores the remaining rows.
  Result<void> finish(const Take& take) {
    scores_.resize(labels_.size());
    const size_t parts = (labels_.size() + kRowsOfPart - 1) / kRowsOfPart;
    TRY(os::for_each_in_parallel(parts, threads_, [&](size_t part) -> Result<void> {
      const size_t begin = part * kRowsOfPart;
      const size_t count = std::min(kRowsOfPart, labels_.size() - begin);
      forest_.score(std::span(rows_).subspan(begin * dimensions_, count * dimensions_),
                    std::span(scores_).subspan(begin, count));
      return ok();
    }));
    for (size_t i = 0; i < labels_.size(); ++i) take(scores_[i], labels_[i]);
    rows_.clear();
    labels_.clear();
    return ok();
  }

 private:
  const Forest& forest_;
  const size_t threads_, dimensions_, rows_max_;
  std::vector<float> rows_;  // (rows, dimensions)
  std::vector<double> labels_, scores_;
};

}  // namespace trainyard::forest
