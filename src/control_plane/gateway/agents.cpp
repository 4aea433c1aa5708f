#include "gateway/agents.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "contract/aws_texts.hpp"
#include "gateway/agent_session.hpp"
#include "gateway/fact_check.hpp"
#include "gateway/hello_check.hpp"
#include "gateway/host_log.hpp"
#include "gateway/orders.hpp"
#include "gateway/rank_watches.hpp"
#include "gateway/shell_table.hpp"
#include "reconcile/state.hpp"
#include "wire/codec.hpp"

namespace trainyard::gateway {
namespace {

using domain::HostState;
using domain::StopCause;
using Session = AgentSession;

// An agent's clock may be wrong: later times are replaced by now, so that retention applies to
// them.
constexpr Duration kAheadMax = 24h;
constexpr size_t kMetricNameBytesMax = 255;     // as CloudWatch
constexpr size_t kProgressThingsMax = 64;       // of one host: its channels, its image, its model
constexpr Duration kAllocationMax = 366 * 24h;  // as the launcher's limit
constexpr size_t kProgressNameBytesMax = 300;   // "channel " and AWS's longest name

class AgentServer final : public Agents, private Shells {
 public:
  AgentServer(control::ControlPlane& control, observe::Logs& logs, observe::Metrics& metrics,
              Clock& clock, Duration stop_grace, IssueCredentials issue_credentials,
              const DataCaps& caps, ReportAllocation allocations)
      : control_(control),
        logs_(logs),
        metrics_(metrics),
        clock_(clock),
        stop_grace_(stop_grace),
        issue_credentials_(std::move(issue_credentials)),
        caps_(caps),
        allocations_(std::move(allocations)) {
    control_.watch({[this](const auto& job) { changed(*job); }, [this] { refresh(); }});
  }

  net::LinkEvents events() override {
    return {[this](const auto& link) { opened(link); },
            [this](const auto& link, std::string frame) { received(link, frame); },
            [this](const auto& link, const Error&) { closed(link); }};
  }

  size_t linked() override {
    const MutexLock lock(mutex_);
    return sessions_.size();
  }

  Shells& shells() override { return *this; }

  std::vector<HostActivity> activity(domain::JobNumber job) override {
    std::vector<HostActivity> all;
    const auto now = clock_.monotonic();
    const MutexLock lock(mutex_);
    const std::vector<diagnosis::RankFault> faults = watches_.faults(job);
    for (const auto& [number, session] : sessions_of(job)) {
      if (!session->activity) continue;
      const auto since = std::chrono::duration_cast<Duration>(now - session->activity_at);
      HostActivity& one = all.emplace_back(HostActivity{session->host, *session->activity});
      add_elapsed(one.activity, since);
      std::ranges::copy_if(
          faults, std::back_inserter(one.faults),
          [host = session->host](const auto& fault) { return fault.host == host; });
    }
    std::ranges::sort(all, {}, &HostActivity::host);
    return all;
  }

  void report_faults(ReportRankFault report) override {
    const MutexLock lock(report_mutex_);
    report_fault_ = std::move(report);
  }

  std::vector<HostProgress> progress(domain::JobNumber job) override {
    std::vector<HostProgress> all;
    const MutexLock lock(mutex_);
    for (const auto& [number, session] : sessions_of(job))
      for (const auto& one : session->progress)
        all.push_back({session->host, one.what, one.done_bytes, one.total_bytes, one.finished});
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.host < b.host; });
    return all;
  }

 private:
  void opened(const std::shared_ptr<net::Link>& link) {
    auto session = std::make_shared<Session>();
    session->link = link;
    const MutexLock lock(mutex_);
    session->number = ++last_number_;
    numbers_[link.get()] = session->number;
    sessions_[session->number] = std::move(session);
  }

