#include "control/control_time.hpp"

#include <algorithm>

#include "base/json_record.hpp"
#include "base/log.hpp"
#include "base/thread_safety.hpp"
#include "domain/limits.hpp"

namespace trainyard::control {
namespace {

Duration monotonic_of(Clock& clock) { return std::chrono::floor<Duration>(clock.monotonic()); }

std::string in_seconds(Duration duration) { return std::to_string(duration.count() / 1000); }

constexpr auto kClockRecord = json_record<ClockRecord>(
    "clock",
    [](auto& side, auto& record) {
      side("boot", record.boot);
      side("base", record.base);
      side("offset", record.offset);
      side("seen", record.seen);
    },
    [](const ClockRecord& record) -> Result<void> {
      for (const Duration each : {record.base, record.offset, record.seen.time_since_epoch()})
        if (each.count() < -domain::kInstantMillisecondsMax ||
            each.count() > domain::kInstantMillisecondsMax)
          return invalid("clock: " + std::to_string(each.count()) + " ms is beyond all clocks");
      return {};
    });

}  // namespace

Json to_json(const ClockRecord& record) { return kClockRecord.write(record); }
Result<ClockRecord> clock_record_from_json(const Json& json) { return kClockRecord.read(json); }

ControlTime::ControlTime(Clock& clock, ClockSettings settings)
    : clock_(clock), settings_(std::move(settings)) {
  const Duration monotonic = read_at_ = monotonic_of(clock);
  const Duration wall = clock.now().time_since_epoch();
  if (const auto& record = settings_.record) {
    offset_ = record->offset;
    const bool same_boot = !settings_.boot.empty() && record->boot == settings_.boot &&
                           Instant{record->base + monotonic} >= record->seen;
    const Duration by_wall = std::max(wall - offset_, record->seen.time_since_epoch());
    base_ = same_boot ? record->base : by_wall - monotonic;
  } else {
    base_ = wall - monotonic;
  }
  const MutexLock lock(mutex_);
  const Instant now = read_clock();
  settings_.keep({settings_.boot, base_, offset_, now});
}

Instant ControlTime::now() {
  const MutexLock lock(mutex_);
  return read_clock();
}

Duration ControlTime::offset() const {
  const MutexLock lock(mutex_);
  return offset_;
}

void ControlTime::not_before(Instant least) {
  const MutexLock lock(mutex_);
  const Instant now = read_clock();
  if (now >= least) return;
  base_ += least - now;
  settings_.keep({settings_.boot, base_, offset_, read_clock()});
}

Instant ControlTime::read_clock() {
  const Duration monotonic = std::max(monotonic_of(clock_), read_at_);
  const Duration unseen = monotonic - read_at_;
  read_at_ = monotonic;
  bool jumped = false;
  if (unseen > settings_.unwatched_max) {
    base_ -= unseen - settings_.unwatched_max;
    jumped = true;
    log(Level::warning, "control", "the server was suspended for a while; deadlines are extended",
        {{"seconds", in_seconds(unseen)}});
  }
  const Instant now{base_ + monotonic};
  const Duration difference = clock_.now() - now;
  if (const Duration step = difference - offset_; step >= kClockStepMin || step <= -kClockStepMin) {
    offset_ = difference;
    log(Level::warning, "control", "the wall clock was changed; deadlines are not affected",
        {{"seconds", in_seconds(step)}});
    jumped = true;
  }
  if (jumped) settings_.keep({settings_.boot, base_, offset_, now});
  return now;
}

}  // namespace trainyard::control
