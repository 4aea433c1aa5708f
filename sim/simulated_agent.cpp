#include "sim/simulated_agent.hpp"

#include <algorithm>
#include <utility>

#include "agent/report/uplink.hpp"
#include "sim/checkers.hpp"
#include "sim/workload.hpp"

namespace trainyard::sim {
namespace {

using agent::kFinalFactHoldMax, agent::kReconnectPauseMax, agent::kReconnectPauseMin,
    agent::kWelcomeWaitMax;

constexpr Duration kEndless = 24h * 30;  // until it is stopped
constexpr int kTerminated = 143, kKilled = 137, kFailed = 3;
constexpr uint64_t kKilledOneIn = 200;     // changes of its files; an agent makes some twenty
constexpr Duration kGreetingPause = 50ms;  // between two checks for the Welcome
constexpr char kSpoolDirectory[] = "/host/spool";

}  // namespace

SimulatedAgent::SimulatedAgent(World& world, Network& network, Checkers& checkers,
                               wire::Order order, std::shared_ptr<Gang> gang)
    : world_(world),
      network_(network),
      checkers_(checkers),
      order_(std::move(order)),
      gang_(std::move(gang)),
      clock_(world),
      files_(world, [this] { return world_.fault(kKilledOneIn); }) {
  if (world_.fault(8)) clock_.set(some_jump(world_));
  run_ = agent::initial_run(order_);
  fails_ = world_.fault(30);
  if (world_.fault(60)) step_fails_ = agent::Stage(world_.random.below(6));
  deaf_ = world_.random.chance(6);
  const bool endless = order_.spec.environment.contains(kEndlessVariable);
  run_time_ = endless ? kEndless : world_.between(100ms, 60s);
}

void SimulatedAgent::start() {
  world_.trace(name(), "starts");
  job_clock_.emplace(clock_, order_.issued);
  if (!open_spool()) return;
  connect();
  happen(agent::Begin{});
}

void SimulatedAgent::start_again() {
  if (alive_ || removed_) return;
  alive_ = true;
  refused_ = suspended_ = greeted_ = false;
  postponed_.clear();
  run_ = agent::initial_run(order_);
  work_number_ = 0;
  start();
}

void SimulatedAgent::later(Duration delay, World::Action action) {
  world_.after(delay, [weak = weak_from_this(), life = lives_, action = std::move(action)] {
    const auto self = weak.lock();
    if (self && self->alive_ && self->lives_ == life) self->when_awake(action);
  });
}

void SimulatedAgent::when_awake(World::Action action) {
  if (suspended_)
    postponed_.push_back(std::move(action));
  else
    action();
}

void SimulatedAgent::suspend(Duration lasts, Suspension kind) {
  if (!alive_ || suspended_) return;
  world_.trace(name(), "is suspended for " + std::to_string(lasts.count() / 1000) + " s");
  suspended_ = true;
  world_.after(lasts, [weak = weak_from_this(), life = lives_, lasts, kind] {
    const auto self = weak.lock();
    if (self && self->alive_ && self->lives_ == life) self->resume(lasts, kind);
  });
}

void SimulatedAgent::resume(Duration suspended, Suspension kind) {
  world_.trace(name(), "continues");
  suspended_ = false;
  clock_.resume(kind, suspended);
  for (const World::Action& action : std::exchange(postponed_, {}))
    if (alive_) action();
}

void SimulatedAgent::die(Death death) {
  if (!alive_) return;
  world_.trace(name(), "is killed");
  checkers_.allow_failure(order_.attempt.job, "its agent was killed");
  alive_ = false;
  ++lives_;
  network_.close(std::exchange(link_, 0));
  spool_.reset();
  held_.reset();
  data_sent_.clear();
  const bool power_lost = death == Death::of_process && world_.fault(4);
  if (death == Death::of_process && !power_lost && starts_again_ && spooled_ && world_.fault(2))
    return world_.after(world_.between(10ms, 5s), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->start_again();
    });
  gang_->broken = true;
  if (power_lost) lose_power();
}