  void closed(const std::shared_ptr<net::Link>& link) {
    MutexLock lock(mutex_);
    const auto found = numbers_.find(link.get());
    if (found == numbers_.end()) return;
    const uint64_t number = found->second;
    numbers_.erase(found);
    const auto session = sessions_.extract(number).mapped();
    session->open = false;
    std::vector<diagnosis::FaultNews> ended;
    if (const auto of_job = by_job_.find(session->attempt.job); of_job != by_job_.end()) {
      of_job->second.erase(number);
      if (of_job->second.empty()) {
        by_job_.erase(of_job);
        ended = watches_.end(session->attempt.job, clock_.monotonic());
        if (session->dismissed) watches_.forget(session->attempt.job);
      }
    }
    lock.unlock();
    announce(session->job, ended);
    shell_table_.link_closed(number);
  }

  void announce(const domain::JobKey& job, const std::vector<diagnosis::FaultNews>& news) {
    const MutexLock lock(report_mutex_);
    for (const auto& each : news)
      if (report_fault_) report_fault_(job, each);
  }

  void received(const std::shared_ptr<net::Link>& link, std::string_view frame) {
    std::shared_ptr<Session> session;
    {
      const MutexLock lock(mutex_);
      const auto found = numbers_.find(link.get());
      if (found == numbers_.end()) return;
      session = sessions_.at(found->second);
    }
    auto message = wire::decode(frame);
    const Result<void> done = message ? handle(session, *message) : Result<void>(message.error());
    if (done) return;
    log(Level::warning, "gateway", "an agent's link is closed",
        {{"attempt", session->greeted ? session->attempt.text() : "unknown"},
         {"why", done.error().message}});
    link->close();
  }

  // Errors close the link: the agent connects again and repeats what was not acknowledged.
  Result<void> handle(const std::shared_ptr<Session>& session, wire::Message& message) {
    if (const auto* hello = std::get_if<wire::Hello>(&message)) return greet(session, *hello);
    if (!session->greeted) return denied("the first message must be Hello");
    if (const auto* fact = std::get_if<wire::StateFact>(&message))
      return apply_fact(session, *fact);
    if (auto* batch = std::get_if<wire::LogBatch>(&message)) return keep(session, *batch);
    if (const auto* batch = std::get_if<wire::MetricBatch>(&message)) return keep(session, *batch);
    if (const auto* data = std::get_if<wire::ShellData>(&message))
      return shell_table_.from_agent(session->number, *data);
    if (const auto* progress = std::get_if<wire::Progress>(&message))
      return note(*session, *progress);
    if (auto* activity = std::get_if<wire::Activity>(&message)) return note(*session, *activity);
    if (const auto* idle = std::get_if<wire::Idle>(&message)) return note(*session, *idle);
    if (const auto* unknown = std::get_if<wire::Unknown>(&message)) {
      if (!std::exchange(session->skipped, true))
        log(Level::info, "gateway", "skipped an unknown message of an agent of a later version",
            {{"attempt", session->attempt.text()}, {"kind", std::to_string(unknown->kind)}});
      return {};
    }
    return invalid("unexpected message: only the server may send it");
  }

  static Instant plausible(Instant at, Instant now) {
    return at < Instant{} || at > now + kAheadMax ? now : at;
  }

  // -- transient messages

  Result<void> note(Session& session, const wire::Progress& progress) {
    if (progress.what.empty() || progress.what.size() > kProgressNameBytesMax)
      return corrupt("invalid Progress.what: not the name of a transfer");
    const MutexLock lock(mutex_);
    for (auto& known : session.progress)
      if (known.what == progress.what) {
        known = progress;
        return {};
      }
    if (session.progress.size() < kProgressThingsMax) session.progress.push_back(progress);
    return {};
  }

  Result<void> note(Session& session, wire::Activity& activity) {
    TRY(check_activity(activity));
    std::vector<diagnosis::FaultNews> news;
    std::map<domain::HostIndex, observe::StreamKey> streams;
    {
      const MutexLock lock(mutex_);
      const auto now = session.activity_at = clock_.monotonic();
      session.activity = std::move(activity);
      // A host that has ended has no ranks for which others could wait.
      if (session.dismissed || !watches_.is_due(session.attempt, now)) return {};
      std::vector<diagnosis::RankState> ranks;
      for (const auto& [number, each] : sessions_of(session.attempt.job))
        if (!each->dismissed && each->attempt == session.attempt) {
          add_ranks(*each, now, ranks);
          streams[each->host] = each->stream;
        }
      news = watches_.update(session.attempt, ranks, now);
    }
    for (const auto& each : news)
      if (const auto stream = streams.find(each.fault.host); stream != streams.end())
        append_own_line(logs_, stream->second, caps_.log_bytes_max, clock_.now(), line_of(each));
    announce(session.job, news);
    return {};
  }

