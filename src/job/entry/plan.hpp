// What entry starts on which host, with which arguments and variables: one pure function from the job's settings
// and what its image offers.
//
//   distribution                 started on the leading host       on every other host of it
//   none, or another group       the program, alone                the program, alone
//   mpi                          mpirun                            what mpirun asks for (its daemon)
//   torch_distributed,           its ranks                         its ranks
//   pytorchddp, dataparallel
//   parameter_server             the program, and a server         the program, and a server
//   multi-worker mirrored        the program                       the program
//
// Threads: pure functions. Errors: invalid, in words for the user: what cannot be run, and what would help.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "entry/settings.hpp"

namespace trainyard::entry {

// What of the image matters.
struct Image {
  std::string python;   // path; "" = there is none
  std::string mpirun;   // path; "" = there is none
  std::string entry;    // path of this program
  bool mpi4py = false;  // the rest: what that Python can import
  bool tensorflow = false;
  bool smdistributed = false;
  bool code_names_smdistributed = false;  // a file of the source directory says "smdistributed"
  bool has_setup = false;                 // setup.py in the source directory
};

enum class Distribution { none, mpi, torch, parameter_server, mirrored };
std::string_view to_string(Distribution distribution);

// A process to start on this host.
struct Start {
  enum class Role { program, rank, launcher, server };
  Role role = Role::program;
  int rank = 0;  // among all of the distribution; of programs: the host's place
  std::vector<std::string> arguments;
  Variables variables;    // added to the script's
  std::vector<int> cpus;  // on which it runs; none: any
  // What is told to stop: the process, or, for a shell's sake, all that it started.
  bool signal_group = false;
};

struct Plan {
  Distribution distribution = Distribution::none;
  std::vector<std::string> hosts;  // that start and end together, the leading one first; one: no links
  std::vector<Start> starts;       // on this host, once all are there
  std::vector<std::string> remarks;
};

Result<Plan> make_plan(const Settings& settings, const Image& image, const Variables& variables);

// -- parts of it, for tests and for the preparation

enum class Program { script, package, command };
Program program_kind(std::string_view program, bool has_setup);
// `launched`: by mpirun, which the module mpi4py helps to end all ranks when one raises.
std::vector<std::string> program_command(const Settings& settings, const Image& image, bool launched);
// What ties a rank to the GPU of its local rank, by turns: it runs on that GPU's processors, and all ranks count the
// GPUs alike. With kPinVariable it sees that one only. `gpu_cpus`: of each GPU, in the order of their buses.
struct Pin {
  Variables variables;
  std::vector<int> cpus;
};
Pin pin_of_rank(int local_rank, const std::vector<std::vector<int>>& gpu_cpus, const Variables& variables);

// Variables by which a job says what contract and clients have no word for.
inline constexpr const char* kPinVariable = "TRAINYARD_ONE_GPU_PER_RANK";

}  // namespace trainyard::entry
