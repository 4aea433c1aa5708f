#include "sim/simulation.hpp"

#include <algorithm>
#include <set>

#include "base/log.hpp"
#include "batch/catalog.hpp"
#include "control/control.hpp"
#include "gateway/agents.hpp"
#include "reconcile/state.hpp"
#include "schedule/plan.hpp"
#include "sim/checkers.hpp"
#include "sim/faulty_ledger.hpp"
#include "sim/local_cluster.hpp"
#include "sim/machine_clock.hpp"
#include "sim/network.hpp"
#include "sim/simulated_launcher.hpp"
#include "sim/slurm_cluster.hpp"
#include "sim/workload.hpp"
#include "sim/world.hpp"

namespace trainyard::sim {
namespace {

using domain::AttemptId;
using domain::Job;
using domain::JobKey;

constexpr Duration kFaultsTime = 3min;  // then no more faults are injected
constexpr Duration kAllTime = 48h;      // the limit for all jobs to end
constexpr Duration kReconcileInterval = 1s;
constexpr Duration kReconcileIntervalCalm = 10s;
constexpr Duration kUnwatchedTimeMax = 30s;
constexpr Duration kUserTimeout = 20s;      // then the user repeats the request
constexpr uint64_t kEventsMax = 2'000'000;  // more events are a livelock

// Half of the clusters have the local launcher, and a quarter Slurm's.
bool has_local_launcher(uint64_t seed) { return seed % 2 == 0; }
bool has_slurm(uint64_t seed) { return seed % 4 == 3; }

// A Slurm job requests as much of each of its nodes, and a processor for each host. So the nodes of
// a cluster are equal, and not the smallest: otherwise some gangs could never start.
std::vector<launch::Machine> machines_of(SeededRandom& random, bool of_slurm) {
  std::vector<launch::Machine> machines;
  for (uint64_t n = 1 + random.below(3); n > 0; --n)
    machines.push_back({"box-" + std::to_string(n), double(4 + 4 * random.below(4)),
                        int64_t(16 + 16 * random.below(3)) << 30, 0});
  for (launch::Machine& machine : machines)
    if (of_slurm)
      machine = {machine.name, std::max(8.0, machines[0].cpus), machines[0].memory_bytes, 0};
  return machines;
}

class Simulation {
 public:
  Simulation(uint64_t seed, bool tracing)
      : world_(seed, tracing),
        secrets_(seed ^ 0x5ec2e75),
        network_(world_, [this](const World::Action& action) { in_server(action); }),
        machines_(machines_of(world_.random, has_slurm(seed))),
        checkers_(machines_, world_, server_clock_),
        launcher_(cluster_of(seed)),
        ledger_(world_, checkers_),
        resources_(some_resources(world_)) {
    settings_.account = "123456789012";
    std::vector<domain::InstanceQuota> quotas;
    // At least as many as the largest job of one user needs, so that every job can start.
    for (const char* type : {"ml.t3.medium", "ml.m5.large"})
      if (world_.random.chance(3))
        quotas.push_back({"", "", type, 5 + int64_t(world_.random.below(3))});
    checkers_.set_limits(resources_.in_order, quotas);
    settings_.quotas = [quotas] { return quotas; };
    settings_.images["machine"] = {};
    settings_.ledger_failed = [](const std::string& why) { throw ServerCrash{why}; };
    settings_.scale_gangs = machines_.size() == 1 && world_.random.chance(2);
    settings_.reconcile_interval = kReconcileInterval;
    settings_.clock.boot = "one";
    settings_.clock.unwatched_max = kUnwatchedTimeMax;
    settings_.clock.keep = [this](const control::ClockRecord& record) {
      settings_.clock.record = record;
    };
    settings_.spot_notice = world_.between(0ms, 10s);
    settings_.spot.seed = seed;
    if (world_.random.chance(2)) settings_.spot.interruptions_per_host_hour = 30;
    for (size_t line = world_.random.below(4); line > 0; --line)
      settings_.spot.trace.push_back({world_.now() + world_.between(0ms, 120s), "", "",
                                      world_.random.chance(2) ? "box-1" : "",
                                      uint32_t(1 + world_.random.below(3)), line});
  }

