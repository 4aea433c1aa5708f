#include "launch/local/local.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "containers/gpu/gpu_memory.hpp"
#include "launch/local/direct.hpp"
#include "launch/local/known.hpp"
#include "launch/local/orphans.hpp"
#include "launch/local/reaper.hpp"
#include "launch/local/stepped_launcher.hpp"
#include "preflight/preflight.hpp"

namespace trainyard::launch {
namespace {

// The path by which an agent opens the namespace that it gets as its standard input.
constexpr const char* kNamespaceOfInput = "/proc/self/fd/0";

// Adds the devices that all NVIDIA GPUs of a machine share.
std::string with_shared_devices(const std::vector<std::string>& cards) {
  std::string text = join(cards, ",");
  if (std::any_of(cards.begin(), cards.end(),
                  [](const auto& card) { return card.starts_with("/dev/nvidia"); }))
    for (const auto& device : preflight::gpu_devices())
      if (const auto all = preflight::gpu_cards();
          std::find(all.begin(), all.end(), device) == all.end())
        text += "," + device;
  return text;
}

class LocalLauncher final : public SteppedLauncher {
 public:
  LocalLauncher(LocalSettings settings, LocalPaths paths, networks::Subnet pool, Clock& clock,
                const LocalParts& parts)
      : parts_(parts),
        settings_(std::move(settings)),
        paths_(std::move(paths)),
        pool_(pool),
        next_address_(pool.base),
        gate_(parts.system, direct_firewall(paths_.mark, pool)),
        reaper_(
            clock, [this](const auto& networks) { return parts_.system.remove_networks(networks); },
            {}, parts.own_threads),
        direct_reaper_(
            clock, [this](const auto& networks) { return parts_.system.remove_networks(networks); },
            kDirectPace, parts.own_threads) {}

  // Loads the attempts of an earlier server.
  Result<void> load() {
    TRY(parts_.files.make_directories(paths_.attempts(), 0700));
    // By directory; nullopt: without a record.
    std::map<std::string, std::optional<KnownAttempt>> ended;
    for (const auto& name : TRY(parts_.files.list_directory(paths_.attempts()))) {
      const std::string directory = paths_.attempts() + "/" + name;
      if (!domain::parse_attempt_id(name)) {
        log(Level::warning, "launch", "not an attempt's directory, left alone",
            {{"path", directory}});
        continue;
      }
      auto known = load_attempt(parts_, directory);
      if (known && known->any_started()) {
        adopt(*std::move(known));
        continue;
      }
      // Its agents may run, and only a server that can read the record can end them properly.
      if (!known && known.error().kind == Kind::conflict)
        return std::move(known).error().in(directory + "/" + kRecordFile);
      const std::string why = known ? "no agent of it was started" : known.error().message;
      if (!known && known.error().kind == Kind::unavailable &&
          !running_hosts(parts_, directory).empty()) {
        log(Level::error, "launch", "an attempt that runs cannot be read, and is read again later",
            {{"attempt", name}, {"why", why}});
        unreadable_.insert(directory);
        gate_.found(1);  // it may have no bridge
        continue;
      }
      // Either its record is missing or torn: then nothing was made yet, or remove_orphans() finds
      // it by name. Or no agent was started: its start was interrupted, which ensure() begins
      // again, or its removal, which is not requested again.
      log(Level::info, "launch", "removing an attempt whose start or removal was interrupted",
          {{"attempt", name}, {"why", why}});
      ended[directory] = known ? std::optional(*std::move(known)) : std::nullopt;
    }
    for (auto& [directory, known] : ended) TRY(remove_ended(directory, known ? &*known : nullptr));
    return remove_orphans();
  }

  std::vector<Machine> machines() override {
    auto all = all_machines();
    const auto uncleared = uncleared_gpus();
    return uncleared.empty() ? all
                             : without_gpus(std::move(all), preflight::gpu_cards(), uncleared);
  }

