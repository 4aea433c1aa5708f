#include "agent/agent.hpp"

#include <unistd.h>

#include "agent/job_config.hpp"
#include "agent/output/exit_reason.hpp"
#include "agent/steps.hpp"
#include "base/check.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "contract/contract.hpp"
#include "os/volume.hpp"

namespace trainyard::agent {
namespace {

// POSIX's numbers, which Linux uses; only the module os includes <csignal>.
constexpr int kTerminate = 15;
constexpr int kSignalExitBase = 128;
// The watcher's longest wait: in between it checks whether the container is to end.
constexpr Duration kWatchInterval = 1s;
// The loop's longest wait when nothing is due.
constexpr Duration kIdleWait = 1min;
// Limit for the time between two readings of the clock: above kIdleWait, so that all of it counts
// unless the agent was stopped.
constexpr Duration kUnseenTimeMax = 2min;
// The bytes to read of the failure file: up to four for each character of a FailureReason.
constexpr size_t kFailureBytesMax = 4 * contract::kFailureCharactersMax + 64;
// The time limit for reading the remaining output after the first process has ended and the kernel
// has ended the others.
constexpr Duration kLastOutputMax = 5s;
// The number of processes that are named when the memory limit is exceeded. They are recorded while
// at least half of the limit is in use.
constexpr size_t kLargestProcesses = 3;

}  // namespace

Agent::Agent(const wire::Order& order, const HostLayout& place, Dependencies& world, JobKeys& keys,
             bool died_before)
    : order_(order),
      world_(world),
      keys_(keys),
      context_{order, place, world, keys, interruption_, welcome_, died_before, {}, false, {}, {},
               {},    {},    {},    {}},
      time_(world.clock, kUnseenTimeMax),
      stall_(std::chrono::seconds(order.stalled_after_seconds)),
      shells_([this](const wire::OpenShell& requested) { return start_shell(requested); },
              [this](const wire::Message& message) {
                if (world_.send_now) world_.send_now(message);
              },
              world.clock) {
  run_ = initial_run(order);
}

Agent::~Agent() {
  interruption_.order();
  end_worker();
  if (context_.container) context_.container->kill_all();
  join_watcher();
}

void Agent::deliver(const wire::Message& message) {
  if (std::holds_alternative<wire::Welcome>(message)) {
    shells_.close_all();  // of the previous link
    activity_forgotten_ = true;
    welcome_.set_received();
  }
  if (const auto* refused = std::get_if<wire::Refused>(&message)) {
    log(Level::warning, "agent", "the server refuses this attempt", {{"why", refused->reason}});
    post(Fenced{});
  }
  if (const auto* credentials = std::get_if<wire::Credentials>(&message)) keys_.set(*credentials);
  if (const auto* stop = std::get_if<wire::Stop>(&message))
    post(StopOrdered{stop->cause, stop->grace});
  if (const auto* peers = std::get_if<wire::PeersDrained>(&message))
    post(PeersDrained{peers->staged_models});
  if (std::holds_alternative<wire::MainRuns>(message)) post(MainRuns{});
  if (std::holds_alternative<wire::Goodbye>(message)) post(Dismissed{});
  if (const auto* requested = std::get_if<wire::OpenShell>(&message)) shells_.open(*requested);
  if (const auto* data = std::get_if<wire::ShellData>(&message)) shells_.data(*data);
}

void Agent::fence() { post(Fenced{}); }

void Agent::reclaim() { post(MachineReclaimed{order_.stop_grace}); }

void Agent::post(Event event) {
  {
    const MutexLock lock(mutex_);
    events_.push_back(std::move(event));
  }
  changed_.notify_all();
}

bool Agent::run() {
  post(Begin{});
  while (!left_) {
    const Event event = wait_event();
    const bool ran = run_.process_started;
    dismissed_ |= run_.stage == Stage::report && std::holds_alternative<Dismissed>(event);
    auto decision = next(run_, event);
    CHECK(decision, "our own steps answer only what was ordered");
    const Stage before = run_.stage;
    run_ = std::move(decision->run);
    if (run_.stage != before)
      log(Level::info, "agent", "stage", {{"stage", std::string(to_string(run_.stage))}});
    if (!ran && run_.process_started) {
      watch_process();
      if (order_.runtime_left > Duration{}) runtime_ends_ = time_.now() + order_.runtime_left;
    }
    if (run_.stage != Stage::run) runtime_ends_.reset();
    for (const auto& action : decision->actions) carry_out(action);
  }
  end_worker();
  join_watcher();
  return dismissed_;
}

Event Agent::wait_event() {
  MutexLock lock(mutex_);
  for (;;) {
    if (!events_.empty()) {
      Event event = std::move(events_.front());
      events_.pop_front();
      return event;
    }
    const auto now = time_.now();
    if (grace_ends_ && now >= *grace_ends_) {
      grace_ends_.reset();
      return GraceOver{};
    }
    // The server enforces this, too, but it may be unavailable.
    if (runtime_ends_ && now >= *runtime_ends_) {
      runtime_ends_.reset();
      return StopOrdered{domain::StopCause::max_runtime, order_.stop_grace};
    }
    std::chrono::nanoseconds wait = kIdleWait;
    if (run_.stage == Stage::run && run_.process_started) {
      if (now - stall_checked_at_ >= stall_.interval()) {
        stall_checked_at_ = now;
        lock.unlock();
        check_stall();
        lock.lock();
        continue;
      }
      wait = std::min(wait, stall_checked_at_ + stall_.interval() - now);
    }
    if (grace_ends_) wait = std::min(wait, *grace_ends_ - now);
    if (runtime_ends_) wait = std::min(wait, *runtime_ends_ - now);
    changed_.wait_for(lock, wait, [&]() REQUIRES(mutex_) { return !events_.empty(); });
  }
}

void Agent::carry_out(const Action& action) {
  if (const auto* report = std::get_if<Report>(&action)) {
    wire::StateFact fact = report->fact;
    // Release 0.1.0 does not know the field.
    if (fact.state == domain::HostState::preparing && order_.wire_version >= 2)
      fact.address = context_.place.address;
    world_.facts.state(std::move(fact));
  } else if (const auto* ordered = std::get_if<Work>(&action)) {
    work(ordered->stage);
  } else if (std::holds_alternative<Interrupt>(action)) {
    interruption_.order();
  } else if (const auto* terminate = std::get_if<Terminate>(&action)) {
    if (auto sent = context_.container->signal(kTerminate); !sent) {
      log(Level::warning, "agent", "cannot send a stop signal to the process",
          {{"error", sent.error().message}});
    }
    grace_ends_ = time_.now() + terminate->grace;
  } else if (std::holds_alternative<Kill>(action)) {
    // Only while the process runs: before, the worker may be making the container; afterwards it
    // removes the container.
    if (run_.process_started && !run_.exit_code) context_.container->kill_all();
  } else if (std::holds_alternative<Undo>(action)) {
    interruption_.order();
    await_worker();
    if (context_.container) context_.container->kill_all();
    join_watcher();
    undo_all(context_);
  } else {
    left_ = true;
  }
}

void Agent::work(Stage stage) {
  await_worker();  // the previous stage's has answered
  if (stage == Stage::drain) join_watcher();
  interruption_.clear();
  grace_ends_.reset();
  context_.run = run_;
  context_.done = {};
  {
    const MutexLock lock(mutex_);
    work_ = stage;
  }
  ordered_.notify_one();
  if (!worker_.joinable()) worker_ = std::thread([this] { carry_out_stages(); });
}

void Agent::carry_out_stages() {
  MutexLock lock(mutex_);
  for (;;) {
    ordered_.wait(lock, [&]() REQUIRES(mutex_) { return work_ || worker_ends_; });
    if (!work_) return;
    const Stage stage = *work_;
    lock.unlock();
    auto failure = agent::carry_out(context_, stage);
    lock.lock();
    if (failure)
      events_.emplace_back(StepsFailed{std::move(*failure)});
    else
      events_.emplace_back(context_.done);
    work_.reset();
    changed_.notify_all();
  }
}

void Agent::await_worker() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() REQUIRES(mutex_) { return !work_; });
}

