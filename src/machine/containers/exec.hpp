// Runs an additional process in a running container, through the OCI runtime: with the container's
// namespaces, limits, rights and environment, and optionally with a terminal of its own.
//
// The process ends with the container, and with its ExecProcess.
//
// Threads: confined to one. Errors: not_found (no such container), denied, exhausted; reading:
// cancelled at the end of its output.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::containers {

struct ExecSpec {
  std::string id;         // of the container, as it was started
  std::string directory;  // likewise
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // added to the container's
  // false: stdout and stderr are one unchanged stream
  bool terminal = false;
  uint32_t columns = 80, rows = 24;
};

class ExecProcess {
 public:
  virtual ~ExecProcess() = default;
  // Waits for output; returns "" when `wake` (a descriptor) is readable or the time is over.
  virtual Result<std::string> read(size_t bytes_max, Duration at_most, int wake) = 0;
  // Writes as much as the process accepts now, and returns the number of bytes.
  virtual Result<size_t> write(std::string_view bytes) = 0;
  virtual void end_input() = 0;
  virtual void resize(uint32_t columns, uint32_t rows) = 0;
  // Ends the process if it still runs, and returns its exit code; 128+n when ended by signal n.
  virtual int finish() = 0;
};

Result<std::unique_ptr<ExecProcess>> start_exec(const ExecSpec& spec);

}  // namespace trainyard::containers
