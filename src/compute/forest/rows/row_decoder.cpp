#include "forest/rows/row_decoder.hpp"

#include <charconv>
#include <cmath>

#include "base/text.hpp"

namespace trainyard::forest {
namespace {

constexpr size_t kCellShown = 64;
constexpr std::string_view kRecordType = "application/x-recordio-protobuf";
constexpr std::string_view kCsvType = "text/csv";

bool parse_float(std::string_view cell, float& number) {
  cell = trim(cell);
  if (cell.starts_with('+')) cell.remove_prefix(1);
  const auto [after, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  return fault == std::errc{} && after == cell.data() + cell.size() && std::isfinite(number);
}

Error not_a_number(size_t column, std::string_view cell) {
  return invalid("column " + std::to_string(column) + ": '" + shorten(cell, kCellShown) +
                 "' is not a finite number");
}

}  // namespace

Result<RowFormat> parse_content_type(std::string_view content_type) {
  const auto parts = split(content_type, ';');
  const std::string type = to_lower(trim(parts[0]));
  if (type.empty() || type == kRecordType) return RowFormat{RowFormat::Type::record, true};
  if (type != kCsvType)
    return invalid("'" + shorten(type, kCellShown) + "' is not one of ['" + std::string(kCsvType) +
                   "', '" + std::string(kRecordType) + "']");
  RowFormat format{RowFormat::Type::csv, true};
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string part = to_lower(trim(parts[i]));
    if (!part.starts_with("label_size")) continue;  // a charset, for example
    if (part != "label_size=0" && part != "label_size=1")
      return invalid("'" + shorten(part, kCellShown) + "' is not one of ['label_size=0', " +
                     "'label_size=1']");
    format.has_label = part.ends_with('1');
  }
  return format;
}

Result<void> RowDecoder::take_line(std::string_view line, const RowCallback& take) {
  ++number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (trim(line).empty()) return ok();
  row_.features.clear();
  row_.label.reset();
  size_t columns = 0;
  for (bool more = true; more; ++columns) {
    const size_t comma = line.find(',');
    more = comma != std::string_view::npos;
    const std::string_view cell = line.substr(0, comma);
    line.remove_prefix(more ? comma + 1 : line.size());
    float number = 0;
    if (!parse_float(cell, number)) return not_a_number(columns + 1, cell);
    if (format_.has_label && columns == 0) {
      row_.label = number;
    } else if (row_.features.size() < dimensions_) {
      row_.features.push_back(number);
    }
  }
  const size_t expected = dimensions_ + (format_.has_label ? 1 : 0);
  if (columns != expected)
    return invalid("the row has " + std::to_string(columns) + " columns, but feature_dim " +
                   std::to_string(dimensions_) + " with label_size=" +
                   (format_.has_label ? "1" : "0") + " needs " + std::to_string(expected));
  return take(row_.features, row_.label);
}

Result<void> RowDecoder::push_csv(std::string_view bytes, const RowCallback& take) {
  const auto where = [&] { return "line " + std::to_string(number_); };
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const bool whole = end != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, end);
    bytes.remove_prefix(whole ? end + 1 : bytes.size());
    if (line_.size() + piece.size() > kRowBytesMax)
      return exhausted("line " + std::to_string(number_ + 1) + " is longer than " +
                       human_bytes(kRowBytesMax));
    if (!whole) {
      line_ += piece;
      continue;
    }
    if (line_.empty()) {
      if (auto taken = take_line(piece, take); !taken) return std::move(taken).in(where());
      continue;
    }
    line_ += piece;
    auto taken = take_line(line_, take);
    line_.clear();
    if (!taken) return std::move(taken).in(where());
  }
  return ok();
}

Result<void> RowDecoder::push_records(std::string_view bytes, const RowCallback& take) {
  records_.push(bytes);
  for (;;) {
    const auto where = [&] { return "record " + std::to_string(number_ + 1); };
    auto record = records_.next();
    if (!record) return std::move(record).error().in(where());
    if (!*record) return ok();
    if (auto decoded = decode_record(**record, dimensions_, row_); !decoded)
      return std::move(decoded).in(where());
    if (auto taken = take(row_.features, row_.label); !taken) return std::move(taken).in(where());
    ++number_;
  }
}

Result<void> RowDecoder::push(std::string_view bytes, const RowCallback& take) {
  return format_.type == RowFormat::Type::csv ? push_csv(bytes, take) : push_records(bytes, take);
}

Result<void> RowDecoder::finish(const RowCallback& take) {
  if (format_.type == RowFormat::Type::record)
    return records_.finish().in("after record " + std::to_string(number_));
  if (line_.empty()) return ok();
  auto taken = take_line(line_, take);
  line_.clear();
  return std::move(taken).in("line " + std::to_string(number_));
}

}  // namespace trainyard::forest