  Outcome run() {
    Outcome outcome;
    try {
      for (const launch::Machine& machine : machines_)
        world_.trace("cluster", machine.name + " has " + std::to_string(int(machine.cpus)) +
                                    " vCPU, " + std::to_string(machine.memory_bytes >> 30) +
                                    " GiB");
      if (world_.random.chance(4)) plant_job_of_an_earlier_version();
      start_server();
      users_arrive();
      hostile_user_arrives();
      faults_begin();
      world_.after(kFaultsTime, [this] { calm_down(); });
      while (!over_ && world_.step()) {
        World::check(world_.steps() < kEventsMax, "the simulation does not end");
        World::check(world_.elapsed() < kAllTime,
                     "unfinished although all faults have stopped: " + last_unfinished_);
      }
      checkers_.check_end(ledger_, logs_, metrics_);
    } catch (const CheckFailed& failed) {
      outcome.failure = failed.what;
    }
    outcome.events = world_.steps();
    outcome.crashes = crashes_;
    for (const auto& [key, number] : checkers_.jobs()) {
      const Job* job = checkers_.durable(number);
      if (!job) continue;  // the simulation has failed
      ++outcome.jobs;
      outcome.completed += job->state == domain::JobState::completed;
      outcome.failed += job->state == domain::JobState::failed;
      outcome.stopped += job->state == domain::JobState::stopped;
    }
    // The server refers to members that are destroyed before it.
    ++epoch_;
    stop_server();
    return outcome;
  }

 private:
  std::unique_ptr<Cluster> cluster_of(uint64_t seed) {
    if (has_local_launcher(seed))
      return std::make_unique<LocalCluster>(world_, network_, checkers_, server_clock_, machines_);
    if (has_slurm(seed))
      return std::make_unique<SlurmCluster>(world_, network_, checkers_, server_clock_, machines_);
    return std::make_unique<SimulatedLauncher>(world_, network_, checkers_, machines_);
  }

  // -- the server's process

  void start_server() {
    ++epoch_;
    world_.trace("server", "starts");
    try {
      if (const auto launcher = launcher_->server_starts(); !launcher) {
        World::check(!world_.calm, "the server does not start: " + launcher.error().message);
        world_.trace("server", "does not start: " + launcher.error().message);
        return crash();
      }
    } catch (const ServerCrash& died) {
      world_.trace("server", "dies " + died.where);
      return crash();
    }
    ledger_.opened_again();
    auto control =
        control::make_control(settings_, ledger_, *launcher_, logs_, server_clock_, secrets_);
    World::check(bool(control), "the server does not start");
    control_ = *std::move(control);
    agents_ = gateway::make_agents(*control_, logs_, metrics_, server_clock_, settings_.stop_grace,
                                   [](const Job&, const AttemptId&, Instant now) {
                                     return wire::Credentials{"key", "secret", "session", now + 1h};
                                   });
    commit_due_ = reconcile_due_ = false;
    control_->on_due([this] { due(commit_due_, [this] { control_->commit_step(); }); },
                     [this] { due(reconcile_due_, [this] { control_->reconcile_step(); }); });
    network_.listen(agents_->events());
    tick();
  }

  // Runs a step of a thread that was woken: soon, or much later on a busy machine.
  void due(bool& is_due, World::Action step) {
    if (is_due) return;
    is_due = true;
    const Duration delay = world_.fault(100) ? world_.between(100ms, 5s) : world_.between(0ms, 2ms);
    world_.after(delay, [this, epoch = epoch_, &is_due, step = std::move(step)] {
      if (epoch != epoch_) return;
      is_due = false;
      in_server(step);
    });
  }

