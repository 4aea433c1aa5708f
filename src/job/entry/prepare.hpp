// What comes before the user's program starts: the job's files are read, the image is looked at, packages are
// installed.
//
// Threads: confined to one. Errors: in words for the user, with the title that AWS gives such a fault.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "contract/entry.hpp"
#include "entry/children.hpp"
#include "entry/plan.hpp"

namespace trainyard::entry {

// What entry is started with.
struct Station {
  std::string base;     // "/opt/ml"
  std::string program;  // path of entry itself, for launchers
  Variables variables;
  contract::EntryTold told;
};

struct Prepared {
  Settings settings;
  Variables variables;  // of the user's processes
  Plan plan;
};

// Why there is nothing to start.
struct NotPrepared {
  int code = 1;
  std::string failure;   // the failure file's text
  bool stopped = false;  // told to, which is no failure
};

struct Preparation {
  std::optional<Prepared> prepared;
  NotPrepared otherwise;
};

Preparation prepare(const Station& station, Signals& signals);

// What the image's Python says of itself, from what it prints. Pure. Errors: invalid.
struct PythonSays {
  bool writable = false;            // packages can be installed where they usually are
  bool externally_managed = false;  // the system's own; pip must be told
  bool mpi4py = false, tensorflow = false, smdistributed = false;
};
Result<PythonSays> read_python_says(std::string_view json);
// The arguments of Python that install what the source directory asks for; none: nothing is asked.
std::vector<std::string> install_arguments(const PythonSays& python, bool package, bool requirements);

}  // namespace trainyard::entry
