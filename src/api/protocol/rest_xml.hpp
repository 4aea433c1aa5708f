// Reads and writes REST with XML bodies, as in S3: members of a shape are in the path, the query, the headers, or the body.
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

// A request's parts, decoded: what the path's labels stand for ("Bucket", "Key"), query parameters, headers,
// body.
struct RestRequest {
  std::map<std::string, std::string> labels;
  NameValues query;
  const NameValues& headers;
  std::string_view body;
};

// Fills `structure` from the parts. A streaming payload is left alone.
Result<void> read_rest(const shapes::Shape& shape, const RestRequest& request, void* structure);

struct RestReply {
  NameValues headers;
  std::string body;
  std::string content_type;  // "" when there is no body
};
RestReply write_rest(const shapes::Service& service, const shapes::Shape& shape, const void* structure);

// Parameters of a query string, percent-decoded, in order. Errors: invalid.
Result<NameValues> read_query_parameters(std::string_view query);

}  // namespace trainyard::api
