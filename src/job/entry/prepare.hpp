// Prepares the start of the user's program: reads the job's files, inspects the image, and installs
// packages.
//
// Threads: confined to one. Errors: a text for the user, with AWS's name of the kind of fault.
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

// The reason why no process is started.
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

// The properties of the image's Python.
struct PythonProperties {
  bool writable = false;            // packages can be installed at the usual path
  bool externally_managed = false;  // by the distribution: pip needs an option
  bool mpi4py = false, tensorflow = false, smdistributed = false;
};
// Parses the output of the query in prepare.cpp. Pure. Errors: invalid.
Result<PythonProperties> parse_python_properties(std::string_view json);
// Returns Python's arguments for installing the requirements of the source directory; empty if
// there are none.
std::vector<std::string> install_arguments(const PythonProperties& python, bool package,
                                           bool requirements);

}  // namespace trainyard::entry
