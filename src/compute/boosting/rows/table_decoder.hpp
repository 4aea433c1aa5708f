// A TableDecoder appends rows to a Table from bytes that arrive in pieces of any size.
//
//   csv                 numbers between delimiters, a row per line, without header and quotes; the
//                       label is first, with csv_weights the weight is second; an empty cell and
//                       "nan" are missing values
//   libsvm              label[:weight] [qid:group] column:value ..
//   recordio-protobuf   records with features and a label, dense or sparse
//
// The delimiter of csv is the first of comma, tab, semicolon, | and blank that occurs in the first
// line of a file.
//
// Threads: confined to one. Errors: invalid, corrupt or exhausted, naming the line or record.
// Memory: the table, and at most kLineBytesMax and one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes/record_io.hpp"
#include "base/result.hpp"
#include "boosting/rows/table.hpp"

namespace trainyard::boosting {

inline constexpr size_t kLineBytesMax = 64 << 20;  // a million numbers of 17 digits, and blanks

enum class TableFormat : uint8_t { csv, libsvm, records };

// Parses a channel's content type; an empty one is SageMaker's default, libsvm.
// Errors: invalid, with SageMaker's texts.
Result<TableFormat> parse_table_format(std::string_view content_type);

// A LabelRule is the range of labels that an objective accepts.
struct LabelRule {
  double least = 0, most = 0;
  bool least_is_open = false;
  bool has_least = false, has_most = false;
  bool is_integer = false;
  std::string text;  // text of the error for other labels

  bool accepts(double label) const;
};
LabelRule label_rule(std::string_view objective, int64_t classes);

struct DecoderOptions {
  TableFormat format = TableFormat::libsvm;
  bool has_weights = false;  // csv only: the second column is the weight
  bool has_labels = true;    // false: a request, whose rows have features only
  LabelRule labels;
  // Row i goes to rank i % ranks, for a channel that all hosts have. (Groups stay on one rank.)
  uint64_t rank = 0, ranks = 1;
  uint64_t memory = 0;  // bytes of this host; 0: unknown
  MemoryOptions training;
};

class TableDecoder {
 public:
  // The table and the options outlive it. `rows_before` counts the rows of earlier files of the
  // channel.
  TableDecoder(const DecoderOptions& options, Table& table, uint64_t rows_before = 0);
  Result<void> push(std::string_view bytes);
  // Call after the last piece.
  Result<void> finish();
  // Returns the number of rows read so far, including rows_before and the rows of other ranks.
  uint64_t rows() const { return rows_; }

 private:
  Result<void> push_lines(std::string_view bytes);
  Result<void> push_records(std::string_view bytes);
  Result<void> take_line(std::string_view line);
  Result<void> take_csv(std::string_view line);
  Result<void> take_libsvm(std::string_view line);
  Result<void> take_record(std::string_view message);
  Result<void> take_feature(std::string_view token);
  Result<void> add_row(double label, std::optional<double> weight, std::optional<uint64_t> group);
  Result<void> check_label(double label) const;
  Result<void> check_memory() const;

  const DecoderOptions& options_;
  Table& table_;
  RecordDecoder records_;
  std::string line_;  // the start of a line whose end has not arrived
  char delimiter_ = 0;
  uint64_t number_ = 0;  // number of the line or record
  uint64_t rows_;
  std::optional<uint64_t> group_;       // group of the last row that this rank has
  std::optional<uint64_t> group_seen_;  // group of the last row read
  uint64_t groups_ = 0;                 // groups read so far
  std::vector<std::pair<uint32_t, float>> sparse_;
  std::vector<float> dense_;
};

}  // namespace trainyard::boosting
