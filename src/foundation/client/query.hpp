// Encodes requests of AWS's query protocol (IAM) and decodes its XML answers, and those of EC2's
// variant of it.
//
// Threads: pure. Errors: invalid, for an answer that is not XML.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::client {

// Returns the body of a form. Members of `input` may be texts, numbers, bools and lists of texts.
std::string query_body(std::string_view operation, std::string_view version, const Json& input);

// Returns the result as JSON. An element that contains elements is an object, or a list if they are
// named `member`. Any other element is a text, so an empty list is "".
Result<Json> query_answer(std::string_view body);

// Does the same for EC2, whose answers have the result in the root element, and in which each
// element of a list is named `item`.
Result<Json> ec2_answer(std::string_view body);

// Returns the items of the list `name` of such an answer; an empty list if it is absent or empty.
Json items_of(const Json& answer, const char* name);

}  // namespace trainyard::client
