#include "launch/slurm/served_attempts.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/log.hpp"

namespace trainyard::launch {

void ServedAttempts::begin(uint64_t job, const domain::AttemptId& attempt, std::string token,
                           std::string node) {
  if (!links_) return;
  const auto [known, first] = by_job_.try_emplace(job);
  if (known->second.node.empty()) known->second.node = std::move(node);
  if (!first) return;
  known->second.attempt = attempt;
  known->second.token = std::move(token);
}

bool ServedAttempts::take_reports(std::optional<std::map<uint64_t, OpenAllocation>> open) {
  if (!links_) return false;
  const auto reports = links_->take(std::move(open));
  for (const AllocationReport& report : reports) take(report);
  return !reports.empty();
}

void ServedAttempts::take(const AllocationReport& report) {
  ServedAttempt& served = by_job_[report.allocation];
  if (!served.begun && report.attempt == served.order.from) {
    // The order was lost with a link, before it reached the agent.
    if (report.idle) (void)links_->send(served.order);
    return;
  }
  const bool same = served.attempt == report.attempt;
  // The report was sent on a link that was replaced. (An attempt that has not begun may differ from
  // the agent's without that: an earlier server may have given it another one.)
  if (report.served < served.served ||
      (report.served == served.served && served.reported && served.begun && !same))
    return log(Level::warning, "launch", "ignored an agent's outdated report",
               {{"attempt", report.attempt.text()},
                {"slurm_job", std::to_string(report.allocation)},
                {"serves", served.attempt.text()}});
  served.reported = true;
  served.served = report.served;
  served.attempt = report.attempt;
  served.token = report.token;
  served.begun = true;
  served.order = {};
  served.removed = same && served.removed && report.idle;
  served.idle = report.idle;
  served.keeps_host = report.idle && report.keeps_host && !served.removed;
  served.time_left = report.time_left;
  served.idle_since = clock_.monotonic();
}

const ServedAttempt* ServedAttempts::find(uint64_t job) const {
  const auto found = by_job_.find(job);
  return found == by_job_.end() ? nullptr : &found->second;
}

bool ServedAttempts::any_idle() const {
  return std::ranges::any_of(by_job_, [](const auto& each) { return each.second.idle; });
}

Duration ServedAttempts::idle(const ServedAttempt& served) const {
  return std::chrono::duration_cast<Duration>(clock_.monotonic() - served.idle_since);
}

Duration ServedAttempts::time_left(const ServedAttempt& served) const {
  return std::max(Duration{}, served.time_left - idle(served));
}

bool ServedAttempts::give(uint64_t job, const domain::AttemptId& attempt, const std::string& token,
                          std::string order, bool same_host) {
  const auto found = by_job_.find(job);
  CHECK(found != by_job_.end() && found->second.idle, "only an idle job gets another attempt");
  ServedAttempt& served = found->second;
  served.idle = false;
  served.keeps_host = false;
  AllocationOrder next{job, served.attempt, std::move(order), same_host};
  if (!links_->send(next)) return false;
  served.attempt = attempt;
  served.token = token;
  ++served.served;
  served.begun = false;
  served.order = std::move(next);
  log(Level::info, "launch", "sent an attempt to an idle Slurm job",
      {{"attempt", attempt.text()}, {"slurm_job", std::to_string(job)}});
  return true;
}

void ServedAttempts::remove(uint64_t job) {
  const auto found = by_job_.find(job);
  if (found == by_job_.end() || !found->second.idle) return;
  found->second.keeps_host = false;
  found->second.removed = true;
}

void ServedAttempts::release(uint64_t job) {
  const auto found = by_job_.find(job);
  if (found == by_job_.end() || !found->second.idle) return;
  found->second.idle = false;
  found->second.keeps_host = false;
  (void)links_->send({job, found->second.attempt, "", false});
}

void ServedAttempts::forget(const std::function<bool(uint64_t)>& is_known) {
  std::erase_if(by_job_, [&](const auto& each) { return !is_known(each.first); });
}

}  // namespace trainyard::launch
