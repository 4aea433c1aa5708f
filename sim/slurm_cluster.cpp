#include "sim/slurm_cluster.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "launch/slurm/answers.hpp"
#include "launch/slurm/components.hpp"
#include "launch/slurm/job_comment.hpp"
#include "launch/slurm/own_jobs.hpp"
#include "launch/testing/plain_seals.hpp"
#include "wire/codec.hpp"

namespace trainyard::sim {
namespace {

// Longer than Slurm's default of 5 min, and than the server is ever suspended: jobs that it has
// forgotten are lost, whatever ended them.
constexpr Duration kMinJobAge = 15min;
constexpr Duration kStateSaved = 5s;  // changes of the last seconds are lost with the controller
constexpr Duration kWatchInterval = 1s;
constexpr Duration kCommentInterval = 5s;
constexpr uint64_t kUnansweredOneIn = 25;  // queries
constexpr uint64_t kLostOneIn = 10;        // submissions
constexpr uint64_t kRejectedOneIn = 40;    // submissions
constexpr uint64_t kNoStepOneIn = 40;      // starts of hosts
constexpr int kStepKilled = 137, kStepNotStarted = 1;

// Returns the orders of the hosts in the job's script.
std::vector<std::string> orders_in(std::string_view script) {
  constexpr std::string_view kBegin = "<<'ORDER'\n", kEnd = "\nORDER\n";
  std::vector<std::string> orders;
  for (size_t at = script.find(kBegin); at != script.npos; at = script.find(kBegin, at)) {
    at += kBegin.size();
    const size_t end = script.find(kEnd, at);
    World::check(end != script.npos, "the script of a Slurm job is cut off");
    orders.emplace_back(script.substr(at, end - at));
  }
  return orders;
}

// Returns what the job requests from the node; nullptr: nothing.
const launch::NodeAmounts* amounts_on(const launch::SlurmJobRequest& request,
                                      const std::string& node) {
  for (const launch::SlurmComponent* component : launch::components_of(request))
    if (std::ranges::find(component->nodes, node) != component->nodes.end())
      return &component->per_node;
  return nullptr;
}

}  // namespace

class SlurmCluster::Client final : public launch::Slurm {
 public:
  explicit Client(SlurmCluster& cluster) : cluster_(cluster) {}
  Result<std::vector<launch::SlurmJob>> jobs() override {
    TRY(cluster_.answer());
    return cluster_.answer_jobs();
  }
  Result<std::vector<launch::SlurmNode>> nodes() override {
    TRY(cluster_.answer());
    return cluster_.answer_nodes();
  }
  Result<std::vector<launch::SlurmJob>> ended(const std::vector<uint64_t>& ids) override {
    if (!cluster_.has_accounting_) return not_found("this cluster has no accounting");
    if (cluster_.world_.fault(4)) return unavailable("slurmdbd does not respond");
    return cluster_.answer_ended(ids);
  }
  Result<uint64_t> submit(const launch::SlurmJobRequest& request) override {
    return cluster_.submit(request);
  }
  Result<void> cancel(uint64_t id, const std::string& name) override {
    return cluster_.cancel(id, name);
  }

