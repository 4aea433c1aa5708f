#include "launch/local/local.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "base/log.hpp"
#include "base/text.hpp"
#include "host/container.hpp"
#include "host/files.hpp"
#include "host/machine.hpp"
#include "host/mounts.hpp"
#include "host/process.hpp"
#include "host/process_identity.hpp"
#include "launch/local/plan.hpp"
#include "launch/local/reaper.hpp"

namespace trainyard::launch {
namespace {

using host::ProcessIdentity;

constexpr size_t kRecordBytesMax = 4 << 20;  // a thousand hosts take a tenth of it
// A killed process ends at once, unless the kernel waits for a disk.
constexpr Duration kKillMax = 10s;
// Processes that start others while we kill them: each pass gets what the one before left.
constexpr int kKillPassesMax = 20;
// Two servers of one machine choose networks in turn; each holds the lock for some 20 ms.
constexpr Duration kLockWaitMax = 10s;
constexpr const char* kRecordFile = "launch.json";
constexpr const char* kAgentFile = "agent.json";
constexpr const char* kOwnerFile = "data-directory";

// Where a launcher's things lie.
struct Places {
  std::string data;  // links resolved
  std::string mark;
  std::string run_directory;  // of all servers
  std::string attempts() const { return data + "/attempts"; }
  std::string attempt(const domain::AttemptId& id) const { return attempts() + "/" + id.text(); }
  std::string namespaces() const { return run_directory + "/" + mark; }
};

Result<Places> places_of(const std::string& data_directory, const std::string& run_directory) {
  std::error_code error;
  const auto resolved = std::filesystem::canonical(data_directory, error);
  if (error) return from_errno("looking at " + data_directory, error.value());
  return Places{resolved.string(), server_mark(resolved.string()), run_directory};
}

// One host's agent as far as we know it.
struct KnownAgent {
  bool started = false;
  ProcessIdentity identity;  // of one that was started and of which nothing is known: nobody's
};

struct KnownAttempt {
  Record record;
  std::vector<KnownAgent> agents;
  bool complete() const {
    return std::all_of(agents.begin(), agents.end(), [](const auto& agent) { return agent.started; });
  }
  bool any_started() const {
    return std::any_of(agents.begin(), agents.end(), [](const auto& agent) { return agent.started; });
  }
};

std::string host_directory(const std::string& attempt_directory, size_t index) {
  return attempt_directory + "/" + std::to_string(index);
}

// Written beside and renamed: a reader sees it whole. Not synced: after a power cut there is no agent to know
// of.
Result<void> write_whole(const std::string& path, const Json& json) {
  const std::string beside = path + ".new";
  TRY(host::write_file(beside, dump(json), 0600));
  std::error_code error;
  std::filesystem::rename(beside, path, error);
  if (error) return from_errno("renaming to " + path, error.value());
  return ok();
}

Result<void> write_agent(const std::string& directory, const ProcessIdentity& identity) {
  return write_whole(directory + "/" + kAgentFile,
                     {{"process", identity.process}, {"started", identity.started}});
}

std::optional<ProcessIdentity> read_agent(const std::string& directory) {
  const auto text = host::read_file(directory + "/" + kAgentFile, kRecordBytesMax);
  if (!text) return {};
  const auto json = parse_json(*text);
  if (!json) return {};
  const auto process = int_at(*json, "process"), started = int_at(*json, "started");
  if (!process || !started) return {};
  return ProcessIdentity{pid_t(*process), uint64_t(*started)};
}

Result<Record> read_record(const std::string& attempt_directory) {
  const std::string text = TRY(host::read_file(attempt_directory + "/" + kRecordFile, kRecordBytesMax));
  return record_from_json(TRY(parse_json(text)));
}

// What a former server left: the record, and each host's agent. An agent that was started in the instant
// before that server died is not written down; it is found by its mark.
Result<KnownAttempt> load_attempt(const std::string& attempt_directory) {
  KnownAttempt known{TRY(read_record(attempt_directory)), {}};
  known.agents.resize(known.record.network.hosts.size());
  std::optional<std::vector<host::MarkedProcess>> marked;
  for (size_t i = 0; i < known.agents.size(); i++) {
    KnownAgent& agent = known.agents[i];
    const std::string directory = host_directory(attempt_directory, i);
    if (const auto identity = read_agent(directory)) {
      agent = {true, *identity};
      continue;
    }
    if (!host::exists(directory)) continue;
    if (!marked) marked = host::find_marked(kHostVariable);
    for (const auto& [identity, value] : *marked) {
      // The agent is older than what it started.
      if (value == directory && (!agent.started || identity.started < agent.identity.started))
        agent = {true, identity};
    }
    if (agent.started) {
      TRY(write_agent(directory, agent.identity));
    } else if (host::exists(directory + "/alive")) {
      agent.started = true;  // it ran, and is no more
    }
  }
  return known;
}

// Kills all that carries the attempt's mark.
Result<void> kill_marked(const std::string& attempt_directory) {
  for (int pass = 0; pass < kKillPassesMax; pass++) {
    bool found = false;
    for (const auto& [identity, value] : host::find_marked(kAttemptVariable)) {
      if (value != attempt_directory) continue;
      found = true;
      TRY(host::kill_and_wait(identity, kKillMax));
    }
    if (!found) return ok();
  }
  return unavailable("processes of " + attempt_directory + " start others faster than they are killed");
}

// All on the machine that is not in the attempt's directory, its network aside.
Result<void> remove_from_machine(const std::string& attempt_directory, const KnownAttempt* known) {
  if (known)
    for (const auto& agent : known->agents)
      if (agent.started) TRY(host::kill_and_wait(agent.identity, kKillMax));
  TRY(kill_marked(attempt_directory));
  if (const auto names = host::list_directory(attempt_directory))
    for (const auto& name : *names) TRY(host::remove_containers_in(attempt_directory + "/" + name));
  return host::unmount_below(attempt_directory);
}

// All of an attempt that is in its directory but the record, which goes last: until then a server that takes
// over knows what there is to remove.
Result<void> remove_files(const std::string& attempt_directory) {
  if (const auto names = host::list_directory(attempt_directory))
    for (const auto& name : *names)
      if (name != kRecordFile) TRY(host::remove_all(attempt_directory + "/" + name));
  return ok();
}

Result<host::FileLock> lock_networks(const std::string& run_directory) {
  TRY(host::make_directories(run_directory, 0755));
  return host::FileLock::take_within(run_directory + "/lock", kLockWaitMax);
}

// As an agent is told: with what all GPUs of a machine share, where it is NVIDIA's.
std::string with_shared_devices(const std::vector<std::string>& cards) {
  std::string text;
  for (const auto& device : cards) text += (text.empty() ? "" : ",") + device;
  if (std::any_of(cards.begin(), cards.end(),
                  [](const auto& card) { return card.starts_with("/dev/nvidia"); }))
    for (const auto& device : host::gpu_devices())
      if (const auto all = host::gpu_cards(); std::find(all.begin(), all.end(), device) == all.end())
        text += "," + device;
  return text;
}

class LocalLauncher final : public Launcher {
 public:
  LocalLauncher(LocalSettings settings, Places places, host::Subnet pool, Clock& clock)
      : settings_(std::move(settings)),
        places_(std::move(places)),
        pool_(pool),
        next_address_(pool.base),
        reaper_(clock) {}

