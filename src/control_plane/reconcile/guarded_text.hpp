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

using MaySeeJob = std::function<bool(domain::JobNumber)>;

// `hidden` replaces the text for principals that may not see the job. Requires: neither text has
// control characters.
std::string guard(domain::JobNumber job, std::string_view text, std::string_view hidden);
// Calls `may_see` for each guard. A guard that is not whole is removed.
std::string reveal(std::string_view text, const MaySeeJob& may_see);

}  // namespace trainyard::reconcile
