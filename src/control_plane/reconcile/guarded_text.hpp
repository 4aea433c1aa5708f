// Guards the parts of a text that name a job: they are shown only to principals that may see it.
//
// The guards travel through the scheduler inside names, and reveal() removes them from the texts
// that it has made of these names. So a text that was not revealed shows no secret by mistake
// only, and looks wrong at once: a guard begins with a control character.
//
// Threads: pure. Errors: none.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "domain/job.hpp"

namespace trainyard::reconcile {

using MaySeeNumber = std::function<bool(domain::JobNumber)>;
// True if a principal may see that job.
using MaySeeJob = std::function<bool(const domain::Job&)>;
inline bool see_no_job(const domain::Job&) { return false; }
inline bool see_all_jobs(const domain::Job&) { return true; }

// `hidden` replaces the text for principals that may not see the job. Requires: neither text has
// control characters.
std::string guard(domain::JobNumber job, std::string_view text, std::string_view hidden);
// Calls `may_see` for each guard. A guard that is not whole is removed.
std::string reveal(std::string_view text, const MaySeeNumber& may_see);
// The same for a text that everybody may see.
std::string reveal_to_all(std::string_view text);

}  // namespace trainyard::reconcile