  // Finds what a former server left.
  Result<void> load() {
    TRY(host::make_directories(places_.attempts(), 0700));
    for (const auto& name : TRY(host::list_directory(places_.attempts()))) {
      const auto id = domain::parse_attempt_id(name);
      const std::string directory = places_.attempts() + "/" + name;
      if (!id) {
        log(Level::warning, "launch", "not an attempt's directory, left alone", {{"path", directory}});
        continue;
      }
      auto known = load_attempt(directory);
      if (known && known->any_started()) {
        attempts_.emplace(*id, std::move(*known));
        continue;
      }
      // Its record is missing or unreadable: before it was written nothing had been made, and if it was lost
      // later, what it named is found by name below. Or none of its agents is known: it was cut off while it
      // was made, which ensure() does again from nothing, or while it was removed, which nobody asks for again.
      log(Level::info, "launch", "an attempt that was cut off while it was made or removed is removed",
          {{"attempt", name}, {"why", known ? "no agent of it was started" : known.error().message}});
      TRY(remove_from_machine(directory, known ? &*known : nullptr));
      if (known) TRY(host::remove_network(known->record.network));
      TRY(host::remove_all(directory));
    }
    return remove_strays();
  }

  std::vector<Machine> machines() override {
    if (settings_.machines)
      if (auto offered = settings_.machines(); !offered.empty()) return offered;
    const host::MachineCapacity capacity = host::machine_capacity();
    return {{capacity.name, capacity.cpus, capacity.memory_bytes, capacity.gpus}};
  }

