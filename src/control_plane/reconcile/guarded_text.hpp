// Guards the parts of a text that name a job, so that only principals that may see the job read
// them.
//
// Guards are part of the names that the scheduler gets. reveal() removes them from the texts that
// the scheduler makes from these names. A text whose guards were not removed is easy to notice: a
// guard begins with a control character.
//
// Threads: pure. Errors: none.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "domain/job.hpp"

namespace trainyard::reconcile {

using MaySeeNumber = std::function<bool(domain::JobNumber)>;
// Returns true if the principal may see the job.
using MaySeeJob = std::function<bool(const domain::Job&)>;
inline bool see_no_job(const domain::Job&) { return false; }
inline bool see_all_jobs(const domain::Job&) { return true; }

// Returns a guarded text. `hidden` replaces `text` for principals that may not see the job.
// Requires: neither text has control characters.
std::string guard(domain::JobNumber job, std::string_view text, std::string_view hidden);
// Replaces each guard by its text, or the hidden text if `may_see` returns false. Removes
// incomplete guards.
std::string reveal(std::string_view text, const MaySeeNumber& may_see);
// Replaces each guard by its text, for texts that all users may see.
std::string reveal_to_all(std::string_view text);

}  // namespace trainyard::reconcile
