// Joins the message of a job's transition and the notes that views append to it, and splits them
// again for views that show a note on its own.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::domain {

// Returns the message, followed by `note` as a sentence of its own. Either may be empty.
std::string with_note(std::string message, std::string_view note);

// Returns what with_note(message, note) was made from, except for a period that it may have added;
// a message that does not end with the note is returned as it is.
std::string without_note(std::string message, std::string_view note);

}  // namespace trainyard::domain
