// decoder: src/control_plane/log_routing/delivery_format.cpp
//
// Formats any message with any options. Input, separated by newlines: ARN, SUFFIX, FIELDS
// (separated by commas), DELIMITER, MESSAGE.
#include "base/check.hpp"
#include "base/text.hpp"
#include "log_routing/delivery_format.hpp"

using namespace trainyard;
using namespace trainyard::log_routing;

namespace {

std::string_view take_line(std::string_view& bytes) {
  const size_t end = bytes.find('\n');
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto place = parse_bucket_arn(take_line(bytes));
  const std::string suffix(take_line(bytes));
  DeliveryOptions options;
  for (const auto field : split(take_line(bytes), ',')) options.fields.emplace_back(field);
  options.delimiter = std::string(take_line(bytes));
  options.suffix = suffix;
  if (check_options(options)) {
    for (const bool hive : {false, true}) {
      const std::string key = object_key({.prefix = place ? place->prefix : "",
                                          .account = "123456789012",
                                          .service = "logs",
                                          .region = "eu-west-1",
                                          .delivery = "d",
                                          .suffix = suffix,
                                          .hive_path = hive,
                                          .stream = "s"});
      CHECK(key.ends_with(".log.gz"), "each key ends in .log.gz");
    }
  }
  const observe::LogEvent event{Instant{}, Instant{}, std::string(bytes)};
  const std::string plain = record_text({"r", "g", "s"}, event, DeliveryFormat::plain, options);
  if (!options.fields.empty())
    CHECK(plain.find('\n') == std::string::npos, "a record with fields is one line");
  const std::string json = record_text({"r", "g", "s"}, event, DeliveryFormat::json, options);
  CHECK(json.find('\n') == std::string::npos, "a JSON record is one line");
  return 0;
}
