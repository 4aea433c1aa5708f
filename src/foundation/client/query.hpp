// Encodes requests of AWS's query protocol (IAM) and decodes its XML answers.
//
// Threads: pure. Errors: invalid, for an answer that is not XML.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::client {

// Returns a form's body. Members of `input` are texts, numbers, bools and lists of texts.
std::string query_body(std::string_view operation, std::string_view version, const Json& input);

// Returns the result as JSON: an element with elements inside is an object, or, if these are
// `member`s, a list; any other element is a text, so an empty list is "".
Result<Json> query_answer(std::string_view body);

// Returns the items of a list member of such an answer; none if it is absent or empty.
Json items_of(const Json& answer, const char* name);

}  // namespace trainyard::client
