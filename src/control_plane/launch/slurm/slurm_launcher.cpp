#include "launch/slurm/slurm_launcher.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/log.hpp"
#include "base/text.hpp"
#include "launch/slurm/answers.hpp"

namespace trainyard::launch {
namespace {

const std::string kRemovedPrefix = "removed-";

// One of this server's jobs in Slurm.
struct OwnJob {
  SlurmJob job;
  JobComment comment;
  std::string token;
};

// A state that is not among these, as newer releases of Slurm may have, is that of a live job: its
// agents may run.
bool has_ended(const SlurmJob& job) {
  constexpr std::string_view kEnded =
      "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY "
      "PREEMPTED REVOKED TIMEOUT";
  const auto states = split(kEnded, ' ');
  return std::ranges::find(states, job.state) != states.end();
}

// True if Slurm has not begun to end what the job runs, or will run.
bool is_uncancelled(const SlurmJob& job) { return !has_ended(job) && job.state != "COMPLETING"; }
// True if agents of the job may run, or will.
bool may_run(const SlurmJob& job) { return is_uncancelled(job) && !job.requeued; }
bool has_lost_a_node(const SlurmJob& job) { return job.state == "NODE_FAIL" || job.requeued; }

bool is_usable(const SlurmNode& node) {
  constexpr std::array kUnusable = {
      "DOWN",          "DRAIN",           "DRAINED",      "DRAINING",      "FAIL",
      "FAILING",       "ERROR",           "FUTURE",       "UNKNOWN",       "INVAL",
      "MAINT",         "REBOOT",          "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN",
      "REBOOT_ISSUED", "REBOOT_REQUESTED"};
  return node.responds && std::ranges::none_of(node.states, [&](const std::string& state) {
           return std::ranges::find(kUnusable, state) != kUnusable.end();
         });
}

std::string describe(const SlurmJob& job) {
  std::string text = "Slurm job " + std::to_string(job.id) + " is " + job.state;
  if (!job.reason.empty() && job.reason != "None") text += " (" + job.reason + ")";
  if (job.requeued) return text + " after it was requeued";
  const bool start_known = !job.expected_start.empty() && job.expected_start != "N/A";
  if (job.state == "PENDING" && start_known) text += ", expected to start at " + job.expected_start;
  return text;
}

class SlurmLauncher final : public Launcher {
 public:
  SlurmLauncher(SlurmSettings settings, std::unique_ptr<Slurm> slurm)
      : settings_(std::move(settings)),
        slurm_(std::move(slurm)),
        next_address_(settings_.jobs.pool.base) {}

  Result<void> begin() {
    TRY(look_at_jobs().in("finding the jobs of this server in Slurm"));
    TRY(look_at_nodes().in("listing the nodes of Slurm"));
    for (const std::string& partition : partitions())
      if (std::ranges::none_of(nodes_, [&](const SlurmNode& node) {
            return std::ranges::find(node.partitions, partition) != node.partitions.end();
          }))
        return invalid("Slurm has no node in the partition '" + partition +
                       "', which the config's [slurm] names: `sinfo` lists the partitions");
    return {};
  }

  std::vector<Machine> machines() override {
    note_failure(look_at_nodes());
    return machines_of(nodes_, partitions(), used());
  }

  Result<void> ensure(const Gang& gang) override {
    TRY(look_at_jobs());
    cancel_unwanted();
    if (const OwnJob* known = find(gang.attempt)) {
      if (known->comment.hosts != gang.members.size())
        return conflict("attempt " + gang.attempt.text() +
                        " was started with another number of hosts");
      if (known->token != gang.token)
        return conflict("attempt " + gang.attempt.text() + " was started with another token");
      return {};
    }
    TRY(check_removed(gang.attempt));
    if (auto submitted = submit(gang); !submitted) {
      // Its answer may be lost, and the job be there.
      if (const auto removed = remove(gang.attempt); !removed)
        log(Level::warning, "launch",
            "removing what could not be started: " + removed.error().message,
            {{"attempt", gang.attempt.text()}});
      return std::move(submitted).error().in("starting attempt " + gang.attempt.text());
    }
    return {};
  }

  std::vector<Agent> list() override {
    const auto looked = look_at_jobs();
    note_failure(looked);
    if (looked) cancel_unwanted();
    look_at_failed_nodes();
    std::vector<Agent> agents;
    for (const auto& [attempt, own] : present_) {
      const bool runs = may_run(own.job);
      for (domain::HostIndex host = 0; host < own.comment.hosts; ++host) {
        const bool ended = own.comment.ended.contains(host);
        Agent agent{attempt, own.token, host, runs && !ended};
        if (agent.alive && own.job.state != "PENDING") {
          agents.push_back(std::move(agent));
          continue;
        }
        agent.note = ended && !own.comment.why.empty() ? own.comment.why : words_of(own);
        agents.push_back(std::move(agent));
      }
    }
    return agents;
  }

