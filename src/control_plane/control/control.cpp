#include "control/control.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/thread_safety.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "control/admission.hpp"
#include "control/commit_batch.hpp"
#include "control/explainer.hpp"
#include "control/gang.hpp"
#include "control/image_resolver.hpp"
#include "control/live.hpp"
#include "control/replayer.hpp"
#include "control/resizing.hpp"
#include "control/resource_records.hpp"
#include "domain/stage.hpp"
#include "reconcile/host_reuse.hpp"
#include "reconcile/reconcile.hpp"
#include "reconcile/state.hpp"

namespace trainyard::control {
namespace {

using domain::AttemptId;
using domain::Job;
using domain::JobNumber;
using domain::JobState;

constexpr size_t kTokenBytes = 16;  // cannot be guessed

class SingleWriter final : public ControlPlane {
 public:
  SingleWriter(Settings settings, ledger::Ledger& ledger, launch::Launcher& launcher,
               observe::Logs& logs, Clock& clock, Random& random)
      : settings_(std::move(settings)),
        ledger_(ledger),
        launcher_(launcher),
        logs_(logs),
        clock_(clock),
        time_(clock, settings_.clock),
        random_(random) {
    // All instants are in control's time, which jumps of the wall clock do not affect.
    for (reconcile::TraceEvent& event : settings_.spot.trace) event.at -= time_.offset();
  }

  ~SingleWriter() override {
    for (const PendingCommand& each : backlog_) each.refuse(unavailable("the server is stopping"));
  }

  Result<void> load() {
    std::vector<std::shared_ptr<const Job>> jobs;
    for (Job& job : TRY(ledger_.live_jobs().in("loading live jobs")))
      jobs.push_back(std::make_shared<Job>(std::move(job)));
    for (const auto& job : jobs) time_.not_before(job->control_time(job->modified));
    began_ = time_.now();
    live_.put(jobs);
    const auto resources = TRY(ledger_.resources().in("loading queues and environments"));
    catalog_.put(TRY(catalog_of(resources).in("loading queues and environments")));
    records_.put(
        std::make_shared<const domain::Records>(TRY(ledger_.records().in("loading records"))));
    const auto usages = TRY(ledger_.usages().in("loading what shares have used"));
    usages_.put({usages.begin(), usages.end()});
    log(Level::info, "control", "loaded", {{"live_jobs", std::to_string(jobs.size())}});
    return {};
  }

  // -- commands

  void create_job(CreateJob job, Answer answer) override {
    if (const auto admitted = admit(job); !admitted) return answer(admitted.error());
    enqueue({std::move(job), {}, by_value(std::move(answer)), {}});
  }

  void stop_job(domain::JobKey key, Answer answer) override {
    enqueue({reconcile::StopJob{0, settings_.stop_grace},
             std::move(key),
             by_value(std::move(answer)),
             {}});
  }

  void kill_job(domain::JobKey key, std::string reason, Answer answer) override {
    const auto job = find(key);
    if (!job) return answer(job.error());
    reconcile::Command command = reconcile::StopJob{0, 0ms, reason};
    if ((*job)->spec.queue)
      command = reconcile::CancelJob{0, domain::Cancellation::terminated, std::move(reason), 0ms};
    enqueue({std::move(command), std::move(key), by_value(std::move(answer)), {}});
  }

  void interrupt_job(domain::JobKey key, Interruption requested, Answer answer) override {
    reconcile::Interrupt interrupt;
    interrupt.host = requested.host;
    interrupt.notice = requested.notice.value_or(settings_.spot_notice);
    interrupt.reason =
        requested.reason.empty() ? "requested by a user" : std::move(requested.reason);
    enqueue({std::move(interrupt), std::move(key), by_value(std::move(answer)), {}});
  }

  void keep_alive(domain::JobKey key, int64_t seconds, Answer answer) override {
    enqueue({reconcile::KeepAlive{0, seconds}, std::move(key), by_value(std::move(answer)), {}});
  }

  void cancel_job(domain::JobKey key, domain::Cancellation how, std::string reason,
                  Answer answer) override {
    enqueue({reconcile::CancelJob{0, how, std::move(reason), settings_.stop_grace},
             std::move(key),
             by_value(std::move(answer)),
             {}});
  }

