// Prepares the start of the user's program: reads the job's files, inspects the image, and installs
// packages.
//
// Threads: confined to one. Errors: a text for the user, with AWS's title of the fault.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "contract/entry.hpp"
#include "entry/children.hpp"
#include "entry/plan.hpp"

namespace trainyard::entry {

// The inputs of entry.
struct HostSetup {
  std::string base;     // "/opt/ml"
  std::string program;  // path of entry itself, for launchers
  Variables variables;
  contract::EntryConfig entry_config;
};

struct Prepared {
  Settings settings;
  Variables variables;  // of the user's processes
  Plan plan;
};

// The reason why nothing is started.
struct NotPrepared {
  int code = 1;
  std::string failure;   // the failure file's text
  bool stopped = false;  // by a stop signal, which is not a failure
};

struct Preparation {
  std::optional<Prepared> prepared;
  NotPrepared otherwise;
};

Preparation prepare(const HostSetup& setup, Signals& signals);

// The properties of the image's Python, from its output. Pure. Errors: invalid.
struct PythonSays {
  bool writable = false;            // packages can be installed at the usual path
  bool externally_managed = false;  // the distribution's own; pip needs an option
  bool mpi4py = false, tensorflow = false, smdistributed = false;
};
Result<PythonSays> read_python_says(std::string_view json);
// Returns the arguments of Python that install the source directory's requirements; none: it has
// none.
std::vector<std::string> install_arguments(const PythonSays& python, bool package,
                                           bool requirements);

}  // namespace trainyard::entry