  // Sends to the agent of a link, for the table of shells. Returns false if the link has closed.
  bool send_to(uint64_t number, const wire::Message& message) {
    const MutexLock lock(mutex_);
    const auto found = sessions_.find(number);
    if (found == sessions_.end()) return false;
    found->second->say(message);
    return found->second->open;
  }

  Result<std::unique_ptr<Shell>> open(const ShellOrder& order) override {
    const auto job = TRY(control_.find(order.job).in("the job " + order.job.name));
    const domain::Attempt* attempt = job->attempt();
    if (order.host >= job->spec.hosts())
      return not_found(order.job.name + " has no host " + domain::host_name(order.host));
    if (job->finished()) return conflict(order.job.name + " has ended");
    if (!attempt) return conflict(order.job.name + " does not run yet");
    if (attempt->hosts[order.host].state != HostState::running)
      return conflict(domain::host_name(order.host) + " is " +
                      std::string(domain::to_string(attempt->hosts[order.host].state)) +
                      ": a shell needs a running host");
    uint64_t number = 0;
    {
      const MutexLock lock(mutex_);
      for (const auto& [each, session] : sessions_of(job->number))
        if (session->host == order.host) number = each;
    }
    if (number == 0)
      return conflict("the agent of " + domain::host_name(order.host) + " is not connected");
    return shell_table_.open(number, order);
  }

  // -- Hello

  Result<void> greet(const std::shared_ptr<Session>& session, const wire::Hello& hello) {
    if (session->greeted) return invalid("a second Hello on one connection");
    const auto job = control_.find(hello.attempt.job);
    if (!job && job.error().kind != Kind::not_found) return job.error();
    const std::string name = session->link->peer_name();
    const std::string refusal =
        job ? refusal_of(**job, hello, name, linked_agent(hello)) : "unknown job";
    if (!refusal.empty()) return refuse(*session, hello, refusal);
    const domain::Attempt& attempt = *(*job)->attempt();
    const observe::StreamKey stream{(*job)->key.region,
                                    std::string(reconcile::log_group_of(**job, hello.host)),
                                    reconcile::log_stream_of(**job, attempt, hello.host)};
    const std::string writer = hello.attempt.text() + "/" + domain::host_name(hello.host);
    const uint64_t logged = TRY(last_batch_of(logs_, stream, session->stream_lost));
    const uint64_t data_applied = std::max(logged, TRY(metrics_.last_batch(writer)));

    MutexLock lock(mutex_);
    session->attempt = hello.attempt;
    session->host = hello.host;
    session->allocation = {hello.allocation,
                           hello.served,
                           hello.attempt,
                           hello.token,
                           attempt.hosts[hello.host].machine,
                           (*job)->spec.principal,
                           attempt.hosts[hello.host].facts_applied > 0};
    // The agent begins after Welcome.
    if (const std::string why = report_allocation(*session, {}); !why.empty())
      return lock.unlock(), refuse(*session, hello, why);
    // The agent listens on its newest link.
    for (auto& [number, other] : sessions_of(hello.attempt.job))
      if (other->attempt == hello.attempt && other->host == hello.host) other->link->close();
    session->greeted = true;
    if (sessions_.contains(session->number))  // the link has not closed meanwhile
      by_job_[hello.attempt.job][session->number] = session;
    session->job = (*job)->key;
    session->stream = stream;
    session->writer = writer;
    session->data_applied = data_applied;
    session->version = *wire::common_version(hello);  // otherwise it was refused
    session->say(wire::Welcome{attempt.hosts[hello.host].facts_applied, data_applied,
                               session->version, (*job)->own_time(control_.now())});
    give_orders(*session, **job);
    give_credentials(*session, **job, clock_.now());
    return {};
  }

