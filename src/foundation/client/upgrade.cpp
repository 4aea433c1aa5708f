#include "client/upgrade.hpp"

#include "base/text.hpp"

namespace trainyard::client {

Result<std::optional<Upgrade>> read_upgrade(std::string_view bytes, bool ended) {
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() > kUpgradeHeadBytesMax)
      return exhausted("reading the server's response: its header is longer than " +
                       std::to_string(kUpgradeHeadBytesMax) + " bytes");
    if (ended)
      return invalid("reading the server's response: the connection ended within the header");
    return std::optional<Upgrade>();
  }
  const std::string_view head = bytes.substr(0, end);
  const auto lines = split(head, '\n');
  const auto words = split(trim(lines[0]), ' ');
  if (words.size() < 2 || !words[0].starts_with("HTTP/1."))
    return invalid("reading the server's response: it is not HTTP, but '" +
                   shorten(to_utf8(trim(lines[0])), 60) + "': check AWS_ENDPOINT_URL");
  Upgrade upgrade;
  upgrade.answer.status = int(TRY(parse_int(words[1]).in("the status of the server's response")));
  const std::string_view rest = bytes.substr(end + 4);
  if (upgrade.answer.status == 101) {
    upgrade.early = rest;
    return std::optional<Upgrade>(std::move(upgrade));
  }
  int64_t length = -1;
  for (const auto line : lines) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (equals_ignoring_case(trim(line.substr(0, colon)), "content-length"))
      length = TRY(parse_int(trim(line.substr(colon + 1))).in("its Content-Length"));
  }
  const bool whole = length >= 0 && int64_t(rest.size()) >= length;
  if (!whole && !ended && rest.size() < kRefusalBytesMax) return std::optional<Upgrade>();
  upgrade.answer.body = length >= 0 ? rest.substr(0, size_t(length)) : rest;
  return std::optional<Upgrade>(std::move(upgrade));
}

}  // namespace trainyard::client
