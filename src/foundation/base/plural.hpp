// Formats counts for people: "1 job", "2 jobs".
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard {

// Formats a count and what is counted. If `plural` is "", the plural is the singular with an s.
std::string counted(uint64_t count, std::string_view singular, std::string_view plural = {});

}  // namespace trainyard