  Result<void> refuse(Session& session, const wire::Hello& hello, const std::string& why) {
    log(Level::warning, "gateway", "an agent is refused",
        {{"attempt", hello.attempt.text()}, {"why", why}});
    const MutexLock lock(mutex_);
    session.say(wire::Refused{why});
    return {};
  }

  std::optional<LinkedAgent> linked_agent(const wire::Hello& hello) {
    const MutexLock lock(mutex_);
    for (const auto& [number, other] : sessions_of(hello.attempt.job))
      if (other->attempt == hello.attempt && other->host == hello.host)
        return LinkedAgent{other->allocation.number};
    return {};
  }

  // -- allocations that run one attempt after another

  std::string report_allocation(const Session& session, const std::optional<wire::Idle>& idle)
      REQUIRES(mutex_) {
    if (session.allocation.number == 0 || !allocations_) return "";
    LinkedAllocation report = session.allocation;
    report.idle = idle;
    return allocations_(std::move(report));
  }

  Result<void> note(Session& session, const wire::Idle& idle) {
    if (idle.time_left < Duration{} || idle.time_left > kAllocationMax)
      return corrupt("invalid Idle.time_left " + std::to_string(idle.time_left.count()) + " ms");
    const MutexLock lock(mutex_);
    session.idle = idle;
    if (session.ended_in_ledger) report_idle(session);
    return {};
  }

  // Requires: the host has ended in the ledger. Earlier, control would count the host as lost once
  // another attempt follows in its allocation.
  void report_idle(Session& session) REQUIRES(mutex_) {
    // An agent whose offer is rejected gets no order.
    if (const auto idle = std::exchange(session.idle, {})) (void)report_allocation(session, idle);
  }

  bool send_order(uint64_t allocation, const domain::AttemptId& from,
                  const wire::NextOrder& order) override {
    const MutexLock lock(mutex_);
    for (const auto& [number, session] : sessions_of(from.job)) {
      if (!session->open || session->allocation.number != allocation || session->attempt != from)
        continue;
      session->say(order);
      return true;
    }
    return false;
  }

  // -- state track

  Result<void> apply_fact(const std::shared_ptr<Session>& session, const wire::StateFact& fact) {
    wire::StateFact accepted = TRY(accepted_fact(fact));
    const std::weak_ptr<bool> here = here_;
    control_.report(
        session->attempt, session->host, std::move(accepted),
        [this, here, session](Result<control::FactApplied> applied) {
          if (here.expired()) return;  // control, which is destroyed later, rejects pending facts
          MutexLock lock(mutex_);
          if (applied) {
            session->say(wire::Acknowledge{wire::Track::state, applied->facts_applied});
            if (applied->final) dismiss(*session);
          } else if (applied.error().kind == Kind::denied ||
                     applied.error().kind == Kind::not_found) {
            session->say(wire::Refused{applied.error().message});
          } else {
            lock.unlock();
            log(Level::warning, "gateway", "cannot store a fact",
                {{"attempt", session->attempt.text()}, {"why", applied.error().message}});
            session->link->close();
          }
        });
    return {};
  }

  void dismiss(Session& session) REQUIRES(mutex_) {
    if (std::exchange(session.dismissed, true)) return;
    session.ended_in_ledger = true;
    report_idle(session);
    session.say(wire::Goodbye{});
  }

  // -- data track

  // Returns true if the batch must be stored, and false if it was stored earlier.
  Result<bool> is_next(const std::shared_ptr<Session>& session, uint64_t number) {
    if (number <= session->data_applied) {
      acknowledge_data(*session);
      return false;
    }
    // If a stream was removed, the number of its last batch is unknown.
    if (number != session->data_applied + 1 && !std::exchange(session->stream_lost, false))
      return conflict("batch " + std::to_string(number) + " is out of order: expected " +
                      std::to_string(session->data_applied + 1));
    return true;
  }

  void acknowledge_data(Session& session) {
    const MutexLock lock(mutex_);
    session.say(wire::Acknowledge{wire::Track::data, session.data_applied});
  }

