#include "checkpoint/metadata.hpp"

#include <charconv>

#include "base/text.hpp"

namespace trainyard::checkpoint {

Json DecimalText::write(const int64_t& value) { return std::to_string(value); }

Result<void> DecimalText::read_into(const Json& json, int64_t& value) {
  if (!json.is_string()) return corrupt("the value must be a text, not " + shorten(dump(json), 64));
  const auto& text = json.get_ref<const std::string&>();
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size())
    return corrupt("'" + shorten(text, 64) + "' is not a decimal number of 64 bits");
  return ok();
}

Result<void> check_format(const Metadata& metadata, std::string_view format) {
  const auto found = metadata.find("format");
  if (found == metadata.end())
    return corrupt("metadata 'format' not found: it must be " + std::string(format));
  if (found->second != format)
    return corrupt("the format of the file is " + shorten(found->second, 64) + ", not " +
                   std::string(format));
  return ok();
}

}  // namespace trainyard::checkpoint
