// Reads and writes the state of the local launcher's attempts in their directories (local.hpp lists
// the files), and removes an attempt from the machine. Private to this folder.
//
// Threads: confined to the launcher's, or plain functions. Errors: those of files; unavailable (a
// killed process does not end).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launch/local/local_system.hpp"
#include "launch/local/plan.hpp"
#include "os/process_identity.hpp"

namespace trainyard::launch {

inline constexpr const char* kRecordFile = "launch.json";
// A file in a host's directory. It exists if the agent has left nothing else on the machine.
inline constexpr const char* kLeftFile = "left";
// The longest wait for a killed process, which ends at once unless the kernel waits for a disk.
inline constexpr Duration kKillMax = 10s;

// The directories of a launcher.
struct LocalPaths {
  std::string data;  // links resolved
  std::string mark;
  std::string run_directory;  // shared by all servers of this machine
  std::string attempts() const { return data + "/attempts"; }
  // Returns the directory of a gang that is started for the attempt. Reused hosts keep theirs.
  std::string attempt(const domain::AttemptId& id) const { return attempts() + "/" + id.text(); }
  std::string namespaces() const { return run_directory + "/" + mark; }
};
Result<LocalPaths> paths_of(const std::string& data_directory, const std::string& run_directory,
                            const LocalParts& parts);

// The known state of one host's agent.
struct KnownAgent {
  bool started = false, ended = false;
  // Invalid if the agent was started but its process is unknown.
  os::ProcessIdentity identity;
  std::function<bool()> watch = {};  // set at the first query
  // Returns true while the agent runs; once it has ended, always false.
  bool is_alive(os::Processes& processes);
};

struct KnownAttempt {
  std::string directory;
  Record record;
  std::vector<KnownAgent> agents = {};
  // Keeps the namespace of a network without a bridge, which has no file; its agent also keeps it,
  // and does so alone after the server's end. Shared with the reaper that removes the network.
  // nullptr: an earlier server started the attempt, or its namespaces have files.
  std::shared_ptr<os::File> held = {};
  // The number of scans for marked processes (MarkedProcesses::scans()) before all agents were
  // found to have ended.
  std::optional<uint64_t> ended_before_scan = {};

  bool complete() const;
  bool any_started() const;
  std::string host(size_t index) const { return directory + "/" + std::to_string(index); }
};

Result<void> write_record(const LocalParts& parts, const std::string& attempt_directory,
                          const Record& record);
Result<void> write_agent(const LocalParts& parts, const std::string& host_directory,
                         const os::ProcessIdentity& identity);
// Reads an attempt of an earlier server: the record, and each host's agent. An agent that was
// started just before that server ended is not recorded, and is found by its mark. Completes an
// interrupted host reuse if the agent was taken, and undoes it otherwise. Errors: not_found (no
// record), invalid (a torn record), conflict (a record of a later release), unavailable (a file
// cannot be read: try again).
Result<KnownAttempt> load_attempt(const LocalParts& parts, const std::string& attempt_directory);

// Returns the hosts of which a process runs, found by its mark.
std::set<domain::HostIndex> running_hosts(const LocalParts& parts,
                                          const std::string& attempt_directory);

// Passes the order to the gang's only agent, whose job has ended. Returns false, without a change,
// if the agent does not wait for an order, or is of a release that does not support all of it.
// Requires: one host.
Result<bool> reuse_host(const LocalParts& parts, KnownAttempt& known,
                        const domain::AttemptId& attempt, const std::string& token,
                        const std::string& order);

// MarkedProcesses finds processes with this server's marks. A scan of /proc takes some
// milliseconds, so that one scan is used for all attempts whose agents had ended before it. (Only a
// marked process can start another one.)
class MarkedProcesses {
 public:
  explicit MarkedProcesses(os::Processes& processes) : processes_(processes) {}
  // Returns the number of scans so far.
  uint64_t scans() const { return scans_; }
  // Returns true if a process of the attempt may still run, by a scan after the first `before`
  // ones.
  bool may_run(const std::string& attempt_directory, uint64_t before);

 private:
  os::Processes& processes_;
  uint64_t scans_ = 0;
  std::set<std::string> values_;
};

// Removes everything of the attempt that is not in its directory, except its network. `known`: the
// attempt, or nullptr.
Result<void> remove_from_machine(const LocalParts& parts, const std::string& attempt_directory,
                                 const KnownAttempt* known, MarkedProcesses* marked = nullptr);
// Removes the attempt's directory, and the record last: until then a later server can read what to
// remove.
Result<void> remove_files(const LocalParts& parts, const std::string& attempt_directory);

}  // namespace trainyard::launch
