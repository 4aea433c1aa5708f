#include "schedule/backfill.hpp"

namespace trainyard::schedule {
namespace {

// Counts how many hosts of each group would fit, while machines become free.
class Count {
 public:
  Count(const Gang& gang, const FreeCapacity& now) {
    for (const Group& group : gang.groups) {
      bool known = false;
      for (Requested& requested : requested_)
        if (same(requested.share, group.share)) {
          requested.missing += group.count;
          known = true;
        }
      if (!known) requested_.push_back({group.share, group.count});
    }
    for (Requested& requested : requested_) requested.missing -= now.capacity(requested.share);
  }
  void changed(const Share& before, const Share& after) {
    for (Requested& requested : requested_)
      requested.missing +=
          times_within(requested.share, before) - times_within(requested.share, after);
  }
  // Each group fits by itself; for equal hosts this suffices.
  bool enough() const {
    for (const Requested& requested : requested_)
      if (requested.missing > 0) return false;
    return true;
  }
  bool even() const { return requested_.size() == 1; }

 private:
  struct Requested {
    Share share;
    int64_t missing = 0;
  };
  std::vector<Requested> requested_;
};

}  // namespace

Reservation reserve_machines(const Gang& gang, const std::vector<Machine>& machines,
                             const Topology& topology, const FreeCapacity& now,
                             Allocations& allocations) {
  Reservation reservation;
  reservation.spare = now.all();
  Count count(gang, now);
  const auto& order = allocations.by_end();
  size_t tries = 0, next_try = 0;
  for (size_t next = 0; next < order.size() && !reservation.at;) {
    const Instant at = *allocations.all()[order[next]].ends;
    for (; next < order.size() && *allocations.all()[order[next]].ends == at; ++next)
      for (const HeldHost& host : allocations.hosts(allocations.all()[order[next]])) {
        Share& free = reservation.spare[host.machine];
        const Share before = free;
        free = plus(free, host.share);
        count.changed(before, free);
      }
    const bool last = next == order.size();
    if (!count.enough() ||
        (!count.even() && !last && (next < next_try || tries == kInstantsTriedMax)))
      continue;
    ++tries;
    next_try = next + next / 2;
    if (auto layout = FreeCapacity(topology, reservation.spare).place(gang)) {
      reservation.at = at;
      reservation.layout = *std::move(layout);
    }
  }
  if (!reservation.at) {
    reservation.spare = now.all();
    for (size_t m = 0; m < machines.size(); ++m)
      for (const Group& group : gang.groups)
        if (within(group.share, machines[m].total)) reservation.spare[m] = {};
    return reservation;
  }
  uint32_t host = 0;
  for (const Group& group : gang.groups)
    for (uint32_t i = 0; i < group.count; ++i) {
      Share& spare = reservation.spare[reservation.layout[host++]];
      spare = minus(spare, group.share);
    }
  return reservation;
}

}  // namespace trainyard::schedule
