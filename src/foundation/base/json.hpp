// Represents JSON as a value, with accessors that return Results and throw no exceptions.
//
// For our own records and small documents. The AWS protocols have a faster reader of their own.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard {

using Json = nlohmann::json;

// Limits: nesting of at most 100. Errors: invalid, with the position of the fault.
Result<Json> parse_json(std::string_view text);

// The member `name` of `object`. Errors: invalid, naming the member and the value found.
Result<std::string> string_at(const Json& object, std::string_view name);
Result<int64_t> int_at(const Json& object, std::string_view name);
Result<double> double_at(const Json& object, std::string_view name);
Result<bool> bool_at(const Json& object, std::string_view name);

// Formats a value. Bytes that are not UTF-8 are replaced, so it never throws.
std::string dump(const Json& value, int indent = -1);

}  // namespace trainyard