  void tick() {
    world_.after(world_.calm ? kReconcileIntervalCalm : kReconcileInterval, [this, epoch = epoch_] {
      if (epoch != epoch_) return;
      in_server([this] {
        launcher_->work();
        control_->reconcile_step();
      });
      if (epoch == epoch_) tick();
    });
  }

  void in_server(const World::Action& action) {
    if (!control_) return;
    if (suspended_) return postponed_.push_back(action);
    try {
      action();
    } catch (const ServerCrash& crash) {
      world_.trace("server", "dies " + crash.where);
      this->crash();
    }
  }

  // Suspends the machine of the server, or its process alone; pending actions run afterwards.
  void suspend_server(Duration lasts, Suspension kind) {
    if (!control_ || suspended_) return;
    world_.trace("server", "is suspended for " + std::to_string(lasts.count() / 1000) + " s");
    suspended_ = true;
    world_.after(lasts, [this, lasts, kind] {
      server_clock_.resume(kind, lasts);
      world_.trace("server", "continues");
      suspended_ = false;
      for (const World::Action& action : std::exchange(postponed_, {})) in_server(action);
    });
  }

  void crash() {
    ++crashes_;
    ++epoch_;
    stop_server();
    launcher_->server_died();
    world_.after(world_.between(10ms, 20s), [this] { start_server(); });
  }

  void stop_server() {
    network_.stop_listening();
    control_.reset();
    agents_.reset();
  }

  // -- users

  // Commits a job that was never planned, as a server does that is killed while it plans the job.
  void plant_job_of_an_earlier_version() {
    const reconcile::CreateJob create = job_of_an_earlier_version();
    const auto made = reconcile::apply({}, create, world_.now());
    World::check(bool(made), "the job of an earlier version cannot be created");
    checkers_.allow_failure(create.number, "its hosts are beyond all limits");
    ledger_.plant({{{1, world_.now(), "create", reconcile::body_of(create)}}, {*made->job}, {}});
  }

  void hostile_user_arrives() {
    for (const control::CreateJob& job : some_extreme_jobs(world_))
      world_.after(world_.between(0ms, 150s), [this, job] {
        request(
            [this, job](control::Answer answer) { control_->create_job(job, std::move(answer)); },
            [job](const Result<Job>& answer) {
              World::check(!answer,
                           "the extreme numbers of job " + job.key.name + " were admitted");
              World::check(answer.error().kind == Kind::invalid,
                           "job " + job.key.name +
                               " was rejected, but not as invalid: " + answer.error().message);
            });
      });
  }

  void users_arrive() {
    for (uint64_t n = 3 + world_.random.below(9); n > 0; --n) {
      const control::CreateJob job = some_training_job(world_, n);
      submissions_.push_back(job);
      world_.after(world_.between(0ms, 90s), [this, job] { create(job); });
      if (world_.random.chance(4))
        world_.after(world_.between(0ms, 150s), [this, key = job.key] { stop(key); });
      if (world_.random.chance(4))
        world_.after(world_.between(0ms, 90s), [this, job] { create(job); });
      for (uint64_t times = world_.random.below(3); times > 0; --times)
        world_.after(world_.between(0ms, 150s), [this, key = job.key] { interrupt(key); });
      if (world_.random.chance(4))
        world_.after(world_.between(0ms, 300s), [this, key = job.key] { keep_alive(key); });
    }
    arrays_arrive();
    describe_jobs();
  }

  // Submits service jobs, and arrays of Batch that may depend on earlier ones.
  void arrays_arrive() {
    for (const control::CreateJob& job : some_service_jobs(world_, resources_)) {
      submissions_.push_back(job);
      world_.after(world_.between(0ms, 120s), [this, job] { create_in_queue(job); });
      if (world_.random.chance(6))
        world_.after(world_.between(0ms, 200s), [this, key = job.key] { stop(key); });
    }
    for (const control::CreateJob& job : some_arrays(world_, resources_)) {
      submissions_.push_back(job);
      world_.after(world_.between(0ms, 60s), [this, job] { create_in_queue(job); });
      if (world_.random.chance(4))
        world_.after(world_.between(0ms, 200s), [this, key = job.key] { stop(key); });
      if (world_.random.chance(2))
        world_.after(world_.between(0ms, 200s),
                     [this, key = job.key, index = world_.random.below(10)] {
                       stop({key.region, key.name + ":" + std::to_string(index)});
                     });
    }
  }

