// Represents JSON as a value. The accessors return Results and throw no exceptions.
//
// Used for Trainyard's own records and small documents. The AWS protocols have a faster reader.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard {

using Json = nlohmann::json;

// Parses a document. Errors: invalid, with the position of the fault, or if it is nested deeper
// than 100 levels.
Result<Json> parse_json(std::string_view text);

// Return the member `name` of `object`. Errors: invalid, with the member and the value found.
Result<std::string> string_at(const Json& object, std::string_view name);
Result<int64_t> int_at(const Json& object, std::string_view name);
Result<double> double_at(const Json& object, std::string_view name);
Result<bool> bool_at(const Json& object, std::string_view name);

// Return the member `name` of `object`, or `otherwise` if it is absent or has another type.
std::string string_or(const Json& object, std::string_view name, std::string_view otherwise = "");
double double_or(const Json& object, std::string_view name, double otherwise = 0);

// Formats a value as JSON text. Bytes that are not UTF-8 are replaced, so it never throws.
std::string dump(const Json& value, int indent = -1);
// Returns the content of a string, without quotes, or the JSON text of another value.
std::string string_or_dump(const Json& value);

}  // namespace trainyard
