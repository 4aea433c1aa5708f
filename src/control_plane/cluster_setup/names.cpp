#include "cluster_setup/names.hpp"

#include <algorithm>
#include <string>

#include "base/text.hpp"

namespace trainyard::cluster_setup {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool consists_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter_or_digit(c) || others.find(c) != std::string_view::npos;
  });
}

}  // namespace

Result<void> check_destination(std::string_view destination) {
  const Error error = invalid("invalid machine '" + to_utf8(shorten(destination, 80)) +
                              "': use a host's name, an alias of ssh's configuration or an IPv4 "
                              "address, or user@ in front of one");
  if (destination.size() > kDestinationBytesMax) return error;
  const size_t at = destination.find('@');
  const std::string_view host =
      at == std::string_view::npos ? destination : destination.substr(at + 1);
  if (at != std::string_view::npos) {
    const std::string_view user = destination.substr(0, at);
    if (user.empty() || user[0] == '-' || user[0] == '.' || !consists_of(user, "._-")) return error;
  }
  if (host.empty() || !is_letter_or_digit(host[0]) || !consists_of(host, "._-")) return error;
  return {};
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && name[0] != '-' && consists_of(name, "-");
}

bool is_node_name(std::string_view name) {
  const std::string lower = to_lower(name);
  return is_plain_name(name) && lower != "default" && lower != "all" && lower != "localhost" &&
         lower != "nodeset";
}

bool is_ipv4(std::string_view text) {
  const auto parts = split(text, '.');
  return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           if (part.empty() || part.size() > 3 || (part.size() > 1 && part[0] == '0')) return false;
           const auto number = consists_of(part, "")
                                   ? parse_int(part)
                                   : invalid("not a decimal number: " + std::string(part));
           return number && *number >= 0 && *number <= 255;
         });
}

bool is_plain_path(std::string_view path) {
  return path.starts_with('/') && path.size() <= 256 && consists_of(path, "._-/") &&
         path.find("/../") == std::string_view::npos;
}

std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace trainyard::cluster_setup
