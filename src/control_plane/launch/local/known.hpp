// What a launcher of this machine knows of its attempts, by what lies in their directories (local.hpp has the list), and
// how an attempt is taken off the machine. Private to this folder.
//
// Threads: confined to the launcher's, or plain functions. Errors: those of files; unavailable (what was killed stays).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launch/local/plan.hpp"
#include "os/files.hpp"
#include "os/process_identity.hpp"

namespace trainyard::launch {

inline constexpr const char* kRecordFile = "launch.json";
// A killed process ends at once, unless the kernel waits for a disk.
inline constexpr Duration kKillMax = 10s;

// Where a launcher's things lie.
struct Places {
  std::string data;  // links resolved
  std::string mark;
  std::string run_directory;  // of all servers
  std::string attempts() const { return data + "/attempts"; }
  // Of a gang that is started for that attempt. One that was handed over stays where it is.
  std::string attempt(const domain::AttemptId& id) const { return attempts() + "/" + id.text(); }
  std::string namespaces() const { return run_directory + "/" + mark; }
};
Result<Places> places_of(const std::string& data_directory, const std::string& run_directory);

// One host's agent as far as we know it.
struct KnownAgent {
  bool started = false, ended = false;
  os::ProcessIdentity identity;  // of one that was started and of which nothing is known: nobody's
  std::optional<os::ProcessWatch> watch = {};  // from the first question on
  // One that has ended does not live again.
  bool is_alive();
};

struct KnownAttempt {
  std::string directory;
  Record record;
  std::vector<KnownAgent> agents = {};
  // The namespace of a network without a bridge, which no file keeps: its agent has it too, and after a server's end alone.
  // Shared with who takes the network away. Nothing: it was started by a former server, or has files.
  std::shared_ptr<os::File> held = {};
  // All agents were seen to be gone after so many looks at what is marked.
  std::optional<uint64_t> gone_since = {};

  bool complete() const;
  bool any_started() const;
  std::string host(size_t index) const { return directory + "/" + std::to_string(index); }
};

Result<void> write_record(const std::string& attempt_directory, const Record& record);
Result<void> write_agent(const std::string& host_directory, const os::ProcessIdentity& identity);
// What a former server left: the record, and each host's agent. An agent that was started in the instant
// before that server died is not written down; it is found by its mark. A handing over that was cut off is completed
// where the agent was taken, and otherwise undone.
Result<KnownAttempt> load_attempt(const std::string& attempt_directory);

// Hands the order to the gang's one agent, which has done with its job. False: it does not wait for one, or is of a release
// that would not obey all of it, and nothing has changed. Requires: one host.
Result<bool> hand_over(KnownAttempt& known, const domain::AttemptId& attempt, const std::string& token,
                       const std::string& order);

// What carries a mark of ours, looked for in all of /proc, which takes some milliseconds: what was looked at once serves
// for all whose agents were gone before. Only a marked process starts another.
class Marked {
 public:
  // Of how many looks one is.
  uint64_t looks() const { return looks_; }
  // Whether something of the attempt may still run, by a look that came after the first `before`.
  bool may_run(const std::string& attempt_directory, uint64_t before);

 private:
  uint64_t looks_ = 0;
  std::set<std::string> values_;
};

// All on the machine that is not in the attempt's directory, its network aside. `marked`: nothing, or what may know.
Result<void> remove_from_machine(const std::string& attempt_directory, const KnownAttempt* known,
                                 Marked* marked = nullptr);
// All of an attempt that is in its directory but the record, which goes last: until then a server that takes
// over knows what there is to remove.
Result<void> remove_files(const std::string& attempt_directory);

}  // namespace trainyard::launch