// Ends the agent with its machine. It is not started again, but its spool may be read.
void SimulatedAgent::lose_power() {
  world_.trace(name(), "loses power");
  if (process_runs_) checkers_.process_ended(order_.attempt, order_.host, std::nullopt);
  process_runs_ = false;
  files_.lose_power();
  files_.reliable = true;
  // A torn version file is rejected.
  if (auto opened = agent::open_spool(files_, kSpoolDirectory, clock_, *this)) {
    std::vector<wire::StateFact> found;
    while (auto fact = (*opened)->take_state()) found.push_back(*std::move(fact));
    checkers_.spool_found(order_.attempt, order_.host, found, true);
  }
}

void SimulatedAgent::remove() {
  alive_ = false;
  removed_ = true;
  ++lives_;
  network_.close(std::exchange(link_, 0));
  if (process_runs_) checkers_.process_ended(order_.attempt, order_.host, std::nullopt);
  process_runs_ = false;
}

void SimulatedAgent::preempt(Duration grace) {
  if (!alive_) return;
  world_.trace(name(), "is preempted");
  if (grace <= Duration{}) return kill_for_other_work();
  when_awake([this, grace] { happen(agent::MachineReclaimed{grace}); });
  world_.after(grace, [weak = weak_from_this()] {
    if (const auto self = weak.lock(); self && self->alive_) self->kill_for_other_work();
  });
}

void SimulatedAgent::kill_for_other_work() {
  gang_->broken = true;
  remove();
}

// -- the spool

bool SimulatedAgent::in_process(const std::function<void()>& action) {
  try {
    action();
  } catch (const ProcessKilled& killed) {
    world_.trace(name(), "dies " + killed.where);
    die();
  }
  return alive_;
}

// Ends an agent that cannot open its spool; it reports this.
bool SimulatedAgent::open_spool() {
  return in_process([this] {
    auto opened = agent::open_spool(files_, kSpoolDirectory, clock_, *this);
    if (!opened) {
      world_.trace(name(), opened.error().message);
      return die(Death::of_machine);
    }
    spool_ = *std::move(opened);
    std::vector<wire::StateFact> found;
    while (auto fact = spool_->take_state()) found.push_back(*std::move(fact));
    spool_->rewind(0, 0);
    died_before_ = spool_->found_facts();
    gang_->broken |= died_before_;
    checkers_.spool_found(order_.attempt, order_.host, found, false);
  });
}

// -- the lifecycle's actions

void SimulatedAgent::happen(const agent::Event& event) {
  auto decision = agent::next(run_, event);
  World::check(bool(decision), name() + ": " + (decision ? "" : decision.error().message));
  run_ = std::move(decision->run);
  for (const agent::Action& action : decision->actions) {
    if (!alive_) return;
    carry_out(action);
  }
}

void SimulatedAgent::carry_out(const agent::Action& action) {
  if (const auto* report = std::get_if<agent::Report>(&action)) {
    wire::StateFact fact = report->fact;
    fact.at = job_clock_->now();
    world_.trace(name(), "reports " + std::string(to_string(fact.state)));
    checkers_.fact_reported(order_.attempt, order_.host, fact);
    const bool lives = in_process([&] {
      const auto added = spool_->add_state(fact);
      spooled_ = bool(added);
      if (added) checkers_.facts_spooled(order_.attempt, order_.host);
    });
    if (lives) send_waiting();
  } else if (const auto* ordered = std::get_if<agent::Work>(&action)) {
    work(ordered->stage);
  } else if (std::holds_alternative<agent::Interrupt>(action)) {
    work_interrupted_ = true;
  } else if (const auto* terminate = std::get_if<agent::Terminate>(&action)) {
    // Some programs save their state at SIGTERM and exit with 0.
    const int code = world_.random.chance(3) ? 0 : kTerminated;
    if (!deaf_) later(world_.between(1ms, 2000ms), [this, code] { end_process(code); });
    later(terminate->grace, [this] {
      if (run_.stage == agent::Stage::run) happen(agent::GraceOver{});
    });
  } else if (std::holds_alternative<agent::Kill>(action)) {
    if (refused_) {  // fenced: the exit code is not needed
      // The launcher removes a process that an earlier agent started.
      if (process_runs_ && run_.process_started) {
        checkers_.process_ended(order_.attempt, order_.host, kKilled);
        process_runs_ = false;
      }
    } else {
      later(1ms, [this] { end_process(kKilled); });
    }
  } else if (std::holds_alternative<agent::Leave>(action)) {
    world_.trace(name(), "leaves");
    alive_ = false;
    left_ = true;
    network_.close(link_);
  }
}

