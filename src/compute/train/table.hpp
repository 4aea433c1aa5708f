// Parses CSV shards: rows of numbers, features first and the label in the last column.
//
// Threads: plain values, pure functions. Errors: invalid, naming line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::train {

struct Table {
  size_t columns = 0;           // features per row
  std::vector<float> features;  // (rows, columns)
  std::vector<int32_t> labels;  // (rows), 0 or more
  size_t rows() const { return labels.size(); }
  std::span<const float> row(size_t index) const {
    return std::span(features).subspan(index * columns, columns);
  }
};

inline constexpr size_t kCsvColumnsMax = 65536;  // wider files are assumed to be mistakes
inline constexpr int32_t kLabelMax = 1 << 20;

// Parses numbers between commas, one row per line, without header and quotes; "\r\n" and empty
// lines are allowed. All rows must have the same number of columns. An empty text gives an empty
// table without columns.
Result<Table> parse_csv(std::string_view text);

}  // namespace trainyard::train
