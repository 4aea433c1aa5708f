// Defines the permanent tables and the limits of both catalogues.
//
// Threads: pure functions. Errors: invalid, exhausted.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::campaign {

// SQL of both dialects.
extern const char* const kCatalogueSchema;

// Returns true if `name` is a word of `sql`. Tables that a query does not mention are not computed.
bool mentions(std::string_view sql, std::string_view name);

inline constexpr size_t kCellBytes = 32;  // of a value in memory, in addition to its text

Result<void> check_size(const std::string& sql);
Result<void> check_answer(size_t rows, size_t bytes);

}  // namespace trainyard::campaign
