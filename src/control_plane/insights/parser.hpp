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
// Keywords and functions are recognised in any case.
//
// Threads: pure. Errors: a QueryFault with the position.
#pragma once

#include <string_view>
#include <variant>

#include "insights/lexer.hpp"
#include "insights/query.hpp"

namespace trainyard::insights {

// Limits of one query. Real ones have a few commands and expressions three or four deep.
inline constexpr int kDepthMax = 64;
inline constexpr size_t kCommandsMax = 64;
inline constexpr size_t kColumnsMax = 200;

// The result limit of a query without `limit`, and the greatest one; as AWS.
inline constexpr size_t kRowsMax = 10'000;

std::variant<Query, QueryFault> parse_query(std::string_view text);

// "unexpected symbol found foo at line 1 and position 8": the fault with its place for people.
std::string describe_fault(std::string_view text, const QueryFault& fault);

}  // namespace trainyard::insights