  Result<void> ensure(const Gang& gang) override {
    if (gang.members.empty()) return invalid("a gang without members");
    TRY(check_readable(gang.attempt));
    if (const auto found = attempts_.find(gang.attempt); found != attempts_.end()) {
      KnownAttempt& known = found->second;
      if (known.record.token != gang.token)
        return conflict("attempt " + gang.attempt.text() + " was started with another token");
      if (known.agents.size() != gang.members.size())
        return conflict("attempt " + gang.attempt.text() +
                        " was started with another number of hosts");
      if (known.complete()) return ok();
      if (known.any_started()) return start_agents(gang, known);
      // Nothing runs yet, and it is unknown how much of its network exists.
      TRY(remove(gang.attempt));
    }
    // The attempt is being removed, and is requested again: waits until its directory is removed.
    if (is_removing(paths_.attempt(gang.attempt))) drain();
    auto started = start(gang);
    if (!started && started.error().kind == Kind::exhausted && !waiting().empty()) {
      // Pending removals will free addresses. Agents that could not be ended must stay recorded.
      if (remove(gang.attempt)) {
        drain();
        started = start(gang);
      }
    }
    if (started) return started;
    const auto removed = remove(gang.attempt);
    drain();
    // The record stays until its network is removed, since it lists what to remove.
    if (const std::string directory = paths_.attempt(gang.attempt);
        removed && !is_removing(directory))
      remove_rest(directory);
    if (!removed)
      log(Level::error, "launch", "removing what could not be started: " + removed.error().message,
          {{"attempt", gang.attempt.text()}});
    return std::move(started).error().in("starting attempt " + gang.attempt.text());
  }

  std::vector<Agent> list() override {
    std::vector<Agent> agents;
    read_again();
    remove_unstarted();
    for (const auto& directory : unreadable_)
      for (const auto host : running_hosts(parts_, directory))
        agents.push_back({attempt_of(directory), "", host, true});
    for (auto& [id, known] : attempts_) {
      bool any_alive = false;
      for (size_t i = 0; i < known.agents.size(); i++) {
        if (!known.agents[i].started) continue;
        agents.push_back({id, known.record.token, domain::HostIndex(i),
                          known.agents[i].is_alive(parts_.processes)});
        any_alive |= agents.back().alive;
      }
      if (!any_alive && known.complete() && !known.ended_before_scan)
        known.ended_before_scan = marked_.scans();
    }
    return agents;
  }

  Result<bool> reuse_host(domain::AttemptId from, const Gang& gang) override {
    const auto found = attempts_.find(from);
    if (found == attempts_.end() || found->second.agents.size() != 1 || gang.members.size() != 1 ||
        attempts_.contains(gang.attempt))
      return false;
    if (!found->second.agents[0].is_alive(parts_.processes)) return false;
    if (!TRY(launch::reuse_host(parts_, found->second, gang.attempt, gang.token,
                                gang.members[0].order)))
      return false;
    auto moved = attempts_.extract(found);
    moved.key() = gang.attempt;
    attempts_.insert(std::move(moved));
    return true;
  }

  Result<void> remove(domain::AttemptId attempt) override {
    TRY(check_readable(attempt));
    const auto found = attempts_.find(attempt);
    // An unknown attempt does not exist, or waits for the reaper.
    if (found == attempts_.end()) return ok();
    const std::string directory = found->second.directory;
    TRY(remove_from_machine(parts_, directory, &found->second, &marked_)
            .in("removing attempt " + attempt.text()));
    TRY(remove_files(parts_, directory));
    give_to_reaper(found->second);
    attempts_.erase(found);
    return ok();
  }

  void work() override {
    reaper_.work();
    direct_reaper_.work();
  }

  ~LocalLauncher() override {
    drain();
    if (attempts_.empty() && unreadable_.empty())
      (void)parts_.files.remove_all(paths_.namespaces());
  }

 private:
  // Networks without a bridge are removed together: the kernel waits once for all of them.
  static constexpr ReaperPace kDirectPace{150ms, 400ms, 64, false};

