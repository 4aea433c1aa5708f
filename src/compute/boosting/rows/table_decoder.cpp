#include "boosting/rows/table_decoder.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "boosting/number_ranges.hpp"
#include "channels/tensor_record.hpp"

namespace trainyard::boosting {
namespace {

constexpr size_t kCellShown = 64;
constexpr uint64_t kMemoryCheckRows = 1024;
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
constexpr std::string_view kAccepted =
    "csv, libsvm, parquet, recordio-protobuf, text/csv, text/libsvm, text/x-libsvm, "
    "application/x-parquet, application/x-recordio-protobuf";

bool parse_float(std::string_view cell, float& number) {
  cell = trim(cell);
  if (cell.starts_with('+')) cell.remove_prefix(1);
  const auto [after, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  return fault == std::errc{} && after == cell.data() + cell.size();
}

std::string shown(std::string_view cell) { return "'" + shorten(cell, kCellShown) + "'"; }

// Formats whole numbers as "3" rather than "3.0": most labels are classes.
std::string label_text(double label) {
  std::string text = python_number(label);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

char find_delimiter(std::string_view line) {
  for (const char each : {',', '\t', ';', '|', ' '})
    if (line.find(each) != std::string_view::npos) return each;
  return ',';
}

// Removes the next token between blanks from `line` and returns it; empty at the end.
std::string_view take_token(std::string_view& line) {
  const size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return {};
  line.remove_prefix(start);
  const std::string_view token = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(token.size());
  return token;
}

}  // namespace

Result<TableFormat> parse_table_format(std::string_view content_type) {
  const auto parts = split(content_type, ';');
  const std::string type = to_lower(trim(parts[0]));
  if (type.empty() || type == "libsvm" || type == "text/libsvm" || type == "text/x-libsvm")
    return TableFormat::libsvm;
  if (type == "recordio-protobuf" || type == "application/x-recordio-protobuf")
    return TableFormat::records;
  if (type == "parquet" || type == "application/x-parquet")
    return invalid(
        "parquet is not supported by this server: convert the data to csv or recordio-protobuf");
  if (type != "csv" && type != "text/csv")
    return invalid(shorten(content_type, kCellShown) +
                   " is not an accepted ContentType: " + std::string(kAccepted) + ".");
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string part = to_lower(trim(parts[i]));
    if (part.starts_with("label_size") && part != "label_size=1")
      return invalid(shorten(content_type, kCellShown) +
                     " is not an accepted csv ContentType. Optional parameter label_size must be "
                     "equal to 1");
  }
  return TableFormat::csv;
}

bool LabelRule::accepts(double label) const {
  if (has_least && (least_is_open ? label <= least : label < least)) return false;
  if (has_most && label > most) return false;
  return !is_integer || label == std::floor(label);
}

LabelRule label_rule(std::string_view objective, int64_t classes) {
  LabelRule rule;
  const auto at_least = [&](double least, const char* text) {
    rule.has_least = true;
    rule.least = least;
    rule.text = text;
  };
  if (objective.starts_with("multi:")) {
    at_least(0, "label must be in [0, num_class)");
    rule.has_most = rule.is_integer = true;
    rule.most = double(classes - 1);
    rule.text += ": num_class is " + std::to_string(classes);
  } else if (objective == "binary:logistic" || objective == "binary:logitraw" ||
             objective == "reg:logistic") {
    at_least(0, "label must be in [0,1] for logistic regression");
    rule.has_most = true;
    rule.most = 1;
  } else if (objective == "count:poisson") {
    at_least(0, "PoissonRegression: label must be nonnegative");
  } else if (objective == "reg:tweedie") {
    at_least(0, "TweedieRegression: label must be nonnegative");
  } else if (objective == "reg:gamma") {
    at_least(0, "GammaRegression: label must be positive");
    rule.least_is_open = true;
  } else if (objective == "reg:squaredlogerror") {
    at_least(-1, "label must be greater than -1 for rmsle so that log(label + 1) can be valid");
    rule.least_is_open = true;
  }
  return rule;
}

TableDecoder::TableDecoder(const DecoderOptions& options, Table& table, uint64_t rows_before)
    : options_(options), table_(table), records_(kLineBytesMax), rows_(rows_before) {
  table_.is_sparse = options.format != TableFormat::csv;
}

Result<void> TableDecoder::check_label(double label) const {
  if (std::isnan(label)) return invalid("the label is NaN");
  if (std::isinf(float(label))) return invalid("the label is not a finite number");
  if (!options_.labels.accepts(label))
    return invalid("the label " + label_text(label) + " is out of range: " + options_.labels.text);
  return ok();
}

Result<void> TableDecoder::check_memory() const {
  if (options_.memory == 0) return ok();
  const uint64_t needed = training_bytes(table_, options_.training);
  if (needed <= options_.memory) return ok();
  return exhausted("training on the " + std::to_string(table_.rows()) + " rows so far, with " +
                   std::to_string(table_.values.size()) + " values, needs about " +
                   human_bytes(needed) + " of memory, more than the " +
                   human_bytes(options_.memory) +
                   " of this host: use a larger instance, or more of them with ShardedByS3Key");
}

// Adds a row, whose features are in dense_ or sparse_.
Result<void> TableDecoder::add_row(double label, std::optional<double> weight,
                                   std::optional<uint64_t> group) {
  TRY(check_label(label));
  if (weight && !(*weight >= 0 && std::isfinite(float(*weight))))
    return invalid("the weight " + label_text(*weight) + " is not a finite number of at least 0");
  const bool starts_group = group && group != group_;
  if (table_.rows() > 0 && group.has_value() != !table_.group_rows.empty())
    return invalid("either all rows of a channel have a qid, or none");
  group_ = group;
  ++rows_;
  if (table_.is_sparse) {
    for (const auto& [number, value] : sparse_) {
      table_.numbers.push_back(number);
      table_.values.push_back(value);
      table_.columns = std::max<uint64_t>(table_.columns, number + uint64_t(1));
    }
    table_.starts.push_back(table_.values.size());
  } else {
    table_.values.insert(table_.values.end(), dense_.begin(), dense_.end());
  }
  if (weight || !table_.weights.empty()) {
    table_.weights.resize(table_.labels.size(), 1);
    table_.weights.push_back(weight ? float(*weight) : 1);
  }
  table_.labels.push_back(float(label));
  if (starts_group) table_.group_rows.push_back(0);
  if (group) ++table_.group_rows.back();
  return table_.rows() % kMemoryCheckRows == 0 ? check_memory() : ok();
}

Result<void> TableDecoder::take_csv(std::string_view line) {
  if (delimiter_ == 0) delimiter_ = find_delimiter(line);
  const size_t first = (options_.has_labels ? 1 : 0) + (options_.has_weights ? 1 : 0);
  double label = 0;
  std::optional<double> weight;
  dense_.clear();
  size_t columns = 0;
  for (bool more = true; more; ++columns) {
    const size_t end = line.find(delimiter_);
    more = end != std::string_view::npos;
    const std::string_view cell = line.substr(0, end);
    line.remove_prefix(more ? end + 1 : line.size());
    float number = kMissing;
    const bool is_empty = trim(cell).empty();
    if ((!is_empty && !parse_float(cell, number)) || std::isinf(number) ||
        (is_empty && columns < first))
      return invalid("column " + std::to_string(columns + 1) + ": " + shown(cell) +
                     " is not a number");
    if (columns >= first) {
      dense_.push_back(number);
    } else if (options_.has_labels && columns == 0) {
      label = number;
    } else {
      weight = number;
    }
  }
  if (columns <= first)
    return invalid("the row has " + std::to_string(columns) + " columns, but " +
                   (options_.has_weights ? "a label, a weight" : "a label") +
                   " and at least one feature are needed");
  if (dense_.size() > kColumnsMax) return exhausted("the row has more than 10000000 columns");
  if (table_.columns == 0) table_.columns = dense_.size();
  if (dense_.size() != table_.columns)
    return invalid("the row has " + std::to_string(columns) + " columns, but those before have " +
                   std::to_string(table_.columns + first));
  if (rows_ % options_.ranks != options_.rank) {
    TRY(check_label(label));
    ++rows_;
    return ok();
  }
  return add_row(label, weight, {});
}

Result<void> TableDecoder::take_feature(std::string_view token) {
  const size_t colon = token.find(':');
  const std::string_view left = token.substr(0, colon);
  uint64_t number = 0;
  const auto [after, fault] = std::from_chars(left.data(), left.data() + left.size(), number);
  if (colon == std::string_view::npos || fault != std::errc{} ||
      after != left.data() + left.size() || number >= kColumnsMax)
    return invalid(shown(token) + " is not column:value, with a column from 0 to 9999999");
  float value = 0;
  if (!parse_float(token.substr(colon + 1), value) || !std::isfinite(value))
    return invalid("column " + std::to_string(number) + ": " + shown(token.substr(colon + 1)) +
                   " is not a finite number");
  sparse_.emplace_back(uint32_t(number), value);
  return ok();
}

Result<void> TableDecoder::take_libsvm(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::string_view whole = line;
  std::string_view token = take_token(line);
  if (token.empty()) return ok();  // a comment
  float label = 0, weight = 1;
  if (!options_.has_labels && token.find(':') != std::string_view::npos) {
    line = whole;  // a request without labels begins with a feature
    token = "0";
  }
  const size_t colon = token.find(':');
  if (!parse_float(token.substr(0, colon), label) ||
      (colon != std::string_view::npos && !parse_float(token.substr(colon + 1), weight)))
    return invalid(shown(token) + " does not follow LIBSVM label format <label>(:<weight>)");
  if (!options_.has_labels) label = 0;
  sparse_.clear();
  std::optional<uint64_t> group;
  for (token = take_token(line); !token.empty(); token = take_token(line)) {
    if (token.starts_with("qid:") && sparse_.empty() && !group) {
      const auto number = parse_int(token.substr(4));
      if (!number || *number < 0) return invalid(shown(token) + " is not qid:number");
      group = uint64_t(*number);
    } else {
      TRY(take_feature(token));
    }
  }
  std::ranges::sort(sparse_, {}, &std::pair<uint32_t, float>::first);
  for (size_t i = 1; i < sparse_.size(); ++i)
    if (sparse_[i].first == sparse_[i - 1].first)
      return invalid("the row has two values of column " + std::to_string(sparse_[i].first));
  std::optional<double> given;
  if (colon != std::string_view::npos) given = weight;
  if (group && group != group_seen_) {
    group_seen_ = group;
    ++groups_;
  }
  const uint64_t position = group ? groups_ - 1 : rows_;  // a group stays on one host
  if (position % options_.ranks != options_.rank) {
    TRY(check_label(label));
    ++rows_;
    return ok();
  }
  return add_row(label, given, group);
}

Result<void> TableDecoder::take_record(std::string_view message) {
  const auto record = TRY(channels::decode_raw_record(message));
  if (!record.label && options_.has_labels) return invalid("a record has no label named 'values'");
  const double label = options_.has_labels ? *record.label : 0;
  const auto& [values, keys, shape] = record.features;
  if (!keys.empty() && keys.size() != values.size())
    return invalid("a sparse record has " + std::to_string(keys.size()) + " keys and " +
                   std::to_string(values.size()) + " values");
  if (values.size() > kColumnsMax || (!shape.empty() && shape.back() > kColumnsMax))
    return exhausted("a record has more than 10000000 features");
  sparse_.clear();
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t number = keys.empty() ? i : keys[i];
    const auto value = float(values[i]);
    if (number >= kColumnsMax) return invalid("a record has the key " + std::to_string(number));
    if (std::isinf(value))
      return invalid("feature " + std::to_string(number) + " of a record is not a finite number");
    if (!std::isnan(value)) sparse_.emplace_back(uint32_t(number), value);
  }
  std::ranges::sort(sparse_, {}, &std::pair<uint32_t, float>::first);
  for (size_t i = 1; i < sparse_.size(); ++i)
    if (sparse_[i].first == sparse_[i - 1].first)
      return invalid("a sparse record has the key " + std::to_string(sparse_[i].first) + " twice");
  if (!shape.empty()) table_.columns = std::max(table_.columns, shape.back());
  if (rows_ % options_.ranks != options_.rank) {
    TRY(check_label(label));
    ++rows_;
    return ok();
  }
  return add_row(label, {}, {});
}

Result<void> TableDecoder::take_line(std::string_view line) {
  ++number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (trim(line).empty()) return ok();
  auto taken = options_.format == TableFormat::csv ? take_csv(line) : take_libsvm(line);
  if (!taken) return std::move(taken).in("line " + std::to_string(number_));
  return ok();
}

Result<void> TableDecoder::push_lines(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const bool whole = end != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, end);
    bytes.remove_prefix(whole ? end + 1 : bytes.size());
    if (line_.size() + piece.size() > kLineBytesMax)
      return exhausted("line " + std::to_string(number_ + 1) + " is longer than " +
                       human_bytes(kLineBytesMax));
    if (whole && line_.empty()) {
      TRY(take_line(piece));
      continue;
    }
    line_ += piece;
    if (!whole) continue;
    TRY(take_line(line_));
    line_.clear();
  }
  return ok();
}

Result<void> TableDecoder::push_records(std::string_view bytes) {
  records_.push(bytes);
  for (;;) {
    const auto where = [&] { return "record " + std::to_string(number_ + 1); };
    auto record = records_.next();
    if (!record) return std::move(record).error().in(where());
    if (!*record) return ok();
    if (auto taken = take_record(**record); !taken) return std::move(taken).in(where());
    ++number_;
  }
}

Result<void> TableDecoder::push(std::string_view bytes) {
  return options_.format == TableFormat::records ? push_records(bytes) : push_lines(bytes);
}

Result<void> TableDecoder::finish() {
  if (options_.format == TableFormat::records)
    TRY(records_.finish().in("after record " + std::to_string(number_)));
  if (!line_.empty()) {
    TRY(take_line(line_));
    line_.clear();
  }
  return check_memory();
}

}  // namespace trainyard::boosting
