// trainyard-slurm-host runs one host of a gang on a Slurm node (launch/nodes/host_run.hpp). The
// job's script starts it in a step, with the host's order as standard input. This file only wires
// modules.
//
//   trainyard-slurm-host --hosts                  runs all hosts of a gang on this node as an ordinary
//                                                 user (launch/nodes/user_hosts.hpp): an order on
//                                                 each line; prints "HOST CODE MESSAGE" for each
//   trainyard-slurm-host --clean NODE_DIRECTORY   removes what killed steps left on this node
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "launch/nodes/host_run.hpp"
#include "launch/nodes/user_hosts.hpp"
#include "os/environment.hpp"
#include "os/machine_clock.hpp"
#include "os/process.hpp"

namespace trainyard {
namespace {

volatile sig_atomic_t is_ending = 0;

Result<std::string> read_input() {
  std::string text;
  char buffer[64 << 10];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return from_errno("reading the order");
    if (got == 0) return text;
    text.append(buffer, size_t(got));
    if (text.size() > launch::kHostOrderBytesMax)
      return invalid("the order has more than " + std::to_string(launch::kHostOrderBytesMax) +
                     " bytes");
  }
}

launch::NodeFacts node_facts() {
  launch::NodeFacts node;
  node.name = os::environment_variable("SLURMD_NODENAME");
  node.job_number = os::environment_variable("SLURM_JOB_ID");
  node.gpus = os::environment_variable("SLURM_STEP_GPUS");
  if (node.gpus.empty()) node.gpus = os::environment_variable("SLURM_JOB_GPUS");
  node.program_directory = os::program_directory();
  node.is_ending = [] { return is_ending != 0; };
  return node;
}

Result<int> run(Clock& clock) {
  const auto order =
      TRY(launch::read_host_order(TRY(read_input())).in("reading the order of a host"));
  return launch::run_host(order, node_facts(), launch::machine_parts(), clock);
}

Result<int> run_all() {
  const auto orders =
      TRY(launch::read_host_orders(TRY(read_input())).in("reading the orders of hosts"));
  return launch::run_user_hosts(orders, node_facts(), [](const launch::HostEnd& end) {
    std::printf("%u %d %s\n", unsigned(end.host), end.code, end.why.c_str());
    std::fflush(stdout);
  });
}

std::string machine_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "localhost";
  const std::string_view whole = name;
  return std::string(whole.substr(0, whole.find('.')));
}

Result<int> clean(const std::string& node_directory) {
  std::string name = os::environment_variable("SLURMD_NODENAME");
  if (name.empty()) name = machine_name();
  TRY(launch::clean_node(node_directory, name, launch::machine_parts()));
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  using namespace trainyard;
  os::MachineClock clock;
  set_log(
      [](Level, std::string_view line) {
        std::fprintf(stderr, "%.*s\n", int(line.size()), line.data());
      },
      clock, Level::warning);
  const bool cleans = argc == 3 && std::string_view(argv[1]) == "--clean";
  const bool runs_all = argc == 2 && std::string_view(argv[1]) == "--hosts";
  if (argc != 1 && !cleans && !runs_all) {
    std::fputs("usage: trainyard-slurm-host [--hosts | --clean NODE_DIRECTORY]\n", stderr);
    return 2;
  }
  // The agent gets the signal too and cleans up; this process must outlive it.
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::signal(number, [](int) { is_ending = 1; });
  const auto code = cleans ? clean(argv[2]) : runs_all ? run_all() : run(clock);
  if (code) return *code;
  std::fprintf(stderr, "trainyard-slurm-host: %s\n", code.error().message.c_str());
  return 1;
}
