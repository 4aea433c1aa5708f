// SimulatedAgent is one host with its agent. It runs the real lifecycle of the agent module, and
// the real spool in simulated files. Steps take simulated time. Facts are sent over simulated links
// in the same way as by the real uplink.
//
// A killed agent is sometimes started again, and then reads its spool. There are two exceptions. A
// power failure ends the whole host; its spool is only read. An agent whose disk refused its last
// fact is not restarted either: that fact was sent but never written, so the next agent would reuse
// its number while it may still be in transit.
//
// Threads: one.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "agent/lifecycle.hpp"
#include "agent/report/job_clock.hpp"
#include "agent/report/spool.hpp"
#include "observe/metrics.hpp"
#include "sim/machine_clock.hpp"
#include "sim/network.hpp"
#include "sim/simulated_files.hpp"
#include "sim/world.hpp"
#include "wire/codec.hpp"

namespace trainyard::sim {

class Checkers;

// The state that a gang shares without the server. A gang that has lost a process never ends by
// itself, since its ranks wait for each other.
struct Gang {
  bool broken = false;
};

class SimulatedAgent : public std::enable_shared_from_this<SimulatedAgent>,
                       private agent::SpoolReason {
 public:
  SimulatedAgent(World& world, Network& network, Checkers& checkers, wire::Order order,
                 std::shared_ptr<Gang> gang);

  void start();
  // Simulates a SIGKILL of the agent alone: its process runs until the launcher removes it.
  void die() { die(Death::of_process); }
  // Simulates the end of its machine.
  void die_with_machine() { die(Death::of_machine); }
  // Simulates that the launcher removes every trace of the host.
  void remove();
  // Simulates that another scheduler takes the host for other work: SIGTERM, and SIGKILL after
  // `grace`.
  void preempt(Duration grace);
  // It is not started again when it is killed.
  void stay_dead() { starts_again_ = false; }
  // Suspends the machine: orders and timers take effect when it resumes.
  void suspend(Duration lasts, Suspension kind);
  // Sets the wall clock of the machine.
  void set_clock(Duration by) { clock_.set(by); }

  bool alive() const { return alive_; }
  // True once it has ended by itself, after it had undone everything.
  bool left() const { return left_; }
  bool process_runs() const { return process_runs_; }
  const wire::Order& order() const { return order_; }
  std::string name() const { return order_.attempt.text() + "/" + std::to_string(order_.host); }

 private:
  void kill_for_other_work();
  enum class Death { of_process, of_machine };
  void die(Death death);
  void start_again();
  // Runs an action that changes files, during which the agent may be killed. Returns false when it
  // was.
  bool in_process(const std::function<void()>& action);
  bool open_spool();
  void lose_power();
  std::string reason() override { return "because the server was unavailable"; }

  void happen(const agent::Event& event);
  void carry_out(const agent::Action& action);
  void later(Duration delay, World::Action action);  // unless the agent is dead by then
  void when_awake(World::Action action);
  void resume(Duration suspended, Suspension kind);
  void work(agent::Stage stage);
  void end_work(uint64_t number, agent::Stage stage, bool keeps_model);
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
  void send_facts();
  void sent(uint64_t number, const wire::Message& data);
  void data_acknowledged(uint64_t until);
  observe::MetricKey metric_key(const wire::MetricBatch& batch) const;

  World& world_;
  Network& network_;
  Checkers& checkers_;
  const wire::Order order_;
  std::shared_ptr<Gang> gang_;  // shared by its members

  MachineClock clock_;
  std::optional<agent::JobClock> job_clock_;  // set by start()
  SimulatedFiles files_;
  bool suspended_ = false;
  std::vector<World::Action> postponed_;  // until the machine resumes

  bool alive_ = true;
  uint64_t lives_ = 0;  // events of an earlier life are ignored
  bool removed_ = false;
  bool starts_again_ = true;
  bool left_ = false;
  bool died_before_ = false;
  bool refused_ = false;
  agent::HostRun run_;
  uint64_t work_number_ = 0;  // identifies the current work; 0: none
  bool work_interrupted_ = false;
  uint64_t works_ = 0;

  // The fate of this host, drawn when it starts.
  bool fails_ = false;  // its process fails by itself
  std::optional<agent::Stage> step_fails_;
  bool deaf_ = false;  // ignores SIGTERM
  Duration run_time_{};

  bool process_runs_ = false;
  uint64_t processes_ = 0;

  LinkNumber link_ = 0;
  uint64_t connections_ = 0;             // connections so far; events of earlier ones are ignored
  bool welcomed_ = false;                // on this connection
  bool greeted_ = false;                 // on any connection of this life
  std::unique_ptr<agent::Spool> spool_;  // nullptr while the agent is dead
  bool spooled_ = true;                  // all facts sent so far were written
  std::optional<wire::StateFact> held_;  // a final fact, which waits for the data before it
  Duration held_since_{};
  std::map<uint64_t, wire::Message> data_sent_;  // LogBatch or MetricBatch, not acknowledged
  uint64_t lines_ = 0;
};

}  // namespace trainyard::sim