void Agent::end_worker() {
  {
    const MutexLock lock(mutex_);
    worker_ends_ = true;
  }
  ordered_.notify_one();
  if (worker_.joinable()) worker_.join();
}

// Called once the lifecycle has recorded that the process runs, so that its exit is never reported
// before its start.
void Agent::watch_process() {
  meter_ = {};
  stall_checked_at_ = time_.now();  // a process that ends before the first check was not stalled
  process_runs_ = true;
  watcher_ = std::thread([this] {
    for (bool at_start = true;; at_start = false) {
      // Jobs in queues need no first point: their API shows no metrics.
      if (!(at_start && order_.spec.queue) && world_.clock.monotonic() >= meter_.next_measurement())
        measure();
      auto exited = context_.container->wait(kWatchInterval);
      if (exited && !*exited) {
        record_largest_processes();
        report_activity();
        report_metrics(metric_files_.read_new(*context_.ml_tree, world_.clock.now()));
        // Otherwise a program would wait forever for bytes that will not arrive.
        if (context_.input_failure.get()) context_.container->kill_all();
        continue;
      }
      process_runs_ = false;
      // The only point of a short job; not for jobs in queues, see above.
      if (!meter_.measured() && !order_.spec.queue) measure();
      report_metrics(meter_.take_rest());
      metric_files_.read_rest(*context_.ml_tree, world_.clock.now(),
                              [this](std::vector<wire::MetricPoint> points) {
                                report_metrics(std::move(points));
                                return !interruption_.ordered();
                              });
      if (exited) {
        post(explain_exit(**exited));
      } else {
        context_.container->kill_all();
        post(ProcessExited{kSignalExitBase + 9, domain::Fault::internal,
                           "the process was lost: " + exited.error().message});
      }
      return;
    }
  });
}

