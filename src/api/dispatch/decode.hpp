// Decodes the input of an operation from its request, and checks it against the model.
//
// Threads: pure functions. Private to this module.
#pragma once

#include <optional>
#include <string>

#include "dispatch/match.hpp"
#include "net/http_server.hpp"
#include "protocol/constraints.hpp"
#include "protocol/errors.hpp"
#include "protocol/query.hpp"

namespace trainyard::api {

// Decodes the input of a service other than S3. `parameters`: of the query protocol. `input`: a
// structure of the operation's input; nullptr for an operation without input.
std::optional<Failure> decode_input(Protocol protocol, const shapes::OperationShape& operation,
                                    const net::RequestHead& head, const std::string& body,
                                    const NameValues& parameters, const Constraints& constraints,
                                    void* input);

// `head`: the body has not been read yet, so members in it may be missing.
enum class S3Part { head, whole };

// Decodes the input of an S3 request. Of the constraints, it checks only required members, since S3
// has specific errors for the others.
std::optional<Failure> decode_s3_input(const Match& route, const net::RequestHead& head,
                                       const std::string& body, S3Part part, void* input);

}  // namespace trainyard::api
