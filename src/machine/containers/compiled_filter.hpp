// Keeps the program into which the runtime has compiled the filter of system calls, for the
// containers that follow.
//
// The runtime compiles the filter of each container, always to the same program, which takes a
// ninth of a container's start. The program of the first container is copied to the run directory,
// where only root of the machine can write, and later containers get it by an annotation of the
// runtime. A program belongs to one filter and to the installed runtime, libraries and kernel:
// after an upgrade of any of these, the first container compiles again.
//
// Threads: callable from anywhere, in several processes at a time. Errors: none; a program that is
// missing, or that others could have written, is compiled again.
#pragma once

#include <string>

#include "base/json.hpp"
#include "containers/rootless_sandbox.hpp"

namespace trainyard::containers {

// The name under which the runtime takes a program, in base64.
constexpr const char* kFilterAnnotation = "run.oci.seccomp_bpf_data";

// The place of one filter's program. `runtime`: the path of the program that compiles it.
class CompiledFilter {
 public:
  CompiledFilter(const Json& filter, const std::string& runtime,
                 std::string directory = run_directory() + "/filters");

  // Returns the program; "" if none is kept.
  std::string read() const;
  // Stores the program of a container that runs and had to compile it.
  void store(const std::string& container) const;

 private:
  std::string directory_, path_;
};

}  // namespace trainyard::containers