  void adopt(KnownAttempt known) {
    if (known.record.network.direct()) gate_.found(1);
    // The attempt is read from the record, since a reused agent may have another one.
    const auto attempt = known.record.attempt;
    attempts_.emplace(attempt, std::move(known));
  }
  // Removes an attempt of an earlier server without running agents.
  Result<void> remove_ended(const std::string& directory, KnownAttempt* known) {
    TRY(remove_from_machine(parts_, directory, known));
    const bool others =
        known && std::ranges::any_of(attempts_, [&](const auto& other) {
          return other.second.record.network.subnet.overlaps(known->record.network.subnet);
        });
    if (known && !others && unreadable_.empty()) {
      if (known->record.network.direct()) gate_.found(1);
      give_to_reaper(*known);
      return ok();
    }
    // The network is unknown, or may belong to another attempt by now; remove_orphans() finds it.
    remove_rest(directory);
    return ok();
  }
  // Removes the directory of an attempt without a network. If that fails, tries again later.
  void remove_rest(const std::string& directory) {
    const auto removed = parts_.files.remove_all(directory);
    if (removed) return;
    log(Level::error, "launch", "removing what is left of an attempt: " + removed.error().message);
    {
      const MutexLock lock(removing_mutex_);
      removing_.insert(directory);
    }
    reaper_.take_rest([this, directory]() -> Result<void> {
      TRY(parts_.files.remove_all(directory));
      const MutexLock lock(removing_mutex_);
      removing_.erase(directory);
      return ok();
    });
  }
  // Lets the reaper remove the network, and then the directory. The addresses stay in use until the
  // record is removed; otherwise a later server would remove the next network that has them. The
  // namespace is removed with the others of its round: the kernel takes as long for all of them as
  // for one.
  void give_to_reaper(const KnownAttempt& known) {
    {
      const MutexLock lock(removing_mutex_);
      removing_.insert(known.directory);
    }
    const bool direct = known.record.network.direct();
    (direct ? direct_reaper_ : reaper_)
        .take(known.record.network,
              [this, direct, directory = known.directory, held = known.held]() -> Result<void> {
                TRY(parts_.files.remove_all(directory));
                if (direct) leave_gate();
                const MutexLock lock(removing_mutex_);
                removing_.erase(directory);
                return ok();
              });
  }
  bool is_removing(const std::string& directory) const {
    const MutexLock lock(removing_mutex_);
    return removing_.contains(directory);
  }
  void leave_gate() {
    if (const auto left = gate_.leave(1); !left)
      log(Level::warning, "launch",
          "removing the firewall of gangs of one host: " + left.error().message);
  }

  static domain::AttemptId attempt_of(const std::string& directory) {
    return *domain::parse_attempt_id(directory.substr(directory.rfind('/') + 1));
  }
  Result<void> check_readable(const domain::AttemptId& attempt) const {
    if (!unreadable_.contains(paths_.attempt(attempt))) return ok();
    return unavailable("the record of attempt " + attempt.text() +
                       " cannot be read, and is read again later");
  }
  // Reads records again that could not be read when the server started; then removes orphans of a
  // crash.
  void read_again() {
    if (unreadable_.empty() && !orphans_remain_) return;
    for (const std::string& directory : std::set(unreadable_)) {
      auto known = load_attempt(parts_, directory);
      const bool runs = !running_hosts(parts_, directory).empty();
      if (!known && runs) continue;
      if (known && known->any_started()) {
        log(Level::info, "launch", "an attempt can be read again", {{"path", directory}});
        adopt(*std::move(known));
      } else if (const auto removed = remove_ended(directory, known ? &*known : nullptr);
                 !removed) {
        log(Level::error, "launch",
            "removing what is left of an attempt: " + removed.error().message);
        continue;
      }
      unreadable_.erase(directory);
      leave_gate();
    }
    const auto removed = remove_orphans();
    orphans_remain_ = !removed;
    if (!removed) log(Level::error, "launch", removed.error().message);
  }

  // Removes attempts whose start failed, and could not be undone then. They have no agents that
  // list() could show, so control does not remove them.
  void remove_unstarted() {
    std::vector<domain::AttemptId> unstarted;
    for (const auto& [attempt, known] : attempts_)
      if (!known.any_started()) unstarted.push_back(attempt);
    for (const auto& attempt : unstarted) (void)remove(attempt);  // ensure() has logged the reason
  }

  void drain() {
    reaper_.drain();
    direct_reaper_.drain();
  }
  std::vector<networks::Subnet> waiting() const {
    auto all = reaper_.waiting();
    for (const auto& subnet : direct_reaper_.waiting()) all.push_back(subnet);
    return all;
  }
  std::vector<Machine> all_machines() const {
    if (settings_.machines)
      if (auto offered = settings_.machines(); !offered.empty()) return offered;
    const preflight::MachineCapacity capacity = preflight::machine_capacity();
    return {{capacity.name, capacity.cpus, capacity.memory_bytes, capacity.gpus}};
  }
  std::set<std::string> uncleared_gpus() const {
    std::set<std::string> devices;
    if (settings_.clear_gpus)
      for (auto& gpu : containers::uncleared_gpus(gpus_directory(paths_.data)))
        devices.insert(std::move(gpu.device));
    return devices;
  }
  // Assigns GPUs of its machine to each member.
  Result<std::vector<std::vector<std::string>>> gpus_for(const Gang& gang) {
    if (!unreadable_.empty() && std::ranges::any_of(gang.members, [](const Member& member) {
          return member.share.gpus > 0;
        }))
      return unavailable(
          "assigning GPUs: it is unknown which ones are in use, since the records of running "
          "attempts cannot be read (" +
          std::to_string(unreadable_.size()) + " of them); the server's log has the reason");
    std::vector<GpuRequest> requests;
    const auto offered = all_machines();
    for (const auto& member : gang.members) {
      GpuRequest& request = requests.emplace_back();
      request.gpus = member.share.gpus;
      for (const auto& machine : offered)
        if (machine.name == member.machine) request.devices = machine.gpu_devices;
      if (request.gpus > 0 && request.devices.empty()) request.devices = preflight::gpu_cards();
    }
    std::set<std::string> taken = uncleared_gpus();
    for (const auto& [id, other] : attempts_)
      for (const auto& devices : other.record.gpus) taken.insert(devices.begin(), devices.end());
    return choose_gpus(requests, taken);
  }

