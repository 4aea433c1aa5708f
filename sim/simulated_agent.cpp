#include "sim/simulated_agent.hpp"

#include <algorithm>
#include <utility>

#include "sim/checkers.hpp"

namespace trainyard::sim {
namespace {

constexpr Duration kReconnectPauseMin = 20ms, kReconnectPauseMax = 2000ms;
constexpr Duration kWelcomeWaitMax = 10s;  // as the uplink's
constexpr Duration kEndless = 24h * 30;    // until it is stopped
constexpr int kTerminated = 143, kKilled = 137, kFailed = 3;

}  // namespace

SimulatedAgent::SimulatedAgent(World& world, Network& network, Checkers& checkers, wire::Order order,
                               std::shared_ptr<Gang> gang)
    : world_(world),
      network_(network),
      checkers_(checkers),
      order_(std::move(order)),
      gang_(std::move(gang)),
      clock_(world),
      job_clock_(clock_, order_.issued) {
  if (world_.fault(8)) clock_.set(some_jump(world_));
  run_ = agent::run_of(order_);
  fails_ = world_.fault(30);
  if (world_.fault(60)) step_fails_ = agent::Stage(world_.random.below(6));
  deaf_ = world_.random.chance(6);
  const bool endless = order_.spec.environment.contains("ENDLESS");
  run_time_ = endless ? kEndless : world_.between(100ms, 60s);
}

void SimulatedAgent::start() {
  world_.trace(name(), "starts");
  connect();
  happen(agent::Begin{});
}

void SimulatedAgent::later(Duration delay, World::Action action) {
  world_.after(delay, [weak = weak_from_this(), action = std::move(action)] {
    const auto self = weak.lock();
    if (self && self->alive_) self->when_awake(action);
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
  world_.after(lasts, [weak = weak_from_this(), lasts, kind] {
    const auto self = weak.lock();
    if (self && self->alive_) self->resume(lasts, kind);
  });
}

void SimulatedAgent::resume(Duration suspended, Suspension kind) {
  world_.trace(name(), "goes on");
  suspended_ = false;
  clock_.resume(kind, suspended);
  for (const World::Action& action : std::exchange(postponed_, {}))
    if (alive_) action();
}

void SimulatedAgent::die() {
  if (!alive_) return;
  world_.trace(name(), "is killed");
  if (!is_final(facts_waiting_.empty() ? domain::HostState::placed : facts_waiting_.back().state))
    checkers_.excuse(order_.attempt.job, "its agent was killed");
  else
    checkers_.excuse(order_.attempt.job, "its agent was killed before its last fact was kept");
  gang_->broken = true;
  alive_ = false;
  network_.close(link_);
}

void SimulatedAgent::remove() {
  alive_ = false;
  network_.close(link_);
  if (process_runs_) checkers_.process_ended(order_.attempt, order_.host, std::nullopt);
  process_runs_ = false;
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
    fact.number = ++facts_;
    fact.at = job_clock_.now();
    world_.trace(name(),
                 "reports " + std::string(to_string(fact.state)) + " (" + std::to_string(fact.number) + ")");
    facts_waiting_.push_back(std::move(fact));
    send_waiting();
  } else if (const auto* ordered = std::get_if<agent::Work>(&action)) {
    work(ordered->stage);
  } else if (std::holds_alternative<agent::Interrupt>(action)) {
    work_interrupted_ = true;
  } else if (const auto* terminate = std::get_if<agent::Terminate>(&action)) {
    // Some programs save their state and exit with 0.
    const int code = world_.random.chance(3) ? 0 : kTerminated;
    if (!deaf_) later(world_.between(1ms, 2000ms), [this, code] { end_process(code); });
    later(terminate->grace, [this] {
      if (run_.stage == agent::Stage::run) happen(agent::GraceOver{});
    });
  } else if (std::holds_alternative<agent::Kill>(action)) {
    if (refused_) {  // fenced: the exit is no longer wanted
      if (process_runs_) checkers_.process_ended(order_.attempt, order_.host, kKilled);
      process_runs_ = false;
    } else {
      later(1ms, [this] { end_process(kKilled); });
    }
  } else if (std::holds_alternative<agent::Leave>(action)) {
    world_.trace(name(), "leaves");
    alive_ = false;
    network_.close(link_);
  }
}

void SimulatedAgent::work(agent::Stage stage) {
  const uint64_t number = work_number_ = ++works_;
  work_interrupted_ = false;
  if (stage == agent::Stage::upload && run_.merges() && run_.keeps_model()) {
    World::check(bool(run_.peers), name() + " merges models before it is told of its peers'");
    checkers_.merging(order_.attempt, *run_.peers);
  }
  // Decided when the work begins: a later order ends it, or comes too late.
  const bool keeps_model = run_.keeps_model();
  later(world_.between(1ms, stage == agent::Stage::run ? 50ms : 1500ms), [this, number, stage, keeps_model] {
    if (work_number_ != number) return;
    work_number_ = 0;
    if (step_fails_ == stage) {
      checkers_.excuse(order_.attempt.job, "step " + std::string(to_string(stage)) + " of a host failed");
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
  });
}

void SimulatedAgent::start_process() {
  process_runs_ = true;
  const uint64_t process = ++processes_;
  checkers_.process_started(order_.attempt, order_.host, name());
  later(run_time_, [this, process] {
    if (processes_ != process || gang_->broken) return;  // its peers are gone: it waits for them forever
    end_process(fails_ ? kFailed : 0);
  });
  for (uint64_t chat = 1 + world_.random.below(4); chat > 0; --chat)
    later(world_.between(1ms, std::min(run_time_, Duration{60s})), [this] { chatter(); });
}

void SimulatedAgent::end_process(int code) {
  if (!process_runs_ || run_.stage != agent::Stage::run || !run_.process_started) return;
  process_runs_ = false;
  if (code != 0) gang_->broken = true;
  if (code == kFailed) checkers_.excuse(order_.attempt.job, "its process failed");
  checkers_.process_ended(order_.attempt, order_.host, code);
  world_.trace(name(), "process ends with " + std::to_string(code));
  happen(agent::ProcessExited{code, domain::Fault::algorithm, code == 0 ? "" : "it failed"});
}

void SimulatedAgent::chatter() {
  if (!process_runs_) return;
  if (world_.random.chance(3)) {
    wire::MetricBatch batch{++data_, {{"loss", clock_.now(), 0.5, world_.random.chance(2)}}};
    checkers_.point_made(metric_key(batch));
    data_waiting_.push_back(std::move(batch));
  } else {
    wire::LogBatch batch{++data_, {}};
    for (uint64_t n = 1 + world_.random.below(3); n > 0; --n)
      batch.lines.push_back({clock_.now(), "line " + std::to_string(++lines_)});
    data_waiting_.push_back(std::move(batch));
  }
  send_waiting();
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
       [awake, connection] { awake([connection](SimulatedAgent& self) { self.closed(connection); }); }});
  welcomed_ = false;
  facts_sent_ = data_sent_ = 0;
  if (link_ == 0) return later(world_.between(kReconnectPauseMin, kReconnectPauseMax), [this] { connect(); });
  const wire::Hello hello = wire::hello_of(order_);
  say(hello);
  // A connection on which no answer comes is stuck.
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
  for (const wire::Message& data : data_waiting_) {
    const uint64_t number = std::visit(
        [](const auto& batch) -> uint64_t {
          if constexpr (requires { batch.number; }) return batch.number;
          return 0;
        },
        data);
    if (number <= data_sent_) continue;
    data_sent_ = number;
    say(data);
    if (world_.fault(20)) say(data);  // repeats are harmless
  }
  for (const wire::StateFact& fact : facts_waiting_) {
    if (fact.number <= facts_sent_) continue;
    // A user who sees a finished job sees all of its log.
    if (is_final(fact.state) && !data_waiting_.empty()) continue;
    facts_sent_ = fact.number;
    say(fact);
    if (world_.fault(20)) say(fact);
  }
}

observe::MetricKey SimulatedAgent::metric_key(const wire::MetricBatch& batch) const {
  observe::MetricKey key{order_.job.region, "/aws/sagemaker/TrainingJobs", batch.points[0].name, {}};
  if (batch.points[0].of_host)
    key.dimensions["Host"] = order_.job.name + "/" + domain::host_name(order_.host);
  else
    key.dimensions["TrainingJobName"] = order_.job.name;
  return key;
}

void SimulatedAgent::forget_data(uint64_t until) {
  std::erase_if(data_waiting_, [&](const wire::Message& data) {
    if (const auto* log = std::get_if<wire::LogBatch>(&data)) return log->number <= until;
    const auto& metrics = std::get<wire::MetricBatch>(data);
    if (metrics.number <= until) checkers_.point_acknowledged(metric_key(metrics));
    return metrics.number <= until;
  });
}

void SimulatedAgent::received(const std::string& frame) {
  const auto message = wire::decode(frame);
  World::check(bool(message), name() + " cannot decode what the server said");
  obey(*message);
}

void SimulatedAgent::obey(const wire::Message& message) {
  if (const auto* welcome = std::get_if<wire::Welcome>(&message)) {
    welcomed_ = true;
    checkers_.fact_acknowledged(order_.attempt, order_.host, welcome->state_acknowledged);
    World::check(welcome->data_acknowledged <= data_, name() + " is told of data that it never sent");
    std::erase_if(facts_waiting_,
                  [&](const auto& fact) { return fact.number <= welcome->state_acknowledged; });
    forget_data(welcome->data_acknowledged);
    send_waiting();
  } else if (const auto* acknowledged = std::get_if<wire::Acknowledge>(&message)) {
    if (acknowledged->track == wire::Track::state) {
      checkers_.fact_acknowledged(order_.attempt, order_.host, acknowledged->number);
      std::erase_if(facts_waiting_, [&](const auto& fact) { return fact.number <= acknowledged->number; });
    } else {
      uint64_t lines = 0;
      forget_data(acknowledged->number);
      for (const auto& data : data_waiting_)
        if (const auto* log = std::get_if<wire::LogBatch>(&data)) lines += log->lines.size();
      checkers_.lines_acknowledged(order_.job.region, order_.log_stream, lines_ - lines);
      send_waiting();  // a final fact may have waited for this
    }
  } else if (const auto* stop = std::get_if<wire::Stop>(&message)) {
    world_.trace(name(), "is told to stop: " + std::string(to_string(stop->cause)));
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
