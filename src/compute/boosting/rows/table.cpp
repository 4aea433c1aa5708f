#include "boosting/rows/table.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace trainyard::boosting {
namespace {

constexpr uint64_t kLibraryValueBytes = 8;         // a column number and a value
constexpr uint64_t kLibraryRowBytes = 8 + 2 * 16;  // its start; its gradients and a copy of them
constexpr uint64_t kHistogramBinBytes = 16;        // two sums
constexpr uint64_t kHistogramsAtOnce = 32;  // of the nodes of a level; the library frees the others

}  // namespace

uint64_t training_bytes(const Table& table, const MemoryOptions& options) {
  const uint64_t count = table.values.size();
  const auto bins = uint64_t(std::clamp<int64_t>(options.max_bin, 2, 1 << 20));
  const uint64_t bin_bytes = bins <= 256 ? 1 : (bins <= 65'536 ? 2 : 4);
  // A column has no more bins than values.
  const uint64_t all_bins = std::min(table.columns * bins, count + table.columns);
  const uint64_t index = options.is_exact ? count * kLibraryValueBytes
                                          : count * (table.is_sparse ? 4 : bin_bytes) +
                                                all_bins * kHistogramBinBytes * kHistogramsAtOnce;
  // The table is freed when the library has its copy, before the library makes bins.
  const uint64_t copy = count * kLibraryValueBytes + table.rows() * kLibraryRowBytes;
  return copy + std::max(table.bytes(), index);
}

void append(Table& table, Table other) {
  CHECK(table.is_sparse == other.is_sparse, "the channels of a job have one form");
  CHECK(table.is_sparse || table.columns == other.columns, "dense rows have the same columns");
  const uint64_t base = table.values.size();
  const auto add = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (size_t i = 1; i < other.starts.size(); ++i) table.starts.push_back(base + other.starts[i]);
  add(table.values, other.values);
  add(table.numbers, other.numbers);
  if (!table.weights.empty() || !other.weights.empty()) {
    table.weights.resize(table.labels.size(), 1);
    other.weights.resize(other.labels.size(), 1);
    add(table.weights, other.weights);
  }
  add(table.labels, other.labels);
  add(table.group_rows, other.group_rows);
  table.columns = std::max(table.columns, other.columns);
}

}  // namespace trainyard::boosting
