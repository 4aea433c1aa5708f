// Tracks the attempts of this machine's launcher by the files in their directories (local.hpp has
// the list), and removes an attempt from the machine. Private to this folder.
//
// Threads: confined to the launcher's, or plain functions. Errors: those of files; unavailable (a
// killed process stays).
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
// In a host's directory: its agent has left nothing else on the machine.
inline constexpr const char* kLeftFile = "left";
// A killed process ends at once, unless the kernel waits for a disk.
inline constexpr Duration kKillMax = 10s;

// The directories of a launcher.
struct LocalPaths {
  std::string data;  // links resolved
  std::string mark;
  std::string run_directory;  // shared by all servers of this machine
  std::string attempts() const { return data + "/attempts"; }
  // The directory of a gang that is started for the attempt. Reused hosts keep their directory.
  std::string attempt(const domain::AttemptId& id) const { return attempts() + "/" + id.text(); }
  std::string namespaces() const { return run_directory + "/" + mark; }
};
Result<LocalPaths> paths_of(const std::string& data_directory, const std::string& run_directory,
                            const LocalParts& parts);

// The known state of one host's agent.
struct KnownAgent {
  bool started = false, ended = false;
  // invalid for one that was started and about which nothing is known
  os::ProcessIdentity identity;
  std::function<bool()> watch = {};  // from the first query on
  // An agent that has ended does not live again.
  bool is_alive(os::Processes& processes);
};

struct KnownAttempt {
  std::string directory;
  Record record;
  std::vector<KnownAgent> agents = {};
  // The namespace of a network without a bridge, which no file keeps: its agent has it too, and
  // alone after the server's end. Shared with the reaper that removes the network. Nothing: it was
  // started by an earlier server, or has files.
  std::shared_ptr<os::File> held = {};
  // The number of looks at marked processes after which all agents were seen to have ended.
  std::optional<uint64_t> gone_since = {};

  bool complete() const;
  bool any_started() const;
  std::string host(size_t index) const { return directory + "/" + std::to_string(index); }
};

Result<void> write_record(const LocalParts& parts, const std::string& attempt_directory,
                          const Record& record);
Result<void> write_agent(const LocalParts& parts, const std::string& host_directory,
                         const os::ProcessIdentity& identity);
// Reads what an earlier server left: the record, and each host's agent. An agent started in
// the instant before that server died is not recorded; it is found by its mark. An unfinished host
// reuse is completed where the agent was taken, and undone otherwise. Errors: not_found (no
// record), invalid (a torn one), conflict (one of a later release), unavailable (what is there
// cannot be read: try again).
Result<KnownAttempt> load_attempt(const LocalParts& parts, const std::string& attempt_directory);

// The hosts of which a process runs, by its mark.
std::set<domain::HostIndex> running_hosts(const LocalParts& parts,
                                          const std::string& attempt_directory);

// Passes the order to the gang's one agent, which has ended its job. False: it does not wait for an
// order, or belongs to a release that would not obey all of it, and nothing has changed. Requires:
// one host.
Result<bool> reuse_host(const LocalParts& parts, KnownAttempt& known,
                        const domain::AttemptId& attempt, const std::string& token,
                        const std::string& order);

// Looks for processes with our marks in all of /proc, which takes some milliseconds: one look
// serves for all attempts whose agents had ended before it. Only a marked process starts another.
class Marked {
 public:
  explicit Marked(os::Processes& processes) : processes_(processes) {}
  // The number of looks so far.
  uint64_t looks() const { return looks_; }
  // True if a process of the attempt may still run, by a look after the first `before`.
  bool may_run(const std::string& attempt_directory, uint64_t before);

 private:
  os::Processes& processes_;
  uint64_t looks_ = 0;
  std::set<std::string> values_;
};

// Removes everything on the machine that is not in the attempt's directory, except its network.
// `known`: nullptr, or the attempt.
Result<void> remove_from_machine(const LocalParts& parts, const std::string& attempt_directory,
                                 const KnownAttempt* known, Marked* marked = nullptr);
// Removes the attempt's directory, the record last: until then a later server knows what to remove.
Result<void> remove_files(const LocalParts& parts, const std::string& attempt_directory);

}  // namespace trainyard::launch
