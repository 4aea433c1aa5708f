// Formats when the running hosts of a job and their ranks were last active. In a job that hangs,
// the rank with the oldest output or collective is the one to examine.
//
// Threads: pure function.
#pragma once

#include <string>

#include "cli/job_view.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// The number of ranks in the table. If there are more, those longest without a collective are
// shown.
inline constexpr size_t kActivityRanksMax = 32;

// Returns "" if no activity is known.
std::string activity_table(const OutputStyle& style, const JobView& job);

// Returns the same as JSON: a list of {"Host", "SecondsSinceOutput"}, {"Host", "Rank",
// "SecondsSinceOutput", "SecondsSinceCollective"}, without unknown members, and {"Host", "Fault",
// "Rank", "Message"}.
Json activity_json(const JobView& job);

}  // namespace trainyard::cli
