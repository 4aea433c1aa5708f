#include "agent/files/listing_marks.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::agent {

std::string encode_marks(const std::vector<std::string>& marks) {
  Json keys = Json::array();
  for (const auto& each : marks) keys.push_back(to_hex(each));
  return dump(keys);
}

Result<std::vector<std::string>> decode_marks(std::string_view text) {
  const auto keys = TRY(parse_json(text));
  if (!keys.is_array() || keys.size() >= kListedRangesMax)
    return corrupt("the marks of a listing are not an array of fewer than " +
                   std::to_string(kListedRangesMax));
  std::vector<std::string> marks;
  for (const auto& each : keys) {
    if (!each.is_string())
      return corrupt("a mark of a listing must be a text, not " + shorten(dump(each), 64));
    auto key = TRY(from_hex(each.get<std::string>()));
    if (key.empty() || key.size() > kMarkBytesMax)
      return corrupt("a mark of a listing has " + std::to_string(key.size()) + " bytes");
    if (!marks.empty() && key <= marks.back())
      return corrupt("the marks of a listing are not in order");
    marks.push_back(std::move(key));
  }
  return marks;
}

}  // namespace trainyard::agent
