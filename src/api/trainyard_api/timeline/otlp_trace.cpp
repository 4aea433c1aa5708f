#include "trainyard_api/timeline/otlp_trace.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/arithmetic.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "domain/job_time.hpp"
#include "domain/tracing/trace_context.hpp"
#include "trainyard_api/timeline/job_trace.hpp"

namespace trainyard::api::trainyard_api {
namespace {

constexpr size_t kAttributeBytesMax = 1'000;
constexpr int kInternalKind = 1;                // SPAN_KIND_INTERNAL
constexpr int kStatusOk = 1, kStatusError = 2;  // STATUS_CODE_OK, STATUS_CODE_ERROR
constexpr const char* kJobPlace = "job";

// Formats a 64 bit number: it is a text in the JSON of protocol buffers.
std::string nanoseconds_text(Instant at) {
  return std::to_string(saturating_mul<int64_t>(to_milliseconds(at), 1'000'000));
}

// Makes a list of attributes, without empty ones.
class Attributes {
 public:
  void add(const char* key, std::string_view text) {
    if (!text.empty()) put(key, {{"stringValue", shorten(text, kAttributeBytesMax)}});
  }
  void add(const char* key, int64_t number) { put(key, {{"intValue", std::to_string(number)}}); }
  Json json() && { return std::move(list_); }

 private:
  void put(const char* key, Json value) {
    list_.push_back({{"key", key}, {"value", std::move(value)}});
  }
  Json list_ = Json::array();
};

template <class T>
size_t first_of_last(const std::vector<T>& list) {
  return list.size() - std::min(list.size(), kTracedItemsMax);
}

class OtlpSpans {
 public:
  OtlpSpans(const domain::Job& job, Instant now)
      : job_(job), trace_id_(trace_id_of(job)), intervals_(domain::time_intervals(job, now)) {
    end_ = intervals_.empty() ? job.created : intervals_.back().end;
    add_job();
    add_uses();
    for (size_t i = first_of_last(job.attempts); i < job.attempts.size(); ++i)
      add_attempt(job.attempts[i]);
    if (const domain::Attempt* attempt = job.attempt())
      for (size_t i = 0; i < std::min(attempt->hosts.size(), kTracedHostsMax); ++i)
        add_host(*attempt, domain::HostIndex(i));
  }
  Json json() && { return std::move(spans_); }

 private:
  // Adds a span, and returns it.
  Json& add(const std::string& place, const std::string& parent, std::string_view name,
            Instant begin, Instant end, Attributes attributes = {}) {
    Json span{{"traceId", trace_id_},
              {"spanId", span_id_of(job_, place)},
              {"name", name},
              {"kind", kInternalKind},
              {"startTimeUnixNano", nanoseconds_text(begin)},
              {"endTimeUnixNano", nanoseconds_text(std::max(begin, end))},
              {"attributes", std::move(attributes).json()}};
    if (!parent.empty()) span["parentSpanId"] = span_id_of(job_, parent);
    spans_.push_back(std::move(span));
    return spans_.back();
  }

  static Json event(std::string_view name, Instant at, Attributes attributes = {}) {
    return {{"name", name},
            {"timeUnixNano", nanoseconds_text(at)},
            {"attributes", std::move(attributes).json()}};
  }

  void add_job() {
    Attributes attributes;
    attributes.add("trainyard.job.name", job_.key.name);
    attributes.add("trainyard.job.display_name", job_.spec.display_name);
    attributes.add("trainyard.job.state", to_string(job_.state));
    attributes.add("trainyard.job.hosts", int64_t(job_.spec.hosts()));
    attributes.add("cloud.region", job_.key.region);
    attributes.add("cloud.account.id", job_.account);
    Json events = Json::array();
    for (size_t i = first_of_last(job_.transitions); i < job_.transitions.size(); ++i) {
      Attributes of_event;
      of_event.add("message", job_.transitions[i].message);
      events.push_back(
          event(to_string(job_.transitions[i].phase), job_.transitions[i].start, of_event));
    }
    if (job_.stop_requested) {
      Attributes of_event;
      of_event.add("cause", to_string(job_.stop_cause));
      events.push_back(event("stop requested", *job_.stop_requested, of_event));
    }
    Json& span = add(kJobPlace, "", job_.key.name, job_.created, end_, std::move(attributes));
    span["events"] = std::move(events);
    if (job_.state == domain::JobState::completed) span["status"] = {{"code", kStatusOk}};
    if (job_.state == domain::JobState::failed)
      span["status"] = {{"code", kStatusError},
                        {"message", shorten(job_.failure_reason, kAttributeBytesMax)}};
  }

