#include "trainyard_api/timeline/job_trace.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "domain/job_time.hpp"
#include "trainyard_api/timeline/trace_events.hpp"

namespace trainyard::api::trainyard_api {
namespace {

constexpr int64_t kControlProcess = 1, kHostProcesses = 2;
constexpr TraceTrack kJobTrack{kControlProcess, 1}, kAttemptsTrack{kControlProcess, 2},
    kStatusTrack{kControlProcess, 3};
constexpr int64_t kAgentThread = 1;
constexpr size_t kMessageBytesMax = 1'000;  // in a message or a reason

// Returns the last kTracedItemsMax items of a list.
template <class T>
std::span<const T> last_of(const std::vector<T>& list) {
  return std::span(list).last(std::min(list.size(), kTracedItemsMax));
}

void set_text(Json& arguments, const char* name, std::string_view text) {
  if (!text.empty()) arguments[name] = shorten(text, kMessageBytesMax);
}

// Makes the spans of a track consecutive, since instants of a record may be out of order.
class TrackEnd {
 public:
  explicit TrackEnd(Instant begin) : reached_(begin) {}
  // Returns the beginning of the next span, and advances to its end.
  std::pair<Instant, Instant> place(Instant begin, Instant end) {
    begin = std::max(begin, reached_);
    reached_ = std::max(begin, end);
    return {begin, reached_};
  }

 private:
  Instant reached_;
};

class JobDrawing {
 public:
  JobDrawing(const domain::Job& job, Instant now)
      : job_(job), intervals_(domain::time_intervals(job, now)) {
    end_ = intervals_.empty() ? job.created : intervals_.back().end;
  }

  void draw(TraceEvents& events) const {
    events.name_process(kControlProcess, "control plane");
    events.name_thread(kJobTrack, "job");
    events.name_thread(kAttemptsTrack, "attempts");
    events.name_thread(kStatusTrack, "status");
    draw_uses(events);
    draw_attempts(events);
    draw_statuses(events);
    if (const domain::Attempt* attempt = job_.attempt())
      for (size_t i = 0; i < std::min(attempt->hosts.size(), kTracedHostsMax); ++i)
        draw_host(*attempt, domain::HostIndex(i), events);
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    const auto note = [&](std::string_view which, size_t drawn, size_t all, std::string_view what) {
      if (drawn < all)
        notes.push_back(std::string(which) + " " + std::to_string(drawn) + " of " +
                        std::to_string(all) + " " + std::string(what) + " only");
    };
    note("the last", last_of(intervals_).size(), intervals_.size(), "uses of time");
    note("the last", last_of(job_.attempts).size(), job_.attempts.size(), "attempts");
    note("the last", last_of(job_.transitions).size(), job_.transitions.size(), "statuses");
    if (const domain::Attempt* attempt = job_.attempt())
      note("the first", std::min(attempt->hosts.size(), kTracedHostsMax), attempt->hosts.size(),
           "hosts");
    if (job_.attempts.size() > 1)
      notes.push_back("the hosts of the last attempt only: those of earlier ones are not recorded");
    return notes;
  }

  TraceFrame frame(Duration own_ahead) const {
    return {job_.created, end_, job_.training_start.value_or(job_.created), own_ahead};
  }

  Json metadata() const {
    Json other{{"job", job_.key.name},
               {"region", job_.key.region},
               {"state", to_string(job_.state)},
               {"created", to_iso8601(job_.created)}};
    set_text(other, "display_name", job_.spec.display_name);
    set_text(other, "failure", job_.failure_reason);
    return other;
  }

 private:
  void draw_uses(TraceEvents& events) const {
    Json arguments{{"state", to_string(job_.state)}, {"hosts", job_.spec.hosts()}};
    set_text(arguments, "wait_reason", job_.wait_reason);
    set_text(arguments, "failure", job_.failure_reason);
    events.add_span(kJobTrack, job_.key.name, "job", job_.created, end_, std::move(arguments));
    for (const domain::TimeInterval& each : last_of(intervals_))
      events.add_span(kJobTrack, to_string(each.use), "time", each.begin, each.end,
                      each.attempt > 0 ? Json{{"attempt", each.attempt}} : Json::object());
    if (job_.stop_requested)
      events.add_instant(kJobTrack, "stop requested", "job", *job_.stop_requested,
                         {{"cause", to_string(job_.stop_cause)}});
  }

