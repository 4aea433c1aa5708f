// Finds the service and the operation of a request, from its head alone where that is possible.
//
// One port serves all services. In this order: X-Amz-Target names service and operation (JSON); the scope of the signature
// names the service; a form body is the query protocol, whose operation is in the body; in the rest-json protocol (Batch)
// method and path name the operation; everything else is S3, whose operation is in method, path and query.
//
// Threads: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_server.hpp"
#include "protocol/rest_xml.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

enum class Protocol { json, query, rest_json, rest_xml };

struct Route {
  Protocol protocol = Protocol::json;
  const shapes::Service* service = nullptr;           // nullptr: of no service that is here
  const shapes::OperationShape* operation = nullptr;  // nullptr: unknown, or (query) named in the body
  std::string operation_name;                         // as the request names it
};

Route route(std::span<const shapes::Service* const> services, const net::RequestHead& head);

// Of the query protocol, once the parameters are there.
const shapes::OperationShape* find_operation(const shapes::Service& service, std::string_view name);

// Whether method and path name its operations, and JSON is in the bodies.
bool speaks_rest_json(const shapes::Service& service);
// What stands in the place of the operation's labels, "/v1/tags/{resourceArn}", decoded.
// Errors: invalid, when the path is not decodable.
Result<std::map<std::string, std::string>> read_labels(const shapes::OperationShape& operation,
                                                       const net::RequestHead& head);

// -- S3
struct S3Address {
  std::string bucket;  // "" for the service itself
  std::string key;     // "" for a bucket
  NameValues query;
};
// Errors: invalid, when path or query cannot be decoded.
Result<S3Address> read_s3_address(const net::RequestHead& head);
// The operation whose method, path, fixed query and required members fit best. `missing` names what is asked
// for when nothing here answers it ("GET ?acl").
const shapes::OperationShape* find_s3_operation(const shapes::Service& s3, const net::RequestHead& head,
                                                const S3Address& address, std::string& missing);

}  // namespace trainyard::api
