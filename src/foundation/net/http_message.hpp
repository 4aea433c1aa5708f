// How heads of HTTP responses are written. Inside host only.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http_server.hpp"

namespace trainyard::net {

std::string_view reason_of(int status);

// Whether a response of that status can have a body at all.
bool has_body(int status);

struct ResponseHead {
  int status = 200;
  const Headers& headers;
  std::optional<uint64_t> content_length;  // unset: chunked, or up to the end of the connection
  bool chunked = false;
  bool keep_alive = true;
  bool answers_http_1_0 = false;  // which has to be told that the connection stays
  bool answers_head = false;
};

// Appends the head with its empty line. What the server itself decides (Content-Length, Transfer-Encoding,
// Date, Connection) is not taken from `headers`, but for the Content-Length of an answer to HEAD.
void append_head(std::string& out, const ResponseHead& head, std::string_view date);

// "5\r\n": what stands before a chunk of that size.
std::string chunk_prefix(size_t bytes);

}  // namespace trainyard::net