  Result<void> remove(domain::AttemptId attempt) override {
    TRY(look_at_jobs());
    std::optional<Error> first;
    for (const OwnJob& own : all_) {
      if (own.comment.attempt != attempt) continue;
      if (!has_ended(own.job))
        if (auto cancelled = cancel(own.job); !cancelled) {
          if (!first) first = std::move(cancelled).error().in("cancelling Slurm's job");
          continue;
        }
      removed_.insert(own.job.id);
    }
    present_.erase(attempt);
    if (first) return *std::move(first);
    return {};
  }

 private:
  // Reads Slurm's jobs. What was removed is left out; of several jobs of an attempt, which a lost
  // answer of sbatch can make, the first one that has not ended counts, or else the last one.
  Result<void> look_at_jobs() {
    auto jobs = slurm_->jobs();
    if (!jobs) return std::move(jobs).error();
    all_.clear();
    present_.clear();
    std::set<uint64_t> listed;
    std::ranges::sort(*jobs, {}, &SlurmJob::id);
    for (SlurmJob& job : *jobs) {
      listed.insert(job.id);
      auto comment = read_job_comment(job.comment);
      if (!comment || comment->mark != settings_.jobs.mark) continue;
      // Another server may have the same mark; it has another key.
      auto token = settings_.unseal(comment->seal, comment->attempt.text());
      if (!token) continue;
      all_.push_back({std::move(job), *std::move(comment), *std::move(token)});
      const OwnJob& own = all_.back();
      if (is_removed(own)) continue;
      const auto [known, first] = present_.try_emplace(own.comment.attempt, own);
      if (!first && has_ended(known->second.job)) known->second = own;
    }
    for (auto* ids : {&removed_, &failed_})
      std::erase_if(*ids, [&](uint64_t id) { return !listed.contains(id); });
    return {};
  }

  bool is_removed(const OwnJob& own) const {
    return removed_.contains(own.job.id) || own.job.name.starts_with(kRemovedPrefix);
  }

  // Cancels what may run and must not: jobs that were removed, and second jobs of an attempt. A
  // server that ends between a job's new name and its cancellation leaves the first kind. What
  // fails is tried again at the next look.
  void cancel_unwanted() {
    for (const OwnJob& own : all_) {
      const OwnJob* known = find(own.comment.attempt);
      const bool second = known != nullptr && known->job.id != own.job.id;
      if (!is_uncancelled(own.job) || !(is_removed(own) || second)) continue;
      if (!settings_.why_not().empty()) return;
      log(Level::warning, "launch",
          is_removed(own) ? "a removed Slurm job that has not ended is cancelled again"
                          : "a second Slurm job of an attempt is cancelled",
          {{"attempt", own.comment.attempt.text()}, {"job", std::to_string(own.job.id)}});
      if (const auto cancelled = cancel(own.job); !cancelled)
        return log(Level::warning, "launch", "cancelling Slurm's job: " + cancelled.error().message,
                   {{"job", std::to_string(own.job.id)}});
      removed_.insert(own.job.id);
    }
  }

  // Slurm does not hold a new job back for a removed one, whose name is another.
  Result<void> check_removed(const domain::AttemptId& attempt) const {
    for (const OwnJob& own : all_)
      if (own.comment.attempt == attempt && is_removed(own) && is_uncancelled(own.job))
        return unavailable("Slurm job " + std::to_string(own.job.id) + " of attempt " +
                           attempt.text() + " was removed and is still " + own.job.state +
                           ": it is cancelled first");
    return {};
  }

  Result<void> check_writer() const {
    if (const std::string why = settings_.why_not(); !why.empty()) return unavailable(why);
    return {};
  }

  // The name tells later servers that it was removed, and did not end by itself.
  Result<void> cancel(const SlurmJob& job) {
    TRY(check_writer());
    return slurm_->cancel(
        job.id, job.name.starts_with(kRemovedPrefix) ? job.name : kRemovedPrefix + job.name);
  }

  Result<void> look_at_nodes() {
    auto nodes = slurm_->nodes();
    if (!nodes) return std::move(nodes).error();
    nodes_ = *std::move(nodes);
    return {};
  }

  // Reads the nodes again when a job has lost one, whose reason is told.
  void look_at_failed_nodes() {
    for (const OwnJob& own : all_)
      if (has_lost_a_node(own.job) && failed_.insert(own.job.id).second)
        note_failure(look_at_nodes());
  }

  void note_failure(const Result<void>& looked) {
    if (!looked && last_failure_ != looked.error().message)
      log(Level::warning, "launch", "Slurm cannot be read, and its last answer counts on",
          {{"why", looked.error().message}});
    last_failure_ = looked ? "" : looked.error().message;
  }

  const OwnJob* find(const domain::AttemptId& attempt) const {
    const auto found = present_.find(attempt);
    return found == present_.end() ? nullptr : &found->second;
  }

