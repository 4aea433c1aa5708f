// Makes HTTP responses from outputs and failures, in the form of each protocol. Each response has
// the request's id.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http_server.hpp"
#include "protocol/errors.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

net::Response json_reply(const shapes::OperationShape& operation, const void* output,
                         std::string_view request_id);
net::Response query_reply(const shapes::OperationShape& operation, const void* output,
                          std::string_view request_id);
struct S3Reply {
  net::Response response;
  std::optional<uint64_t> content_length;  // of the object, not of this response's body
};
S3Reply s3_reply(const shapes::OperationShape& operation, const void* output,
                 std::string_view request_id);

// The headers of a response with an XML document.
net::Headers s3_document_headers(std::string_view request_id);

net::Response json_failure(const shapes::Service* service, const Failure& failure,
                           std::string_view request_id);
net::Response query_failure(const shapes::Service* service, const Failure& failure,
                            std::string_view request_id);
net::Response s3_failure_reply(const net::RequestHead& head, const Failure& failure,
                               std::string_view request_id);

}  // namespace trainyard::api
