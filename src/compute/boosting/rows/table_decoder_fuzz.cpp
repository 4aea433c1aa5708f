// Decodes any bytes as csv, libsvm and records. Pieces of any size must give the same table.
// decoder: src/compute/boosting/rows/table_decoder.cpp
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "boosting/rows/table_decoder.hpp"

namespace {

using namespace trainyard;
using namespace trainyard::boosting;

// Has one objective for each rule for labels.
constexpr std::string_view kObjectives[] = {
    "count:poisson", "reg:squarederror", "multi:softmax",      "binary:logistic",
    "reg:tweedie",   "reg:gamma",        "reg:squaredlogerror"};

void check(const Table& table) {
  if (table.is_sparse) {
    if (table.starts.size() != table.rows() + 1 || table.starts.back() != table.values.size() ||
        table.numbers.size() != table.values.size())
      __builtin_trap();
    for (const uint32_t number : table.numbers)
      if (number >= table.columns) __builtin_trap();
  } else if (table.values.size() != table.rows() * table.columns) {
    __builtin_trap();
  }
  if (!table.weights.empty() && table.weights.size() != table.rows()) __builtin_trap();
  uint64_t grouped = 0;
  for (const uint32_t rows : table.group_rows) grouped += rows;
  if (!table.group_rows.empty() && grouped != table.rows()) __builtin_trap();
  for (const float label : table.labels)
    if (!std::isfinite(label)) __builtin_trap();
}

std::string decoded(std::string_view bytes, const DecoderOptions& options, size_t step) {
  Table table;
  TableDecoder decoder(options, table);
  std::string end;
  for (size_t at = 0; at < bytes.size() && end.empty(); at += step)
    if (const auto done = decoder.push(bytes.substr(at, step)); !done)
      end = "!" + done.error().message;
  if (end.empty())
    if (const auto done = decoder.finish(); !done) end = "?" + done.error().message;
  check(table);
  std::string all = std::to_string(table.columns) + "/" + std::to_string(table.rows()) + ":";
  for (const float value : table.values) all += std::to_string(value) + ",";
  for (const float value : table.weights) all += std::to_string(value) + ";";
  return all + end;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const TableFormat format : {TableFormat::csv, TableFormat::libsvm, TableFormat::records}) {
    for (const bool plain : {false, true}) {
      DecoderOptions options;
      options.format = format;
      options.has_weights = !plain && format == TableFormat::csv;
      options.has_labels = !plain;
      options.ranks = plain ? 2 : 1;
      options.memory = uint64_t{1} << 30;
      options.labels = label_rule(kObjectives[size % std::size(kObjectives)], 2);
      if (decoded(bytes, options, 5) != decoded(bytes, options, size + 1)) __builtin_trap();
    }
  }
  (void)parse_table_format(bytes.substr(0, 64));
  return 0;
}
