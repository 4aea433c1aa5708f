#include "os/processes.hpp"

#include "os/process.hpp"

namespace trainyard::os {

Result<ProcessIdentity> MachineProcesses::start(const DetachedProgram& program) {
  const pid_t process = TRY(start_detached(program.arguments, program.environment, program.log_file,
                                           program.own_pid_namespace, program.input));
  return identify(process).value_or(ProcessIdentity{process, 0});
}

bool MachineProcesses::is_alive(const ProcessIdentity& identity) { return os::is_alive(identity); }

bool MachineProcesses::leads_session(const ProcessIdentity& identity) {
  return os::leads_session(identity);
}

std::function<bool()> MachineProcesses::watch(const ProcessIdentity& identity) {
  return [watch = ProcessWatch(identity)] { return watch.is_alive(); };
}

Result<void> MachineProcesses::kill_and_wait(const ProcessIdentity& identity, Duration at_most) {
  return os::kill_and_wait(identity, at_most);
}

std::vector<MarkedProcess> MachineProcesses::find_marked(const std::string& variable) {
  return os::find_marked(variable);
}

}  // namespace trainyard::os
