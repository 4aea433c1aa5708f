// Reads the keys that answer "Stop the job?", which `submit --follow` prints after Ctrl-C.
//
// Threads: pure. Errors: none.
#pragma once

#include <optional>
#include <string_view>

namespace trainyard::cli {

// Returns the answer among the bytes that a raw terminal delivered at once, which may be of several
// keys: true to stop the job, false to leave it running; nullopt: no key answers. Arrows and
// function keys, which are sequences of bytes, do not answer.
std::optional<bool> read_stop_answer(std::string_view typed);

}  // namespace trainyard::cli