  Result<void> ensure(const Gang& gang) override {
    if (gang.members.empty()) return invalid("a gang without members");
    if (const auto found = attempts_.find(gang.attempt); found != attempts_.end()) {
      KnownAttempt& known = found->second;
      if (known.record.token != gang.token)
        return conflict("attempt " + gang.attempt.text() + " was started with another token");
      if (known.agents.size() != gang.members.size())
        return conflict("attempt " + gang.attempt.text() + " was started with another number of hosts");
      if (known.complete()) return ok();
      if (known.any_started()) return start_agents(gang, known);
      // Nothing runs yet, and how far its network was made nobody knows.
      TRY(remove(gang.attempt));
    }
    // Of an attempt that was removed, and is wanted again: its directory is about to go.
    if (host::exists(places_.attempt(gang.attempt))) reaper_.drain();
    auto started = start(gang);
    if (!started && started.error().kind == Kind::exhausted && !reaper_.waiting().empty()) {
      // Addresses that are free in a moment.
      (void)remove(gang.attempt);
      reaper_.drain();
      started = start(gang);
    }
    if (started) return started;
    auto removed = remove(gang.attempt);
    reaper_.drain();
    if (removed) removed = host::remove_all(places_.attempt(gang.attempt));
    if (!removed)
      log(Level::error, "launch", "removing what could not be started: " + removed.error().message,
          {{"attempt", gang.attempt.text()}});
    return std::move(started).error().in("starting attempt " + gang.attempt.text());
  }

  std::vector<Agent> list() override {
    std::vector<Agent> agents;
    for (const auto& [id, known] : attempts_)
      for (size_t i = 0; i < known.agents.size(); i++)
        if (known.agents[i].started)
          agents.push_back(
              {id, known.record.token, domain::HostIndex(i), host::is_alive(known.agents[i].identity)});
    return agents;
  }

  Result<void> remove(domain::AttemptId attempt) override {
    const std::string directory = places_.attempt(attempt);
    const auto found = attempts_.find(attempt);
    if (found == attempts_.end()) return ok();  // what is not known is not there, or waits for the reaper
    TRY(remove_from_machine(directory, &found->second).in("removing attempt " + attempt.text()));
    TRY(remove_files(directory));
    reaper_.take(found->second.record.network, [directory] {
      if (auto removed = host::remove_all(directory); !removed)
        log(Level::error, "launch", "removing what is left of an attempt: " + removed.error().message);
    });
    attempts_.erase(found);
    return ok();
  }

  ~LocalLauncher() override {
    reaper_.drain();
    if (attempts_.empty()) (void)host::remove_all(places_.namespaces());
  }

 private:
  // What each member gets of its machine's GPUs.
  Result<std::vector<std::vector<std::string>>> gpus_for(const Gang& gang) {
    std::vector<GpuRequest> requests;
    const auto offered = machines();
    for (const auto& member : gang.members) {
      GpuRequest& request = requests.emplace_back();
      request.gpus = member.share.gpus;
      for (const auto& machine : offered)
        if (machine.name == member.machine) request.devices = machine.gpu_devices;
      if (request.gpus > 0 && request.devices.empty()) request.devices = host::gpu_cards();
    }
    std::set<std::string> taken;
    for (const auto& [id, other] : attempts_)
      for (const auto& devices : other.record.gpus) taken.insert(devices.begin(), devices.end());
    return choose_gpus(requests, taken);
  }

  Result<void> start(const Gang& gang) {
    const NetworkReaper::Start start(reaper_);
    const std::string directory = places_.attempt(gang.attempt);
    TRY(host::make_directories(directory, 0700));
    KnownAttempt known;
    {
      // Until the bridge has its address, others cannot see that the subnet is taken; and until the owner is written,
      // a sweep takes what is made for nobody's.
      const auto lock = TRY(lock_networks(places_.run_directory));
      TRY(host::make_directories(places_.namespaces(), 0700));
      TRY(host::write_file(places_.namespaces() + "/" + kOwnerFile, places_.data, 0600));
      auto taken = TRY(host::networks_in_use());
      for (const auto& [id, other] : attempts_) taken.push_back(other.record.network.subnet);
      for (const auto& subnet : reaper_.waiting()) taken.push_back(subnet);
      const bool encrypted = gang.encrypt_traffic && gang.members.size() > 1;
      const host::Subnet subnet =
          TRY(choose_subnet(pool_, gang.members.size(), taken, next_address_, encrypted));
      next_address_ = host::Address(subnet.base + subnet.size());
      NetworkRequest request{gang.attempt,
                             gang.members.size(),
                             gang.network_isolation,
                             encrypted,
                             places_.mark,
                             places_.namespaces(),
                             "trainyard " + directory,
                             {*host::parse_address(kRelayAddress)}};
      auto gpus = TRY(gpus_for(gang));
      known.record = {gang.attempt, gang.token, plan_network(request, pool_, subnet), std::move(gpus)};
      known.agents.resize(gang.members.size());
      TRY(write_whole(directory + "/" + kRecordFile, to_json(known.record)));
      attempts_[gang.attempt] = known;
      TRY(host::make_network(known.record.network));
    }
    return start_agents(gang, attempts_[gang.attempt]);
  }