void SimulatedAgent::work(agent::Stage stage) {
  const uint64_t number = work_number_ = ++works_;
  work_interrupted_ = false;
  if (stage == agent::Stage::upload && run_.merges() && run_.keeps_model()) {
    World::check(bool(run_.peers), name() + " merges models before it has received its peers'");
    checkers_.merging(order_.attempt, *run_.peers);
  }
  // Decides when the work begins whether a later order interrupts it or arrives too late.
  const bool keeps_model = run_.keeps_model();
  later(world_.between(1ms, stage == agent::Stage::run ? 50ms : 1500ms),
        [this, number, stage, keeps_model] { end_work(number, stage, keeps_model); });
}

void SimulatedAgent::end_work(uint64_t number, agent::Stage stage, bool keeps_model) {
  if (work_number_ != number) return;
  // A host that was declared lost must not run its attempt again, so the first step waits for the
  // Welcome.
  if (stage == agent::Stage::prepare && !greeted_ && !work_interrupted_)
    return later(kGreetingPause,
                 [this, number, stage, keeps_model] { end_work(number, stage, keeps_model); });
  work_number_ = 0;
  if (died_before_ && stage == agent::Stage::prepare)
    return happen(agent::StepsFailed{
        {domain::Fault::lost, "the agent of this host died while it ran the job"}});
  if (step_fails_ == stage) {
    checkers_.allow_failure(order_.attempt.job,
                            "step " + std::string(to_string(stage)) + " of a host failed");
    gang_->broken = true;
    return happen(agent::StepsFailed{{domain::Fault::client, "the step failed"}});
  }
  if (work_interrupted_ && world_.random.chance(2))
    return happen(agent::StepsFailed{{domain::Fault::internal, "interrupted"}});
  agent::StepsDone done;
  if (stage == agent::Stage::drain && order_.host > 0 && world_.random.chance(2)) {
    done.staged_model = "staged/" + name();
    checkers_.host_staged(order_.attempt, order_.host, done.staged_model);
  } else if (stage == agent::Stage::drain) {
    checkers_.host_staged(order_.attempt, order_.host, "");
  }
  if (stage == agent::Stage::upload && order_.host == 0 && keeps_model)
    done.model_uri = "s3://models/" + order_.attempt.text();
  if (stage == agent::Stage::run) start_process();
  happen(done);
  if (stage == agent::Stage::run && order_.runtime_left > Duration{})
    later(order_.runtime_left, [this] {
      if (run_.stage == agent::Stage::run)
        happen(agent::StopOrdered{domain::StopCause::max_runtime, order_.stop_grace});
    });
}

void SimulatedAgent::start_process() {
  process_runs_ = true;
  const uint64_t process = ++processes_;
  checkers_.process_started(order_.attempt, order_.host, name());
  later(run_time_, [this, process] {
    // Its peers have ended, so it waits for them forever.
    if (processes_ != process || gang_->broken) return;
    end_process(fails_ ? kFailed : 0);
  });
  for (uint64_t chat = 1 + world_.random.below(4); chat > 0; --chat)
    later(world_.between(1ms, std::min(run_time_, Duration{60s})), [this] { chatter(); });
}

