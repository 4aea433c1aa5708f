// Match is the operation that a request names, found once: its route, and its entry in the table of
// operations.
//
// Threads: pure functions. Private to this module.
#pragma once

#include <optional>

#include "net/http_server.hpp"
#include "operations/table.hpp"
#include "protocol/errors.hpp"
#include "protocol/route.hpp"

namespace trainyard::api {

struct Match : Route {
  const Entry* entry = nullptr;  // nullptr: unknown, or (query protocol) named by the body
  bool shell = false;            // of a shell in a host
  // For S3, after match_s3():
  S3Address address = {};
  std::optional<Failure> failure = {};  // the response, if no operation matches
};

// Finds all but S3's operations by the head of a request.
Match match(const OperationTable& table, const net::RequestHead& head);

// Finds the operation of an S3 request. Separate, since it takes longer: call it once the signature
// is verified.
void match_s3(const OperationTable& table, const net::RequestHead& head, Match& match);

// Finds the operation of a request in the query protocol by its name, from the body.
void match_name(const OperationTable& table, const std::string& name, Match& match);

// Returns whether the operation, or one that the body may name, blocks its thread.
bool may_block(const OperationTable& table, const Match& match);

}  // namespace trainyard::api