  // Creates the job when its queue and the jobs on which it depends exist.
  void create_in_queue(const control::CreateJob& job) {
    const auto there = [&](const std::string& id) {
      return checkers_.jobs().contains({job.key.region, id});
    };
    const bool has_queues = resources_made_.size() == resources_.in_order.size();
    if (has_queues && std::ranges::all_of(job.spec.depends_on, there) &&
        std::ranges::all_of(job.spec.depends_on_alike, there))
      return create(job);
    if (!has_queues)
      in_server([this] {
        for (size_t resource = 0; resource < resources_.in_order.size(); ++resource)
          control_->change_resource({batch::ResourceChange::create, resources_.in_order[resource]},
                                    [this, resource](const auto& made) {
                                      if (made || made.error().kind == Kind::conflict)
                                        resources_made_.insert(resource);
                                    });
      });
    world_.after(1s, [this, job] { create_in_queue(job); });
  }

  // Sends a request to the server. Repeats it when the connection breaks, after which the request
  // may have taken effect or not, and after the errors `exhausted` and `unavailable`. Calls
  // `answered` with any other answer.
  using Answered = std::function<void(const Result<Job>&)>;
  void request(std::function<void(control::Answer)> question, Answered answered) {
    const auto again = [this, question, answered] {
      world_.after(world_.between(500ms, 5s),
                   [this, question, answered] { request(question, answered); });
    };
    if (!control_) return again();
    const auto open = std::make_shared<bool>(true);
    const uint64_t epoch = epoch_;
    in_server([=, this] {
      question([this, epoch, open, again, answered](const Result<Job>& answer) {
        if (epoch != epoch_ || !std::exchange(*open, false)) return;
        const bool later = !answer && (answer.error().kind == Kind::exhausted ||
                                       answer.error().kind == Kind::unavailable);
        if (later)
          again();
        else
          answered(answer);
      });
    });
    world_.after(kUserTimeout, [open, again] {
      if (std::exchange(*open, false)) again();
    });
  }

  void create(const control::CreateJob& job) {
    request([this, job](control::Answer answer) { control_->create_job(job, std::move(answer)); },
            [this, job](const Result<Job>& answer) {
              if (answer) {
                world_.trace("user",
                             "created " + job.key.name + ": job " + std::to_string(answer->number));
                checkers_.acknowledged(*answer);
              } else {
                World::check(answer.error().kind == Kind::conflict,
                             "job " + job.key.name + " was rejected: " + answer.error().message);
                adopt(job.key);
              }
            });
  }

  // Accepts an existing job that the same user created with a request whose answer was lost.
  void adopt(const JobKey& key) {
    if (checkers_.jobs().contains(key)) return;
    const auto job = control_->find(key);
    World::check(bool(job), "the name " + key.name + " is in use, but its job is not found");
    checkers_.acknowledged(**job);
  }

  void stop(const JobKey& key) {
    checkers_.stop_requested_by_user(key);
    const bool batch = key.name.starts_with("array-") || key.name.starts_with("service-");
    request(
        [this, key, batch](control::Answer answer) {
          if (batch)
            control_->cancel_job(key, domain::Cancellation::terminated, "by hand",
                                 std::move(answer));
          else
            control_->stop_job(key, std::move(answer));
        },
        [this, key, batch](const Result<Job>& answer) {
          if (answer) {
            world_.trace("user", "stopped " + key.name);
            if (!batch)
              // Batch does not change an ended job, and returns no error.
              checkers_.stop_acknowledged(key);
          } else {
            World::check(answer.error().kind == Kind::conflict || !checkers_.jobs().contains(key),
                         "job " + key.name + " cannot be stopped: " + answer.error().message);
          }
        });
  }