  // While the job runs, intervals are only appended, so each keeps its index.
  void add_uses() {
    for (size_t i = first_of_last(intervals_); i < intervals_.size(); ++i) {
      const domain::TimeInterval& each = intervals_[i];
      const std::string parent =
          each.attempt > 0 ? domain::attempt_place(each.attempt) : std::string(kJobPlace);
      add("use/" + std::to_string(i), parent, to_string(each.use), each.begin, each.end);
    }
  }

  void add_attempt(const domain::Attempt& attempt) {
    Attributes attributes;
    attributes.add("trainyard.attempt.number", int64_t(attempt.number));
    attributes.add("trainyard.attempt.environment", attempt.environment);
    attributes.add("trainyard.attempt.interruption", attempt.interruption);
    if (attempt.exit_code) attributes.add("process.exit.code", int64_t(*attempt.exit_code));
    Json& span = add(domain::attempt_place(attempt.number), kJobPlace,
                     "attempt " + std::to_string(attempt.number), attempt.started,
                     attempt.ended.value_or(end_), std::move(attributes));
    if (attempt.interrupted)
      span["events"] = Json::array({event("interruption requested", *attempt.interrupted)});
    if (!attempt.failure.empty())
      span["status"] = {{"code", kStatusError},
                        {"message", shorten(attempt.failure, kAttributeBytesMax)}};
  }

  void add_host(const domain::Attempt& attempt, domain::HostIndex index) {
    const domain::Host& host = attempt.hosts[index];
    std::vector<domain::HostStep> steps = host.steps;
    if (steps.empty()) steps.push_back({host.state, host.state_since});
    const Instant end =
        domain::is_final(steps.back().state) ? steps.back().at : attempt.ended.value_or(end_);
    Attributes attributes;
    attributes.add("host.name", domain::host_name(index));
    attributes.add("host.type", job_.spec.instance_type(index));
    attributes.add("trainyard.machine", host.machine);
    if (host.exit_code) attributes.add("process.exit.code", int64_t(*host.exit_code));
    const std::string place = domain::host_place(attempt.number, index);
    Json& span = add(place, domain::attempt_place(attempt.number), domain::host_name(index),
                     steps.front().at, end, std::move(attributes));
    if (!host.failure.empty())
      span["status"] = {{"code", kStatusError},
                        {"message", shorten(host.failure, kAttributeBytesMax)}};
    for (size_t i = 0; i < steps.size(); ++i) {
      if (domain::is_final(steps[i].state)) continue;
      const std::string state(to_string(steps[i].state));
      add(place + "/" + state, place, state, steps[i].at,
          i + 1 < steps.size() ? steps[i + 1].at : end);
    }
  }

  const domain::Job& job_;
  const std::string trace_id_;
  const std::vector<domain::TimeInterval> intervals_;
  Instant end_;
  Json spans_ = Json::array();
};

}  // namespace

std::string otlp_trace_of(const domain::Job& job, Instant now) {
  Attributes resource;
  resource.add("service.name", "trainyard");
  Json scope{{"scope", {{"name", "trainyard"}}}, {"spans", OtlpSpans(job, now).json()}};
  Json of_resource{{"resource", {{"attributes", std::move(resource).json()}}},
                   {"scopeSpans", Json::array({std::move(scope)})}};
  return dump({{"resourceSpans", Json::array({std::move(of_resource)})}}) + "\n";
}

}  // namespace trainyard::api::trainyard_api
