// What both catalogues have in common: the tables that are always there, and the limits.
//
// Threads: pure functions. Errors: invalid, exhausted.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::campaign {

// Of both dialects.
extern const char* const kCatalogueSchema;

// Whether the words of `sql` hold `name`: a table that nobody asks for need not be made.
bool mentions(std::string_view sql, std::string_view name);

inline constexpr size_t kCellBytes = 32;  // of an answer in memory, beside its text

Result<void> check_size(const std::string& sql);
Result<void> check_answer(size_t rows, size_t bytes);

}  // namespace trainyard::campaign
