#include "remote_write/sender.hpp"

#include <utility>

#include "base/log.hpp"
#include "observe/metrics.hpp"
#include "remote_write/snappy.hpp"

namespace trainyard::remote_write {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

size_t samples_of(const std::vector<TimeSeries>& series) {
  size_t count = 0;
  for (const TimeSeries& each : series) count += each.samples.size();
  return count;
}

}  // namespace

std::string remote_write_body(const std::vector<TimeSeries>& series) {
  return snappy_compress(encode(series));
}

Sender::Sender(observe::PointJournal& journal, NameSeries name_series, Post post,
               SenderSettings settings)
    : journal_(journal),
      maker_(std::move(name_series)),
      post_(std::move(post)),
      settings_(std::move(settings)),
      thread_([this] { work(); }) {}

Sender::~Sender() {
  end();
  wait();
}

void Sender::wait() {
  if (thread_.joinable()) thread_.join();
}

bool Sender::is_stopping() {
  const MutexLock lock(mutex_);
  return stopping_;
}

void Sender::end() {
  const MutexLock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void Sender::wake() {
  const MutexLock lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void Sender::work() {
  uint32_t failures = 0;
  for (;;) {
    const auto sent = send_next();
    failures = sent ? 0 : failures + 1;
    if (failures == 1)
      log(Level::error, "remote_write", "cannot read the journal of points; retrying later",
          {{"receiver", settings_.name}, {"why", sent.error().message}});
    const Duration pause = !sent ? retry_delay(failures) : *sent ? 0ms : settings_.interval;
    if (pause_or_stop(pause, sent && !*sent)) return;
  }
}

Result<bool> Sender::send_next() {
  const observe::JournalPage page = TRY(journal_.read(settings_.name, settings_.points_max));
  if (page.empty) return false;
  if (page.lost > 0)
    log(Level::warning, "remote_write",
        "the journal dropped points that the receiver had not accepted",
        {{"receiver", settings_.name}, {"points", std::to_string(page.lost)}});
  counts_.lost.fetch_add(page.lost, kRelaxed);
  Batch batch = maker_.make(page.records);
  counts_.left_out.fetch_add(batch.left_out, kRelaxed);
  return send_all(std::move(batch.series)) && advance(page.position);
}

// It is retried here, since a second request from the same points would add them to counters twice.
bool Sender::advance(uint64_t position) {
  for (uint32_t failures = 0;;) {
    const auto stored = journal_.advance(settings_.name, position);
    if (stored) return true;
    if (++failures == 1)
      log(Level::error, "remote_write", "cannot store the position in the journal; retrying later",
          {{"receiver", settings_.name}, {"why", stored.error().message}});
    if (pause_or_stop(retry_delay(failures), false)) return false;
  }
}

bool Sender::send_all(std::vector<TimeSeries> series) {
  std::vector<std::vector<TimeSeries>> parts;
  if (!series.empty()) parts.push_back(std::move(series));
  while (!parts.empty()) {
    std::vector<TimeSeries> part = std::move(parts.back());
    parts.pop_back();
    const size_t samples = samples_of(part);
    const auto outcome = send(part);
    if (!outcome) return false;
    if (*outcome == Outcome::accepted) {
      counts_.samples.fetch_add(samples, kRelaxed);
      counts_.requests.fetch_add(1, kRelaxed);
    } else if (samples == 1) {
      counts_.left_out.fetch_add(1, kRelaxed);
    } else {
      auto [first, second] = split_series(std::move(part));
      parts.push_back(std::move(second));
      parts.push_back(std::move(first));  // sent first: its samples may be older
    }
  }
  return true;
}

std::optional<Outcome> Sender::send(const std::vector<TimeSeries>& series) {
  const std::string body = settings_.encode(series);
  for (uint32_t failures = 0;;) {
    if (is_stopping()) return std::nullopt;
    const auto status = post_(body);
    const Outcome outcome = outcome_of(status ? *status : 0);
    if (outcome != Outcome::retry) return outcome;
    counts_.failures.fetch_add(1, kRelaxed);
    if (++failures == 1)
      log(Level::warning, "remote_write", "the receiver does not accept points; retrying later",
          {{"receiver", settings_.name},
           {"why", status ? "status " + std::to_string(*status) : status.error().message}});
    if (pause_or_stop(retry_delay(failures), false)) return std::nullopt;
  }
}

bool Sender::pause_or_stop(Duration at_most, bool until_woken) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, at_most,
                    [&]() REQUIRES(mutex_) { return stopping_ || (until_woken && woken_); });
  if (until_woken) woken_ = false;
  return stopping_;
}

}  // namespace trainyard::remote_write
