// CompiledFilter caches the program into which the runtime compiles the filter of system calls.
//
// The runtime would compile the filter of each container to the same program, which takes a ninth
// of the start of a container. The program of the first container is therefore copied to the run
// directory, where only root of the machine can write, and is passed to later containers by an
// annotation of the runtime. A program belongs to one filter and to the installed runtime,
// libraries and kernel: after an upgrade of any of these, the next container compiles the filter
// again.
//
// Threads: callable from anywhere, in several processes at a time. Errors: none; if the program is
// missing, or other users could have written it, the filter is compiled again.
#pragma once

#include <string>

#include "base/json.hpp"
#include "containers/rootless_sandbox.hpp"

namespace trainyard::containers {

// The annotation by which the runtime accepts a program, in base64.
constexpr const char* kFilterAnnotation = "run.oci.seccomp_bpf_data";

// The cache entry of one filter.
class CompiledFilter {
 public:
  // `runtime` is the path of the runtime that compiles the filter.
  CompiledFilter(const Json& filter, const std::string& runtime,
                 std::string directory = run_directory() + "/filters");

  // Returns the program; "": it is not cached.
  std::string read() const;
  // Stores the program of a running container that had to compile it.
  void store(const std::string& container) const;

 private:
  std::string directory_, path_;
};

}  // namespace trainyard::containers
