// Rows of numbers with a label each, as they come in a CSV shard: features first, the label in the last
// column.
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
  size_t columns = 0;           // features of a row
  std::vector<float> features;  // (rows, columns)
  std::vector<int32_t> labels;  // (rows), 0 or more
  size_t rows() const { return labels.size(); }
  std::span<const float> row(size_t index) const {
    return std::span(features).subspan(index * columns, columns);
  }
};

inline constexpr size_t csv_columns_max = 65536;  // wider is not a table of features but a mistake
inline constexpr int32_t label_max = 1 << 20;

// Numbers between commas, one row a line; "\r\n" and empty lines are fine; no header, no quotes. All rows are
// equally wide. An empty text is an empty table of no columns.
Result<Table> parse_csv(std::string_view text);

}  // namespace trainyard::train
