#include "sim/local_cluster.hpp"

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "launch/local/plan.hpp"
#include "wire/codec.hpp"

namespace trainyard::sim {
namespace {

constexpr char kData[] = "/data";
constexpr char kRun[] = "/run/trainyard";
constexpr uint64_t kDiesOneIn = 400;     // changes of files; the start of a gang makes some twenty
constexpr uint64_t kCrashOneIn = 150;    // steps of the machine
constexpr uint64_t kFailsOneIn = 40;     // steps of the machine
constexpr uint64_t kSweepOneIn = 5;      // starts of the server
constexpr uint64_t kPowerLostOneIn = 8;  // ends of the server

}  // namespace

LocalCluster::LocalCluster(World& world, Network& network, Checkers& checkers, Clock& server_clock,
                           std::vector<launch::Machine> machines)
    : world_(world),
      network_(network),
      checkers_(checkers),
      server_clock_(server_clock),
      files_(world,
             [this] {
               if (in_launcher_) may_die("in the middle of a change of a file", kDiesOneIn);
               return false;
             }),
      machine_(files_) {
  settings_.data_directory = kData;
  settings_.run_directory = kRun;
  settings_.agent_program = "trainyard-agent";
  settings_.machines = [machines] { return machines; };
  settings_.clear_gpus = false;
  files_.reads_fail = true;
  machine_.before = [this](const std::string& step) -> Result<void> {
    may_die("before " + step, kCrashOneIn);
    if (files_.halted || world_.fault(kFailsOneIn)) return unavailable(step + ": not now");
    return {};
  };
  machine_.after = [this](const std::string& step) {
    if (step == "start an agent") agents_started();
    may_die("after " + step, kCrashOneIn);
  };
  machine_.started = [this](const os::DetachedProgram& program) { return agent_starts(program); };
  machine_.killed = [this](const auto& process) { killed(process); };
  machine_.removed = [this](const std::string& name, const std::string&) { removed(name); };
}

// -- the server's process

void LocalCluster::halt(const std::string& where) {
  if (!std::exchange(files_.halted, true)) died_ = where;
}

void LocalCluster::may_die(const std::string& where, uint64_t one_in) {
  if (!files_.halted && world_.fault(one_in)) halt(where);
}

void LocalCluster::check(bool holds, const std::string& what) {
  if (holds) return;
  if (failed_.empty()) failed_ = what;
  halt("of a failed check");
}

template <class Call>
auto LocalCluster::in_launcher(std::optional<domain::AttemptId> attempt, Call call) {
  agents_leave();
  may_end_ = attempt;
  in_launcher_ = true;
  auto result = call();
  may_end_.reset();
  in_launcher_ = starting_ = false;
  World::check(failed_.empty(), failed_);
  check_living(files_.halted ? "when the server dies " + died_ : "afterwards");
  if (files_.halted) throw ServerCrash{died_};
  return result;
}

Result<void> LocalCluster::server_starts() {
  return in_launcher(std::nullopt, [this]() -> Result<void> {
    const launch::LocalParts parts{files_, machine_, machine_, false};
    if (world_.fault(kSweepOneIn)) {
      world_.trace("launcher", "is swept");
      TRY(launch::sweep_over(kData, kRun, parts));
    }
    launcher_ = TRY(launch::make_local_over(settings_, server_clock_, parts));
    return {};
  });
}

void LocalCluster::server_died() {
  halt("elsewhere");  // otherwise the launcher would complete background work in its destructor
  launcher_.reset();
  files_.halted = false;
  if (world_.fault(kPowerLostOneIn)) lose_power();
}

void LocalCluster::work() {
  if (launcher_)
    (void)in_launcher(std::nullopt, [this] {
      launcher_->work();
      return ok();
    });
}

void LocalCluster::lose_power() {
  world_.trace("launcher", "the machine loses power");
  for (const auto& host : hosts_) {
    if (host->over()) continue;
    checkers_.allow_failure(host->attempt.job, "its machine lost power");
    host->agent->remove();
  }
  count_ended();
  hosts_.clear();
  machine_.lose_power();
  files_.lose_power();
  const bool reliable = std::exchange(files_.reliable, true);
  (void)files_.remove_all("/run");
  files_.reliable = reliable;
}

// -- the launcher

Result<void> LocalCluster::ensure(const launch::Gang& gang) {
  gangs_[gang.attempt] = gang;
  starting_ = true;
  const auto done = in_launcher(gang.attempt, [&] { return launcher_->ensure(gang); });
  if (!done && done.error().kind != Kind::exhausted && done.error().kind != Kind::unavailable)
    checkers_.allow_failure(gang.attempt.job, "the launcher could not");
  return done;
}

std::vector<launch::Agent> LocalCluster::list() {
  if (!launcher_) {
    std::vector<launch::Agent> agents;
    for (const auto& host : hosts_)
      agents.push_back({host->attempt, "", host->index, host->lives()});
    return agents;
  }
  auto agents = in_launcher(std::nullopt, [this] { return launcher_->list(); });
  for (const auto& host : hosts_) {
    const bool listed = std::ranges::any_of(agents, [&](const launch::Agent& agent) {
      return agent.attempt == host->attempt && agent.host == host->index && agent.alive;
    });
    World::check(listed || !host->lives(), host->agent->name() + " is alive and is not listed");
  }
  return agents;
}

Result<void> LocalCluster::remove(domain::AttemptId attempt) {
  const auto of_attempt = [&](const auto& host) { return host->attempt == attempt; };
  const auto done = in_launcher(attempt, [&] { return launcher_->remove(attempt); });
  if (!done) return done;
  if (std::ranges::any_of(hosts_, of_attempt)) checkers_.attempt_removed(attempt);
  world_.trace("launcher", "has removed " + attempt.text());
  for (const auto& host : hosts_)
    World::check(!of_attempt(host) || host->over(), host->agent->name() + " was removed, and runs");
  std::erase_if(hosts_, of_attempt);
  return done;
}

// -- agents

std::function<bool()> LocalCluster::agent_starts(const os::DetachedProgram& program) {
  auto host = std::make_shared<Host>();
  host->directory = program.environment.at(launch::kHostVariable);
  host->attempt_directory = program.environment.at(launch::kAttemptVariable);
  const bool reliable = std::exchange(files_.reliable, true);
  const auto text = files_.read(host->directory + "/order.json", 1 << 20);
  (void)files_.write(host->directory + "/alive", "", 0600);
  files_.reliable = reliable;
  World::check(bool(text), "an agent is started without an order");
  auto order = wire::decode_order(*text);
  World::check(bool(order), "an order cannot be read");
  host->attempt = order->attempt;
  host->index = order->host;
  for (const auto& other : hosts_)
    World::check(other->over() || other->attempt != host->attempt || other->index != host->index,
                 other->agent->name() + " is started twice");
  host->network = network_of(host->attempt_directory, host->index);
  const launch::Member& member = gangs_.at(host->attempt).members.at(host->index);
  host->machine = member.machine;
  host->share = member.share;
  checkers_.agent_restarted(host->attempt, host->index, order->job.region, order->log_stream);
  count_ended();
  checkers_.agent_started(host->machine, host->share);
  auto& in_common = in_common_[host->attempt];
  const bool first = std::ranges::none_of(
      hosts_, [&](const auto& other) { return other->attempt == host->attempt && !other->over(); });
  if (first) in_common = std::make_shared<Gang>();
  host->agent =
      std::make_shared<SimulatedAgent>(world_, network_, checkers_, *std::move(order), in_common);
  host->agent->stay_dead();
  hosts_.push_back(host);
  return [host] { return host->lives(); };
}

std::set<std::string> LocalCluster::network_of(const std::string& attempt_directory,
                                               domain::HostIndex host) {
  const bool reliable = std::exchange(files_.reliable, true);
  const auto text = files_.read(attempt_directory + "/launch.json", 1 << 20);
  files_.reliable = reliable;
  World::check(bool(text), "an agent of " + attempt_directory + " is started without a record");
  const auto json = parse_json(*text);
  World::check(bool(json), "the record of " + attempt_directory + " is torn");
  const auto record = launch::record_from_json(*json);
  World::check(bool(record), "the record of " + attempt_directory + " cannot be read");
  const networks::PrivateNetwork& network = record->network;
  const networks::PrivateHost& of_host = network.hosts.at(host);
  if (network.direct())
    return {of_host.link, launch::direct_firewall(launch::server_mark(kData), network.pool).table};
  return {of_host.link, of_host.namespace_file, network.bridge, network.table};
}

// The process of the job has started after its agent.
void LocalCluster::agents_started() {
  const std::shared_ptr<Host> host = hosts_.back();
  os::DetachedProgram child;
  child.environment = {{launch::kHostVariable, host->directory},
                       {launch::kAttemptVariable, host->attempt_directory}};
  machine_.add(std::move(child), [host] { return host->agent->process_runs(); });
  host->agent->start();
}

void LocalCluster::killed(const launch::MemoryMachine::Process& process) {
  const std::string& directory = process.program.environment.at(launch::kHostVariable);
  for (const auto& host : hosts_) {
    if (host->directory != directory || host->over()) continue;
    const bool is_agent = !process.program.arguments.empty();
    if (is_agent && starting_)
      checkers_.allow_failure(host->attempt.job, "its start failed");
    else if (is_agent)
      checkers_.attempt_removed(host->attempt);
    if (is_agent)
      check(may_end_ == host->attempt,
            host->agent->name() + " is killed, and its attempt is not removed");
    host->agent->remove();
  }
  count_ended();
}

void LocalCluster::count_ended() {
  for (const auto& host : hosts_)
    if (host->over() && std::exchange(host->counted, false))
      checkers_.agent_removed(host->machine, host->share);
}

void LocalCluster::agents_leave() {
  const bool reliable = std::exchange(files_.reliable, true);
  for (const auto& host : hosts_)
    if (host->agent->left() && host->counted) {
      host->agent->remove();
      (void)files_.write(host->directory + "/left", "", 0600);
    }
  files_.reliable = reliable;
  count_ended();
}

void LocalCluster::removed(const std::string& name) {
  for (const auto& host : hosts_)
    check(!host->lives() || !host->network.contains(name),
          name + " is removed, and " + host->agent->name() + " uses it");
}

void LocalCluster::check_living(const std::string& when) {
  for (const auto& host : hosts_)
    if (host->lives())
      for (const std::string& file :
           {host->attempt_directory + "/launch.json", host->directory + "/order.json"})
        World::check(files_.exists(file),
                     host->agent->name() + " runs without " + file + " " + when);
}

SimulatedAgent* LocalCluster::some_agent() {
  std::vector<SimulatedAgent*> alive;
  for (const auto& host : hosts_)
    if (host->lives()) alive.push_back(host->agent.get());
  return alive.empty() ? nullptr : alive[world_.random.below(alive.size())];
}

std::optional<domain::AttemptId> LocalCluster::any() const {
  if (hosts_.empty()) return std::nullopt;
  return hosts_.front()->attempt;
}

// -- the end

std::string LocalCluster::left() {
  if (!launcher_) return "no server runs";
  if (machine_.running() > 0) return "a process that no attempt has";
  for (const auto& [link, comment] : machine_.links())
    return "interface " + link + " of " + comment;
  for (const auto& [table, comment] : machine_.tables())
    // Its removal may have failed; the next start of such a gang, or of a server, repeats it.
    if (comment != "trainyard: gangs of one host")
      return "firewall table " + table + " of " + comment;
  if (const auto names = files_.list_directory(std::string(kData) + "/attempts"))
    for (const auto& name : *names) return "directory " + name;
  return "";
}

}  // namespace trainyard::sim
