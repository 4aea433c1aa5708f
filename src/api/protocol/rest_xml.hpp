// Reads requests and writes replies of S3's protocol, REST with XML bodies. The members of a shape
// are in the path, the query, the headers or the body.
//
// Threads: pure functions. Errors: invalid, with a text for the client.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

using NameValues = std::vector<std::pair<std::string, std::string>>;

// The decoded parts of a request: values of the path's labels ("Bucket", "Key"), query parameters,
// headers, body.
struct RestRequest {
  std::map<std::string, std::string> labels;
  NameValues query;
  const NameValues& headers;
  std::string_view body;
  // Rejects an XML body with elements that its shape does not have (check_document).
  bool known_elements_only = false;
};

// Fills `structure`, a value of `shape`, except for a member with a streamed body.
Result<void> read_rest(const shapes::Shape& shape, const RestRequest& request, void* structure);

struct RestReply {
  NameValues headers;
  std::string body;
  std::string content_type;  // "" without a body
};
RestReply write_rest(const shapes::Service& service, const shapes::Shape& shape,
                     const void* structure);

// Reads the parameters of a query string, percent-decoded, in order. Errors: invalid.
Result<NameValues> read_query_parameters(std::string_view query);

}  // namespace trainyard::api