  void interrupt(const JobKey& key) {
    control::Interruption interruption;
    interruption.notice = world_.between(0ms, 10s);
    request(
        [this, key, interruption](control::Answer answer) {
          control_->interrupt_job(key, interruption, std::move(answer));
        },
        [this, key](const Result<Job>& answer) {
          if (answer)
            world_.trace("user", "interrupted " + key.name);
          else
            World::check(answer.error().kind == Kind::conflict || !checkers_.jobs().contains(key),
                         "job " + key.name + " cannot be interrupted: " + answer.error().message);
        });
  }

  // Sets a keep-alive time below the initial one, which is the longest that the checker allows.
  void keep_alive(const JobKey& key) {
    const auto seconds = int64_t(world_.random.below(10));
    request([this, key, seconds](
                control::Answer answer) { control_->keep_alive(key, seconds, std::move(answer)); },
            [this, key](const Result<Job>& answer) {
              World::check(answer || answer.error().kind == Kind::conflict ||
                               !checkers_.jobs().contains(key),
                           "the keep-alive time of the hosts of " + key.name + " cannot be set");
            });
  }

  // Describes all jobs repeatedly, as a user does.
  void describe_jobs() {
    world_.after(world_.between(1s, 10s), [this] {
      if (over_) return;
      in_server([this] {
        for (const auto& [key, number] : checkers_.jobs()) {
          const auto job = control_->find(key);
          World::check(bool(job), "job " + key.name + " was acknowledged, but is not found");
          checkers_.described(**job);
          if ((*job)->state != domain::JobState::waiting)
            World::check((*job)->wait_reason.empty(), key.name + " runs, but has a pending reason");
        }
      });
      if (!world_.calm) describe_jobs();
    });
  }

  // -- faults

  void faults_begin() {
    repeat(5s, 60s, [this] {
      if (!world_.random.chance(3) || suspended_) return;
      world_.trace("server", "is killed");
      if (control_) crash();
    });
    repeat(2s, 20s, [this] { network_.cut_one(); });
    repeat(20s, 200s, [this] { launcher_->kill_one(); });
    repeat(30s, 200s, [this] { launcher_->lose_a_machine(); });
    repeat(30s, 200s, [this] { launcher_->preempt_one(); });
    repeat(5s, 60s, [this] { network_.half_open_one(world_.between(1s, 90s)); });
    repeat(10s, 200s, [this] {
      const Duration by = some_jump(world_);
      world_.trace("server", "its clock is set by " + std::to_string(by.count() / 1000) + " s");
      server_clock_.set(by);
    });
    repeat(10s, 200s, [this] { launcher_->set_clock_of_one(some_jump(world_)); });
    repeat(30s, 200s, [this] { suspend_server(suspension_time(), suspension()); });
    repeat(30s, 200s, [this] { launcher_->suspend_one(suspension_time(), suspension()); });
    repeat(5s, 60s, [this] { impostor(); });
  }

  Duration suspension_time() {
    return world_.random.chance(4) ? world_.between(2min, 10min) : world_.between(1s, 60s);
  }
  Suspension suspension() { return Suspension(world_.random.below(3)); }

  void repeat(Duration least, Duration most, World::Action fault) {
    world_.after(world_.between(least, most), [this, least, most, fault] {
      if (world_.calm) return;
      fault();
      repeat(least, most, fault);
    });
  }

