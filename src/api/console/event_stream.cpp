#include "console/event_stream.hpp"

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "console/log_tail.hpp"
#include "console/page_request.hpp"
#include "shapes/logs.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api::console {
namespace {

namespace own = shapes::trainyard;

net::Response refusal(int status, std::string_view message) {
  net::Response out{status, {}, dump(Json{{"message", message}})};
  out.headers.add("Content-Type", "application/json");
  out.headers.add("Cache-Control", "no-store");
  add_security_headers(out.headers);
  return out;
}

Json json_of(const std::vector<TailLine>& lines) {
  Json out = Json::array();
  for (const TailLine& line : lines)
    out.push_back({{"Host", line.host}, {"Time", to_milliseconds(line.at)}, {"Text", line.text}});
  return out;
}

constexpr int kTokenDigits = 56;

// A token of GetLogEvents (api/logs): 'f' reads forward from the position, 'b' backward.
std::string log_token(char direction, uint64_t position) {
  std::string digits = std::to_string(position);
  return std::string(1, direction) + "/" + std::string(kTokenDigits - digits.size(), '0') + digits;
}

Json json_of(const std::vector<TailRange>& ranges) {
  Json out = Json::array();
  for (const TailRange& range : ranges)
    out.push_back({{"Host", range.host},
                   {"Group", range.group},
                   {"Stream", range.stream},
                   {"Backward", log_token('b', range.begin)},
                   {"Forward", log_token('f', range.end)}});
  return out;
}

}  // namespace

// Running is one stream while it runs. Confined to its thread.
class EventStreams::Running {
 public:
  Running(EventStreams& streams, net::Stream& stream, const EventRequest& request)
      : streams_(streams),
        stream_(stream),
        request_(request),
        key_{request.region, request.job},
        position_(streams.feed_.position()),
        tail_(streams.services_.logs,
              [this](const std::string& group, const std::string& log) {
                return streams_.may(*context_, shapes::logs::GetLogEvents::shape(),
                                    with({.log_group_name = group, .log_stream_name = log}));
              }),
        sent_at_(streams.services_.clock.monotonic()) {}

  // Returns false if the principal may see neither the list of jobs nor the job.
  bool admit(const Context& context) {
    context_ = &context;
    const own::ListJobsRequest list;
    may_list_ = streams_.may(context, own::ListJobs::shape(), &list);
    own::DescribeJobRequest describe;
    describe.job_name = request_.job;
    may_describe_ =
        !request_.job.empty() && streams_.may(context, own::DescribeJob::shape(), &describe);
    return request_.job.empty() ? may_list_ : may_describe_;
  }

  Result<void> begin() {
    net::Headers headers;
    headers.add("Content-Type", "text/event-stream");
    headers.add("Cache-Control", "no-store");
    headers.add("X-Accel-Buffering", "no");  // a proxy in front passes events on at once
    add_security_headers(headers);
    TRY(stream_.start(200, headers, std::nullopt));
    return send("hello", Json::object());
  }

  // Returns whether lines of the log are waiting.
  Result<bool> round() {
    TRY(send_changes());
    bool more = false;
    if (may_describe_) more = TRY(send_lines());
    const auto now = streams_.services_.clock.monotonic();
    if (now - sent_at_ >= kHeartbeat) TRY(write(": \n\n"));
    return more;
  }

  Result<void> send(std::string_view event, const Json& data) {
    return write("event: " + std::string(event) + "\ndata: " + dump(data) + "\n\n");
  }

 private:
  const void* with(shapes::logs::GetLogEventsRequest request) {
    log_request_ = std::move(request);
    return &log_request_;
  }

  Result<void> send_changes() {
    JobFeed::Changes changes = streams_.feed_.since(position_, request_.region);
    position_ = changes.position;
    if (changes.missed) return send("resync", Json::object());
    if (!may_list_) std::erase_if(changes.jobs, [&](const auto& job) { return job != key_.name; });
    return changes.jobs.empty() ? ok() : send("jobs", changes.jobs);
  }

  Result<bool> send_lines() {
    const auto job = streams_.services_.control.find(key_);
    if (!job) return false;  // the job does not exist yet, or the ledger is busy
    const auto lines = tail_.round(**job);
    if (!lines) return false;  // the next round retries
    if (tail_.denied() && !std::exchange(reported_denied_, true))
      TRY(send("denied", {{"Message", "You may not read the log of this job."}}));
    if (!tail_.ranges().empty())
      TRY(send("log", {{"Lines", json_of(*lines)}, {"Ranges", json_of(tail_.ranges())}}));
    return lines->size() >= LogTail::kRoundLines;
  }

  Result<void> write(std::string_view bytes) {
    TRY(stream_.write({bytes.data(), bytes.size()}));
    sent_at_ = streams_.services_.clock.monotonic();
    return {};
  }

  EventStreams& streams_;
  net::Stream& stream_;
  const EventRequest& request_;
  const domain::JobKey key_;
  const Context* context_ = nullptr;  // of the current round
  bool may_list_ = false, may_describe_ = false, reported_denied_ = false;
  uint64_t position_;
  shapes::logs::GetLogEventsRequest log_request_;
  LogTail tail_;
  std::chrono::nanoseconds sent_at_;
};

EventStreams::EventStreams(const Settings& settings, const Services& services, const JobFeed& feed)
    : services_(services), authorizer_(settings, services), feed_(feed) {}

void EventStreams::run(net::Stream& stream, const EventRequest& request,
                       const FindContext& find_context) {
  if (!enter()) return (void)stream.reply(refusal(503, "Too many pages are open. Try again."));
  Running running(*this, stream, request);
  std::optional<Context> context = find_context();
  if (!context || !running.admit(*context)) {
    (void)stream.reply(context ? refusal(403, "You may not see this.")
                               : refusal(401, "The session has ended."));
    return leave();
  }
  Result<void> sent = running.begin();
  while (sent) {
    const auto more = running.round();
    if (!more) break;
    if (!*more && !wait_for_next_round()) break;
    context = find_context();
    if (!context || !running.admit(*context)) {
      (void)running.send("end", Json::object());
      break;
    }
  }
  leave();
}

bool EventStreams::may(const Context& context, const shapes::OperationShape& operation,
                       const void* input) const {
  return !authorizer_.check(context, operation, input);
}

bool EventStreams::wait_for_next_round() {
  MutexLock lock(mutex_);
  return !stopped_changed_.wait_for(lock, kRoundInterval,
                                    [this]() REQUIRES(mutex_) { return stopped_; });
}

bool EventStreams::enter() {
  const MutexLock lock(mutex_);
  if (stopped_ || running_ >= kStreamsMax) return false;
  ++running_;
  return true;
}

void EventStreams::leave() {
  const MutexLock lock(mutex_);
  --running_;
}

void EventStreams::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  stopped_changed_.notify_all();
}

}  // namespace trainyard::api::console
