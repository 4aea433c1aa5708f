#include "launch/local/known.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "launch/local/local.hpp"

namespace trainyard::launch {
namespace {

using os::ProcessIdentity;

constexpr size_t kRecordBytesMax = 4 << 20;  // the record of a thousand hosts has a tenth of it
// Processes may start others while they are killed: each pass kills those that the one before
// missed.
constexpr int kKillPassesMax = 20;
constexpr const char* kAgentFile = "agent.json";
// agent/next_order.hpp describes these files, except the record of the next attempt, which is the
// launcher's.
constexpr const char* kNextRecordFile = "launch.next.json";
constexpr const char* kIdleFile = "idle";
constexpr const char* kNextFile = "next.json";
constexpr const char* kTakenFile = "taken";
// The lowest version of an idle agent that gets an order. Agents of release 0.1.0 report no
// version, and would ignore the confinement in an order.
constexpr int64_t kIdleVersionMin = 2;
constexpr size_t kIdleBytesMax = 20;

// Writes a file under another name and renames it, so that readers see it whole. It is not synced:
// after a power cut no agent is left.
Result<void> write_whole(Files& files, const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  TRY(files.write(temporary, text, 0600));
  return files.rename(temporary, path);
}

// Returns nullopt if the file does not exist. Errors: unavailable, if it cannot be read.
Result<std::optional<std::string>> read_if_there(Files& files, const std::string& path) {
  auto text = files.read(path, kRecordBytesMax);
  if (text) return std::optional(*std::move(text));
  if (text.error().kind == Kind::not_found) return std::optional<std::string>();
  return unavailable(text.error().message);
}

// Returns nullopt if it is missing or torn.
Result<std::optional<ProcessIdentity>> read_agent(Files& files, const std::string& directory) {
  const std::optional<ProcessIdentity> none;
  const auto text = TRY(read_if_there(files, directory + "/" + kAgentFile));
  if (!text) return none;
  const auto json = parse_json(*text);
  if (!json) return none;
  const auto process = int_at(*json, "process"), started = int_at(*json, "started");
  if (!process || !started) return none;
  return std::optional(ProcessIdentity{pid_t(*process), uint64_t(*started)});
}

Result<Record> read_record(Files& files, const std::string& attempt_directory) {
  const std::string path = attempt_directory + "/" + kRecordFile;
  const auto text = TRY(read_if_there(files, path));
  if (!text) return not_found(path + " is missing");
  return record_from_json(TRY(parse_json(*text)));
}

// Kills all processes that carry the attempt's mark.
Result<void> kill_marked(os::Processes& processes, const std::string& attempt_directory) {
  for (int pass = 0; pass < kKillPassesMax; pass++) {
    bool found = false;
    for (const auto& [identity, value] : processes.find_marked(kAttemptVariable)) {
      if (value != attempt_directory) continue;
      found = true;
      TRY(processes.kill_and_wait(identity, kKillMax));
    }
    if (!found) return ok();
  }
  return unavailable("processes of " + attempt_directory +
                     " start others faster than they are killed");
}

Result<void> remove_containers(const LocalParts& parts, const std::string& attempt_directory) {
  if (const auto names = parts.files.list_directory(attempt_directory))
    for (const auto& name : *names)
      if (name != kRecordFile)
        TRY(parts.system.remove_containers_in(attempt_directory + "/" + name));
  return ok();
}

// Returns true if all its agents have ended and cleaned up: then nothing runs, and nothing is
// mounted.
bool left_in_order(const LocalParts& parts, const KnownAttempt& known) {
  for (size_t i = 0; i < known.agents.size(); i++)
    if (!known.agents[i].started || parts.processes.is_alive(known.agents[i].identity) ||
        !parts.files.exists(known.host(i) + "/" + kLeftFile))
      return false;
  return true;
}

// Takes the agent of that directory, if it waits. Returns true if this launcher has it now.
bool take_agent(Files& files, const std::string& directory) {
  return bool(files.rename(directory + "/" + kIdleFile, directory + "/" + kTakenFile));
}

// Returns true if the agent of that directory waits for an order, and supports all current orders.
bool waits_for_orders(Files& files, const std::string& directory) {
  const auto text = files.read(directory + "/" + kIdleFile, kIdleBytesMax);
  if (!text) return false;
  const auto version = parse_int(*text);
  return version && *version >= kIdleVersionMin;
}

// Completes or undoes a host reuse during which a server was killed. The server writes the order
// and the next record, takes the agent, and then renames the record. So the agent was taken if the
// next record exists without the order, or `taken` exists; it was not if the order exists without
// `taken`. The agent removes the order before `taken`, so `taken` is checked first.
Result<void> settle_host_reuse(Files& files, const std::string& attempt_directory,
                               const std::string& host_directory) {
  const std::string next_record = host_directory + "/" + kNextRecordFile;
  const std::string order = host_directory + "/" + kNextFile;
  const bool taken = files.exists(host_directory + "/" + kTakenFile);
  const bool undone = !taken && files.exists(order);
  if (files.exists(next_record)) {
    if (undone)
      TRY(files.remove_all(next_record));
    else
      TRY(files.rename(next_record, attempt_directory + "/" + kRecordFile));
  }
  if (undone) TRY(files.remove_all(order));
  return ok();
}

}  // namespace

Result<LocalPaths> paths_of(const std::string& data_directory, const std::string& run_directory,
                            const LocalParts& parts) {
  const std::string resolved = TRY(parts.system.resolve(data_directory));
  return LocalPaths{resolved, server_mark(resolved), run_directory};
}

bool KnownAgent::is_alive(os::Processes& processes) {
  if (ended) return false;
  if (!watch) watch = processes.watch(identity);
  ended = !watch();
  return !ended;
}

bool KnownAttempt::complete() const {
  return std::all_of(agents.begin(), agents.end(), [](const auto& agent) { return agent.started; });
}

bool KnownAttempt::any_started() const {
  return std::any_of(agents.begin(), agents.end(), [](const auto& agent) { return agent.started; });
}

Result<void> write_record(const LocalParts& parts, const std::string& attempt_directory,
                          const Record& record) {
  return write_whole(parts.files, attempt_directory + "/" + kRecordFile, dump(to_json(record)));
}

Result<void> write_agent(const LocalParts& parts, const std::string& host_directory,
                         const ProcessIdentity& identity) {
  return write_whole(parts.files, host_directory + "/" + kAgentFile,
                     dump({{"process", identity.process}, {"started", identity.started}}));
}

Result<KnownAttempt> load_attempt(const LocalParts& parts, const std::string& attempt_directory) {
  if (const auto settled =
          settle_host_reuse(parts.files, attempt_directory, attempt_directory + "/0");
      !settled)
    return unavailable(settled.error().message);
  auto record = TRY(read_record(parts.files, attempt_directory));
  KnownAttempt known{attempt_directory, std::move(record)};
  known.agents.resize(known.record.network.hosts.size());
  std::optional<std::vector<os::MarkedProcess>> marked;
  for (size_t i = 0; i < known.agents.size(); i++) {
    KnownAgent& agent = known.agents[i];
    const std::string directory = known.host(i);
    if (const auto identity = TRY(read_agent(parts.files, directory))) {
      agent = {true, false, *identity};
      continue;
    }
    if (!marked) marked = parts.processes.find_marked(kHostVariable);
    for (const auto& [identity, value] : *marked) {
      // The agent leads its session and is older than the processes that it started. A process that
      // remains after the agent has ended must not be taken for the agent.
      if (value == directory && parts.processes.leads_session(identity) &&
          (!agent.started || identity.started < agent.identity.started))
        agent = {true, false, identity};
    }
    if (agent.started) {
      // If this fails, the next server finds it by its mark again.
      if (const auto written = write_agent(parts, directory, agent.identity); !written)
        log(Level::warning, "launch", "recording an agent that runs: " + written.error().message);
    } else if (parts.files.exists(directory + "/alive")) {
      agent.started = true;  // it ran, and has ended
    }
  }
  return known;
}

std::set<domain::HostIndex> running_hosts(const LocalParts& parts,
                                          const std::string& attempt_directory) {
  const std::string start = attempt_directory + "/";
  std::set<domain::HostIndex> hosts;
  for (const auto& [identity, value] : parts.processes.find_marked(kHostVariable))
    if (value.starts_with(start))
      if (const auto host = parse_int(value.substr(start.size())))
        hosts.insert(domain::HostIndex(*host));
  return hosts;
}

Result<bool> reuse_host(const LocalParts& parts, KnownAttempt& known,
                        const domain::AttemptId& attempt, const std::string& token,
                        const std::string& order) {
  const std::string directory = known.host(0);
  if (!waits_for_orders(parts.files, directory)) return false;
  Record next = known.record;
  next.attempt = attempt;
  next.token = token;
  const std::string next_record = directory + "/" + kNextRecordFile;
  TRY(write_whole(parts.files, directory + "/" + kNextFile, order));
  TRY(write_whole(parts.files, next_record, dump(to_json(next))));
  if (take_agent(parts.files, directory)) {
    known.record = std::move(next);
    // The agent has the order in any case; the next server would rename the record.
    if (const auto put = parts.files.rename(next_record, known.directory + "/" + kRecordFile); !put)
      log(Level::error, "launch", "storing the new owner of a reused agent",
          {{"why", put.error().message}});
    return true;
  }
  TRY(parts.files.remove_all(next_record));
  TRY(parts.files.remove_all(directory + "/" + kNextFile));
  return false;
}

bool MarkedProcesses::may_run(const std::string& attempt_directory, uint64_t before) {
  if (scans_ <= before) {
    values_.clear();
    for (auto& [identity, value] : processes_.find_marked(kAttemptVariable))
      values_.insert(std::move(value));
    scans_++;
  }
  return values_.contains(attempt_directory);
}

Result<void> remove_from_machine(const LocalParts& parts, const std::string& attempt_directory,
                                 const KnownAttempt* known, MarkedProcesses* marked) {
  if (known && left_in_order(parts, *known)) return ok();
  if (known)
    for (const auto& agent : known->agents)
      if (agent.started && agent.identity.process > 0)
        TRY(parts.processes.kill_and_wait(agent.identity, kKillMax));
  const auto ended_before_scan =
      known && marked ? known->ended_before_scan.value_or(marked->scans()) : 0;
  if (!marked || marked->may_run(attempt_directory, ended_before_scan)) {
    // Containers end first, so that no process of the job can keep them running.
    TRY(remove_containers(parts, attempt_directory));
    TRY(kill_marked(parts.processes, attempt_directory));
  }
  // Again, since a process of the agent may have started one before it was killed.
  TRY(remove_containers(parts, attempt_directory));
  return parts.system.unmount_below(attempt_directory);
}

Result<void> remove_files(const LocalParts& parts, const std::string& attempt_directory) {
  if (const auto names = parts.files.list_directory(attempt_directory))
    for (const auto& name : *names)
      if (name != kRecordFile) TRY(parts.files.remove_all(attempt_directory + "/" + name));
  return ok();
}

}  // namespace trainyard::launch