  void draw_attempts(TraceEvents& events) const {
    TrackEnd track(job_.created);
    for (const domain::Attempt& attempt : last_of(job_.attempts)) {
      Json arguments{{"state", to_string(attempt.state)}};
      if (attempt.exit_code) arguments["exit_code"] = *attempt.exit_code;
      if (attempt.fault) arguments["fault"] = to_string(*attempt.fault);
      if (job_.on_spot(attempt)) arguments["spot"] = true;
      if (attempt.preempted) arguments["preempted"] = true;
      if (attempt.warm_pool != 0) arguments["reuses_hosts_of_job"] = attempt.warm_pool;
      set_text(arguments, "environment", attempt.environment);
      set_text(arguments, "failure", attempt.failure);
      set_text(arguments, "interruption", attempt.interruption);
      const auto [begin, end] = track.place(attempt.started, attempt.ended.value_or(end_));
      events.add_span(kAttemptsTrack, "attempt " + std::to_string(attempt.number), "attempt", begin,
                      end, std::move(arguments));
      if (attempt.training_started)
        events.add_instant(kAttemptsTrack, "training starts", "attempt", *attempt.training_started,
                           Json::object());
      if (attempt.interrupted)
        events.add_instant(kAttemptsTrack, "interruption requested", "attempt",
                           *attempt.interrupted, {{"notice_ms", attempt.notice.count()}});
    }
  }

  void draw_statuses(TraceEvents& events) const {
    TrackEnd track(job_.created);
    for (const domain::Transition& each : last_of(job_.transitions)) {
      Json arguments = Json::object();
      set_text(arguments, "message", each.message);
      const auto [begin, end] = track.place(each.start, each.end.value_or(end_));
      if (begin < end)
        events.add_span(kStatusTrack, to_string(each.phase), "status", begin, end,
                        std::move(arguments));
      else
        events.add_instant(kStatusTrack, to_string(each.phase), "status", begin,
                           std::move(arguments));
    }
  }

  void draw_host(const domain::Attempt& attempt, domain::HostIndex index,
                 TraceEvents& events) const {
    const domain::Host& host = attempt.hosts[index];
    const TraceTrack agent{kHostProcesses + int64_t(index), kAgentThread};
    const std::string name = domain::host_name(index);
    events.name_process(agent.process, name);
    events.name_thread(agent, "agent");
    // A record of an earlier version has the current state only.
    std::vector<domain::HostStep> steps = host.steps;
    if (steps.empty()) steps.push_back({host.state, host.state_since});
    const bool over = domain::is_final(steps.back().state);
    const Instant begin = steps.front().at;
    const Instant end = std::max(begin, over ? steps.back().at : attempt.ended.value_or(end_));
    Json arguments{{"state", to_string(host.state)},
                   {"instance_type", job_.spec.instance_type(index)},
                   {"attempt", attempt.number}};
    set_text(arguments, "machine", host.machine);
    set_text(arguments, "failure", host.failure);
    if (host.exit_code) arguments["exit_code"] = *host.exit_code;
    events.add_span(agent, name, "host", begin, end, std::move(arguments));
    TrackEnd track(begin);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (domain::is_final(steps[i].state)) {
        events.add_instant(agent, to_string(steps[i].state), "host", end, Json::object());
        continue;
      }
      const Instant next = i + 1 < steps.size() ? std::min(steps[i + 1].at, end) : end;
      const auto [from, to] = track.place(std::min(steps[i].at, end), next);
      events.add_span(agent, to_string(steps[i].state), "host", from, to, Json::object());
    }
  }

  const domain::Job& job_;
  const std::vector<domain::TimeInterval> intervals_;
  Instant end_;
};

}  // namespace

JobTrace trace_of(const domain::Job& job, const std::vector<TraceFile>& files, Instant now,
                  Duration own_ahead) {
  const JobDrawing drawing(job, now);
  TraceEvents events(kTraceBytesMax);
  drawing.draw(events);
  JobTrace out;
  out.notes = drawing.notes();
  if (!files.empty()) {
    const size_t left = kTraceBytesMax - events.bytes();
    add_file_events(files, drawing.frame(own_ahead), left / files.size(), events, out.notes);
  }
  if (events.left_out() > 0)
    out.notes.push_back(counted(events.left_out(), "event") + " left out: a trace has at most " +
                        human_bytes(kTraceBytesMax));
  Json other = drawing.metadata();
  if (!out.notes.empty()) other["notes"] = out.notes;
  out.text = std::move(events).text(other);
  return out;
}

}  // namespace trainyard::api::trainyard_api