  // Those that were not started yet.
  Result<void> start_agents(const Gang& gang, KnownAttempt& known) {
    const std::string attempt_directory = places_.attempt(gang.attempt);
    const std::string table = host_table(known.record.network);
    for (size_t i = 0; i < known.agents.size(); i++) {
      if (known.agents[i].started) continue;
      const std::string directory = host_directory(attempt_directory, i);
      const host::PrivateHost& host = known.record.network.hosts[i];
      TRY(host::make_directories(directory, 0700));
      TRY(host::write_file(directory + "/order.json", gang.members[i].order, 0600));
      TRY(host::write_file(directory + "/hosts", table, 0644));
      auto environment = settings_.agent_environment;
      environment[kAttemptVariable] = attempt_directory;
      environment[kHostVariable] = directory;
      environment[kImagesVariable] = places_.data + "/images";
      std::vector<std::string> command = {
          settings_.agent_program, "--order",           directory + "/order.json",
          "--directory",           directory,           "--network-namespace",
          host.namespace_file,     "--address",         host::to_text(host.address),
          "--host-table",          directory + "/hosts"};
      if (known.record.network.encrypted) {
        command.emplace_back("--underlay");
        command.push_back(underlay_words(known.record.network));
      }
      if (i < known.record.gpus.size() && !known.record.gpus[i].empty()) {
        command.emplace_back("--devices");
        command.push_back(with_shared_devices(known.record.gpus[i]));
      }
      const pid_t process =
          TRY(host::start_detached(command, environment, directory + "/agent.log", host::in_enclosure()));
      const auto identity = host::identify(process);
      // One that has ended already was started all the same.
      known.agents[i] = {true, identity.value_or(ProcessIdentity{process, 0})};
      TRY(write_agent(directory, known.agents[i].identity));
    }
    return ok();
  }

  // What bears our mark and belongs to no attempt that we know.
  Result<void> remove_strays();

