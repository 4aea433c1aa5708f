// Finds the service and the operation of a request, from its head alone if possible.
//
// One port serves all services. Checked in this order: X-Amz-Target names the service and the
// operation (JSON, also of services whose clients use the query protocol alone); the scope of the
// signature names the service; a form body is the query protocol, with the operation in the body;
// in the rest-json protocol (Batch) method and path name the operation; everything else is S3, with
// the operation in method, path and query.
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
  const shapes::Service* service = nullptr;  // nullptr: unknown
  // nullptr: unknown, or (query protocol) in the body
  const shapes::OperationShape* operation = nullptr;
  // As in the request. For S3 "", unless the scope of the signature names the operation.
  std::string operation_name;
};

Route route(std::span<const shapes::Service* const> services, const net::RequestHead& head);

// Returns the service in the scope of the signature, without checking the signature; "" = none.
std::string scope_service(const net::RequestHead& head);

// Finds an operation by its name: for the query protocol, once the body has been received.
const shapes::OperationShape* find_operation(const shapes::Service& service, std::string_view name);

// Returns whether the service uses the rest-json protocol: method and path name the operation, and
// bodies are JSON.
bool uses_rest_json(const shapes::Service& service);
// Returns the prefix of X-Amz-Target for the service, "" if it has none. Services that have only
// the query protocol on AWS are named as by botocore ("iam.ListUsers"): the console calls them.
std::string_view target_prefix_of(const shapes::Service& service);
// Reads the values of the labels in the operation's path ("/v1/tags/{resourceArn}"), decoded.
// Errors: invalid (a path that cannot be decoded).
Result<std::map<std::string, std::string>> read_labels(const shapes::OperationShape& operation,
                                                       const net::RequestHead& head);

// -- S3
struct S3Address {
  std::string bucket;  // "" for the service itself
  std::string key;     // "" for a bucket
  NameValues query;
};
// Errors: invalid (a path or a query that cannot be decoded).
Result<S3Address> read_s3_address(const net::RequestHead& head);
// Finds the operation whose method, path, fixed query and required members match best. `missing`:
// set to the requested operation if it is not supported: its name, or "GET bucket ?subresource".
const shapes::OperationShape* find_s3_operation(const shapes::Service& s3,
                                                const net::RequestHead& head,
                                                const S3Address& address, std::string& missing);

}  // namespace trainyard::api
