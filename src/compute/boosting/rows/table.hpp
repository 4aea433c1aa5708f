// A Table holds the rows of a channel in memory: features, labels, weights and groups.
//
// Rows are dense, with NaN for a missing value, or sparse, with a column number for each value.
//
// Threads: plain values; const calls from anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainyard::boosting {

// More would take gigabytes for histograms alone; the library numbers columns by 32 bits.
inline constexpr uint64_t kColumnsMax = 10'000'000;

struct Table {
  bool is_sparse = false;
  uint64_t columns = 0;  // of features; of sparse rows: the highest number plus one
  std::vector<float> values;
  std::vector<uint32_t> numbers;    // of the columns of sparse values
  std::vector<uint64_t> starts{0};  // of sparse rows among the values, and their end
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
  bool is_exact = false;  // tree_method exact, which keeps sorted columns
};

// Estimates the memory of a host that trains on a table of this size: the
// table, the library's copy of it, and its bins or sorted columns. Units: bytes.
uint64_t training_bytes(const Table& table, const MemoryOptions& options);

// Moves the rows of `other`, which has the same form, behind those of `table`.
void append(Table& table, Table other);

}  // namespace trainyard::boosting
