// One more process inside a running container, through the OCI runtime: with the container's namespaces, limits,
// rights and environment, and, where it is asked for, a terminal of its own.
//
// It ends with the container, and when it is destroyed.
//
// Threads: confined to one. Errors: not_found (no such container), denied, exhausted; reading: cancelled at the end of
// its output.
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
  bool terminal = false;                           // false: output and errors come as they are, together
  uint32_t columns = 80, rows = 24;
};

class ExecProcess {
 public:
  virtual ~ExecProcess() = default;
  // Waits for output, or until `wake` (a descriptor) is readable or the time is over: "" then.
  virtual Result<std::string> read(size_t bytes_max, Duration at_most, int wake) = 0;
  // As much as it takes now; how many bytes that was.
  virtual Result<size_t> write(std::string_view bytes) = 0;
  virtual void end_input() = 0;
  virtual void resize(uint32_t columns, uint32_t rows) = 0;
  // Ends what still runs of it, and answers with its exit code; 128+n when ended by signal n.
  virtual int finish() = 0;
};

Result<std::unique_ptr<ExecProcess>> start_exec(const ExecSpec& spec);

}  // namespace trainyard::containers
