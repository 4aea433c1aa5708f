#include "control/replayer.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace trainyard::control {
namespace {

constexpr size_t kReplayIdBytes = 16;
constexpr size_t kReplayKeysCheckedMax = 256;  // jobs for which rights are checked, in a report

Result<void> check_period(const ReplayRequest& request) {
  if (request.end <= request.begin)
    return invalid("invalid period: it ends before it begins, or lies in the future");
  if (request.end - request.begin > kReplayPeriodMax)
    return invalid("invalid period: longer than 366 days");
  if (request.variants.size() > schedule::kReplayVariantsMax)
    return invalid("more than " + std::to_string(schedule::kReplayVariantsMax) + " variants");
  return {};
}

Error too_many_replayed() {
  return exhausted("more than " + std::to_string(schedule::kReplayJobsMax) +
                   " jobs: choose a shorter period");
}

}  // namespace

// A Session is one replay: it first reads jobs, then plans. Confined to the caller that works on
// it.
class Replayer::Session {
 public:
  Session(std::string id, std::string principal, ReplayRequest request,
          std::shared_ptr<const Explainer::Read> read, const Settings& settings, Control& control,
          Instant now)
      : id_(std::move(id)),
        principal_(std::move(principal)),
        request_(std::move(request)),
        read_(std::move(read)),
        control_(control),
        builder_(read_->snapshot, {.scale_gangs = settings.scale_gangs}, timeout_of(settings),
                 {request_.begin, request_.end, now}) {
    query_.region = request_.region;
    query_.created_before = request_.end;
    query_.modified_after = request_.begin - reconcile::kReplayUsageBefore;
    query_.jobs_max = ledger::kPageJobsMax;
    query_.descending = false;
  }

  const std::string& id() const { return id_; }
  const std::string& principal() const { return principal_; }

  // Returns true once the report is complete.
  Result<bool> work(const std::function<bool()>& may_continue) {
    while (!replay_) {
      if (!may_continue()) return false;
      TRY(read_more());
    }
    return replay_->advance(may_continue);
  }

  ReplayReport report(bool done, const ReplayCaller& caller) const {
    ReplayReport out{.id = id_, .done = done};
    // Reading counts as a fixed part of the work, since the number of jobs is unknown.
    constexpr double kReading = 0.2;
    const double read = double(builder_.jobs()) / double(builder_.jobs() + ledger::kPageJobsMax);
    out.progress = replay_ ? kReading + (1 - kReading) * replay_->progress() : kReading * read;
    if (!done) return out;
    out.progress = 1;
    out.begin = request_.begin;
    out.end = request_.end;
    out.counts = builder_.counts();
    for (const schedule::RecordedJob& job : replay_->history().jobs) {
      ++out.jobs;
      out.counted += job.counts;
    }
    add_affected(caller, out);
    out.outcomes = replay_->outcomes();
    for (schedule::ReplayOutcome& outcome : out.outcomes) outcome.wait_of.clear();
    return out;
  }

 private:
  // Reads live jobs, then page after page, and expands arrays; then begins to replay.
  Result<void> read_more() {
    if (array_) return read_children();
    if (!arrays_.empty()) {
      array_ = std::move(arrays_.back());
      arrays_.pop_back();
      first_child_ = 0;
      return {};
    }
    if (!live_read_) {
      live_read_ = true;
      for (const auto& job : control_.live_jobs())
        if (job->key.region == request_.region && job->parent == 0) TRY(take(*job));
      return {};
    }
    if (pages_over_) return begin_replay();
    const auto page = TRY(control_.list(query_));
    for (const domain::Job& job : page.jobs) TRY(take(job));
    query_.token = page.next_token;
    pages_over_ = query_.token.empty();
    return {};
  }

  Result<void> take(const domain::Job& job) {
    if (job.is_array() && job.created < request_.end)
      arrays_.push_back(job);
    else
      builder_.add(job);
    return check_count();
  }

  Result<void> read_children() {
    ledger::ChildQuery query;
    query.first = first_child_;
    query.end = array_->spec.array.size;
    query.children_max = ledger::kPageJobsMax;
    for (domain::Job& child : TRY(control_.children(*array_, query)))
      builder_.add(std::move(child));
    first_child_ += uint32_t(query.children_max);
    if (first_child_ >= query.end) array_.reset();
    return check_count();
  }

