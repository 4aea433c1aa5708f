#include "launch/slurm/slurm_launcher.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/log.hpp"
#include "launch/slurm/allocations.hpp"
#include "launch/slurm/answers.hpp"
#include "launch/slurm/completing_jobs.hpp"
#include "launch/slurm/own_jobs.hpp"
#include "launch/slurm/power_saving.hpp"
#include "launch/slurm/served_attempts.hpp"
#include "launch/slurm/slurm_states.hpp"
#include "launch/slurm/slurm_view.hpp"
#include "launch/slurm/submissions.hpp"
#include "launch/slurm/unconfirmed_submissions.hpp"

namespace trainyard::launch {
namespace {

// After this time without an answer of Slurm, the state of jobs is reported as unknown.
constexpr Duration kUnknownAfter = 60s;

// Agents of an earlier server's jobs connect within seconds after this one has started. A job whose
// agent has not connected after this time may be cancelled, with the attempt that it serves.
constexpr Duration kReportMax = 60s;
// The maximum age of Slurm's answer while jobs serve one attempt after another: otherwise each
// attempt would cost a query.
constexpr Duration kAnswerAgeMax = 1s;
// Idle jobs are released for pending ones after this time.
constexpr Duration kSparedIdle = 1s;

class SlurmLauncher final : public Launcher {
 public:
  SlurmLauncher(SlurmSettings settings, SlurmClients slurm, Clock& clock)
      : settings_(std::move(settings)),
        slurm_(std::move(slurm.cancelling)),
        clock_(clock),
        view_(std::move(slurm.reading), clock, settings_.own_thread),
        submissions_(std::move(slurm.submitting),
                     {[this] { return check_writer(); }, [this] { return view_.note_change(); }},
                     settings_.own_thread),
        served_(settings_.links, clock),
        power_saving_(settings_.node_kinds, partitions_of(settings_.jobs),
                      [this] { return view_.note_change(); }),
        next_address_(settings_.jobs.pool.base),
        began_(clock.monotonic()) {}

  Result<void> begin() {
    TRY(view_.read().in("finding the jobs of this server in Slurm"));
    take(view_.last());
    TRY(check_users(*slurm_, settings_.jobs.unix_users));
    TRY(check_partitions(partitions_of(settings_.jobs), answer_->nodes));
    return check_node_kinds(settings_.node_kinds, answer_->nodes);
  }

  std::vector<Machine> machines() override {
    take(view_.last());
    return power_saving_.offer(*answer_,
                               machines_of(answer_->nodes, partitions_of(settings_.jobs), used()));
  }
  std::vector<MachineKind> kinds() override {
    if (!settings_.node_kinds.empty()) (void)machines();
    return power_saving_.kinds();
  }
  Result<void> grow(const std::string& kind, uint32_t machines) override {
    TRY(check_connected());
    return power_saving_.grow(*slurm_, kind, machines);
  }
  Result<void> shrink(const std::string& machine) override {
    TRY(check_connected());
    return power_saving_.shrink(*slurm_, machine);
  }

  Result<void> ensure(const Gang& gang) override {
    take(view_.last());
    if (const OwnJob* known = find(gang.attempt)) {
      if (known->comment.hosts != gang.members.size())
        return conflict("attempt " + gang.attempt.text() +
                        " was started with another number of hosts");
      if (token_of(*known) != gang.token)
        return conflict("attempt " + gang.attempt.text() + " was started with another token");
      return {};
    }
    if (queued_.contains(gang.attempt)) return {};
    if (auto failure = failures_.extract(gang.attempt))
      return std::move(failure.mapped()).in("starting attempt " + gang.attempt.text());
    TRY(check_writer());
    const bool unconfirmed = unconfirmed_.contains(gang.attempt);
    if (!away_.empty() || unconfirmed) {
      // Reports of agents arrive even if Slurm does not answer.
      if (!unconfirmed && check_removed(gang.attempt) && TRY(give_to_idle(gang))) return {};
      hold(gang);
      return {};
    }
    if (auto removed = check_removed(gang.attempt); !removed) {
      cancel_unwanted();
      return removed;
    }
    if (TRY(give_to_idle(gang))) return {};
    return submit(gang).in("starting attempt " + gang.attempt.text());
  }

