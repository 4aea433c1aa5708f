// trainyard-entry runs a script in its container (entry/host_run.hpp). This file only wires
// modules.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "contract/container_init.hpp"
#include "contract/contract.hpp"
#include "contract/entry.hpp"
#include "entry/container_init.hpp"
#include "entry/helpers.hpp"
#include "entry/host_run.hpp"
#include "entry/init.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"

extern char** environ;

namespace trainyard {
namespace {

constexpr const char* kUsage =
    "usage: trainyard-entry [--start-on HOST COMMAND.. | --rank PROGRAM.. | --init PROGRAM.. | "
    "--keep]\n"
    "  (no option)                runs this host's part of a job in script mode\n"
    "  --start-on HOST COMMAND..  runs a command line on another host of the job, as ssh does\n"
    "  --rank PROGRAM..           runs one rank and reports its failure\n"
    "  --init PROGRAM..           runs a program as the init of its container\n"
    "  --keep                     runs as the init of a reused container\n";

entry::Variables read_variables() {
  entry::Variables variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const char* equals = std::strchr(*each, '=');
    if (equals != nullptr)
      variables[std::string(*each, static_cast<size_t>(equals - *each))] = equals + 1;
  }
  return variables;
}

// Reads the config and removes its file, so that no process of the user can read it. A missing or
// invalid config counts as empty: a single host needs neither the secret nor the limit of CPUs, and
// several hosts fail when they authenticate each other.
contract::EntryConfig take_config() {
  const std::string path(contract::kEntryFile);
  const auto text = os::read_file(path);
  ::unlink(path.c_str());
  if (!text) return {};
  auto entry_config = contract::read_entry_config(*text);
  return entry_config ? std::move(*entry_config) : contract::EntryConfig{};
}

// Standard input is the agent's socket; the program gets another standard input.
int run_init(const std::vector<std::string>& program) {
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
  return entry::run_init(program, std::move(environment),
                         os::PacketSocket(os::File(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3))));
}

int run(const std::vector<std::string>& arguments) {
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1),
                                      arguments.end());
  if (!arguments.empty() && arguments[0] == contract::kEntryInit) return run_init(rest);
  auto variables = read_variables();
  if (!arguments.empty() && arguments[0] == "--start-on") return entry::start_on(rest);
  if (!arguments.empty() && arguments[0] == "--rank") return entry::run_rank(rest, variables);
  // Standard input is the agent's socket.
  if (!arguments.empty() && arguments[0] == contract::kContainerInitOption)
    return entry::run_container_init(os::PacketSocket(os::File(STDIN_FILENO)));
  if (!arguments.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  entry::HostSetup setup;
  const auto base = variables.find("SAGEMAKER_BASE_DIR");
  setup.base = base == variables.end() ? std::string(contract::kBase) : base->second;
  setup.program = contract::kEntryInside;
  setup.variables = std::move(variables);
  setup.entry_config = take_config();
  os::MachineClock clock;
  os::MachineRandom random;
  return entry::run_host(setup, clock, random);
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) { return trainyard::run({argv + 1, argv + argc}); }
