#include "collectives/transport/timeout.hpp"

#include <algorithm>

namespace trainyard::collectives {

Timeout::Timeout(int rank, int ranks, Duration limit, Time now)
    : rank_(rank), limit_(limit), moved_at_(now), reports_(size_t(ranks)) {}

void Timeout::set_limit(Duration limit) { limit_ = limit; }

Duration Timeout::step() const { return std::max(limit_ / kStepsInLimit, Duration(1)); }

void Timeout::add_report(int peer, int guilty, Time now) {
  reports_[size_t(peer)] = Report{guilty, now};
}

int Timeout::guilty(std::span<const int> waited_for, Time now) const {
  const auto report_of = [&](int peer) -> const Report* {
    const auto& report = reports_[size_t(peer)];
    return report && now - report->at <= kStepsReportIsValid * step() ? &*report : nullptr;
  };
  for (const int peer : waited_for) {
    if (!report_of(peer)) return peer;
  }
  // All ranks in `waited_for` wait. One of them names a rank other than this one, unless all ranks
  // wait for each other.
  for (const int peer : waited_for) {
    if (report_of(peer)->guilty != rank_) return report_of(peer)->guilty;
  }
  return waited_for.empty() ? rank_ : waited_for.front();
}

std::optional<int> Timeout::report(std::span<const int> waited_for, Time now) {
  if (now - moved_at_ < step()) return std::nullopt;
  const int name = guilty(waited_for, now);
  if (last_report_ && last_report_->guilty == name && now - last_report_->at < step())
    return std::nullopt;
  last_report_ = Report{name, now};
  return name;
}

bool Timeout::is_over(Time now) const {
  return now - moved_at_ >= limit_ + kStepsUntilBlame * step();
}

}  // namespace trainyard::collectives