  void prioritise_job(domain::JobKey key, int64_t priority, Answer answer) override {
    enqueue({reconcile::Prioritise{0, priority}, std::move(key), by_value(std::move(answer)), {}});
  }

  void change_resource(ResourceRequest requested, ResourceAnswer answer) override {
    enqueue({reconcile::ChangeResource{requested.how, std::move(requested.resource)},
             {},
             {},
             {},
             std::move(answer)});
  }

  void change_records(RecordsRequest requested, RecordsAnswer answer) override {
    PendingCommand pending{
        reconcile::ChangeRecords{std::move(requested.writes), requested.expected}, {}, {}, {}};
    pending.records_answer = std::move(answer);
    enqueue(std::move(pending));
  }

  void set_tags(std::string arn, std::vector<domain::Tag> add, std::vector<std::string> remove_keys,
                TagAnswer answer) override {
    enqueue({reconcile::SetTags{std::move(arn), std::move(add), std::move(remove_keys)},
             {},
             {},
             std::move(answer)});
  }

  void report(AttemptId attempt, domain::HostIndex host, wire::StateFact fact,
              FactAnswer answer) override {
    const auto applied = [attempt, host,
                          answer = std::move(answer)](Result<std::shared_ptr<const Job>> job) {
      if (!job) return answer(std::move(job).error());
      const domain::Attempt* present = (*job)->attempt();
      CHECK(present && present->number == attempt.number && host < present->hosts.size(),
            "apply() looked");
      const domain::Host& state = present->hosts[host];
      answer(FactApplied{state.facts_applied, is_final(state.state)});
    };
    enqueue({reconcile::Fact{attempt, host, std::move(fact)}, {}, applied, {}});
  }

  // -- reads

  using Control::find;
  Result<std::shared_ptr<const Job>> find(const domain::JobKey& key,
                                          const reconcile::MaySeeJob& may_see) override {
    if (auto job = live_.find(key, may_see)) return job;
    if (auto job = recent_.find(key)) return job;
    std::shared_ptr<const Job> job = std::make_shared<Job>(TRY(find_stored(ledger_, key)));
    if (!job->live()) recent_.put(job);
    return job;
  }
  Result<std::shared_ptr<const Job>> find(JobNumber number) override {
    if (auto job = live_.find(number, reconcile::see_no_job)) return job;
    return std::shared_ptr<const Job>(std::make_shared<Job>(TRY(find_stored(ledger_, number))));
  }
  Result<domain::Image> find_image(const std::string& name) override {
    return TRY(images_.resolve(name))->image;
  }

  Result<domain::ChildCounts> count_children(const Job& array) override {
    return count_stored_children(ledger_, array);
  }
  Result<std::vector<Job>> children(const Job& array, const ledger::ChildQuery& query) override {
    return stored_children(ledger_, array, query);
  }

  Result<ledger::JobPage> list(const ledger::JobQuery& query) override {
    return ledger_.list_jobs(query);
  }

  Result<std::vector<domain::Tag>> tags(const std::string& arn) override {
    return ledger_.tags(arn);
  }

  std::vector<std::shared_ptr<const Job>> live_jobs() override { return live_.all(); }
  std::shared_ptr<const reconcile::QueueHeads> queue_heads() override { return queue_heads_.get(); }

  Result<reconcile::Explanation> explain(const domain::JobKey& key,
                                         const reconcile::ExplainRights& rights) override {
    return explainer_.explain(TRY(find(key))->number, rights);
  }

  Result<reconcile::Explanation> preview_job(CreateJob job, const reconcile::ExplainRights& rights,
                                             bool with_changes) override {
    CHECK(!job.spec.queue, "a job in a queue is checked against the queue when it is created");
    TRY(admit(job));
    const auto taken = find(job.key);
    if (taken) return name_taken(job.key);
    if (taken.error().kind != Kind::not_found) return taken.error();
    return explainer_.preview(std::move(job), rights, with_changes);
  }

  Result<ReplayReport> start_replay(const ReplayCaller& caller, ReplayRequest request) override {
    return replayer_.start(caller, std::move(request));
  }
  Result<ReplayReport> resume_replay(const ReplayCaller& caller, const std::string& id) override {
    return replayer_.resume(caller, id);
  }