  const LocalSettings settings_;
  const Places places_;
  const host::Subnet pool_;
  host::Address
      next_address_;  // subnets are given in turn: what is late for an old gang does not reach a new one
  std::map<domain::AttemptId, KnownAttempt> attempts_;
  NetworkReaper reaper_;
};

// Names on this machine that belong to one server's attempts.
struct InUse {
  std::set<std::string> links, tables, namespace_files;
  void add(const host::PrivateNetwork& network) {
    links.insert(network.bridge);
    tables.insert(network.table);
    for (const auto& host : network.hosts) {
      links.insert(host.link);
      namespace_files.insert(host.namespace_file);
    }
  }
};

// Removes links, tables and namespaces that bear `mark` and are not in use. Says what went.
Result<std::vector<std::string>> remove_unused(const std::string& run_directory, const std::string& mark,
                                               const InUse& used) {
  std::vector<std::string> said;
  const std::string folder = run_directory + "/" + mark;
  if (const auto names = host::list_directory(folder))
    for (const auto& name : *names) {
      const std::string path = folder + "/" + name;
      if (name == kOwnerFile || used.namespace_files.contains(path)) continue;
      TRY(host::remove_namespace_file(path));
      said.push_back("network namespace " + path);
    }
  std::vector<std::string> links;
  for (const auto prefix : {host::kLinkPrefix, host::kBridgePrefix})
    for (const auto& name : host::links_named(std::string(prefix) + mark))
      if (!used.links.contains(name)) links.push_back(name);
  TRY(host::remove_links(links));
  for (const auto& name : links) said.push_back("interface " + name);
  if (!host::on_path("nft")) return said;
  std::vector<std::string> tables;
  for (const auto& name : TRY(host::firewall_tables_named(std::string(host::kTablePrefix) + mark + "_")))
    if (!used.tables.contains(name)) tables.push_back(name);
  TRY(host::remove_firewall_tables(tables));
  for (const auto& name : tables) said.push_back("firewall table " + name);
  return said;
}

Result<void> LocalLauncher::remove_strays() {
  InUse used;
  for (const auto& [id, known] : attempts_) used.add(known.record.network);
  for (const auto& what :
       TRY(remove_unused(places_.run_directory, places_.mark, used).in("removing what a crash left")))
    log(Level::warning, "launch", "removed what a crash left", {{"what", what}});
  if (attempts_.empty()) (void)host::remove_all(places_.namespaces());
  return ok();
}

bool is_mark(std::string_view text) {
  return text.size() == 6 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Marks of all servers that left something on this machine.
Result<std::set<std::string>> marks_in_sight(const std::string& run_directory) {
  std::set<std::string> marks;
  if (const auto names = host::list_directory(run_directory))
    for (const auto& name : *names)
      if (is_mark(name)) marks.insert(name);
  for (const auto prefix : {host::kLinkPrefix, host::kBridgePrefix})
    for (const auto& name : host::links_named(prefix))
      if (name.size() > prefix.size() + 6 && is_mark(std::string_view(name).substr(prefix.size(), 6)))
        marks.insert(name.substr(prefix.size(), 6));
  if (host::on_path("nft"))
    for (const auto& name : TRY(host::firewall_tables_named(host::kTablePrefix))) {
      const auto rest = std::string_view(name).substr(host::kTablePrefix.size());
      if (rest.size() > 7 && rest[6] == '_' && is_mark(rest.substr(0, 6)))
        marks.insert(std::string(rest.substr(0, 6)));
    }
  return marks;
}

void append(std::vector<std::string>& all, std::vector<std::string> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

Result<std::unique_ptr<Launcher>> make_local(const LocalSettings& settings, Clock& clock) {
  const host::Subnet pool = TRY(host::parse_subnet(settings.network_pool).in("network_pool"));
  if (pool.prefix < 8) return invalid("network_pool " + pool.text() + " is larger than a /8");
  TRY(host::make_directories(settings.data_directory, 0700));
  auto launcher = std::make_unique<LocalLauncher>(
      settings, TRY(places_of(settings.data_directory, settings.run_directory)), pool, clock);
  TRY(launcher->load().in("finding what runs"));
  if (host::on_path("nft")) {
    const auto opened = host::let_through_foreign_forwarding();
    if (opened && *opened)
      log(Level::info, "launch",
          "another firewall drops what is forwarded; two rules in ip filter FORWARD let jobs pass");
    if (!opened) log(Level::warning, "launch", "jobs may not reach the outside: " + opened.error().message);
  }
  return std::unique_ptr<Launcher>(std::move(launcher));
}

Result<std::vector<std::string>> sweep(const std::string& data_directory, const std::string& run_directory) {
  std::vector<std::string> said;
  std::string own_mark;
  InUse used;
  // One sweeps at a time, and no gang of another server's is half made.
  std::optional<host::FileLock> lock;
  if (host::exists(run_directory)) {
    auto taken = lock_networks(run_directory);
    if (!taken && taken.error().kind != Kind::denied) return std::move(taken).error();
    if (taken) lock = std::move(*taken);  // else it is another user's, with all that lies there
  }
  if (!data_directory.empty() && host::exists(data_directory)) {
    const Places places = TRY(places_of(data_directory, run_directory));
    own_mark = places.mark;
    const auto names = host::list_directory(places.attempts());
    for (const auto& name : names ? *names : std::vector<std::string>()) {
      const std::string directory = places.attempts() + "/" + name;
      if (!domain::parse_attempt_id(name)) continue;
      auto known = load_attempt(directory);
      const bool lives =
          known && std::any_of(known->agents.begin(), known->agents.end(), [](const auto& agent) {
            return agent.started && host::is_alive(agent.identity);
          });
      if (lives) {
        used.add(known->record.network);
        continue;
      }
      TRY(remove_from_machine(directory, known ? &*known : nullptr));
      if (known) TRY(host::remove_network(known->record.network));
    }
    append(said, TRY(remove_unused(run_directory, own_mark, used)));
  }
  // Agents whose directory is no more end first; then their containers have no starter.
  for (const auto& [identity, value] : host::find_marked(kAttemptVariable)) {
    if (host::exists(value)) continue;
    TRY(host::kill_and_wait(identity, kKillMax));
    said.push_back("process " + std::to_string(identity.process) + " of " + value);
  }
  for (const auto& name : TRY(host::sweep_containers())) said.push_back("container " + name);
  for (const auto& mark : TRY(marks_in_sight(run_directory))) {
    if (mark == own_mark) continue;
    const auto owner = host::read_file(run_directory + "/" + mark + "/" + kOwnerFile, 64 << 10);
    if (owner && host::exists(*owner)) continue;
    append(said, TRY(remove_unused(run_directory, mark, InUse())));
    TRY(host::remove_all(run_directory + "/" + mark));
  }
  // The next server that needs them adds them again.
  if (host::on_path("nft") && host::links_named(host::kBridgePrefix).empty())
    TRY(host::stop_foreign_forwarding());
  return said;
}

}  // namespace trainyard::launch