  Result<void> keep(const std::shared_ptr<Session>& session, wire::LogBatch& batch) {
    if (!TRY(is_next(session, batch.number))) return {};
    const Instant now = clock_.now();
    std::vector<observe::LogEvent> events;
    events.reserve(batch.lines.size());
    for (wire::LogLine& line : batch.lines)
      events.push_back({plausible(line.at, now), now,
                        is_utf8(line.text) ? std::move(line.text) : to_utf8(line.text)});
    TRY(keep_lines(*session, std::move(events), batch.number).in("keeping log lines"));
    session->data_applied = batch.number;
    acknowledge_data(*session);
    return {};
  }

  // Stores lines. If the disk is full, lines are dropped and counted, since an agent that kept them
  // would fill its own disk next. The batch's number is still stored, so that the next connection
  // continues after it.
  Result<void> keep_lines(Session& session, std::vector<observe::LogEvent> events,
                          uint64_t number) {
    uint64_t bytes = 0;
    for (const auto& event : events) bytes += event.message.size() + 1;
    if (TRY(stored_bytes_of(logs_, session.stream)) >= caps_.log_bytes_max) {
      events.clear();
      if (!std::exchange(session.log_full, true))
        events.push_back(own_line(clock_.now(), "the log of this host has reached its limit of " +
                                                    human_bytes(caps_.log_bytes_max) +
                                                    "; further lines are dropped"));
      return logs_.append(session.stream, events, number);
    }
    if (session.dropped_log_bytes > 0)
      events.insert(
          events.begin(),
          own_line(clock_.now(), std::to_string(session.dropped_log_bytes) +
                                     " bytes of log were dropped here because the server's disk "
                                     "was nearly full"));
    const auto kept = logs_.append(session.stream, events, number);
    if (kept) session.dropped_log_bytes = 0;
    if (kept || kept.error().kind != Kind::exhausted) return kept;
    if (session.dropped_log_bytes == 0)
      log(Level::error, "gateway", "log lines are dropped",
          {{"stream", session.stream.stream}, {"why", kept.error().message}});
    session.dropped_log_bytes += bytes;
    return logs_.append(session.stream, {}, number);
  }

  // Returns true if this host may use a series of that name.
  bool takes_series(Session& session, const std::string& name) {
    if (session.series.contains(name)) return true;
    if (session.series.size() < caps_.metric_series_max) return session.series.insert(name).second;
    if (!std::exchange(session.series_full, true))
      append_own_line(logs_, session.stream, caps_.log_bytes_max, clock_.now(),
                      "this host has sent metrics of " + std::to_string(caps_.metric_series_max) +
                          " names, which is the limit; points of further names are dropped");
    return false;
  }

  Result<void> keep(const std::shared_ptr<Session>& session, const wire::MetricBatch& batch) {
    if (!TRY(is_next(session, batch.number))) return {};
    const Instant now = clock_.now();
    std::vector<observe::MetricRecord> records;
    for (const wire::MetricPoint& point : batch.points) {
      // A loss that diverged: statistics cannot represent it.
      if (!std::isfinite(point.value)) continue;
      if (point.name.size() > kMetricNameBytesMax || !takes_series(*session, point.name)) continue;
      observe::MetricRecord record;
      record.key = {
          session->stream.region, std::string(reconcile::kMetricNameSpace), point.name, {}};
      if (point.of_host)
        record.key.dimensions["Host"] = session->job.name + "/" + domain::host_name(session->host);
      else
        record.key.dimensions[contract::kTrainingJobDimension] = session->job.name;
      record.sample = observe::sample_of(plausible(point.at, now), point.value);
      records.push_back(std::move(record));
    }
    TRY(metrics_.append_batch(session->writer, batch.number, records).in("keeping metrics"));
    session->data_applied = batch.number;
    acknowledge_data(*session);
    return {};
  }

  // -- orders: computed from the job's state, and sent once on each link

  void changed(const domain::Job& job) {
    MutexLock lock(mutex_);
    for (auto& [number, session] : sessions_of(job.number)) give_orders(*session, job);
    if (!job.finished()) return;
    const auto ended = watches_.end(job.number, clock_.monotonic());
    watches_.forget(job.number);
    lock.unlock();
    announce(job.key, ended);
  }

  using Sessions = std::map<uint64_t, std::shared_ptr<Session>>;

