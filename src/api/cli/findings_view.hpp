// Formats the findings of `trainyard doctor` about the machine and the server.
//
// Threads: plain values, pure function.
#pragma once

#include <string>
#include <vector>

#include "cli/layout.hpp"

namespace trainyard::cli {

struct Finding {
  enum class State { ok, limited, missing };
  State state = State::ok;
  std::string name;    // "OCI runtime"
  std::string text;    // the finding
  std::string remedy;  // what to do; "" = nothing
};

// Formats a paragraph for each finding: state, name, text, and the remedy below. On a terminal,
// lines break at words; otherwise a text is one line.
std::string findings_text(const OutputStyle& style, const std::vector<Finding>& findings);

}  // namespace trainyard::cli