void SimulatedAgent::end_process(int code) {
  if (!process_runs_ || run_.stage != agent::Stage::run || !run_.process_started) return;
  process_runs_ = false;
  if (code != 0) gang_->broken = true;
  if (code == kFailed) checkers_.allow_failure(order_.attempt.job, "its process failed");
  checkers_.process_ended(order_.attempt, order_.host, code);
  world_.trace(name(), "process ends with " + std::to_string(code));
  happen(agent::ProcessExited{code, domain::Fault::algorithm, code == 0 ? "" : "it failed"});
}

void SimulatedAgent::chatter() {
  if (!process_runs_) return;
  const bool lives = in_process([this] {
    if (world_.random.chance(3)) {
      const wire::MetricBatch batch{0, {{"loss", clock_.now(), 0.5, world_.random.chance(2)}}};
      checkers_.point_made(metric_key(batch));
      return spool_->add_metrics(batch.points);
    }
    std::vector<wire::LogLine> lines;
    for (uint64_t n = 1 + world_.random.below(3); n > 0; --n)
      lines.push_back({clock_.now(), "line " + std::to_string(++lines_)});
    spool_->add_logs(std::move(lines));
  });
  if (lives) send_waiting();
}

// -- the uplink: everything unacknowledged is sent in order, again on each new link

void SimulatedAgent::connect() {
  if (refused_ || link_ != 0) return;
  const uint64_t connection = ++connections_;
  const auto awake = [weak = weak_from_this(), connection](const auto& action) {
    const auto self = weak.lock();
    if (!self || !self->alive_) return;
    self->when_awake([self = self.get(), connection, action] {
      if (self->connections_ == connection) action(*self);
    });
  };
  link_ = network_.connect(
      {[awake](std::string frame) {
         awake([frame = std::move(frame)](SimulatedAgent& self) { self.received(frame); });
       },
       [awake, connection] {
         awake([connection](SimulatedAgent& self) { self.closed(connection); });
       }});
  welcomed_ = false;
  if (link_ == 0)
    return later(world_.between(kReconnectPauseMin, kReconnectPauseMax), [this] { connect(); });
  const wire::Hello hello = wire::hello_of(order_);
  say(hello);
  // Closes a connection on which no answer arrives.
  later(kWelcomeWaitMax, [this, connection] {
    if (connections_ != connection || welcomed_) return;
    network_.close(link_);
    closed(connection);
  });
}

void SimulatedAgent::closed(uint64_t connection) {
  if (connections_ != connection || link_ == 0) return;
  link_ = 0;
  welcomed_ = false;
  later(world_.between(kReconnectPauseMin, kReconnectPauseMax), [this] { connect(); });
}

void SimulatedAgent::say(const wire::Message& message) {
  if (link_ != 0) network_.send(link_, wire::encode(message));
}

void SimulatedAgent::send_waiting() {
  if (!welcomed_) return;
  send_facts();
  while (auto payload = spool_->take_data()) {
    const auto data = wire::decode(*payload);
    World::check(bool(data), name() + " cannot decode a fact of its spool");
    if (const auto* log = std::get_if<wire::LogBatch>(&*data))
      sent(log->number, *data);
    else
      sent(std::get<wire::MetricBatch>(*data).number, *data);
    say(*data);
    if (world_.fault(20)) say(*data);  // repeats are harmless
  }
}

void SimulatedAgent::send_facts() {
  if (held_ && (spool_->data_empty() || world_.elapsed() - held_since_ > kFinalFactHoldMax)) {
    say(*held_);
    held_.reset();
  }
  while (!held_) {
    auto fact = spool_->take_state();
    if (!fact) return;
    // Users that see the end of a job must also see its whole log.
    if (is_final(fact->state) && !spool_->data_empty()) {
      held_ = std::move(fact);
      held_since_ = world_.elapsed();
      return later(kFinalFactHoldMax + 1ms, [this] { send_waiting(); });
    }
    say(*fact);
    if (world_.fault(20)) say(*fact);
  }
}