 private:
  SlurmCluster& cluster_;
};

SlurmCluster::SlurmCluster(World& world, Network& network, Checkers& checkers, Clock& server_clock,
                           std::vector<launch::Machine> machines)
    : world_(world),
      network_(network),
      checkers_(checkers),
      server_clock_(server_clock),
      nodes_(std::move(machines)),
      has_accounting_(world.random.chance(2)) {
  settings_.own_thread = false;
  settings_.jobs.mark = "51a7ed";
  settings_.jobs.program_directory = "/opt/trainyard";
  settings_.jobs.pool = *networks::parse_subnet("10.201.0.0/16");
  launch::set_plain_seals(settings_);
  go_away_sometimes();
}

// -- the server's process

Result<void> SlurmCluster::server_starts() {
  const auto client = [this] { return std::make_unique<Client>(*this); };
  launcher_ = TRY(launch::make_slurm(settings_, {client(), client(), client()}, server_clock_));
  return {};
}

Result<void> SlurmCluster::ensure(const launch::Gang& gang) {
  gangs_[gang.attempt] = gang;
  const auto done = launcher_->ensure(gang);
  if (!done && done.error().kind != Kind::exhausted && done.error().kind != Kind::unavailable)
    checkers_.allow_failure(gang.attempt.job, "Slurm rejected it");
  return done;
}

std::vector<launch::Agent> SlurmCluster::list() {
  if (!launcher_) {
    std::vector<launch::Agent> agents;
    for (const auto& [id, job] : jobs_)
      for (const Host& host : job.hosts)
        if (!host.over) agents.push_back({job.attempt, "", host.index, true});
    return agents;
  }
  answered_ = false;
  auto agents = launcher_->list();
  for (const auto& each : jobs_) {
    const SlurmJob& job = each.second;
    if (!answered_ || job.shown.state != "RUNNING" ||
        job.shown.name.starts_with(launch::kRemovedPrefix))
      continue;
    for (const Host& host : job.hosts) {
      const bool listed = std::ranges::any_of(agents, [&](const launch::Agent& agent) {
        return agent.attempt == job.attempt && agent.host == host.index && agent.alive;
      });
      World::check(listed || host.over || !host.agent->alive(),
                   "host " + std::to_string(host.index) + " of Slurm job " +
                       std::to_string(each.first) + " is alive and is not listed");
    }
  }
  return agents;
}

Result<void> SlurmCluster::remove(domain::AttemptId attempt) {
  if (auto removed = launcher_->remove(attempt); !removed) {
    checkers_.removal_failed(attempt);
    return removed;
  }
  world_.trace("launcher", "has removed " + attempt.text());
  for (const auto& [id, job] : jobs_)
    World::check(
        job.attempt != attempt || job.over || job.shown.name.starts_with(launch::kRemovedPrefix),
        "attempt " + attempt.text() + " was removed, and Slurm job " + std::to_string(id) +
            " of it continues");
  return {};
}

// -- the controller's answers

Result<void> SlurmCluster::answer() {
  if (is_away()) return unavailable("slurmctld does not respond");
  if (world_.fault(kUnansweredOneIn)) return unavailable("timed out waiting for slurmctld");
  return {};
}

std::vector<launch::SlurmJob> SlurmCluster::answer_jobs() {
  answered_ = true;
  std::vector<launch::SlurmJob> shown;
  for (const auto& [id, job] : jobs_)
    if (!job.over || world_.elapsed() - *job.over < kMinJobAge) shown.push_back(job.shown);
  for (const auto& request : std::exchange(delayed_, {})) accept(request);
  return shown;
}

std::vector<launch::SlurmNode> SlurmCluster::answer_nodes() const {
  std::vector<launch::SlurmNode> shown;
  for (const launch::Machine& machine : nodes_) {
    launch::SlurmNode node;
    node.name = machine.name;
    node.address = machine.name;
    node.states = {"IDLE"};
    node.partitions = {"train"};
    node.cpus = int64_t(machine.cpus);
    node.memory_mib = machine.memory_bytes >> 20;
    if (down_until_.contains(machine.name)) {
      node.states = {"DOWN"};
      node.responds = false;
      node.reason = "Not responding";
    }
    for (const auto& [id, job] : jobs_)
      if (const auto* amounts = amounts_on(job.request, node.name); amounts && job.runs()) {
        node.cpus_allocated += amounts->cpus;
        node.memory_allocated_mib += amounts->memory_mib;
        if (node.responds) node.states = {"MIXED"};
      }
    shown.push_back(std::move(node));
  }
  return shown;
}

std::vector<launch::SlurmJob> SlurmCluster::answer_ended(const std::vector<uint64_t>& ids) const {
  std::vector<launch::SlurmJob> ended;
  for (const uint64_t id : ids)
    if (const auto job = jobs_.find(id); job != jobs_.end() && job->second.over) {
      launch::SlurmJob shown;
      shown.id = id;
      shown.state = job->second.shown.state;
      shown.reason = job->second.shown.reason;
      ended.push_back(std::move(shown));
    }
  return ended;
}

Result<uint64_t> SlurmCluster::submit(const launch::SlurmJobRequest& request) {
  world_.may_crash("before a Slurm job is submitted");
  TRY(answer());
  if (world_.fault(kRejectedOneIn)) return invalid("Batch job submission failed: Invalid account");
  if (world_.fault(kLostOneIn)) {
    const uint64_t fate = world_.random.below(3);
    if (fate == 1) delayed_.push_back(request);
    if (fate == 2) accept(request);
    return unavailable("slurmctld did not answer a submission");
  }
  const uint64_t id = accept(request);
  world_.may_crash("after a Slurm job was submitted");
  return id;
}

Result<void> SlurmCluster::cancel(uint64_t id, const std::string& name) {
  world_.may_crash("before a Slurm job is cancelled");
  TRY(answer());
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.over) return {};
  SlurmJob& job = found->second;
  const bool only_one = std::ranges::none_of(jobs_, [&](const auto& each) {
    return each.first != id && each.second.attempt == job.attempt && !each.second.over;
  });
  if (only_one && job.runs()) checkers_.attempt_removed(job.attempt);
  job.shown.name = name;
  world_.may_crash("after a Slurm job was renamed");
  TRY(answer());
  world_.trace("slurm", "cancels job " + std::to_string(id));
  if (!job.runs()) {
    end(job, "CANCELLED");
  } else if (job.shown.state != "COMPLETING") {
    job.shown.state = "COMPLETING";
    world_.after(world_.between(0ms, 5s), [this, id] {
      if (const auto job = jobs_.find(id); job != jobs_.end()) end(job->second, "CANCELLED");
    });
  }
  world_.may_crash("after a Slurm job was cancelled");
  return {};
}