  std::vector<Agent> list() override {
    // Control ensures those that failed before, unless it no longer wants them.
    failures_.clear();
    take_submitted();
    take(served_.empty() ? view_.query_now() : view_.refresh(kAnswerAgeMax));
    if (away_.empty()) {
      cancel_unwanted();
      give_queued_to_idle();
      release_idle();
    }
    // Control then ensures them again.
    std::erase_if(held_, [&](const auto& held) {
      return !unconfirmed_.contains(held.first) &&
             (away_.empty() || (served_.any_idle() && held.second.may_follow));
    });
    completing_.update(all_, clock_.monotonic());
    std::vector<Agent> agents;
    for (const auto& [attempt, index] : present_) {
      const OwnJob& own = all_[index];
      const bool runs = may_run(own.job) || completing_.is_recent(own.job.id);
      for (domain::HostIndex host = 0; host < own.comment.hosts; ++host) {
        const bool ended = own.comment.ended.contains(host);
        Agent agent{attempt, token_of(own), host, runs && !ended};
        agent.note = agent.alive                         ? note_of_live(own)
                     : ended && !own.comment.why.empty() ? own.comment.why
                                                         : state_note(own.job, answer_->nodes);
        agent.idle = is_idle(own);
        agent.preempted = is_preempted(own.job, answer_->nodes);
        agents.push_back(std::move(agent));
      }
    }
    for (const OwnJob& own : all_)
      if (is_unreported(own))
        agents.push_back({.attempt = {},
                          .alive = true,
                          .note = "waiting for the agent of Slurm job " +
                                  std::to_string(own.job.id) + ", which may serve this attempt",
                          .unknown_on = own.job.nodes});
    for (const auto& [attempt, queued] : queued_)
      for (domain::HostIndex host = 0; !find(attempt) && host < queued.gang.members.size(); ++host)
        agents.push_back({attempt, queued.gang.token, host, true, "is being submitted to Slurm"});
    for (const auto& [attempt, held] : held_)
      for (domain::HostIndex host = 0; host < held.hosts; ++host)
        agents.push_back({attempt, held.token, host, true,
                          "waiting until Slurm answers" + (away_.empty() ? "" : ": " + away_)});
    return agents;
  }

  Result<void> remove(domain::AttemptId attempt) override {
    take(view_.last());
    held_.erase(attempt);
    if (queued_.contains(attempt)) {
      if (!submissions_.cancel(attempt))
        return unavailable("attempt " + attempt.text() + " is being submitted to Slurm");
      queued_.erase(attempt);
    }
    if (unconfirmed_.contains(attempt))
      return unavailable("Slurm may have a job of attempt " + attempt.text() +
                         ", whose submission was not answered" +
                         (away_.empty() ? "" : ": " + away_));
    std::optional<Error> first;
    for (const OwnJob& own : all_) {
      if (attempt_of(own) != attempt || removed_.contains(own.job.id)) continue;
      if (is_unreported(own) && clock_.monotonic() - began_ < kReportMax)
        return unavailable("Slurm job " + std::to_string(own.job.id) +
                           " may serve another attempt by now, and its agent has not reported");
      // Its attempt has ended, and nothing of it is left.
      if (is_idle(own)) {
        served_.remove(own.job.id);
        continue;
      }
      if (!has_ended(own.job))
        if (auto cancelled = cancel(own.job); !cancelled) {
          if (!first)
            first = std::move(cancelled).error().in("cancelling Slurm job " +
                                                    std::to_string(own.job.id));
          continue;
        }
      removed_[own.job.id] = view_.note_change();
    }
    if (first) return *std::move(first);
    present_.erase(attempt);
    return {};
  }

  Result<bool> reuse_host(domain::AttemptId from, const Gang& gang) override {
    take(view_.last());
    TRY(check_writer());
    if (unconfirmed_.contains(gang.attempt) || gang.members.size() != 1 || find(gang.attempt))
      return false;
    const OwnJob* own = find(from);
    if (!own || !is_idle(*own) || own->job.preempted) return false;
    const ServedAttempt& served = *served_.find(own->job.id);
    if (!served.keeps_host ||
        own->comment.kind != TRY(kind_of(settings_.jobs, gang, answer_->nodes)) ||
        served_.time_left(served) < time_needed(settings_.jobs, gang))
      return false;
    return give(*own, gang, gang.members.front().order, true);
  }

