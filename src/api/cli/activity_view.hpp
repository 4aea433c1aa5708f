// Formats when the running hosts of a job and their ranks were last active: a hang of a minute is
// seen by the rank whose last output, or whose last collective, is oldest.
//
// Threads: pure function.
#pragma once

#include <string>

#include "cli/job_view.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// Ranks in the table; the longest without a collective first, when there are more.
inline constexpr size_t kActivityRanksMax = 32;

// Returns "" if nothing is known.
std::string activity_table(const Looks& looks, const JobView& job);

// Returns the same for programs: a list of {"Host", "SecondsSinceOutput"}, {"Host", "Rank",
// "SecondsSinceOutput", "SecondsSinceCollective"}, without the members that are not known, and
// {"Host", "Fault", "Rank", "Message"}.
Json activity_json(const JobView& job);

}  // namespace trainyard::cli
