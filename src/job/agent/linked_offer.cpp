#include "agent/linked_offer.hpp"

#include <algorithm>

namespace trainyard::agent {

LinkedOffer::LinkedOffer(const AgentAllocation& allocation, Clock& clock)
    : allocation_(allocation), clock_(clock), began_(clock.monotonic()) {}

bool LinkedOffer::may_follow(const wire::StateFact& last) const {
  return allocation_.number != 0 && allocation_.idle_max > Duration{} &&
         (last.state == domain::HostState::finished ||
          (last.state == domain::HostState::failed && last.fault == domain::Fault::algorithm));
}

wire::Idle LinkedOffer::message(bool keeps_host) const {
  const auto passed = std::chrono::duration_cast<Duration>(clock_.monotonic() - began_);
  return {std::max(Duration{}, allocation_.time_left - passed), keeps_host};
}

void LinkedOffer::deliver(const wire::Message& message) {
  const auto* order = std::get_if<wire::NextOrder>(&message);
  const bool refused = std::holds_alternative<wire::Refused>(message);
  if (!order && !refused) return;
  const MutexLock lock(mutex_);
  // An order may be sent again; it is the same one.
  if (order && !order->order.empty() && !order_) order_ = *order;
  if (!order_) cancelled_ = true;
  changed_.notify_all();
}

void LinkedOffer::cancel() {
  const MutexLock lock(mutex_);
  cancelled_ = true;
  order_.reset();
  changed_.notify_all();
}

std::optional<wire::NextOrder> LinkedOffer::take() {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, allocation_.idle_max,
                    [&]() REQUIRES(mutex_) { return order_ || cancelled_; });
  return std::exchange(order_, {});
}

}  // namespace trainyard::agent