 private:
  // A gang whose submission waits until Slurm answers.
  struct Held {
    std::string token;
    uint32_t hosts = 0;
    bool may_follow = false;  // in an idle job
  };
  // A gang that is being submitted.
  struct Queued {
    Gang gang;
    SlurmJob job;  // except for its id
    networks::Subnet subnet;
  };
  // A new job of this server, which answers to earlier queries do not list.
  struct Submitted {
    SlurmJob job;
    uint64_t change = 0;
  };

  // Applies an answer of Slurm, and adds changes that it cannot show yet.
  void take(std::shared_ptr<const SlurmAnswer> answer) {
    away_ = view_.why_away();
    if (answer == answer_) return take_reports();
    answer_ = std::move(answer);
    std::map<uint64_t, OwnJob> former;
    for (OwnJob& own : all_) former.try_emplace(own.job.id, std::move(own));
    all_.clear();
    present_.clear();
    std::set<uint64_t> listed;
    for (const SlurmJob& job : answer_->jobs) {
      listed.insert(job.id);
      const auto known = former.find(job.id);
      add(job, known == former.end() ? nullptr : &known->second);
    }
    const auto is_old = [&](uint64_t change) { return change <= answer_->changes; };
    std::erase_if(submitted_, [&](const auto& each) { return is_old(each.second.change); });
    std::erase_if(removed_, [&](const auto& each) {
      return !listed.contains(each.first) && is_old(each.second);
    });
    for (const auto& [id, submitted] : submitted_)
      if (!listed.contains(id)) add(submitted.job, nullptr);
    const auto is_known = [&](uint64_t job) {
      return listed.contains(job) || submitted_.contains(job);
    };
    served_.forget(is_known);
    std::erase_if(nodes_of_submitted_, [&](const auto& each) { return !is_known(each.first); });
    (void)served_.take_reports(open_allocations());
    show_all();
    unconfirmed_.apply(
        answer_->changes, [this](const auto& attempt) { return find(attempt) != nullptr; },
        [this] { return view_.note_change(); });
  }

  void take_reports() {
    if (served_.take_reports()) show_all();
  }

  void show_all() {
    present_.clear();
    for (size_t index = 0; index < all_.size(); ++index) show(index);
  }

  // -- jobs that serve one attempt after another

  domain::AttemptId attempt_of(const OwnJob& own) const {
    const ServedAttempt* served = served_.find(own.job.id);
    return served ? served->attempt : own.comment.attempt;
  }
  const std::string& token_of(const OwnJob& own) const {
    const ServedAttempt* served = served_.find(own.job.id);
    return served ? served->token : own.token;
  }
  bool is_idle(const OwnJob& own) const {
    const ServedAttempt* served = served_.find(own.job.id);
    return served && served->idle;
  }
  // True if the job's agent has not reported: an earlier server may have given it a different
  // attempt from the one in its comment.
  bool is_unreported(const OwnJob& own) const {
    return settings_.links && !own.comment.kind.empty() && may_run(own.job) &&
           own.job.state != "PENDING" && !is_removed(own) && !served_.find(own.job.id);
  }

  // True if the job's agent may begin another attempt. A job has one host if it may serve several.
  bool is_open(const OwnJob& own) const {
    return !own.comment.kind.empty() && may_run(own.job) && !own.job.preempted &&
           own.comment.ended.empty() && !is_removed(own);
  }
  std::string node_of(const OwnJob& own) const {
    const ServedAttempt* served = served_.find(own.job.id);
    return served && !served->node.empty() ? served->node : own.job.nodes;
  }

  std::map<uint64_t, OpenAllocation> open_allocations() const {
    std::map<uint64_t, OpenAllocation> open;
    for (const OwnJob& own : all_)
      if (is_open(own))
        open[own.job.id] = {node_of(own), own.comment.attempt, own.comment.submitter};
    return open;
  }

  std::vector<IdleAllocation> idle_allocations() const {
    std::vector<IdleAllocation> idle;
    for (const OwnJob& own : all_) {
      const ServedAttempt* served = served_.find(own.job.id);
      if (!served || !served->idle || !is_open(own)) continue;
      idle.push_back({own.job.id, node_of(own), own.comment.kind, served_.time_left(*served),
                      served_.idle(*served)});
    }
    return idle;
  }

