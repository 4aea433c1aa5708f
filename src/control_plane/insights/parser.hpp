// Parses the text of a query.
//
//   query   = command { "|" command }
//   command = "fields" expression ["as" name] { "," .. }
//           | "display" .. (as fields)
//           | "filter" condition
//           | "parse" [field] ( "glob *" | /regex/ ) [ "as" name { "," name } ]
//           | "stats" aggregate ["as" name] { "," .. } [ "by" expression ["as" name] { "," .. } ]
//           | "sort" expression ["asc" | "desc"] { "," .. }
//           | "limit" number
//           | "dedup" expression { "," expression }
//
// Conditions have and, or, not, = != < <= > >=, like, not like, =~, in [..], not in [..].
// The case of keywords and functions is ignored.
//
// Threads: pure. Errors: a QueryFault with the position.
#pragma once

#include <string_view>
#include <variant>

#include "insights/lexer.hpp"
#include "insights/query.hpp"

namespace trainyard::insights {

// Limits of one query. Real queries have a few commands, and expressions of three or four levels.
inline constexpr int kDepthMax = 64;
inline constexpr size_t kCommandsMax = 64;
inline constexpr size_t kColumnsMax = 200;

// The maximum number of rows of a result, and the default without `limit`; as on AWS.
inline constexpr size_t kRowsMax = 10'000;

std::variant<Query, QueryFault> parse_query(std::string_view text);

// Returns the error with its position, such as "unexpected symbol found foo at line 1 and position
// 8".
std::string describe_fault(std::string_view text, const QueryFault& fault);

}  // namespace trainyard::insights