void Agent::join_watcher() {
  if (watcher_.joinable()) watcher_.join();
}

Result<std::unique_ptr<containers::ExecProcess>> Agent::start_shell(const wire::OpenShell& order) {
  if (!process_runs_ || !world_.start_exec) return conflict("the host is not running");
  containers::ExecSpec spec;
  spec.id = context_.container_id();
  spec.directory = context_.path("bundle");
  spec.arguments = order.command;
  if (spec.arguments.empty())
    spec.arguments = {"/bin/sh", "-c",
                      "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi"};
  if (!order.terminal_name.empty()) spec.environment["TERM"] = order.terminal_name;
  spec.terminal = order.terminal;
  spec.columns = order.columns;
  spec.rows = order.rows;
  return world_.start_exec(spec);
}

ProcessExited Agent::explain_exit(const containers::ContainerExit& exited) {
  ProcessExited event;
  event.code = exited.code;
  if (exited.code == 0) return event;
  if (auto failure = context_.input_failure.get()) {
    context_.container->kill_all();
    event.fault = failure->fault;
    event.reason = std::move(failure->message);
    return event;
  }
  context_.container->kill_all();
  context_.pump->finish(kLastOutputMax);
  if (exited.runtime_killed && !exited.out_of_memory) {
    event.fault = domain::Fault::lost;
    event.reason = "the container runtime under the process was killed";
    return event;
  }
  const std::string failure =
      contract::failure_text(context_.ml_tree->read_start("output/failure", kFailureBytesMax));
  const bool volume_full = context_.volume_limited && os::is_full(context_.path(kDisk));
  const std::string volume = "the volume of " + std::to_string(order_.spec.volume_gib) + " GiB (" +
                             size_member(context_) + ") is full";
  if (volume_full)
    world_.facts.say(
        volume + ": what is written beyond it, to " +
        (order_.spec.contract == domain::Contract::plain ? "volumes of the job" : "/opt/ml") +
        " or over the image, is refused");
  event.reason = exit_reason({.code = exited.code,
                              .out_of_memory = exited.out_of_memory,
                              .limit = memory_limit_text(order_),
                              .largest = largest_processes_,
                              .failure = failure,
                              .last_output = context_.pump->last_output()});
  if (volume_full) event.reason = volume + "; " + event.reason;
  return event;
}

void Agent::check_stall() {
  const auto usage = context_.container->usage();
  if (!usage) return;
  const auto change = stall_.update(context_.pump->bytes_read(), usage->cpu, time_.now());
  if (!change) return;
  wire::StateFact fact;
  fact.state = domain::HostState::running;
  if (!change->empty()) fact.message = context_.host_name() + " " + *change;
  world_.facts.say(change->empty() ? "the job continues" : "this host " + *change);
  world_.facts.state(std::move(fact));
}

void Agent::record_largest_processes() {
  if (order_.share.memory_bytes <= 0) return;
  const auto usage = context_.container->usage();
  if (!usage || usage->memory_bytes < order_.share.memory_bytes / 2) return;
  auto largest = context_.container->largest_processes(kLargestProcesses);
  // Ignores the moment after the kernel has killed the largest process: the remaining ones are
  // small.
  int64_t bytes = 0;
  for (const auto& process : largest) bytes += process.bytes;
  if (bytes >= order_.share.memory_bytes / 4) largest_processes_ = std::move(largest);
}

void Agent::report_activity() {
  // Release 0.1.0 does not know the message.
  if (!world_.send_now || order_.wire_version < 2) return;
  std::string table(kActivityTableBytes, '\0');
  const ssize_t got = ::pread(context_.activity_table.descriptor(), table.data(), table.size(), 0);
  table.resize(got > 0 ? size_t(got) : 0);
  if (activity_forgotten_.exchange(false)) activity_.forget_report();
  const auto calls = read_calls(table);
  std::optional<std::chrono::nanoseconds> cpu;
  if (!calls.empty()) {
    if (const auto usage = context_.container->usage()) cpu = usage->cpu;
  }
  if (auto activity = activity_.update(context_.pump->bytes_read(), read_activity(table),
                                       world_.clock.monotonic(), calls, cpu))
    world_.send_now(*std::move(activity));
}

void Agent::report_metrics(std::vector<wire::MetricPoint> points) {
  if (!points.empty()) world_.facts.points(std::move(points));
}

void Agent::measure() {
  const auto usage = context_.container->usage();
  if (!usage) return;
  std::vector<containers::GpuUsage> gpus;
  if (world_.gpu_usage) gpus = world_.gpu_usage();
  const auto now = world_.clock.monotonic();
  auto points = meter_.measure(*usage, order_.share.memory_bytes, disk_usage(context_.ml()), gpus,
                               input_bytes(context_), world_.clock.now(), now);
  report_metrics(meter_.collect(std::move(points), now));
}

}  // namespace trainyard::agent