  // Returns a suitable idle job; nullopt: none.
  Result<std::optional<uint64_t>> idle_for(const Gang& gang) const {
    if (!may_serve_others(settings_.jobs, gang)) return std::optional<uint64_t>();
    const auto idle = idle_allocations();
    if (idle.empty()) return std::optional<uint64_t>();
    const auto kind = TRY(kind_of(settings_.jobs, gang, answer_->nodes));
    return choose_allocation(
        idle, {gang.members.front().machine, kind, time_needed(settings_.jobs, gang)});
  }

  // Returns false if no idle job is suitable.
  Result<bool> give_to_idle(const Gang& gang) {
    while (const auto chosen = TRY(idle_for(gang))) {
      const auto own =
          std::ranges::find(all_, *chosen, [](const OwnJob& each) { return each.job.id; });
      const NextInAllocation next{own->comment.subnet, served_.find(*chosen)->served + 1};
      if (give(*own, gang, TRY(plan_next_host(settings_.jobs, gang, answer_->nodes, next)), false))
        return true;
    }
    return false;
  }

  // Gangs that are not being submitted yet need no job of their own once an idle one fits.
  void give_queued_to_idle() {
    if (!settings_.why_not().empty()) return;
    for (auto queued = queued_.begin(); queued != queued_.end() && served_.any_idle();) {
      const Gang& gang = queued->second.gang;
      const auto fits = idle_for(gang);
      if (!fits || !*fits || !submissions_.cancel(gang.attempt)) {
        ++queued;
        continue;
      }
      // Control ensures again what fails, since it is not listed.
      const auto given = give_to_idle(gang);
      if (!given)
        log(Level::warning, "launch", "giving an attempt to an idle Slurm job",
            {{"attempt", gang.attempt.text()}, {"why", given.error().message}});
      queued = queued_.erase(queued);
    }
  }

  bool give(const OwnJob& own, const Gang& gang, std::string order, bool same_host) {
    const bool given =
        served_.give(own.job.id, gang.attempt, gang.token, std::move(order), same_host);
    show_all();
    return given;
  }

  // Releases idle jobs for pending ones of this server.
  void release_idle() {
    std::vector<std::string> pending_on;
    for (const OwnJob& own : all_) {
      if (!waits_for_nodes(own.job) || is_removed(own)) continue;
      // Slurm's answer is older than the report of the job's agent.
      const ServedAttempt* served = served_.find(own.job.id);
      if (served && served->reported) continue;
      const auto nodes = nodes_of_submitted_.find(own.job.id);
      if (nodes == nodes_of_submitted_.end())
        pending_on.emplace_back("*");  // an earlier server's
      else
        pending_on.insert(pending_on.end(), nodes->second.begin(), nodes->second.end());
    }
    if (pending_on.empty()) return;
    for (const uint64_t job : allocations_to_release(idle_allocations(), pending_on, kSparedIdle))
      served_.release(job);
  }

  // `known`: the job in the last answer; nullptr if it is new.
  //
  // Removed attempts are left out of present_. Of several jobs of an attempt, which a lost answer
  // of sbatch can make, the first one that has not ended counts, or else the last one.
  void add(const SlurmJob& job, const OwnJob* known) {
    auto recognized = read_own_job(job, known, settings_.jobs.mark, settings_.unseal);
    if (!recognized) return;
    all_.push_back(*std::move(recognized));
    const OwnJob& own = all_.back();
    if (job.state == "PENDING" && !own.comment.kind.empty())
      served_.begin(job.id, own.comment.attempt, own.token, "");
  }

  void show(size_t index) {
    const OwnJob& own = all_[index];
    if (is_removed(own)) return;
    const ServedAttempt* served = served_.find(own.job.id);
    // Until it is removed, control may give its host to another attempt.
    if (served && served->idle && served->removed) return;
    // The attempt can be started elsewhere: it has not run here, and will not
    // (AgentLinks::report()).
    if (served && !served->begun && !is_open(own)) return;
    const auto [present, first] = present_.try_emplace(attempt_of(own), index);
    if (!first && has_ended(all_[present->second].job)) present->second = index;
  }

