// Counts quota shares: what each owns, lends and borrows.
//
// A share may always take what it owns. It may go beyond that, up to its borrow_max, where shares
// that lend have idle capacity; idle capacity of a share that does not lend stays its own. For each
// unit, what all shares hold beyond their own never exceeds what lenders have idle.
//
// The first job of a share that waits for quota has a reservation: what it needs counts as held,
// for all jobs that would not end before it starts.
//
// Threads: confined to one. Lifetime: refers to the snapshot. Private to this module.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/allocations.hpp"
#include "schedule/plan.hpp"

namespace trainyard::schedule {

class Quotas {
 public:
  // The reason why quota rejects a job.
  struct Obstacle {
    enum class What { full, reserved, too_small, no_share } what = What::full;
    std::string_view unit;
    double needs = 0;
    double used = 0;
    double capacity = 0;
    double borrowable = 0;  // at most, in addition
    bool borrows = false;   // the job would have to borrow
  };

  Quotas(const Snapshot& snapshot, const Allocations& allocations);

  bool concern(size_t queue) const { return !queues_[queue].shares.empty(); }
  // The job would have to borrow, and may.
  bool would_borrow(const WaitingJob& job) const;
  // Nothing: the job may take its quota. `ends`: its latest end.
  std::optional<Obstacle> obstacle(const WaitingJob& job, std::optional<Instant> ends) const;
  void take(const WaitingJob& job);

  // Reserves what the job needs against jobs that would not end by `at`; nothing: against all.
  void reserve(const WaitingJob& job, std::optional<Instant> at);
  // The name of the job that has a reservation in this job's share.
  const std::string* first_of(const WaitingJob& job) const;
  // A job of its share that would borrow waits before it, for any reason.
  void borrower_waits(const WaitingJob& job);
  bool behind_borrower(const WaitingJob& job) const;
  // The earliest instant at which running jobs leave the job what it needs.
  std::optional<Instant> earliest(const WaitingJob& job, Allocations& allocations) const;

  // -- reclaiming: as if allocations had ended

  // True for running jobs of its queue that hold more than their share owns, and for those of its
  // own share with lower priority, where the share allows preemption.
  bool may_be_preempted(const Allocation& allocation, const WaitingJob& to) const;
  // The job would have what it needs, owned or borrowed, once these and all that are ending have
  // ended.
  bool fits_without(const WaitingJob& job, const Allocations& allocations,
                    std::span<const uint32_t> ended) const;
  // The same, with owned capacity only.
  bool own_without(const WaitingJob& job, const Allocations& allocations,
                   std::span<const uint32_t> ended) const;
  // Its share would still hold more than it owns, and would keep at least what it owns without the
  // allocation; or less, where it could not reclaim that in return forever.
  bool beyond_without(const Allocations& allocations, uint32_t allocation,
                      std::span<const uint32_t> ended, const WaitingJob& to) const;
  // These allocations were told to end.
  void leave(const Allocations& allocations, std::span<const uint32_t> ended);

 private:
  struct Share {
    const QuotaShare* is = nullptr;
    std::vector<std::optional<double>> capacity;  // by unit; nothing: unlimited
    std::vector<double> used;                     // by unit
    // The same without allocations that are ending, with reservations.
    std::vector<double> reserved;
    const std::string* first = nullptr;  // the job that has the reservation
    bool borrower_waits = false;
  };
  struct Queue {
    std::vector<std::string_view> units;
    std::vector<Share> shares;
    std::unordered_map<std::string_view, size_t> by_name;
    std::optional<Instant> reserved_at;  // the earliest of all reservations
    bool never = false;                  // one of them has no known instant
  };
  using Amounts = std::vector<double>;  // by unit
  enum class Book { used, reserved };

  const Share* share_of(const Queue& queue, std::string_view name) const;
  static Amounts amounts(const Queue& queue, const std::vector<Demand>& demands);
  static std::vector<double>& of(Share& share, Book book) {
    return book == Book::used ? share.used : share.reserved;
  }
  static const std::vector<double>& of(const Share& share, Book book) {
    return book == Book::used ? share.used : share.reserved;
  }
  // Counts in that book. Nothing: the amounts fit.
  std::optional<Obstacle> check(const Queue& queue, const std::vector<Share>& shares,
                                const Share& its, const Amounts& amounts, Book book) const;
  static double borrowable(const Queue& queue, const Share& its, size_t unit);
  static bool holds_beyond(const Share& its, const Amounts& amounts);
  std::vector<Share> without(const Queue& queue, const Allocations& allocations,
                             std::span<const uint32_t> ended) const;

  std::vector<Queue> queues_;
};

}  // namespace trainyard::schedule
