// Plans the processes that entry starts on each host, with their arguments and variables: one pure
// function of the job's settings and the image's contents.
//
//   distribution                 started on the leading host       on every other host of it
//   none, or another group       the program                       the program
//   mpi                          mpirun                            the daemons that mpirun requests
//   torch_distributed,           its ranks                         its ranks
//   pytorchddp, dataparallel
//   parameter_server             the program, and a server         the program, and a server
//   multi-worker mirrored        the program                       the program
//
// Threads: pure functions. Errors: invalid, with a text for the user that names the unsupported
// setting and an alternative.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "entry/settings.hpp"

namespace trainyard::entry {

// The properties of the image that the plan depends on.
struct Image {
  std::string python;   // path; "" = missing
  std::string mpirun;   // path; "" = missing
  std::string entry;    // path of this program
  bool mpi4py = false;  // this and the next two: true if that Python can import the module
  bool tensorflow = false;
  bool smdistributed = false;
  bool code_names_smdistributed = false;  // a file of the source directory contains "smdistributed"
  bool has_setup = false;                 // setup.py in the source directory
};

enum class Distribution { none, mpi, torch, parameter_server, mirrored };
std::string_view to_string(Distribution distribution);

// A process to start on this host.
struct Start {
  enum class Role { program, rank, launcher, server };
  Role role = Role::program;
  int rank = 0;  // in the distribution; for programs: the index of the host
  std::vector<std::string> arguments;
  Variables variables;    // added to the script's
  std::vector<int> cpus;  // the processors on which it runs; empty: any
  // True: a stop signal goes to the process group, since the process is a shell.
  bool signal_group = false;
};

struct Plan {
  Distribution distribution = Distribution::none;
  // The hosts that start and end together, the leading one first. One host: no links.
  std::vector<std::string> hosts;
  std::vector<Start> starts;  // on this host, once all hosts have joined
  std::vector<std::string> remarks;
};

Result<Plan> make_plan(const Settings& settings, const Image& image, const Variables& variables);

// -- parts of make_plan(), for tests and for the preparation

enum class Program { script, package, command };
Program program_kind(std::string_view program, bool has_setup);
// `launched`: mpirun starts the program; then the module mpi4py ends all ranks when one raises.
std::vector<std::string> program_command(const Settings& settings, const Image& image,
                                         bool launched);
// Pins a rank to a GPU: the GPU with the number of its local rank, modulo the number of GPUs. The
// rank runs on that GPU's processors, and all ranks number the GPUs alike. With kPinVariable the
// rank sees only that GPU. `gpu_cpus`: the processors of each GPU, in the order of their buses.
struct Pin {
  Variables variables;
  std::vector<int> cpus;
};
Pin pin_of_rank(int local_rank, const std::vector<std::vector<int>>& gpu_cpus,
                const Variables& variables);

// Variables for job options that neither the contract nor clients define.
inline constexpr const char* kPinVariable = "TRAINYARD_ONE_GPU_PER_RANK";

}  // namespace trainyard::entry
