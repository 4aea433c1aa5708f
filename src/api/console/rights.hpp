// Decides which calls a page offers: those that its principal may currently make. Each call is
// authorized again when it is made.
//
// Threads: a pure function; it calls `may` in order. Errors: invalid (the request).
#pragma once

#include <functional>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api::console {

inline constexpr size_t kRightsCallsMax = 256;  // a page has fewer buttons

// Returns whether the principal may call the operation. `input`: a structure of its input, or
// nullptr if it has none.
using MayCall = std::function<bool(const shapes::OperationShape& operation, const void* input)>;

// `request`: {"Calls": [{"Service": "iam", "Operation": "CreateAccessKey", "Input": {..}}]}.
// Returns {"Allowed": [true]}, an element for each call. It is false if the principal or pages in
// general may not make the call, or if its input is malformed or incomplete.
Result<Json> rights_of(std::string_view request, const MayCall& may);

}  // namespace trainyard::api::console
