#include "entry/coordinator.hpp"

#include <algorithm>

namespace trainyard::entry {

bool Coordinator::is_member(const std::string& host) const {
  return std::ranges::find(hosts_, host) != hosts_.end();
}

bool Coordinator::joined(const std::string& host) {
  if (!is_member(host) || !joined_.insert(host).second) return false;
  return joined_.size() == hosts_.size();
}

void Coordinator::done(const std::string& host) {
  if (is_member(host)) done_.insert(host);
}

void Coordinator::failed(const std::string& host, const Failed& failure, Time now) {
  if (first_failure_) return;
  first_failure_ = End{failure.code != 0 ? failure.code : 1, host, failure.text};
  failure_due_ = now + kVerdictDelay;
}

void Coordinator::lost(const std::string& host, Time now) {
  if (lost_ || done_.contains(host)) return;
  lost_ = host;
  lost_due_ = now + kLostTimeout;
}

const std::optional<End>& Coordinator::end(Time now) {
  if (end_) return end_;
  if (lost_) {
    if (now >= lost_due_)
      end_ =
          End{1, *lost_, "Framework Error: " + *lost_ + " left the distribution without a result"};
  } else if (first_failure_) {
    if (now >= failure_due_) end_ = first_failure_;
  } else if (done_.size() == hosts_.size()) {
    end_ = End{0, "", ""};
  }
  return end_;
}

std::optional<Coordinator::Time> Coordinator::next_deadline() const {
  if (end_) return {};
  if (lost_) return lost_due_;
  if (first_failure_) return failure_due_;
  return {};
}

}  // namespace trainyard::entry
