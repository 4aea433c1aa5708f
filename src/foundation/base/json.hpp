// JSON as a value, with accessors that answer with Results instead of exceptions.
//
// For records of ours and small documents, where clarity counts. The AWS protocols have a faster reader of their own.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard {

using Json = nlohmann::json;

// Limits: nesting of at most 100. Errors: invalid, with the place of the fault.
Result<Json> parse_json(std::string_view text);

// The member `name` of `object`. Errors: invalid, naming the member and what was found.
Result<std::string> string_at(const Json& object, std::string_view name);
Result<int64_t> int_at(const Json& object, std::string_view name);
Result<double> double_at(const Json& object, std::string_view name);
Result<bool> bool_at(const Json& object, std::string_view name);

// Text of any bytes: what is not UTF-8 is replaced, so it never throws.
std::string dump(const Json& value, int indent = -1);

}  // namespace trainyard
