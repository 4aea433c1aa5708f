// emulated_agent stands in for trainyard-agent where a benchmark needs a thousand jobs on one
// machine (./yard bench frames). It speaks to the server as the agent does, by the same lifecycle,
// spool and link, but starts no process: while the job runs, it makes up points of the metrics of
// the job's definition.
//
// The job's environment says how many (METRICS), how often (PERIOD, in seconds) and for how long
// (LENGTH, in seconds; without it until the job is stopped). It takes the options of
// trainyard-agent, and ignores all but --order and --directory.
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "agent/lifecycle.hpp"
#include "agent/report/spool.hpp"
#include "agent/report/uplink.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "net/link.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/machine_files.hpp"
#include "wire/codec.hpp"

namespace trainyard {
namespace {

constexpr int kTerminated = 128 + SIGTERM;
constexpr Duration kLastDataMax = 5s;

// Runs one host of a job without a process.
class EmulatedAgent {
 public:
  EmulatedAgent(const wire::Order& order, agent::Facts& facts, Clock& clock)
      : facts_(facts), clock_(clock), run_(agent::initial_run(order)) {
    const auto& environment = order.spec.environment;
    const auto number = [&](const std::string& name, int64_t fallback) {
      const auto found = environment.find(name);
      if (found == environment.end()) return fallback;
      const auto parsed = parse_int(found->second);
      return parsed ? std::max<int64_t>(*parsed, 1) : fallback;
    };
    period_ = std::chrono::seconds(number("PERIOD", 1));
    steps_ = number("LENGTH", kForever) / number("PERIOD", 1);
    metrics_ = int(number("METRICS", 0));
    // The jobs start together: their points are spread over a period.
    next_points_ = clock.monotonic() + period_ * (order.attempt.job % kOffsets) / kOffsets;
  }

  // Takes a message of the server; called on the link's thread.
  void deliver(const wire::Message& message) {
    if (std::holds_alternative<wire::Refused>(message)) post(agent::Fenced{});
    if (std::holds_alternative<wire::Goodbye>(message)) post(agent::Dismissed{});
    if (const auto* stop = std::get_if<wire::Stop>(&message))
      post(agent::StopOrdered{stop->cause, stop->grace});
    if (const auto* peers = std::get_if<wire::PeersDrained>(&message))
      post(agent::PeersDrained{peers->staged_models});
  }

  // Returns when the server has the last fact, or refuses the attempt.
  void run() {
    post(agent::Begin{});
    while (!left_) {
      const auto event = wait_event();
      if (!event) {
        report_points();
        continue;
      }
      auto decision = agent::next(run_, *event);
      if (!decision) continue;  // a repeated message
      run_ = std::move(decision->run);
      for (const auto& action : decision->actions) carry_out(action);
    }
  }

 private:
  static constexpr int kOffsets = 997;
  static constexpr int64_t kForever = 1'000'000'000;  // seconds

  void post(agent::Event event) {
    {
      const MutexLock lock(mutex_);
      events_.push_back(std::move(event));
    }
    changed_.notify_all();
  }

  // Returns nothing when points are due.
  std::optional<agent::Event> wait_event() {
    const bool runs = run_.process_started && !run_.exit_code;
    MutexLock lock(mutex_);
    while (events_.empty()) {
      const auto wait = runs ? next_points_ - clock_.monotonic() : std::chrono::nanoseconds(1min);
      if (wait <= std::chrono::nanoseconds(0)) return {};
      changed_.wait_for(lock, wait, [&]() REQUIRES(mutex_) { return !events_.empty(); });
    }
    agent::Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  void carry_out(const agent::Action& action) {
    if (const auto* report = std::get_if<agent::Report>(&action)) facts_.state(report->fact);
    if (std::holds_alternative<agent::Work>(action)) post(agent::StepsDone{});
    if (std::holds_alternative<agent::Terminate>(action) ||
        std::holds_alternative<agent::Kill>(action)) {
      if (run_.process_started && !run_.exit_code) post(agent::ProcessExited{kTerminated});
    }
    if (std::holds_alternative<agent::Leave>(action)) left_ = true;
  }

  // Points of a loss that falls with noise, as of a job that learns.
  void report_points() {
    next_points_ += period_;
    ++step_;
    std::vector<wire::MetricPoint> points;
    for (int i = 0; i < metrics_; ++i) {
      char name[32];
      std::snprintf(name, sizeof name, "metric-%02d", i);
      const double noise = double((step_ * 7919 + i * 104729) % 1000) / 10'000;
      points.push_back({name, clock_.now(), (i + 1) * std::exp(-step_ / (50.0 + 10 * i)) + noise});
    }
    facts_.points(std::move(points));
    if (step_ == steps_) post(agent::ProcessExited{0});
  }

  agent::Facts& facts_;
  Clock& clock_;
  agent::HostRun run_;
  Duration period_{};
  int metrics_ = 0;
  int64_t step_ = 0, steps_ = 0;
  std::chrono::nanoseconds next_points_{};
  bool left_ = false;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<agent::Event> events_ GUARDED_BY(mutex_);
};

Result<void> run(const std::string& order_file, const std::string& directory) {
  os::MachineClock clock;
  os::MachineFiles files;
  os::MachineRandom random;
  TRY(os::make_directories(directory, 0700));
  const auto alive = TRY(os::FileLock::take(directory + "/alive"));
  const auto order = TRY(wire::decode_order(TRY(os::read_file(order_file))).in(order_file));
  agent::Presence presence;
  const auto spool = TRY(agent::open_spool(files, directory + "/spool", clock, presence));
  EmulatedAgent* receiver = nullptr;  // set before the uplink starts
  agent::Uplink uplink(
      wire::hello_of(order), *spool, presence,
      [&](net::LinkEvents events) {
        return net::connect_link(order.wire_address, std::move(events));
      },
      clock, random, [&](const wire::Message& message) { receiver->deliver(message); },
      order.issued);
  EmulatedAgent agent(order, uplink, clock);
  receiver = &agent;
  uplink.start();
  agent.run();
  uplink.wait_acknowledged(kLastDataMax);
  uplink.stop();
  TRY(os::remove_all(directory + "/spool"));
  return os::write_file(directory + "/left", "", 0600);
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  using namespace trainyard;
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  ::signal(SIGPIPE, SIG_IGN);
  if (const auto done = run(options["--order"], options["--directory"]); !done) {
    std::fprintf(stderr, "emulated_agent: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