// -- the queue

uint64_t SlurmCluster::accept(const launch::SlurmJobRequest& request) {
  const auto comment = launch::read_job_comment(request.comment);
  World::check(bool(comment), "a Slurm job is submitted with a comment that cannot be read");
  const uint64_t id = ++last_id_;
  SlurmJob& job = jobs_[id];
  job.request = request;
  job.attempt = comment->attempt;
  job.submitted = world_.elapsed();
  job.shown.id = id;
  job.shown.state = "PENDING";
  job.shown.reason = "None";
  job.shown.name = request.name;
  job.shown.comment = request.comment;
  world_.trace("slurm", "job " + std::to_string(id) + " is submitted for " + job.attempt.text());
  world_.after(world_.between(0ms, 3s), [this, id] { consider(id); });
  return id;
}

void SlurmCluster::consider(uint64_t id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.shown.state != "PENDING") return;
  SlurmJob& job = found->second;
  if (!is_away()) {
    job.shown.reason = why_pending(job);
    // The script does nothing when its job was requeued.
    if (job.shown.reason.empty()) return job.shown.requeued ? end(job, "FAILED") : start(job);
  }
  world_.after(world_.between(500ms, 5s), [this, id] { consider(id); });
}

std::string SlurmCluster::why_pending(const SlurmJob& job) const {
  for (const auto& [id, other] : jobs_) {
    if (other.over || id == job.shown.id) continue;
    const bool before = id < job.shown.id && other.shown.name == job.shown.name;
    if (before || std::ranges::find(job.request.after, id) != job.request.after.end())
      return "Dependency";
  }
  for (const launch::SlurmNode& node : answer_nodes()) {
    const auto* amounts = amounts_on(job.request, node.name);
    if (!amounts) continue;
    if (!node.responds) return "ReqNodeNotAvail";
    if (node.cpus - node.cpus_allocated < amounts->cpus ||
        node.memory_mib - node.memory_allocated_mib < amounts->memory_mib)
      return "Resources";
  }
  return "";
}

