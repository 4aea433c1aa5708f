#include "schedule/quota_order.hpp"

#include <string_view>
#include <unordered_map>

namespace trainyard::schedule {

QuotaOrder::QuotaOrder(const Snapshot& snapshot, size_t, std::vector<uint32_t> jobs,
                       const Quotas& quotas)
    : snapshot_(snapshot), quotas_(quotas) {
  std::unordered_map<std::string_view, size_t> by_name;
  for (const uint32_t job : jobs) {
    const auto [found, is_new] = by_name.try_emplace(snapshot.waiting[job].share, shares_.size());
    if (is_new) shares_.emplace_back();
    shares_[found->second].jobs.push_back(job);
  }
  for (Share& share : shares_) {
    sort_by_urgency(share.jobs, snapshot.waiting);
    update_borrows(share);
  }
}

void QuotaOrder::update_borrows(Share& share) {
  if (share.at < share.jobs.size())
    share.borrows = quotas_.would_borrow(snapshot_.waiting[share.jobs[share.at]]);
}

std::optional<uint32_t> QuotaOrder::next() {
  const Share* first = nullptr;
  for (const Share& share : shares_) {
    if (share.at == share.jobs.size()) continue;
    if (first && (share.borrows != first->borrows ? share.borrows
                                                  : share.jobs[share.at] > first->jobs[first->at]))
      continue;
    first = &share;
  }
  if (!first) return std::nullopt;
  last_ = size_t(first - shares_.data());
  return first->jobs[first->at];
}

void QuotaOrder::pop() {
  next();
  ++shares_[last_].at;
  update_borrows(shares_[last_]);
}

void QuotaOrder::started(double) { update_borrows(shares_[last_]); }

}  // namespace trainyard::schedule
