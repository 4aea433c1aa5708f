// Formats the heads of HTTP responses. Private to this module.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http_server.hpp"

namespace trainyard::net {

std::string_view reason_of(int status);

// Returns true if a response with this status may have a body.
bool has_body(int status);

struct ResponseHead {
  int status = 200;
  const Headers& headers;
  std::optional<uint64_t> content_length;  // unset: chunked, or up to the end of the connection
  bool chunked = false;
  bool keep_alive = true;
  bool answers_http_1_0 = false;  // the request is HTTP/1.0: keep-alive must be declared
  bool answers_head = false;      // the request is HEAD
};

// Appends the status line, the headers and the empty line. Headers that the server itself sets
// (Content-Length, Transfer-Encoding, Date, Connection) are not copied from `headers`, except the
// Content-Length of an answer to HEAD.
void append_head(std::string& out, const ResponseHead& head, std::string_view date);

// Returns the prefix of a chunk with this size: "5\r\n".
std::string chunk_prefix(size_t bytes);

}  // namespace trainyard::net