void SimulatedAgent::sent(uint64_t number, const wire::Message& data) {
  const bool fresh = data_sent_.emplace(number, data).second;
  checkers_.data_sent(order_.attempt, order_.host, number);
  // The spool stores batches without their numbers, so an agent sends the batches of an earlier
  // agent again with other numbers.
  if (const auto* metrics = std::get_if<wire::MetricBatch>(&data); metrics && fresh && died_before_)
    checkers_.point_made(metric_key(*metrics));
  const auto* log = std::get_if<wire::LogBatch>(&data);
  if (log && (died_before_ || log->lines[0].text.starts_with("trainyard: ")))
    checkers_.allow_repeated_lines(order_.job.region, order_.log_stream);
}

observe::MetricKey SimulatedAgent::metric_key(const wire::MetricBatch& batch) const {
  observe::MetricKey key{
      order_.job.region, "/aws/sagemaker/TrainingJobs", batch.points[0].name, {}};
  if (batch.points[0].of_host)
    key.dimensions["Host"] = order_.job.name + "/" + domain::host_name(order_.host);
  else
    key.dimensions["TrainingJobName"] = order_.job.name;
  return key;
}

void SimulatedAgent::data_acknowledged(uint64_t until) {
  while (!data_sent_.empty() && data_sent_.begin()->first <= until) {
    const wire::Message& data = data_sent_.begin()->second;
    if (const auto* metrics = std::get_if<wire::MetricBatch>(&data)) {
      checkers_.point_acknowledged(metric_key(*metrics));
    } else {
      for (const auto& line : std::get<wire::LogBatch>(data).lines)
        checkers_.line_acknowledged(order_.job.region, order_.log_stream, line.text);
    }
    data_sent_.erase(data_sent_.begin());
  }
}

void SimulatedAgent::received(const std::string& frame) {
  const auto message = wire::decode(frame);
  World::check(bool(message), name() + " cannot decode a message of the server");
  obey(*message);
}

void SimulatedAgent::obey(const wire::Message& message) {
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) {
    job_clock_->catch_up(welcome->now);
    welcomed_ = greeted_ = true;
    checkers_.fact_acknowledged(order_.attempt, order_.host, welcome->state_acknowledged);
    checkers_.data_welcomed(order_.attempt, order_.host, welcome->data_acknowledged);
    held_.reset();
    data_acknowledged(welcome->data_acknowledged);
    if (in_process(
            [&] { spool_->rewind(welcome->state_acknowledged, welcome->data_acknowledged); }))
      send_waiting();
  } else if (const auto* acknowledged = std::get_if<wire::Acknowledge>(&message)) {
    if (acknowledged->track == wire::Track::state)
      checkers_.fact_acknowledged(order_.attempt, order_.host, acknowledged->number);
    else
      data_acknowledged(acknowledged->number);
    if (in_process([&] { spool_->acknowledge(acknowledged->track, acknowledged->number); }))
      send_waiting();  // a final fact may wait for this
  } else if (const auto* stop = std::get_if<wire::Stop>(&message)) {
    world_.trace(name(), "receives a stop order: " + std::string(to_string(stop->cause)));
    happen(agent::StopOrdered{stop->cause, stop->grace});
  } else if (const auto* peers = std::get_if<wire::PeersDrained>(&message)) {
    happen(agent::PeersDrained{peers->staged_models});
  } else if (const auto* refused = std::get_if<wire::Refused>(&message)) {
    world_.trace(name(), "is refused: " + refused->reason);
    refused_ = true;
    gang_->broken = true;
    happen(agent::Fenced{});
  } else if (std::holds_alternative<wire::Goodbye>(message)) {
    checkers_.dismissed(order_.attempt, order_.host);
    happen(agent::Dismissed{});
  }
}

}  // namespace trainyard::sim
