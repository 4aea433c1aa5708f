// SteppedLauncher is the launcher of this machine with given files, processes and networks:
// make_local() uses those of the machine, tests and sim/ use simulated ones.
//
// Threads and errors: as the launcher's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "launch/launcher.hpp"
#include "launch/local/local.hpp"
#include "launch/local/local_system.hpp"

namespace trainyard::launch {

class SteppedLauncher : public Launcher {
 public:
  // Does the background work that is due. Requires: parts without own threads.
  virtual void work() = 0;
};

Result<std::unique_ptr<SteppedLauncher>> make_local_over(const LocalSettings& settings,
                                                         Clock& clock, const LocalParts& parts);
// Implements sweep() of local.hpp with the given parts.
Result<std::vector<std::string>> sweep_over(const std::string& data_directory,
                                            const std::string& run_directory,
                                            const LocalParts& parts);

}  // namespace trainyard::launch