  bool is_removed(const OwnJob& own) const {
    return removed_.contains(own.job.id) || own.job.name.starts_with(kRemovedPrefix);
  }

  // Cancels jobs that must not run: removed ones, and second jobs of an attempt. A server that ends
  // between renaming and cancelling a job leaves a removed one. The next call of list() retries
  // failures.
  void cancel_unwanted() {
    for (const OwnJob& own : all_) {
      const OwnJob* known = is_idle(own) ? nullptr : find(attempt_of(own));
      const bool second = known != nullptr && known->job.id != own.job.id;
      if (!is_uncancelled(own.job) || !(is_removed(own) || second) || is_cancelled(own)) continue;
      if (!settings_.why_not().empty()) return;
      log(Level::warning, "launch",
          is_removed(own) ? "cancelling a removed Slurm job again, since it has not ended"
                          : "cancelling a second Slurm job of an attempt",
          {{"attempt", attempt_of(own).text()}, {"job", std::to_string(own.job.id)}});
      if (const auto cancelled = cancel(own.job); !cancelled)
        return log(Level::warning, "launch",
                   "cancelling a Slurm job failed: " + cancelled.error().message,
                   {{"job", std::to_string(own.job.id)}});
      removed_[own.job.id] = view_.note_change();
    }
  }

  // Returns true if the job was cancelled, which Slurm's last answer does not show.
  bool is_cancelled(const OwnJob& own) const {
    const auto change = removed_.find(own.job.id);
    return change != removed_.end() && change->second > answer_->changes;
  }

  // A removed job has another name, so `singleton` would not hold back a new job of its attempt.
  Result<void> check_removed(const domain::AttemptId& attempt) const {
    for (const OwnJob& own : all_)
      if (attempt_of(own) == attempt && is_removed(own) && is_uncancelled(own.job) &&
          !is_cancelled(own))
        return unavailable("Slurm job " + std::to_string(own.job.id) + " of attempt " +
                           attempt.text() + " was removed and is still " + own.job.state +
                           ": it must be cancelled first");
    return {};
  }

  Result<void> check_writer() const { return launch::check_writer(settings_.why_not()); }

  // Errors: unavailable, if Slurm must not or cannot be changed now.
  Result<void> check_connected() const {
    TRY(check_writer());
    if (!away_.empty()) return unavailable(away_);
    return {};
  }

  // The new name tells later servers that the job was removed, and did not end by itself.
  Result<void> cancel(const SlurmJob& job) {
    TRY(check_connected());
    return slurm_->cancel(
        job.id, job.name.starts_with(kRemovedPrefix) ? job.name : kRemovedPrefix + job.name);
  }

  const OwnJob* find(const domain::AttemptId& attempt) const {
    const auto found = present_.find(attempt);
    return found == present_.end() ? nullptr : &all_[found->second];
  }

  // Returns "" for agents that run, as far as is known.
  std::string note_of_live(const OwnJob& own) const {
    if (!away_.empty() && clock_.now() - answer_->sent > kUnknownAfter)
      return unknown_note(own.job, answer_->sent, away_);
    const bool tells = own.job.state == "PENDING" || own.job.preempted;
    return tells ? state_note(own.job, answer_->nodes) : "";
  }

  // Sums what this server's jobs have on each node. Not second jobs of an attempt: the owner of one
  // can submit others with the same comment, which claim what they do not have.
  std::map<std::string, NodeAmounts> used() const {
    std::vector<const OwnJob*> counted;
    for (const OwnJob& own : all_)
      if (own.job.user.empty() || is_removed(own) || is_idle(own) || find(attempt_of(own)) == &own)
        counted.push_back(&own);
    return sum_by_node(counted);
  }

  void hold(const Gang& gang) {
    held_[gang.attempt] = {gang.token, uint32_t(gang.members.size()),
                           may_serve_others(settings_.jobs, gang)};
  }