  // The sessions of a job whose Hello was verified.
  const Sessions& sessions_of(domain::JobNumber job) const REQUIRES(mutex_) {
    static const Sessions none;
    const auto found = by_job_.find(job);
    return found == by_job_.end() ? none : found->second;
  }

  void give_orders(Session& session, const domain::Job& job) REQUIRES(mutex_) {
    const domain::Attempt* attempt = job.attempt();
    if (session.dismissed) return;
    if (!attempt || attempt->number != session.attempt.number ||
        attempt->hosts[session.host].state == HostState::lost) {
      session.dismissed = true;
      session.say(wire::Refused{"the host was declared lost"});
      return;
    }
    if (is_final(attempt->hosts[session.host].state)) return dismiss(session);
    const wire::Stop stop = stop_order_of(job, *attempt, session.host, stop_grace_);
    // A Stop with a shorter grace period replaces the first.
    if (stop.cause != StopCause::none &&
        (session.stop_sent != stop.cause || stop.grace < session.grace_sent)) {
      session.say(stop);
      session.stop_sent = stop.cause;
      session.grace_sent = stop.grace;
    }
    if (!session.main_runs_sent && main_runs_for(job, *attempt, session.host)) {
      session.say(wire::MainRuns{});
      session.main_runs_sent = true;
    }
    if (session.peers_sent) return;
    if (const auto peers = peers_order_of(*attempt, session.host)) {
      session.say(*peers);
      session.peers_sent = true;
    }
  }

  void give_credentials(Session& session, const domain::Job& job, Instant now) REQUIRES(mutex_) {
    if (session.dismissed || job.finished()) return;
    if (session.credentials_expire && *session.credentials_expire - now > kCredentialsLeftMin)
      return;
    const wire::Credentials credentials = issue_credentials_(job, session.attempt, now);
    session.credentials_expire = credentials.expires;
    session.say(credentials);
  }

  // Renews credentials, and sends orders of commits that happened between the reading of the job by
  // greet() and the registration of the session.
  void refresh() {
    const Instant now = clock_.now();  // keys end by the wall clock, as their verifiers read it
    const MutexLock lock(mutex_);
    for (auto& [number, session] : sessions_) {
      if (!session->greeted || session->dismissed) continue;
      const auto job = control_.find(session->attempt.job);
      if (!job) continue;
      give_orders(*session, **job);
      give_credentials(*session, **job, now);
    }
  }

  control::ControlPlane& control_;
  observe::Logs& logs_;
  observe::Metrics& metrics_;
  Clock& clock_;
  const Duration stop_grace_;
  const IssueCredentials issue_credentials_;
  const DataCaps caps_;
  const ReportAllocation allocations_;

  // Pending answers check by this whether the server still exists.
  const std::shared_ptr<bool> here_ = std::make_shared<bool>(true);

  Mutex report_mutex_;
  ReportRankFault report_fault_ GUARDED_BY(report_mutex_);
  Mutex mutex_;
  uint64_t last_number_ GUARDED_BY(mutex_) = 0;
  // By number, so that orders are sent in the order of connection: equal in all runs of a seed. A
  // session is shared with the answers to pending facts; the last owner destroys it.
  Sessions sessions_ GUARDED_BY(mutex_);
  std::map<domain::JobNumber, Sessions> by_job_ GUARDED_BY(mutex_);  // their Hello was verified
  std::map<const net::Link*, uint64_t> numbers_ GUARDED_BY(mutex_);
  RankWatches watches_ GUARDED_BY(mutex_);
  ShellTable shell_table_{
      [this](uint64_t number, const wire::Message& message) { return send_to(number, message); },
      clock_};
};

}  // namespace

std::unique_ptr<Agents> make_agents(control::ControlPlane& control, observe::Logs& logs,
                                    observe::Metrics& metrics, Clock& clock, Duration stop_grace,
                                    IssueCredentials issue_credentials, const DataCaps& caps,
                                    ReportAllocation allocations) {
  return std::make_unique<AgentServer>(control, logs, metrics, clock, stop_grace,
                                       std::move(issue_credentials), caps, std::move(allocations));
}

}  // namespace trainyard::gateway