  Instant now() override { return time_.now(); }
  Duration clock_offset() override { return time_.offset(); }

  std::shared_ptr<const batch::Catalog> batch_catalog() override { return catalog_.get(); }
  std::shared_ptr<const domain::Records> records() override { return records_.get(); }

  Result<std::vector<batch::JobDefinition>> definitions(
      const ledger::DefinitionQuery& query) override {
    return definitions_of(TRY(ledger_.definitions(query)));
  }

  // -- the loops

  void commit_step() override;
  std::chrono::nanoseconds reconcile_step() override;

  void on_due(std::function<void()> commit, std::function<void()> reconcile) override {
    commit_due_.set(std::move(commit));
    launcher_.on_change(reconcile);
    reconcile_due_.set(std::move(reconcile));
  }

  void watch(Watcher watcher) override { watchers_.push_back(std::move(watcher)); }

 private:
  // Checks a new job, and completes it.
  Result<void> admit(CreateJob& job) {
    TRY(admission_.check(job.spec));
    TRY(settings_.check_disk_space());
    job.account = settings_.account;
    job.arn = job_arn(job.account, job.key, job.spec.contract);
    job.awaits.clear();
    job.awaits_alike.clear();
    return {};
  }

  void enqueue(PendingCommand pending) {
    {
      MutexLock lock(backlog_mutex_);
      if (backlog_.size() >= settings_.backlog_commands_max) {
        lock.unlock();
        return pending.refuse(exhausted("the server has " +
                                        std::to_string(settings_.backlog_commands_max) +
                                        " commands waiting: try again"));
      }
      backlog_.push_back(std::move(pending));
    }
    commit_due_.notify();
  }

  // The time spent on failed actions, which the next step retries.
  std::chrono::nanoseconds carry_out(const reconcile::Decision& decision, Instant now);
  void submit(reconcile::Command command);
  bool ensure(AttemptId id, const reconcile::Decision& decision, const Result<void>& streams,
              Instant now);
  Result<void> start(const Job& job, AttemptId id, const reconcile::Decision& decision);
  Result<void> make_streams(const std::vector<AttemptId>& attempts);
  std::shared_ptr<const Job> job_in(AttemptId attempt) const;
  const std::set<domain::JobKey>& reuse_queues(
      const std::shared_ptr<const batch::Catalog>& catalog);
  void remember_leaving(const std::vector<launch::Agent>& agents);
  void look_up_awaited(reconcile::Snapshot& snapshot);
  std::chrono::nanoseconds reconcile();

  Settings settings_;  // changed only by the constructor
  mutable ImageResolver images_{settings_.images};
  Admission admission_{settings_, images_};
  Explainer explainer_{settings_};
  ledger::Ledger& ledger_;
  launch::Launcher& launcher_;
  observe::Logs& logs_;
  Clock& clock_;  // measures the duration of steps
  ControlTime time_;
  Random& random_;
  Replayer replayer_{settings_, *this, explainer_, clock_, random_};
  Instant began_{};  // set by load()
  Notifier commit_due_, reconcile_due_;
  std::vector<Watcher> watchers_;

  Mutex backlog_mutex_;
  std::deque<PendingCommand> backlog_ GUARDED_BY(backlog_mutex_);

  Live live_;
  Recent recent_;
  SharedCatalog catalog_;
  CurrentRecords records_;
  UsageIndex usages_;
  reconcile::SharedQueueHeads queue_heads_;

  // The number of uncommitted commands of the last reconcile_step. The next step waits until it is
  // 0, since it would decide the same again.
  std::atomic<size_t> own_commands_ = 0;

  // Confined to the reconciling thread.
  std::string reconcile_fault_;  // logged once
  std::map<AttemptId, Error> launch_failures_;
  std::map<JobNumber, JobState> ended_;  // jobs that others depend on
  std::set<AttemptId> removing_failed_;  // logged once
  Resizing resizing_{launcher_};
  reconcile::IdleSince idle_since_;
  std::set<domain::JobKey> reuse_queues_;
  // The change of tags, and the catalog, from which reuse_queues_ was computed.
  std::pair<uint64_t, std::shared_ptr<const batch::Catalog>> reuse_as_of_;