  // Adds the name servers that jobs use.
  networks::Egress present_egress() const {
    networks::Egress egress = settings_.egress;
    if (!settings_.names_by_machine) return egress;
    for (const auto& server : parts_.system.name_servers()) egress.services.push_back(server);
    return egress;
  }

  Result<void> start(const Gang& gang) {
    const NetworkReaper::Start start(reaper_), direct_start(direct_reaper_);
    const std::string directory = paths_.attempt(gang.attempt);
    // A late removal of the previous start would remove the new objects.
    if (is_removing(directory))
      return unavailable("the network of its previous start is still being removed");
    TRY(parts_.files.make_directories(directory, 0700));
    KnownAttempt known{directory, {}};
    {
      // The lock is held until the bridge has its address, by which other servers see that the
      // subnet is in use, and until the owner is recorded: a sweep would remove it as an orphan.
      TRY(parts_.files.make_directories(paths_.run_directory, 0755));
      const auto lock = TRY(parts_.system.lock_networks(paths_.run_directory));
      TRY(parts_.files.make_directories(paths_.namespaces(), 0700));
      if (const std::string owner = paths_.namespaces() + "/" + kOwnerFile;
          !parts_.files.exists(owner))
        TRY(parts_.files.write(owner, paths_.data, 0600));
      auto taken = TRY(parts_.system.networks_in_use());
      auto egress = with_own_networks(present_egress(), taken, pool_);
      for (const auto& [id, other] : attempts_) taken.push_back(other.record.network.subnet);
      for (const auto& subnet : waiting()) taken.push_back(subnet);
      const bool encrypted = gang.encrypt_traffic && gang.members.size() > 1;
      const networks::Subnet subnet =
          TRY(choose_subnet(pool_, gang.members.size(), taken, next_address_, encrypted));
      next_address_ = networks::Address(subnet.base + subnet.size());
      NetworkRequest request{gang.attempt,
                             gang.members.size(),
                             gang.network_isolation,
                             encrypted,
                             paths_.mark,
                             paths_.namespaces(),
                             "trainyard " + directory,
                             {*networks::parse_address(kRelayAddress)}};
      auto gpus = TRY(gpus_for(gang));
      const auto* of_role = rules_of_role(settings_.egress_of_roles, gang.role_arn);
      request.direct =
          gang.members.size() == 1 && !gang.network_isolation && !of_role && gate_.enter(egress);
      known.record = {gang.attempt, gang.token, plan_network(request, pool_, subnet),
                      std::move(gpus)};
      if (of_role) egress.rules.insert(egress.rules.begin(), of_role->begin(), of_role->end());
      known.record.network.egress = std::move(egress);
      known.agents.resize(gang.members.size());
      if (request.direct) known.held = std::make_shared<os::File>();
      attempts_[gang.attempt] = known;
      TRY(write_record(parts_, directory, known.record));
      auto namespaces = TRY(parts_.system.make_network(known.record.network));
      if (request.direct) *known.held = std::move(namespaces[0]);
    }
    return start_agents(gang, attempts_[gang.attempt]);
  }

