// Match is the operation of a request: its route, and its entry in the table of operations.
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
  bool shell = false;            // the request opens a shell
  // For S3, after match_s3():
  S3Address address = {};
  std::optional<Failure> failure = {};  // set if no operation matches
};

// Finds the operation of a request by its head, except for S3's.
Match match(const OperationTable& table, const net::RequestHead& head);

// Finds the operation of an S3 request. It takes longer than match(): call it once the signature is
// verified.
void match_s3(const OperationTable& table, const net::RequestHead& head, Match& match);

// Finds the operation of a request in the query protocol by the name in its body.
void match_name(const OperationTable& table, const std::string& name, Match& match);

// Returns whether the operation may block its thread. True if only the body names it.
bool may_block(const OperationTable& table, const Match& match);

}  // namespace trainyard::api
