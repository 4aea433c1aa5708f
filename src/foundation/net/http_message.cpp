#include "net/http_message.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "base/text.hpp"

namespace trainyard::net {
namespace {

void append_number(std::string& out, uint64_t number, int base = 10) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  out.append(digits.data(), end);
}

// Appends a value without control characters: it may contain text of a client (metadata, file
// names), which must not be able to end the line.
void append_value(std::string& out, std::string_view value) {
  for (const char c : value) out += (uint8_t(c) < 0x20 && c != '\t') || c == 0x7f ? ' ' : c;
}

bool decided_here(std::string_view name) {
  switch (name.size()) {
    case 4:
      return equals_ignoring_case(name, "Date");
    case 10:
      return equals_ignoring_case(name, "Connection");
    case 14:
      return equals_ignoring_case(name, "Content-Length");
    case 17:
      return equals_ignoring_case(name, "Transfer-Encoding");
    default:
      return false;
  }
}

}  // namespace

void Headers::set(std::string_view name, std::string value) {
  std::erase_if(fields_,
                [&](const auto& field) { return equals_ignoring_case(field.first, name); });
  add(std::string(name), std::move(value));
}

std::string_view Headers::get(std::string_view name) const {
  for (const auto& [field, value] : fields_)
    if (field.size() == name.size() && equals_ignoring_case(field, name)) return value;
  return {};
}

bool Headers::has(std::string_view name) const {
  for (const auto& [field, value] : fields_)
    if (field.size() == name.size() && equals_ignoring_case(field, name)) return true;
  return false;
}

std::string_view RequestHead::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

std::string_view RequestHead::query() const {
  const size_t mark = target.find('?');
  return mark == std::string::npos ? std::string_view() : std::string_view(target).substr(mark + 1);
}

std::string RequestHead::peer_address() const {
  std::string_view address = std::string_view(peer).substr(0, peer.rfind(':'));
  if (address.starts_with('[') && address.ends_with(']'))
    address = address.substr(1, address.size() - 2);
  return std::string(address);
}

std::string_view reason_of(int status) {
  static constexpr std::pair<int, std::string_view> kReasons[] = {
      {100, "Continue"},
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {206, "Partial Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Payload Too Large"},
      {416, "Range Not Satisfiable"},
      {417, "Expectation Failed"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {507, "Insufficient Storage"},
  };
  for (const auto& [known, reason] : kReasons)
    if (known == status) return reason;
  return "Unnamed";
}

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

void append_head(std::string& out, const ResponseHead& head, std::string_view date) {
  out += "HTTP/1.1 ";
  append_number(out, uint64_t(head.status));
  out += ' ';
  out += reason_of(head.status);
  out += "\r\n";
  for (const auto& [name, value] : head.headers.fields()) {
    if (decided_here(name)) continue;
    append_value(out, name);
    out += ": ";
    append_value(out, value);
    out += "\r\n";
  }
  if (has_body(head.status)) {
    const std::string_view stated =
        head.answers_head ? head.headers.get("Content-Length") : std::string_view();
    if (!stated.empty() && parse_int(stated)) {
      out += "Content-Length: ";
      out += stated;
      out += "\r\n";
    } else if (head.chunked) {
      out += "Transfer-Encoding: chunked\r\n";
    } else if (head.content_length) {
      out += "Content-Length: ";
      append_number(out, *head.content_length);
      out += "\r\n";
    }
  }
  out += "Date: ";
  out += date;
  out += "\r\n";
  if (!head.keep_alive)
    out += "Connection: close\r\n";
  else if (head.answers_http_1_0)
    out += "Connection: keep-alive\r\n";
  out += "\r\n";
}

std::string chunk_prefix(size_t bytes) {
  std::string line;
  append_number(line, bytes, 16);
  return line += "\r\n";
}

}  // namespace trainyard::net
