// SimulatedAgent is one host with its agent. The lifecycle of the agent module decides; the steps take
// simulated time; facts are spooled and sent over simulated links as the real uplink does it.
//
// Threads: one.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "agent/job_clock.hpp"
#include "agent/lifecycle.hpp"
#include "observe/metrics.hpp"
#include "sim/machine_clock.hpp"
#include "sim/network.hpp"
#include "sim/world.hpp"
#include "wire/codec.hpp"

namespace trainyard::sim {

class Checkers;

// Shared state of a gang that the server does not know. A gang that has lost one process never ends by
// itself, since its ranks wait for each other.
struct Gang {
  bool broken = false;
};

class SimulatedAgent : public std::enable_shared_from_this<SimulatedAgent> {
 public:
  SimulatedAgent(World& world, Network& network, Checkers& checkers, wire::Order order,
                 std::shared_ptr<Gang> gang);

  void start();
  // Simulates a SIGKILL of the agent alone: its process runs on until the launcher removes it.
  void die();
  // The launcher removes every trace of the host.
  void remove();
  // Suspends the machine: orders and timers that come meanwhile take effect afterwards.
  void suspend(Duration lasts, Suspension kind);
  // Sets the wall clock of the machine.
  void set_clock(Duration by) { clock_.set(by); }

  bool alive() const { return alive_; }
  bool process_runs() const { return process_runs_; }
  const wire::Order& order() const { return order_; }
  std::string name() const { return order_.attempt.text() + "/" + std::to_string(order_.host); }

 private:
  void happen(const agent::Event& event);
  void carry_out(const agent::Action& action);
  void later(Duration delay, World::Action action);  // unless the agent is dead by then
  void when_awake(World::Action action);
  void resume(Duration suspended, Suspension kind);
  void work(agent::Stage stage);
  void start_process();
  void end_process(int code);
  void chatter();

  // -- the uplink
  void connect();
  void closed(uint64_t connection);
  void received(const std::string& frame);
  void obey(const wire::Message& message);
  void say(const wire::Message& message);
  void send_waiting();
  void forget_data(uint64_t until);
  observe::MetricKey metric_key(const wire::MetricBatch& batch) const;

  World& world_;
  Network& network_;
  Checkers& checkers_;
  const wire::Order order_;
  std::shared_ptr<Gang> gang_;  // shared by its members

  MachineClock clock_;
  const agent::JobClock job_clock_;
  bool suspended_ = false;
  std::vector<World::Action> postponed_;  // while it is

  bool alive_ = true;
  bool refused_ = false;
  agent::HostRun run_;
  uint64_t work_number_ = 0;  // of the work under way; 0 when none
  bool work_interrupted_ = false;
  uint64_t works_ = 0;

  // The fate of this host, drawn at its start.
  bool fails_ = false;  // its process ends with a fault of its own
  std::optional<agent::Stage> step_fails_;
  bool deaf_ = false;  // ignores SIGTERM
  Duration run_time_{};

  bool process_runs_ = false;
  uint64_t processes_ = 0;

  LinkNumber link_ = 0;
  uint64_t connections_ = 0;  // connections tried so far: events of former ones are ignored
  bool welcomed_ = false;
  uint64_t facts_ = 0, data_ = 0;  // the last numbers given
  std::deque<wire::StateFact> facts_waiting_;
  std::deque<wire::Message> data_waiting_;   // LogBatch or MetricBatch
  uint64_t facts_sent_ = 0, data_sent_ = 0;  // on this link
  uint64_t lines_ = 0;
};

}  // namespace trainyard::sim
