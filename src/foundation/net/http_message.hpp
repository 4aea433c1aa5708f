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

// True if a response of that status can have a body at all.
bool has_body(int status);

struct ResponseHead {
  int status = 200;
  const Headers& headers;
  std::optional<uint64_t> content_length;  // unset: chunked, or up to the end of the connection
  bool chunked = false;
  bool keep_alive = true;
  bool answers_http_1_0 = false;  // then keep-alive has to be declared
  bool answers_head = false;
};

// Appends the head with its empty line. Headers that the server sets itself (Content-Length,
// Transfer-Encoding, Date, Connection) are not taken from `headers`, except the Content-Length of
// an answer to HEAD.
void append_head(std::string& out, const ResponseHead& head, std::string_view date);

// Returns the prefix of a chunk of that size: "5\r\n".
std::string chunk_prefix(size_t bytes);

}  // namespace trainyard::net
