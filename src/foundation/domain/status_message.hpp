// Appends notes to the message of a job's transition, and removes them again for views that show a
// note separately.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::domain {

// Returns the message, followed by `note` as a separate sentence. Either may be empty.
std::string with_note(std::string message, std::string_view note);

// Returns the message without the note at its end, which with_note() appended. A period that
// with_note() added may remain. A message that does not end with the note is returned unchanged.
std::string without_note(std::string message, std::string_view note);

}  // namespace trainyard::domain
