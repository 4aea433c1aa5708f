// Defines what both catalogues share: the permanent tables, and the limits.
//
// Threads: pure functions. Errors: invalid, exhausted.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::campaign {

// SQL of both dialects.
extern const char* const kCatalogueSchema;

// True if `name` is a word of `sql`: a table that a query does not name need not be computed.
bool mentions(std::string_view sql, std::string_view name);

inline constexpr size_t kCellBytes = 32;  // of an answer in memory, in addition to its text

Result<void> check_size(const std::string& sql);
Result<void> check_answer(size_t rows, size_t bytes);

}  // namespace trainyard::campaign
