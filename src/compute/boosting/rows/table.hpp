// A Table holds the rows of a channel in memory: features, labels, weights and groups.
//
// Rows are either dense, with NaN for a missing value, or sparse, with a column number for each
// value.
//
// Threads: plain values; const calls from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainyard::boosting {

// More columns would need gigabytes for the histograms alone. The library's column numbers have 32
// bits.
inline constexpr uint64_t kColumnsMax = 10'000'000;

struct Table {
  bool is_sparse = false;
  uint64_t columns = 0;  // feature columns; for sparse rows the highest column number plus one
  std::vector<float> values;
  std::vector<uint32_t> numbers;    // column numbers of the sparse values
  std::vector<uint64_t> starts{0};  // where each sparse row starts in `values`, then their end
  std::vector<float> labels;
  std::vector<float> weights;        // empty, or one per row
  std::vector<uint32_t> group_rows;  // empty, or the number of rows of each group (qid) in order

  uint64_t rows() const { return labels.size(); }
  uint64_t bytes() const {
    return values.size() * sizeof(float) + numbers.size() * sizeof(uint32_t) +
           starts.size() * sizeof(uint64_t) + (labels.size() + weights.size()) * sizeof(float) +
           group_rows.size() * sizeof(uint32_t);
  }
};

struct MemoryOptions {
  int64_t max_bin = 256;
  bool is_exact = false;  // tree_method exact, which stores sorted columns
};

// Estimates the bytes of memory for training on a table of this size: the table, the library's copy
// of it, and the library's bins or sorted columns.
uint64_t training_bytes(const Table& table, const MemoryOptions& options);

// Appends the rows of `other` to `table`. Requires: both are sparse, or both are dense.
void append(Table& table, Table other);

}  // namespace trainyard::boosting