  // Starts the agents that were not started yet.
  Result<void> start_agents(const Gang& gang, KnownAttempt& known) {
    const std::string attempt_directory = known.directory;
    const std::string table = host_table(known.record.network);
    for (size_t i = 0; i < known.agents.size(); i++) {
      if (known.agents[i].started) continue;
      const std::string directory = known.host(i);
      const networks::PrivateHost& host = known.record.network.hosts[i];
      TRY(parts_.files.make_directories(directory, 0700));
      TRY(parts_.files.write(directory + "/order.json", gang.members[i].order, 0600));
      TRY(parts_.files.write(directory + "/hosts", table, 0644));
      auto environment = settings_.agent_environment;
      environment[kAttemptVariable] = attempt_directory;
      environment[kHostVariable] = directory;
      environment[kImagesVariable] = paths_.data + "/images";
      environment[kImageSourcesVariable] = image_sources_file(paths_.data);
      if (settings_.clear_gpus) environment[kGpusVariable] = gpus_directory(paths_.data);
      std::vector<std::string> command = {settings_.agent_program,
                                          "--order",
                                          directory + "/order.json",
                                          "--directory",
                                          directory,
                                          "--network-namespace",
                                          known.held ? kNamespaceOfInput : host.namespace_file,
                                          "--address",
                                          networks::to_text(host.address),
                                          "--host-table",
                                          directory + "/hosts"};
      if (known.record.network.encrypted) {
        command.emplace_back("--underlay");
        command.push_back(underlay_text(known.record.network));
      }
      if (i < known.record.gpus.size() && !known.record.gpus[i].empty()) {
        command.emplace_back("--devices");
        command.push_back(with_shared_devices(known.record.gpus[i]));
      }
      // An agent that has already ended counts as started.
      const auto started = TRY(parts_.processes.start(
          {command, environment, directory + "/agent.log", parts_.system.in_rootless_sandbox(),
           known.held ? known.held->descriptor() : -1}));
      known.agents[i] = {true, false, started};
      TRY(write_agent(parts_, directory, known.agents[i].identity));
    }
    return ok();
  }

  // Removes objects with this server's mark that belong to no known attempt.
  Result<void> remove_orphans();

  const LocalParts parts_;
  const LocalSettings settings_;
  const LocalPaths paths_;
  const networks::Subnet pool_;
  // Subnets are used in rotation, so that late packets for an old gang do not reach a new one.
  networks::Address next_address_;
  std::map<domain::AttemptId, KnownAttempt> attempts_;
  // Directories of running attempts whose record cannot be read.
  std::set<std::string> unreadable_;
  // True: orphans of a crash could not be removed yet.
  bool orphans_remain_ = false;
  MarkedProcesses marked_{parts_.processes};
  mutable Mutex removing_mutex_;
  // Directories that the reapers will remove.
  std::set<std::string> removing_ GUARDED_BY(removing_mutex_);
  DirectGate gate_;
  NetworkReaper reaper_, direct_reaper_;
};

Result<void> LocalLauncher::remove_orphans() {
  if (!unreadable_.empty()) return ok();  // the names of their objects are unknown
  InUse used;
  for (const auto& [id, known] : attempts_) used.add(known.record.network, gate_.firewall());
  for (const auto& what : TRY(remove_unused(parts_, paths_.run_directory, paths_.mark, used)
                                  .in("removing what a crash left")))
    log(Level::warning, "launch", "removed remains of a crash", {{"what", what}});
  if (attempts_.empty()) (void)parts_.files.remove_all(paths_.namespaces());
  return ok();
}

}  // namespace

Result<int64_t> gang_hosts_max(const std::string& network_pool, bool encrypted) {
  return gang_hosts_max(TRY(networks::parse_subnet(network_pool).in("network_pool")), encrypted);
}

Result<std::unique_ptr<SteppedLauncher>> make_local_over(const LocalSettings& settings,
                                                         Clock& clock, const LocalParts& parts) {
  const networks::Subnet pool =
      TRY(networks::parse_subnet(settings.network_pool).in("network_pool"));
  if (pool.prefix < 8)
    return invalid("network.pool " + pool.text() +
                   " is larger than a /8: use a smaller one, like 10.201.0.0/16");
  TRY(parts.files.make_directories(settings.data_directory, 0700));
  auto launcher = std::make_unique<LocalLauncher>(
      settings, TRY(paths_of(settings.data_directory, settings.run_directory, parts)), pool, clock,
      parts);
  TRY(launcher->load().in("finding what runs"));
  return std::unique_ptr<SteppedLauncher>(std::move(launcher));
}

Result<std::unique_ptr<Launcher>> make_local(const LocalSettings& settings, Clock& clock) {
  const LocalParts parts = machine_parts();
  auto launcher = TRY(make_local_over(settings, clock, parts));
  if (parts.system.has_firewall()) {
    const auto opened = networks::let_through_foreign_forwarding();
    if (opened && *opened)
      log(Level::info, "launch",
          "another firewall drops forwarded packets; added two rules to ip filter FORWARD for "
          "jobs");
    if (!opened)
      log(Level::warning, "launch",
          "jobs may be unable to reach the outside: " + opened.error().message);
  }
  return std::unique_ptr<Launcher>(std::move(launcher));
}

Result<std::vector<std::string>> sweep(const std::string& data_directory,
                                       const std::string& run_directory) {
  return sweep_over(data_directory, run_directory, machine_parts());
}

}  // namespace trainyard::launch