  Result<void> check_count() const {
    if (builder_.jobs() > schedule::kReplayJobsMax || arrays_.size() > schedule::kReplayJobsMax)
      return too_many_replayed();
    return {};
  }

  Result<void> begin_replay() {
    replay_ = TRY(schedule::Replay::make(builder_.take(), request_.variants));
    return {};
  }

  void add_affected(const ReplayCaller& caller, ReplayReport& out) const {
    for (const size_t at : replay_->most_affected(kReplayKeysCheckedMax)) {
      if (out.affected.size() >= std::min(request_.affected_max, kReplayAffectedMax)) return;
      const domain::JobKey& key = builder_.keys()[at];
      if (!caller.may_see(key)) continue;
      AffectedJob& job = out.affected.emplace_back(AffectedJob{.key = key, .waits = {}});
      for (const auto& outcome : replay_->outcomes()) job.waits.push_back(outcome.wait_of[at]);
    }
  }

  const std::string id_, principal_;
  const ReplayRequest request_;
  const std::shared_ptr<const Explainer::Read> read_;
  Control& control_;
  reconcile::ReplayHistoryBuilder builder_;
  ledger::JobQuery query_;
  bool live_read_ = false, pages_over_ = false;
  std::vector<domain::Job> arrays_;  // not expanded yet
  std::optional<domain::Job> array_;
  uint32_t first_child_ = 0;
  std::unique_ptr<schedule::Replay> replay_;

 public:
  std::chrono::nanoseconds worked{};  // in all slices
};

Result<ReplayReport> Replayer::start(const ReplayCaller& caller, ReplayRequest request) {
  TRY(check_period(request));
  auto read = explainer_.last();
  if (!read) return unavailable("the server is starting: try again");
  std::shared_ptr<Session> session =
      std::make_shared<Session>(random_.hex(kReplayIdBytes), caller.principal, std::move(request),
                                std::move(read), settings_, control_, clock_.now());
  std::shared_ptr<Session> previous;  // is destroyed after the lock
  {
    const MutexLock lock(mutex_);
    const bool idle = session_ && clock_.monotonic() - used_ > kReplayIdleMax;
    if (busy_ || (session_ && session_->principal() != caller.principal && !idle))
      return exhausted("another replay is being computed, at most 1 at a time: try again later");
    previous = std::exchange(session_, session);
    busy_ = true;
  }
  previous.reset();
  return work(std::move(session), caller);
}

Result<ReplayReport> Replayer::resume(const ReplayCaller& caller, const std::string& id) {
  std::shared_ptr<Session> session;
  {
    const MutexLock lock(mutex_);
    if (!session_ || session_->id() != id || session_->principal() != caller.principal)
      return not_found("the replay is over or was dropped: start it again");
    if (busy_) return exhausted("another call computes the replay, at most 1 at a time: try again");
    session = session_;
    busy_ = true;
  }
  return work(std::move(session), caller);
}

Result<ReplayReport> Replayer::work(std::shared_ptr<Session> session, const ReplayCaller& caller) {
  const auto began = clock_.monotonic();
  Result<ReplayReport> out = internal("not computed");
  bool over = true;
  try {
    const auto done = session->work([&] { return clock_.monotonic() - began < kReplaySlice; });
    session->worked += clock_.monotonic() - began;
    if (!done) {
      out = done.error();
    } else if (!*done && session->worked > kReplayTimeMax) {
      out = exhausted(
          "the replay takes longer than 300 s: choose a shorter period, or fewer "
          "variants");
    } else {
      out = session->report(*done, caller);
      over = *done;
    }
  } catch (const std::exception& fault) {
    out = internal(std::string("the replay failed: ") + fault.what());
  }
  const MutexLock lock(mutex_);
  busy_ = false;
  used_ = clock_.monotonic();
  if (over && session_ == session) session_.reset();
  return out;
}

void Replayer::drop_idle() {
  std::shared_ptr<Session> dropped;  // is destroyed after the lock
  const MutexLock lock(mutex_);
  if (busy_ || !session_ || clock_.monotonic() - used_ <= kReplayIdleMax) return;
  dropped = std::exchange(session_, nullptr);
}

}  // namespace trainyard::control
