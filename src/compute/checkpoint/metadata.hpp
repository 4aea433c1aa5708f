// Writes and reads the metadata of a safetensors file by a JsonRecord. All values of metadata are
// texts, so members that are numbers have the form DecimalText:
//
//   constexpr auto kHeader = complete(json_record<Header>("metadata", [](auto& side, auto& header) {
//     side("ranks", header.ranks, DecimalText{});
//   }));
//   contents.metadata = write_metadata("trainyard-shards", kHeader, header);
//   Result<Header> read = read_metadata(contents.metadata, "trainyard-shards", kHeader);
//
// Metadata "format" names the kind of file, and is not part of the record.
//
// Threads: pure functions. Errors: corrupt, naming the member.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::checkpoint {

using Metadata = std::map<std::string, std::string>;

// A form of json_record.hpp: an integer as decimal text.
struct DecimalText {
  using Value = int64_t;
  static Json write(const int64_t& value);
  static Result<void> read_into(const Json& json, int64_t& value);
};

// Errors: corrupt, if metadata "format" is missing or has another value.
Result<void> check_format(const Metadata& metadata, std::string_view format);

template <class Record>
Metadata write_metadata(std::string_view format, const Record& record,
                        const typename Record::Value& value) {
  auto metadata = record.write(value).template get<Metadata>();
  metadata["format"] = format;
  return metadata;
}

template <class Record>
Result<typename Record::Value> read_metadata(const Metadata& metadata, std::string_view format,
                                             const Record& record) {
  TRY(check_format(metadata, format));
  auto value = record.read(Json(metadata));
  if (!value) return corrupt(value.error().message);
  return value;
}

}  // namespace trainyard::checkpoint