void SlurmCluster::start(SlurmJob& job) {
  const uint64_t id = job.shown.id;
  world_.trace("slurm", "job " + std::to_string(id) + " starts");
  job.shown.state = "RUNNING";
  job.shown.reason = "None";
  job.shown.nodes = launch::join_names(launch::nodes_of(job.request));
  job.shown.component_nodes.clear();
  if (!job.request.others.empty())
    for (const launch::SlurmComponent* component : launch::components_of(job.request))
      job.shown.component_nodes.push_back(launch::join_names(component->nodes));
  const auto in_common = std::make_shared<Gang>();
  for (const std::string& order : orders_in(job.request.script)) start_host(job, order, in_common);
  World::check(job.hosts.size() == gangs_.at(job.attempt).members.size(),
               "a Slurm job starts another number of hosts than its gang has");
  watch(id);
}

void SlurmCluster::start_host(SlurmJob& job, const std::string& text,
                              const std::shared_ptr<Gang>& in_common) {
  const auto of_host = launch::read_host_order(text);
  if (!of_host)
    World::fail("the order of a host in a script cannot be read: " + of_host.error().message);
  auto order = wire::decode_order(of_host->order);
  World::check(bool(order) && order->attempt == job.attempt && order->host == of_host->host,
               "a script has the order of another host");
  for (const auto& [id, other] : jobs_)
    for (const Host& host : other.hosts)
      World::check(
          host.over || other.attempt != job.attempt || host.index != of_host->host,
          "host " + std::to_string(host.index) + " of " + job.attempt.text() + " is started twice");
  const launch::Member& member = gangs_.at(job.attempt).members.at(of_host->host);
  Host& host = job.hosts.emplace_back();
  host.index = of_host->host;
  host.machine = member.machine;
  host.share = member.share;
  if (world_.fault(kNoStepOneIn)) {
    checkers_.allow_failure(job.attempt.job, "a step of its Slurm job did not start");
    return end_host(job, host, kStepNotStarted);
  }
  checkers_.agent_restarted(job.attempt, host.index, order->job.region, order->log_stream);
  checkers_.agent_started(host.machine, host.share);
  host.agent =
      std::make_shared<SimulatedAgent>(world_, network_, checkers_, *std::move(order), in_common);
  host.agent->stay_dead();
  host.agent->start();
}

void SlurmCluster::watch(uint64_t id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || !found->second.runs()) return;
  SlurmJob& job = found->second;
  for (Host& host : job.hosts)
    if (!host.over && !host.agent->alive())
      end_host(job, host, host.agent->left() ? 0 : kStepKilled);
  if (!std::ranges::all_of(job.hosts, &Host::over))
    return world_.after(kWatchInterval, [this, id] { watch(id); });
  if (job.end_state == "PENDING") return requeue(job);
  end(job, !job.end_state.empty()            ? job.end_state
           : job.shown.state == "COMPLETING" ? "CANCELLED"
           : job.ended_hosts.empty()         ? "COMPLETED"
                                             : "FAILED");
}

void SlurmCluster::end_host(SlurmJob& job, Host& host, int code) {
  host.over = true;
  if (host.agent) {
    host.agent->remove();
    checkers_.agent_removed(host.machine, host.share);
  }
  if (code == 0) return;
  job.ended_hosts += (job.ended_hosts.empty() ? "" : ",") + std::to_string(host.index) + ":" +
                     std::to_string(code);
  show_ended(job.shown.id);
}

// The script writes into the comment, and tries again when the controller does not answer.
void SlurmCluster::show_ended(uint64_t id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.over) return;
  if (is_away() || world_.fault(kUnansweredOneIn))
    return world_.after(kCommentInterval, [this, id] { show_ended(id); });
  SlurmJob& job = found->second;
  job.shown.comment = job.request.comment + " ended=" + job.ended_hosts + " why=n1: Killed";
}

void SlurmCluster::end(SlurmJob& job, const std::string& state) {
  if (job.over) return;
  for (Host& host : job.hosts)
    if (!host.over) {
      host.over = true;
      checkers_.allow_failure(job.attempt.job, "Slurm ended its job");
      host.agent->remove();
      checkers_.agent_removed(host.machine, host.share);
    }
  world_.trace("slurm", "job " + std::to_string(job.shown.id) + " is " + state);
  job.shown.state = state;
  job.over = world_.elapsed();
}