  std::atomic<uint64_t> tag_changes_ = 0;  // counted by the committing thread
};

// -- committing -----------------------------------------------------------------------------------

void SingleWriter::commit_step() {
  std::vector<PendingCommand> taken;
  bool more = false;
  {
    const MutexLock lock(backlog_mutex_);
    const size_t count = std::min(backlog_.size(), settings_.group_commands_max);
    std::move(backlog_.begin(), backlog_.begin() + ptrdiff_t(count), std::back_inserter(taken));
    backlog_.erase(backlog_.begin(), backlog_.begin() + ptrdiff_t(count));
    more = !backlog_.empty();
  }
  if (taken.empty()) return;
  const Instant now = time_.now();
  CommitBatch batch(ledger_, live_, usages_, catalog_.get(), records_.get(), now, time_.offset());
  std::vector<Result<std::shared_ptr<const Job>>> results;
  results.reserve(taken.size());
  for (PendingCommand& pending : taken) results.push_back(batch.add(pending));

  const auto committed = batch.commit();
  if (!committed) {
    log(Level::error, "control", "commit failed",
        {{"why", committed.error().message}, {"commands", std::to_string(taken.size())}});
    if (const std::string why = ledger_.failure(); !why.empty()) settings_.ledger_failed(why);
    for (const PendingCommand& pending : taken) pending.refuse(committed.error());
    if (more) commit_due_.notify();
    return;
  }
  const std::vector<std::shared_ptr<const Job>> changed = batch.changed();
  live_.put(changed);
  if (batch.changed_resources()) catalog_.put(batch.catalog());
  if (batch.changed_records()) records_.put(batch.records());
  usages_.put(batch.changed_usages());

  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i].job_answer) taken[i].job_answer(std::move(results[i]));
    if (taken[i].resource_answer) {
      if (results[i])
        taken[i].resource_answer(*std::move(taken[i].resource));
      else
        taken[i].resource_answer(std::move(results[i]).error());
    }
    taken[i].answer_records(results[i], batch.records());
    if (!taken[i].tag_answer) continue;
    if (results[i])
      taken[i].tag_answer(batch.tags_of(std::get<reconcile::SetTags>(taken[i].command).arn));
    else
      taken[i].tag_answer(std::move(results[i]).error());
  }
  for (const auto& job : changed)
    for (const Watcher& watcher : watchers_)
      if (watcher.changed) watcher.changed(job);
  if (batch.changed_tags()) ++tag_changes_;
  if (!changed.empty() || batch.changed_resources()) reconcile_due_.notify();
  if (more) commit_due_.notify();
}

// -- reconciling ----------------------------------------------------------------------------------

std::chrono::nanoseconds SingleWriter::reconcile_step() {
  if (own_commands_ > 0) return {};  // their commit wakes this loop
  try {
    return reconcile();
  } catch (const std::exception& fault) {
    // Faults of one job are caught earlier: this one concerns all jobs. The next interval retries.
    if (reconcile_fault_ != fault.what())
      log(Level::error, "control", "reconciling failed", {{"why", fault.what()}});
    reconcile_fault_ = fault.what();
    std::vector<schedule::Wait> waits;
    for (const auto& job : live_.all())
      if (job->state == JobState::waiting)
        waits.push_back({job->number, reconcile::planning_failed(reconcile_fault_)});
    live_.set_reasons(std::move(waits));
    return {};
  }
}