  // Acts as a peer that knows the name of an attempt but not its token.
  void impostor() {
    const auto attempt = launcher_->any();
    if (!attempt) return;
    const auto number = std::make_shared<LinkNumber>(0);
    *number = network_.connect({[](const std::string& frame) {
                                  const auto message = wire::decode(frame);
                                  World::check(bool(message),
                                               "a message of the server cannot be decoded");
                                  if (!std::holds_alternative<wire::Refused>(*message))
                                    Checkers::welcomed_with_wrong_token();
                                },
                                [] {}});
    if (*number == 0) return;
    const auto* job = checkers_.durable(attempt->job);
    std::string guess = job && job->attempt() ? job->attempt()->token : "";
    if (!guess.empty()) guess.back() = guess.back() == '0' ? '1' : '0';
    network_.send(*number, wire::encode(wire::Hello{wire::kVersion, *attempt, 0, guess}));
    world_.after(5s, [this, number] { network_.close(*number); });
  }

  // -- the end

  void calm_down() {
    world_.trace("world", "is calm");
    world_.calm = true;
    finish();
  }

  // Stops the jobs that would run or wait forever; then everything must end.
  void finish() {
    in_server([this] { checkers_.check_pending_reasons(*control_); });
    for (const control::CreateJob& request : submissions_) {
      const auto number = checkers_.jobs().find(request.key);
      if (number == checkers_.jobs().end()) continue;
      const Job* job = checkers_.durable(number->second);
      const bool never_ends = request.spec.environment.contains(kEndlessVariable) &&
                              request.spec.max_runtime_seconds > 1000;
      const bool fits_nowhere = job->state == domain::JobState::waiting &&
                                request.spec.groups[0].instance_type == kTooLargeType;
      if ((never_ends || fits_nowhere || too_large(request)) &&
          (job->state == domain::JobState::waiting || job->state == domain::JobState::active))
        stop(request.key);
    }
    const bool all_known = std::ranges::all_of(
        submissions_, [&](const auto& request) { return checkers_.jobs().contains(request.key); });
    last_unfinished_ =
        all_known ? checkers_.unfinished(ledger_, *launcher_) : "a request of a user has no answer";
    if (last_unfinished_.empty() && launcher_->made() + launcher_->coming() > 0)
      last_unfinished_ = "idle machines are not released";
    if (last_unfinished_.empty())
      if (const std::string left = launcher_->left(); !left.empty())
        last_unfinished_ = left + " was not removed";
    if (last_unfinished_.empty()) {
      world_.trace("world", "is empty");
      over_ = true;
      return;
    }
    world_.after(15s, [this] { finish(); });
  }

  // A gang that is too large for all machines together waits until machines are added, and none are
  // added here.
  bool too_large(const control::CreateJob& request) const {
    if (settings_.scale_gangs) return false;
    std::vector<domain::Share> hosts;
    for (const auto& group : request.spec.groups)
      hosts.insert(hosts.end(), group.count, schedule::host_request_of(group)->share);
    return !fits_on(machines_, hosts);
  }

  World world_;
  MachineClock server_clock_{world_};
  SeededRandom secrets_;
  Network network_;
  const std::vector<launch::Machine> machines_;
  Checkers checkers_;
  const std::unique_ptr<Cluster> launcher_;
  FaultyLedger ledger_;
  control::test::MemoryLogs logs_;
  control::test::MemoryMetrics metrics_;
  control::Settings settings_;
  std::vector<control::CreateJob> submissions_;
  const Resources resources_;

  std::unique_ptr<control::ControlPlane> control_;
  std::unique_ptr<gateway::Agents> agents_;
  uint64_t epoch_ = 0;  // of the server's process; requests to an earlier process get no answer
  uint64_t crashes_ = 0;
  bool commit_due_ = false, reconcile_due_ = false;
  bool suspended_ = false;                // the server's machine
  std::vector<World::Action> postponed_;  // until the machine resumes
  bool over_ = false;
  std::set<size_t> resources_made_;  // indices of resources_.in_order
  std::string last_unfinished_;
};

}  // namespace

Outcome simulate(uint64_t seed, bool tracing) {
  Simulation simulation(seed, tracing);
  return simulation.run();
}

}  // namespace trainyard::sim