  // Slurm's words about a job; for a lost node also those about the node.
  std::string words_of(const OwnJob& own) const {
    std::string text = describe(own.job);
    if (!has_lost_a_node(own.job)) return text;
    const auto names = expand_host_list(own.job.nodes);
    for (const SlurmNode& node : nodes_)
      if (names && std::ranges::find(*names, node.name) != names->end() && !is_usable(node))
        text += "; node " + node.name + ": " + (node.reason.empty() ? "down" : node.reason);
    return text;
  }

  std::vector<std::string> partitions() const {
    std::set<std::string> names;
    const auto add = [&](const SlurmPlacement& placement) {
      if (!placement.partition.empty()) names.insert(placement.partition);
    };
    add(settings_.jobs.placement);
    for (const auto& [queue, placement] : settings_.jobs.of_queues) add(placement);
    for (const auto& [type, placement] : settings_.jobs.of_instance_types) add(placement);
    return {names.begin(), names.end()};
  }

  // What this server's jobs have on each node.
  std::map<std::string, JobComment> used() const {
    std::map<std::string, JobComment> used;
    for (const OwnJob& own : all_) {
      if (has_ended(own.job) || own.job.nodes.empty()) continue;
      const auto names = expand_host_list(own.job.nodes);
      if (!names) continue;
      for (const std::string& name : *names) {
        JobComment& sum = used[name];
        sum.cpus += own.comment.cpus;
        sum.memory_mib += own.comment.memory_mib;
        sum.gpus += own.comment.gpus;
      }
    }
    return used;
  }

  Result<void> submit(const Gang& gang) {
    if (nodes_.empty()) TRY(look_at_nodes());
    std::vector<networks::Subnet> taken;
    for (const OwnJob& own : all_)
      if (!has_ended(own.job)) taken.push_back(own.comment.subnet);
    const auto subnet =
        TRY(choose_subnet(settings_.jobs.pool, addresses_of(gang), taken, next_address_));
    next_address_ = networks::Address(subnet.base + subnet.size());
    auto request = TRY(plan_job(settings_.jobs, gang, nodes_, subnet,
                                settings_.seal(gang.token, gang.attempt.text())));
    if (request.comment.size() > kSlurmCommentBytesMax)
      return invalid("the gang's description is too long for the comment of a Slurm job");
    for (const OwnJob& own : all_)
      if (own.comment.attempt == gang.attempt && !has_ended(own.job))
        request.after.push_back(own.job.id);
    TRY(check_writer());
    const uint64_t id = TRY(slurm_->submit(request));
    log(Level::info, "launch", "submitted to Slurm",
        {{"attempt", gang.attempt.text()}, {"slurm_job", std::to_string(id)}});
    return {};
  }

  const SlurmSettings settings_;
  const std::unique_ptr<Slurm> slurm_;
  // subnets are used in rotation: late packets for an old gang do not reach a new one
  networks::Address next_address_;
  std::vector<OwnJob> all_;                      // of this server, by id
  std::map<domain::AttemptId, OwnJob> present_;  // that were not removed
  std::set<uint64_t> removed_, failed_;          // jobs that Slurm still lists
  std::vector<SlurmNode> nodes_;
  std::string last_failure_;
};

}  // namespace

std::vector<Machine> machines_of(const std::vector<SlurmNode>& nodes,
                                 const std::vector<std::string>& partitions,
                                 const std::map<std::string, JobComment>& own) {
  std::vector<Machine> machines;
  for (const SlurmNode& node : nodes) {
    const bool inside =
        partitions.empty() || std::ranges::any_of(partitions, [&](const std::string& partition) {
          return std::ranges::find(node.partitions, partition) != node.partitions.end();
        });
    if (!is_usable(node) || !inside) continue;
    const auto found = own.find(node.name);
    const JobComment ours = found == own.end() ? JobComment{} : found->second;
    // What others' jobs have is not offered.
    const auto offered = [](int64_t all, int64_t allocated, int64_t by_us) {
      return std::max<int64_t>(0, all - std::max<int64_t>(0, allocated - by_us));
    };
    const int64_t cpus = offered(node.cpus, node.cpus_allocated, ours.cpus);
    const int64_t memory_mib = offered(node.memory_mib, node.memory_allocated_mib, ours.memory_mib);
    if (cpus == 0 || memory_mib == 0) continue;
    machines.push_back({node.name, double(cpus), memory_mib << 20,
                        offered(node.gpus, node.gpus_allocated, ours.gpus)});
  }
  return machines;
}

Result<std::unique_ptr<Launcher>> make_slurm(const SlurmSettings& settings,
                                             std::unique_ptr<Slurm> slurm) {
  auto launcher = std::make_unique<SlurmLauncher>(settings, std::move(slurm));
  TRY(launcher->begin());
  return std::unique_ptr<Launcher>(std::move(launcher));
}

}  // namespace trainyard::launch