std::chrono::nanoseconds SingleWriter::reconcile() {
  const auto began = clock_.monotonic();
  const Instant now = time_.now();
  reconcile::Snapshot snapshot;
  // Queries the launcher first: an agent that reports its end later is not considered lost.
  snapshot.agents = launcher_.list();
  snapshot.machines = launcher_.machines();
  snapshot.kinds = launcher_.kinds();
  snapshot.idle_since = idle_since_;
  snapshot.clock_offset = time_.offset();
  snapshot.server_began = began_;
  remember_leaving(snapshot.agents);
  snapshot.jobs = live_.all();
  snapshot.catalog = catalog_.get();
  look_up_awaited(snapshot);
  for (const JobNumber array : reconcile::arrays_without_open_children(snapshot.jobs))
    if (const auto job = live_.stored(array))
      if (const auto counts = count_children(*job))
        snapshot.child_failed.emplace(array, counts->in(domain::Stage::failed) > 0);
  snapshot.queue_heads = *queue_heads_.get();
  snapshot.launch_failures = launch_failures_;
  snapshot.reuse_queues = reuse_queues(snapshot.catalog);
  snapshot.usages = usages_.all();
  snapshot.quotas = settings_.quotas();
  const reconcile::Decision decision = reconcile::decide(
      snapshot, {.scale_gangs = settings_.scale_gangs}, timeout_of(settings_), settings_.spot, now);
  queue_heads_.put(reconcile::next_queue_heads(snapshot.queue_heads, snapshot.jobs,
                                               *snapshot.catalog, decision.waits, now));
  idle_since_ = decision.idle_since;
  auto took = clock_.monotonic() - began;
  took += carry_out(decision, now);
  explainer_.put(std::move(snapshot), now);
  replayer_.drop_idle();
  for (const Watcher& watcher : watchers_)
    if (watcher.reconciled) watcher.reconciled();
  return took;
}

// Reads the final states of jobs that others depend on and that are no longer in memory. They do
// not change, so each is read once.
void SingleWriter::look_up_awaited(reconcile::Snapshot& snapshot) {
  for (const auto& job : snapshot.jobs) {
    if (job->state != JobState::waiting) continue;
    for (const JobNumber awaited : job->awaits) {
      if (snapshot.ended.contains(awaited) || live_.stored(awaited)) continue;
      if (const auto known = ended_.find(awaited); known != ended_.end())
        snapshot.ended.insert(*known);
      else if (const auto kept = find_stored(ledger_, awaited); kept && kept->finished())
        snapshot.ended.emplace(awaited, kept->state);
    }
  }
  ended_ = snapshot.ended;
}

// Removes finished jobs from memory that neither keep hosts nor have agents that the launcher
// lists, which would use machines.
void SingleWriter::remember_leaving(const std::vector<launch::Agent>& agents) {
  std::set<JobNumber> shown;
  for (const launch::Agent& agent : agents) shown.insert(agent.attempt.job);
  for (const auto& job : live_.all())
    if (!job->live() && !shown.contains(job->number)) live_.forget(job->number);
  for (const JobNumber number : shown) {
    if (live_.stored(number)) continue;
    auto job = ledger_.find_job(number);
    // Only finished jobs can be missing; decide() removes attempts that the ledger does not have.
    if (job && job->finished()) live_.put({std::make_shared<const Job>(*std::move(job))});
  }
}

// Carries a decision out. Commands become durable while gangs start; attempts are removed last.
std::chrono::nanoseconds SingleWriter::carry_out(const reconcile::Decision& decision, Instant now) {
  live_.set_reasons(decision.waits);
  own_commands_ += decision.commands.size();
  for (reconcile::Command command : decision.commands) {
    auto* start = std::get_if<reconcile::StartAttempt>(&command);
    if (const auto job = start ? live_.stored(start->job) : nullptr)
      complete_start(settings_, *job, images_, *start);
    submit(std::move(command));
  }
  const auto began = clock_.monotonic();
  bool in_vain = false;
  const auto streams = make_streams(decision.ensure);
  for (const AttemptId id : decision.ensure) in_vain |= !ensure(id, decision, streams, now);
  std::erase_if(launch_failures_, [&](const auto& failure) {
    return std::ranges::find(decision.ensure, failure.first) == decision.ensure.end();
  });
  in_vain |= !resizing_.carry_out(decision);
  for (const AttemptId id : decision.remove) {
    const auto removed = launcher_.remove(id);
    in_vain |= !removed;
    if (removed) {
      removing_failed_.erase(id);
    } else if (removing_failed_.insert(id).second) {
      log(Level::warning, "control", "removing an attempt failed",
          {{"attempt", id.text()}, {"why", removed.error().message}});
    }
  }
  return in_vain ? clock_.monotonic() - began : std::chrono::nanoseconds();
}

