// Measures the scheduler without a server, for ./yard bench schedule. Each mode prints a line of
// JSON.
//
//   schedule_clusters rate     placements per second of processor time, with 100,000 waiting jobs
//                              and 5,000 hosts
//   schedule_clusters growth   0 -> 4096 -> 0 vCPU, with machines that take 30 s to start
//   schedule_clusters kueue    the published baseline of Kueue: 15,000 workloads in 30 queues of 5
//                              cohorts
//   schedule_clusters kueue-topology   the same work as gangs in 10 racks of 64 nodes
//   schedule_clusters kueue-large      50,000 workloads in 1,000 queues of 10 cohorts

#include <cstdio>
#include <cstring>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/random.hpp"
#include "bench/processor_time.hpp"
#include "schedule/growth.hpp"
#include "schedule/plan.hpp"
#include "schedule/testing/test_cluster.hpp"

namespace {

using namespace trainyard;
using namespace trainyard::schedule;

constexpr int64_t kGib = int64_t{1} << 30;

// -- rate -----------------------------------------------------------------------------------------

// The state of a job. Each tick builds a snapshot from these.
struct Job {
  std::string name;
  std::vector<HostRequest> requests;
  size_t queue = 0;
  std::string share;
  Choices choices;
  Duration lasts_max{}, lasts{};
  Instant ends{};
  std::vector<Placement> hosts;
  bool runs = false;
};

class ClosedLoop {
 public:
  static constexpr size_t kWaiting = 100'000, kHosts = 5'000, kHostsOfRack = 40, kRacksOfRow = 5;
  static constexpr Duration kTick = 100ms;
  static constexpr int kWarmTicks = 40, kTicks = 100;

