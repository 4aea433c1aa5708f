// A RowDecoder decodes rows from bytes that arrive in pieces of any size: text/csv, or
// application/x-recordio-protobuf.
//
// text/csv has numbers between commas, a row per line, without header and quotes; with label_size 1
// the first column is the label. Empty lines and "\r\n" are allowed.
//
// Threads: confined to one. Errors: invalid, corrupt or exhausted, naming the line or record.
// Memory: at most kRowBytesMax and one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes/record_io.hpp"
#include "base/result.hpp"
#include "channels/tensor_record.hpp"

namespace trainyard::forest {

using channels::decode_record;
using channels::encode_label;
using channels::encode_record;
using channels::TensorRecord;

inline constexpr size_t kRowBytesMax = 4 << 20;  // twice the size of 10,000 features with keys

struct RowFormat {
  enum class Type : uint8_t { csv, record };
  Type type = Type::record;
  bool has_label = true;  // csv only
};

// Parses a content type; an empty one is SageMaker's default, application/x-recordio-protobuf.
Result<RowFormat> parse_content_type(std::string_view content_type);

using RowCallback =
    std::function<Result<void>(std::span<const float> features, std::optional<double> label)>;

class RowDecoder {
 public:
  RowDecoder(RowFormat format, size_t dimensions)
      : format_(format), dimensions_(dimensions), records_(kRowBytesMax) {}
  Result<void> push(std::string_view bytes, const RowCallback& take);
  // Call after the last piece.
  Result<void> finish(const RowCallback& take);

 private:
  Result<void> push_csv(std::string_view bytes, const RowCallback& take);
  Result<void> push_records(std::string_view bytes, const RowCallback& take);
  Result<void> take_line(std::string_view line, const RowCallback& take);

  const RowFormat format_;
  const size_t dimensions_;
  RecordDecoder records_;
  std::string line_;  // the start of a line whose end has not arrived
  uint64_t number_ = 0;
  TensorRecord row_;
};

}  // namespace trainyard::forest
