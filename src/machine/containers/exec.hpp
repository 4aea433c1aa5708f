// Runs an additional process in a running container through the OCI runtime. It has the container's
// namespaces, limits, rights and environment, and optionally its own terminal.
//
// The process ends when the container ends or when its ExecProcess is destroyed.
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
  std::string id;         // ContainerSpec::id
  std::string directory;  // ContainerSpec::directory
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // added to that of the container
  // false: stdout and stderr are one unchanged stream
  bool terminal = false;
  uint32_t columns = 80, rows = 24;
};

class ExecProcess {
 public:
  virtual ~ExecProcess() = default;
  // Waits for output. Returns "" if the descriptor `wake` is readable or `at_most` has passed.
  virtual Result<std::string> read(size_t bytes_max, Duration at_most, int wake) = 0;
  // Writes as many bytes as the process accepts now, and returns their number.
  virtual Result<size_t> write(std::string_view bytes) = 0;
  virtual void end_input() = 0;
  virtual void resize(uint32_t columns, uint32_t rows) = 0;
  // Ends the process if it still runs. Returns its exit code; 128+n: ended by signal n.
  virtual int finish() = 0;
};

Result<std::unique_ptr<ExecProcess>> start_exec(const ExecSpec& spec);

}  // namespace trainyard::containers