void SlurmCluster::requeue(SlurmJob& job) {
  const uint64_t id = job.shown.id;
  world_.trace("slurm", "job " + std::to_string(id) + " is requeued");
  job.hosts.clear();
  job.shown.state = "PENDING";
  job.shown.requeued = true;
  world_.after(world_.between(1s, 60s), [this, id] { consider(id); });
}

// -- faults

void SlurmCluster::go_away_sometimes() {
  world_.after(world_.between(20s, 120s), [this] {
    if (world_.calm) return;
    const Duration since = world_.elapsed(), lasts = world_.between(1s, 90s);
    world_.trace("slurm",
                 "the controller does not respond for " + std::to_string(lasts / 1s) + " s");
    away_until_ = since + lasts;
    world_.after(lasts, [this, since] {
      if (world_.fault(3)) forget_recent(since);
    });
    go_away_sometimes();
  });
}

// Nodes end jobs that the controller does not know.
void SlurmCluster::forget_recent(Duration since) {
  world_.trace("slurm", "the controller has forgotten its last changes");
  for (auto& [id, job] : jobs_)
    if (!job.over && job.submitted > since - kStateSaved) {
      checkers_.allow_failure(job.attempt.job, "Slurm has forgotten its job");
      end(job, "UNKNOWN");
    }
  std::erase_if(jobs_, [&](const auto& each) { return each.second.shown.state == "UNKNOWN"; });
}

void SlurmCluster::lose_a_machine() {
  const std::string& name = nodes_[world_.random.below(nodes_.size())].name;
  if (down_until_.contains(name)) return;
  const Duration lasts = world_.between(5s, 3min);
  world_.trace("slurm", name + " is down for " + std::to_string(lasts / 1s) + " s");
  down_until_[name] = world_.elapsed() + lasts;
  world_.after(lasts, [this, name] { down_until_.erase(name); });
  for (auto& [id, job] : jobs_) {
    if (!job.runs() || amounts_on(job.request, name) == nullptr) continue;
    for (const Host& host : job.hosts)
      if (host.machine == name && !host.over) host.agent->die_with_machine();
    job.shown.reason = "NodeFail";
    if (job.shown.state == "COMPLETING" || world_.random.chance(2)) {
      end(job, "NODE_FAIL");
      continue;
    }
    checkers_.attempt_preempted(job.attempt);  // a requeued job counts as preempted
    end(job, "REQUEUED");
    job.over.reset();
    requeue(job);
  }
}

void SlurmCluster::preempt_one() {
  std::vector<SlurmJob*> running;
  for (auto& [id, job] : jobs_)
    if (job.runs() && job.shown.state == "RUNNING" && !job.shown.preempted) running.push_back(&job);
  if (running.empty()) return;
  SlurmJob& job = *running[world_.random.below(running.size())];
  job.shown.preempted = true;
  job.end_state = world_.random.chance(3) ? "PENDING" : "PREEMPTED";
  checkers_.attempt_preempted(job.attempt);
  const Duration grace = world_.random.chance(2) ? Duration{} : world_.between(1s, 60s);
  for (const Host& host : job.hosts)
    if (!host.over) host.agent->preempt(grace);
}

SimulatedAgent* SlurmCluster::some_agent() {
  std::vector<SimulatedAgent*> alive;
  for (const auto& [id, job] : jobs_)
    for (const Host& host : job.hosts)
      if (!host.over && host.agent->alive()) alive.push_back(host.agent.get());
  return alive.empty() ? nullptr : alive[world_.random.below(alive.size())];
}

std::optional<domain::AttemptId> SlurmCluster::any() const {
  for (const auto& [id, job] : jobs_)
    if (job.runs()) return job.attempt;
  return std::nullopt;
}

// -- the end

std::string SlurmCluster::left() {
  if (!launcher_) return "no server runs";
  for (const auto& [id, job] : jobs_)
    if (!job.over) return "Slurm job " + std::to_string(id) + ", which is " + job.shown.state;
  return "";
}

}  // namespace trainyard::sim