  Result<void> submit(const Gang& gang) {
    std::vector<networks::Subnet> taken;
    for (const OwnJob& own : all_)
      if (!has_ended(own.job)) taken.push_back(own.comment.subnet);
    for (const auto& [attempt, queued] : queued_) taken.push_back(queued.subnet);
    const auto subnet = TRY(choose_gang_subnet(settings_.jobs, gang, taken, next_address_));
    next_address_ = networks::Address(subnet.base + subnet.size());
    auto request =
        TRY(plan_job(settings_.jobs, gang, answer_->nodes, subnet, [&](const std::string& context) {
          return settings_.seal(gang.token, context);
        }));
    for (const OwnJob& own : all_)
      if (attempt_of(own) == gang.attempt && !has_ended(own.job))
        request.after.push_back(own.job.id);
    TRY(check_writer());
    SlurmJob job{.state = "PENDING",
                 .name = request.name,
                 .comment = request.comment,
                 .user = request.user.name};
    queued_.insert_or_assign(gang.attempt, Queued{gang, std::move(job), subnet});
    submissions_.add({gang.attempt, std::move(request)});
    if (settings_.own_thread) return {};
    take_submitted();
    if (auto failure = failures_.extract(gang.attempt)) return std::move(failure.mapped());
    return {};
  }

  void take_submitted() {
    for (const SubmissionOutcome& outcome : submissions_.take()) {
      const auto queued = queued_.extract(outcome.attempt);
      if (!queued) continue;
      if (outcome.job)
        note_submitted(queued.mapped(), *outcome.job, outcome.change);
      else
        note_failure(outcome, queued.mapped().gang);
    }
  }

  void note_submitted(Queued& queued, uint64_t id, uint64_t change) {
    const Gang& gang = queued.gang;
    SlurmJob& job = queued.job;
    job.id = id;
    submitted_.insert_or_assign(id, Submitted{job, change});
    for (const auto& member : gang.members) nodes_of_submitted_[id].insert(member.machine);
    // An answer of Slurm may have shown it already.
    if (std::ranges::none_of(all_, [&](const OwnJob& own) { return own.job.id == id; }))
      add(job, nullptr);
    if (may_serve_others(settings_.jobs, gang)) {
      served_.begin(id, gang.attempt, gang.token, gang.members.front().machine);
      if (settings_.links)
        settings_.links->open(
            id, {gang.members.front().machine, gang.attempt, submitter_in_comment(gang.submitter)});
    }
    show_all();
  }

  // An answer of sbatch may be lost, and the job be there: its agents may report meanwhile.
  void note_failure(const SubmissionOutcome& outcome, const Gang& gang) {
    if (outcome.change == 0) return;  // it was not sent
    const Error& error = outcome.job.error();
    failures_.insert_or_assign(outcome.attempt, error);
    if (is_rejection(error)) return;
    unconfirmed_.add(outcome.attempt, outcome.change);
    hold(gang);
    if (error.kind == Kind::unavailable) view_.note_away(error.message);
  }

  const SlurmSettings settings_;
  const std::unique_ptr<Slurm> slurm_;
  Clock& clock_;
  SlurmView view_;
  Submissions submissions_;
  ServedAttempts served_;
  PowerSaving power_saving_;
  // Subnets are used in rotation, so that late packets for an old gang do not reach a new one.
  networks::Address next_address_;
  std::shared_ptr<const SlurmAnswer> answer_;
  std::string away_;                             // why Slurm does not answer at present
  std::vector<OwnJob> all_;                      // of this server, by id
  std::map<domain::AttemptId, size_t> present_;  // indices into all_, without removed jobs
  std::map<domain::AttemptId, Held> held_;
  std::map<domain::AttemptId, Queued> queued_;
  std::map<domain::AttemptId, Error> failures_;  // submissions that failed since list()
  std::map<uint64_t, Submitted> submitted_;      // by job
  std::map<uint64_t, std::set<std::string>> nodes_of_submitted_;
  std::map<uint64_t, uint64_t> removed_;  // by job: the change that removed it
  CompletingJobs completing_;
  const std::chrono::nanoseconds began_;
  UnconfirmedSubmissions unconfirmed_;
};

}  // namespace

Result<std::unique_ptr<Launcher>> make_slurm(const SlurmSettings& settings, SlurmClients slurm,
                                             Clock& clock) {
  auto launcher = std::make_unique<SlurmLauncher>(settings, std::move(slurm), clock);
  TRY(launcher->begin());
  return std::unique_ptr<Launcher>(std::move(launcher));
}

}  // namespace trainyard::launch