void SingleWriter::submit(reconcile::Command command) {
  if (auto* start = std::get_if<reconcile::StartAttempt>(&command))
    start->token = random_.hex(kTokenBytes);
  const std::string kind(reconcile::kind_of(command));
  enqueue({std::move(command),
           {},
           [this, kind](const Result<std::shared_ptr<const Job>>& job) {
             if (!job)
               log(Level::warning, "control", "a decision could not be stored",
                   {{"command", kind}, {"why", job.error().message}});
             // If it could not be stored (a full disk), the next interval decides again: immediate
             // retries would be endless.
             if (--own_commands_ == 0 && job) reconcile_due_.notify();
           },
           {}});
}

// Returns the queues whose tag allows host reuse. Reads them again when tags or queues have
// changed.
const std::set<domain::JobKey>& SingleWriter::reuse_queues(
    const std::shared_ptr<const batch::Catalog>& catalog) {
  const uint64_t change = tag_changes_;
  if (reuse_as_of_ == std::pair(change, catalog)) return reuse_queues_;
  reuse_queues_ = reconcile::queues_with_reuse(*catalog, ledger_, settings_.account);
  reuse_as_of_ = {change, catalog};
  return reuse_queues_;
}

// Returns the job that has this current attempt; nullptr if none has.
std::shared_ptr<const Job> SingleWriter::job_in(AttemptId attempt) const {
  auto job = live_.stored(attempt.job);
  return job && job->attempt() && job->attempt()->number == attempt.number ? job : nullptr;
}

// Creates the streams of all starting hosts with one sync. Clients show no stream of a job until
// all of them exist.
Result<void> SingleWriter::make_streams(const std::vector<AttemptId>& attempts) {
  std::vector<observe::StreamKey> keys;
  for (const AttemptId id : attempts)
    if (const auto job = job_in(id))
      for (domain::HostIndex host = 0; host < job->attempt()->hosts.size(); ++host)
        keys.push_back({job->key.region, std::string(reconcile::log_group_of(*job, host)),
                        reconcile::log_stream_of(*job, *job->attempt(), host)});
  return keys.empty() ? ok() : logs_.ensure_streams(keys);
}

Result<void> SingleWriter::start(const Job& job, AttemptId id,
                                 const reconcile::Decision& decision) {
  const launch::Gang gang = TRY(gang_of(settings_, images_, job, id, time_.now(), time_.offset(),
                                        reconcile::may_reuse(job, reuse_queues_)));
  const auto former = decision.after.find(id);
  if (former != decision.after.end() && TRY(launcher_.reuse_host(former->second, gang))) return {};
  return launcher_.ensure(gang);
}

// `streams` is the result of creating their log streams.
bool SingleWriter::ensure(AttemptId id, const reconcile::Decision& decision,
                          const Result<void>& streams, Instant now) {
  const auto job = job_in(id);
  if (!job) return true;
  const auto started = [&]() -> Result<void> {
    TRY(streams);
    try {
      return start(*job, id, decision);
    } catch (const std::exception& fault) {
      return internal(std::string("the gang cannot be made: ") + fault.what());
    }
  }();
  if (started) {
    launch_failures_.erase(id);
    log(Level::info, "control", "started",
        {{"job", job->key.name},
         {"attempt", id.text()},
         {"hosts", std::to_string(job->attempt()->hosts.size())},
         {"after_ms", std::to_string((job->own_time(now) - job->created).count())}});
    return true;
  }
  if (!launch_failures_.contains(id))
    log(Level::warning, "control", "cannot start",
        {{"job", job->key.name}, {"attempt", id.text()}, {"why", started.error().message}});
  launch_failures_.insert_or_assign(id, started.error());
  if (started.error().kind != Kind::unavailable && started.error().kind != Kind::exhausted)
    reconcile_due_.notify();
  return false;
}

}  // namespace

Result<std::unique_ptr<ControlPlane>> make_control(Settings settings, ledger::Ledger& ledger,
                                                   launch::Launcher& launcher, observe::Logs& logs,
                                                   Clock& clock, Random& random) {
  auto control =
      std::make_unique<SingleWriter>(std::move(settings), ledger, launcher, logs, clock, random);
  TRY(control->load());
  return std::unique_ptr<ControlPlane>(std::move(control));
}

}  // namespace trainyard::control
