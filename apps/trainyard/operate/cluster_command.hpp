// Implements `trainyard cluster`: makes machines of users a Slurm cluster, over ssh. Prints what it
// will do, waits for the user's consent on a terminal, and does it (cluster_setup/setup.hpp). No
// server is involved.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/arguments.hpp"
#include "cli/layout.hpp"
#include "os/terminal.hpp"

namespace trainyard::apps {

cli::Form form_of_cluster();

// `style` and `error_style`: the properties of standard output and of standard error, which shows
// the progress. Returns the exit code: 1 if a machine failed. Errors also: cancelled (Ctrl-C, or
// the user does not agree).
Result<int> cluster_command(const cli::Arguments& arguments, os::Terminal& terminal,
                            const cli::OutputStyle& style, const cli::OutputStyle& error_style,
                            Clock& clock);

}  // namespace trainyard::apps