  ClosedLoop() {
    for (size_t m = 0; m < kHosts; ++m) {
      const size_t rack = m / kHostsOfRack;
      machines_.push_back(
          {"machine-" + std::to_string(m),
           {16, 64 * kGib, 0},
           "row-" + std::to_string(rack / kRacksOfRow) + "/rack-" + std::to_string(rack)});
    }
    limits_ = {{"vCPU of compute environment main", 70'000, 0, "raise its maxvCpus"},
               {"vCPU of compute environment spare", 20'000, 0, "raise its maxvCpus"}};
    queues_ = {{"training jobs", 1}, {"job queue shared", 1}, {"job queue urgent", 5}};
    FairShare fair{{}, 600s};
    for (int user = 0; user < 50; ++user)
      fair.shares.push_back({"user" + std::to_string(user), 1.0 + user % 3, 0});
    queues_[1].fair = fair;
  }

  void run() {
    double began = 0, slowest = 0;
    size_t placed = 0, held = 0;
    for (int tick = 0; tick < kWarmTicks + kTicks; ++tick) {
      if (tick == kWarmTicks) {
        began = bench::cpu_seconds();
        spent_elsewhere_ = 0;
      }
      const double start = bench::cpu_seconds();
      submit();
      end_jobs();
      spent_elsewhere_ += bench::cpu_seconds() - start;
      const double tick_began = bench::cpu_seconds();
      size_t starts = 0;
      {
        const Snapshot snapshot = make_snapshot();
        const Plan plan = schedule::plan(snapshot, {}, now_);
        starts = plan.starts.size();
        apply(plan);
        held += snapshot.running.size();
        if (tick == kWarmTicks + kTicks - 1) {
          const std::string fault = test::fault_of(snapshot, plan);
          CHECK(fault.empty(), fault.c_str());
        }
      }
      if (tick >= kWarmTicks) {
        placed += starts;
        slowest = std::max(slowest, bench::cpu_seconds() - tick_began);
      }
      now_ += kTick;
    }
    const double spent = bench::cpu_seconds() - began - spent_elsewhere_;
    std::printf(
        R"({"placements_per_second": %.1f, "placements_of_a_turn": %.1f, "turn_ms": %.2f, "slowest_turn_ms": %.2f, "running": %zu, "used": %.4f})"
        "\n",
        double(placed) / spent, double(placed) / kTicks, spent / kTicks * 1000, slowest * 1000,
        held / (kWarmTicks + kTicks), used_cpus_ / (16.0 * kHosts));
  }

 private:
  void submit() {
    for (; waiting_ < kWaiting; ++waiting_) {
      Job job;
      const size_t number = jobs_.size();
      job.name = "job/simulation-step (job" + std::to_string(number) + ")";
      static constexpr double kCpus[] = {1, 1, 2, 2, 4, 4, 8, 16};
      const double cpus = kCpus[random_.below(8)];
      const uint32_t hosts = random_.chance(10) ? uint32_t(2 + random_.below(7)) : 1;
      job.requests = {
          {"ml.m5.large", {cpus, int64_t(cpus) * int64_t(1 + random_.below(4)) * kGib, 0}, hosts}};
      job.queue = random_.below(3);
      if (job.queue == 1) job.share = "user" + std::to_string(random_.below(50));
      if (job.queue > 0) job.choices = job.queue == 1 ? shared_ : urgent_;
      static constexpr Duration kLimits[] = {10s, 20s, 60s};
      job.lasts_max = kLimits[random_.below(3)];
      job.lasts = 100ms * int64_t(1 + random_.below(46));
      jobs_.push_back(std::move(job));
    }
  }

  void end_jobs() {
    while (!ends_.empty() && ends_.top().first <= now_) {
      Job& job = jobs_[ends_.top().second];
      for (const Placement& host : job.hosts) used_cpus_ -= host.share.cpus;
      job = {};
      running_.erase(ends_.top().second);
      ends_.pop();
    }
  }

  Snapshot make_snapshot() const {
    Snapshot snapshot;
    snapshot.machines = machines_;
    snapshot.limits = limits_;
    snapshot.queues = queues_;
    snapshot.waiting.reserve(kWaiting);
    snapshot.running.reserve(running_.size());
    for (const auto& [number, unused] : running_) {
      const Job& job = jobs_[number];
      Running& running = snapshot.running.emplace_back();
      running.job = number + 1;
      running.name = job.name;
      running.hosts = job.hosts;
      running.queue = job.queue;
      running.share = job.share;
      if (!job.choices.empty()) running.needs = job.choices.front().needs;
      running.ends_by = job.ends - job.lasts + job.lasts_max;
    }
    for (size_t number = first_; number < jobs_.size(); ++number) {
      const Job& job = jobs_[number];
      if (job.runs || job.requests.empty()) continue;
      WaitingJob& waiting = snapshot.waiting.emplace_back();
      waiting.job = number + 1;
      waiting.name = job.name;
      waiting.requests = job.requests;
      waiting.queue = job.queue;
      waiting.share = job.share;
      waiting.choices = job.choices;
      waiting.lasts_max = job.lasts_max;
    }
    return snapshot;
  }

  void apply(const Plan& plan) {
    for (const Start& start : plan.starts) {
      const size_t number = start.job - 1;
      Job& job = jobs_[number];
      job.runs = true;
      job.ends = now_ + job.lasts;
      job.hosts = start.hosts;
      if (start.environment == "spare") job.choices = spare_;
      for (const Placement& host : job.hosts) used_cpus_ += host.share.cpus;
      ends_.emplace(job.ends, number);
      running_.emplace(number, true);
    }
    waiting_ -= plan.starts.size();
    while (first_ < jobs_.size() && (jobs_[first_].runs || jobs_[first_].requests.empty()))
      ++first_;
  }

  SeededRandom random_{17};
  // The environments that the jobs of a queue may use, shared by the jobs as in the server.
  const Choices spare_{{"spare", {{1, 0, true}}}}, shared_{{"main", {{0, 0, true}}}};
  const Choices urgent_{{"main", {{0, 0, true}}}, {"spare", {{1, 0, true}}}};
  std::vector<Machine> machines_;
  std::vector<Limit> limits_;
  std::vector<Queue> queues_;
  std::vector<Job> jobs_;  // by number; ended jobs are empty
  size_t first_ = 0;       // all jobs before it have started
  std::map<size_t, bool> running_;
  using End = std::pair<Instant, size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  size_t waiting_ = 0;
  double used_cpus_ = 0, spent_elsewhere_ = 0;
  Instant now_{};
};

// -- growth ---------------------------------------------------------------------------------------

// Grows from nothing to the limit of its environment for 4,096 jobs of 1 vCPU, and back.
class GrowingCluster {
 public:
  GrowingCluster() {
    snapshot_.limits = {{"vCPU of compute environment box", kCpus, 0, "raise its maxvCpus"}};
    snapshot_.queues = {{"job queue q"}};
    for (domain::JobNumber number = 1; number <= 4096; ++number) {
      WaitingJob job;
      job.job = number;
      job.name = "job/" + std::to_string(number);
      job.requests = {{"1 vCPU", {1, 2 * kGib, 0}, 1}};
      job.choices = {{"box", {{0, 0, true}}}};
      snapshot_.waiting.push_back(job);
    }
  }

  void run() {
    for (; now_ < Instant{} + kEnd && !gone_; now_ += kTick) {
      std::erase_if(snapshot_.running,
                    [&](const Running& running) { return *running.ends_by <= now_; });
      for (; !coming_.empty() && coming_.front() <= now_; coming_.erase(coming_.begin()))
        snapshot_.machines.push_back({"machine-" + std::to_string(made_++), kSize});
      const Plan plan = schedule::plan(snapshot_, {}, now_);
      resize(plan);
      start(plan);
      if (!grown_ && double(snapshot_.machines.size()) * kSize.cpus >= kCpus) grown_ = now_;
      if (!over_ && snapshot_.waiting.empty() && snapshot_.running.empty()) over_ = now_;
      if (over_ && snapshot_.machines.empty() && coming_.empty()) gone_ = now_;
    }
    CHECK(grown_ && over_ && gone_, "the cluster grows to its limit and shrinks to nothing");
    std::printf(
        R"({"grown_seconds": %.1f, "over_seconds": %.1f, "gone_seconds": %.1f, "machines_made": %zu})"
        "\n",
        to_seconds(*grown_), to_seconds(*over_), to_seconds(*gone_), made_);
  }

 private:
  static constexpr double kCpus = 4096;
  static constexpr Duration kComes = 30s, kTick = 1s, kLasts = 120s, kEnd = 3'600s;
  static constexpr Share kSize{16, 64 * kGib, 0};

  std::vector<IdleMachine> idle_machines(const Plan& plan) {
    std::map<std::string, size_t> busy;
    for (const Running& running : snapshot_.running) ++busy[running.hosts[0].machine];
    for (const Start& start : plan.starts) ++busy[start.hosts[0].machine];
    std::vector<IdleMachine> idle;
    for (const Machine& machine : snapshot_.machines) {
      if (busy.contains(machine.name))
        idle_since_.erase(machine.name);
      else
        idle.push_back(
            {machine.name, "large", idle_since_.try_emplace(machine.name, now_).first->second});
    }
    return idle;
  }

  void resize(const Plan& plan) {
    const std::vector<IdleMachine> idle = idle_machines(plan);
    const MachineKind kind{.name = "large",
                           .total = kSize,
                           .cpus_max = kCpus,
                           .machines = uint32_t(snapshot_.machines.size()),
                           .coming = uint32_t(coming_.size())};
    const Growth growth = plan_growth(snapshot_, plan, {kind}, idle, {}, now_);
    for (const Growth::More& more : growth.grow)
      coming_.insert(coming_.end(), more.count, now_ + kComes);
    for (const std::string& name : growth.shrink)
      std::erase_if(snapshot_.machines,
                    [&](const Machine& machine) { return machine.name == name; });
  }

  void start(const Plan& plan) {
    std::map<domain::JobNumber, const Start*> starts;
    for (const Start& start : plan.starts) starts[start.job] = &start;
    for (const WaitingJob& job : snapshot_.waiting)
      if (const auto start = starts.find(job.job); start != starts.end()) {
        Running running;
        running.job = job.job;
        running.name = job.name;
        running.hosts = start->second->hosts;
        running.needs = job.choices.front().needs;
        running.ends_by = now_ + kLasts;
        snapshot_.running.push_back(running);
      }
    std::erase_if(snapshot_.waiting,
                  [&](const WaitingJob& job) { return starts.contains(job.job); });
  }

  Snapshot snapshot_;
  std::map<std::string, Instant> idle_since_;
  std::vector<Instant> coming_;
  std::optional<Instant> grown_, over_, gone_;
  size_t made_ = 0;
  Instant now_{};
};

// -- kueue ----------------------------------------------------------------------------------------

// Workloads that each queue gets at an interval. The class is what its name has before "-".
struct KueueClass {
  const char* name;
  int count;
  uint32_t hosts;
  double cpus_of_host;
  Duration lasts, every;
  int64_t priority;
};

// A configuration of https://github.com/kubernetes-sigs/kueue, test/performance/scheduler/configs.
struct KueueConfiguration {
  int cohorts, queues;  // queues of each cohort
  std::vector<KueueClass> classes;
  int racks = 0, nodes_of_rack = 0;  // 0: one machine, as large as all quotas
};

const KueueConfiguration kBaseline{5,
                                   6,
                                   {{"small", 350, 1, 1, 200ms, 100ms, 50},
                                    {"medium", 100, 1, 5, 500ms, 500ms, 100},
                                    {"large", 50, 1, 20, 1s, 1200ms, 200}}};
const KueueConfiguration kLargeScale{10,
                                     100,
                                     {{"small", 35, 1, 1, 150ms, 60ms, 50},
                                      {"medium", 11, 1, 5, 350ms, 300ms, 100},
                                      {"large", 4, 1, 20, 700ms, 700ms, 200}}};
// Topology-aware scheduling of the baseline's work as gangs, which must or should be in one rack.
const KueueConfiguration kTopology{5,
                                   6,
                                   {{"small-required", 120, 2, 0.5, 200ms, 100ms, 50},
                                    {"small-preferred", 120, 2, 0.5, 200ms, 100ms, 50},
                                    {"small-balanced", 110, 2, 0.5, 200ms, 100ms, 50},
                                    {"medium-required", 34, 4, 1.25, 500ms, 500ms, 100},
                                    {"medium-preferred", 33, 4, 1.25, 500ms, 500ms, 100},
                                    {"medium-balanced", 33, 4, 1.25, 500ms, 500ms, 100},
                                    {"large-required", 17, 8, 2.5, 1s, 1200ms, 200},
                                    {"large-preferred", 17, 8, 2.5, 1s, 1200ms, 200},
                                    {"large-balanced", 16, 8, 2.5, 1s, 1200ms, 200}},
                                   10,
                                   64};

// Each cohort is a queue here, and each of its queues a quota share. A preempted workload starts
// again from the beginning.
class KueueRun {
 public:
  explicit KueueRun(const KueueConfiguration& configuration) : configuration_(configuration) {
    add_machines();
    for (int cohort = 0; cohort < configuration_.cohorts; ++cohort) {
      Queue pooled{"cohort " + std::to_string(cohort)};
      for (int queue = 0; queue < configuration_.queues; ++queue)
        pooled.quota_shares.push_back({share_name(cohort, queue),
                                       {{"units", kNominal}},
                                       true,
                                       true,
                                       kBorrowingLimit / kNominal,
                                       true});
      cluster_.snapshot.queues.push_back(pooled);
    }
    add_workloads();
    cluster_.on_plan = [this](const test::TestCluster&, const Plan& plan) { count_racks(plan); };
  }

  void run() {
    const double began = bench::cpu_seconds();
    CHECK(cluster_.run(), cluster_.fault().c_str());
    const double spent = bench::cpu_seconds() - began;

    std::map<std::string, double> waited, count;
    size_t preemptions = 0;
    double useful = 0;
    Instant last{};
    for (size_t i = 0; i < class_of_.size(); ++i) {
      const test::TestCluster::Record& record = cluster_.record(i + 1);
      const KueueClass& of = *class_of_[i];
      CHECK(record.ended, "every workload ends");
      last = std::max(last, *record.ended);
      const std::string name = std::string(of.name).substr(0, std::strcspn(of.name, "-"));
      waited[name] += std::chrono::duration<double>(*record.started - record.work.arrives).count();
      ++count[name];
      useful += of.hosts * of.cpus_of_host * std::chrono::duration<double>(of.lasts).count();
      preemptions += record.preemptions;
    }
    const double capacity =
        configuration_.cohorts * configuration_.queues * kNominal * to_seconds(last);
    std::printf(
        R"({"large_s": %.2f, "medium_s": %.2f, "small_s": %.2f, "used": %.4f, "useful": %.4f, "evictions": %zu, "over_s": %.1f, "plans": %zu, "cpu_s": %.2f, "gangs": %zu, "in_one_rack": %zu})"
        "\n",
        waited["large"] / count["large"], waited["medium"] / count["medium"],
        waited["small"] / count["small"], cluster_.cpu_seconds() / capacity, useful / capacity,
        preemptions, to_seconds(last), cluster_.plans(), spent, gangs_, gangs_in_one_rack_);
  }

 private:
  static constexpr double kNominal = 20, kBorrowingLimit = 100;
  static constexpr double kNodeCpus = 96;

  static std::string share_name(int cohort, int queue) {
    return "queue " + std::to_string(cohort) + "-" + std::to_string(queue);
  }

  void add_machines() {
    auto& machines = cluster_.snapshot.machines;
    if (configuration_.racks == 0)
      machines = {
          {"cluster", {configuration_.cohorts * configuration_.queues * kNominal, 1000 * kGib, 0}}};
    for (int rack = 0; rack < configuration_.racks; ++rack)
      for (int node = 0; node < configuration_.nodes_of_rack; ++node) {
        const std::string place = "block-0/rack-" + std::to_string(rack);
        machines.push_back(
            {place + "/node-" + std::to_string(node), {kNodeCpus, 256 * kGib, 0}, place});
      }
  }

  void add_workloads() {
    struct Arrival {
      Instant at;
      int cohort, queue;
      const KueueClass* of;
    };
    std::vector<Arrival> arrivals;
    for (int cohort = 0; cohort < configuration_.cohorts; ++cohort)
      for (int queue = 0; queue < configuration_.queues; ++queue)
        for (const KueueClass& each : configuration_.classes)
          for (int i = 0; i < each.count; ++i)
            arrivals.push_back({Instant{} + i * each.every, cohort, queue, &each});
    std::ranges::stable_sort(arrivals, {}, &Arrival::at);
    for (const Arrival& arrival : arrivals) {
      WaitingJob job;
      job.requests = {{"unit", {arrival.of->cpus_of_host, 0, 0}, arrival.of->hosts}};
      job.queue = size_t(arrival.cohort);
      job.share = share_name(arrival.cohort, arrival.queue);
      job.priority = arrival.of->priority;
      job.demands = {{"units", arrival.of->cpus_of_host * arrival.of->hosts}};
      cluster_.add({job, arrival.of->lasts, arrival.at});
      class_of_.push_back(arrival.of);
    }
  }

  void count_racks(const Plan& plan) {
    for (const Start& start : plan.starts) {
      std::set<std::string> racks;
      for (const Placement& host : start.hosts)
        racks.insert(host.machine.substr(0, host.machine.rfind('/')));
      gangs_ += start.hosts.size() > 1;
      gangs_in_one_rack_ += start.hosts.size() > 1 && racks.size() == 1;
    }
  }

  const KueueConfiguration& configuration_;
  test::TestCluster cluster_;
  std::vector<const KueueClass*> class_of_;  // by workload
  size_t gangs_ = 0, gangs_in_one_rack_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 2 ? argv[1] : "";
  if (mode == "rate")
    ClosedLoop().run();
  else if (mode == "growth")
    GrowingCluster().run();
  else if (mode == "kueue")
    KueueRun(kBaseline).run();
  else if (mode == "kueue-topology")
    KueueRun(kTopology).run();
  else if (mode == "kueue-large")
    KueueRun(kLargeScale).run();
  else {
    std::fprintf(stderr, "usage: schedule_clusters rate|growth|kueue|kueue-topology|kueue-large\n");
    return 2;
  }
}
