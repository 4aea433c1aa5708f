// Quotas counts what each quota share owns, lends and borrows.
//
// A share may always take what it owns. It may borrow more, up to its borrow_max, while shares that
// lend have idle capacity; idle capacity of other shares is not borrowed. For each unit, all shares
// together never borrow more than the lenders have idle.
//
// The first job of a share that waits for quota has a reservation: its needs count as used for all
// jobs that would not end before it starts.
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
    double borrowable = 0;  // the most that the share may borrow
    bool borrows = false;   // the job would have to borrow
  };

  Quotas(const Snapshot& snapshot, const Allocations& allocations);

  bool has_quotas(size_t queue) const { return !queues_[queue].shares.empty(); }
  // Returns true if the job would have to borrow, and may.
  bool would_borrow(const WaitingJob& job) const;
  // Returns nullopt if the job may take its quota. `ends`: its latest end.
  std::optional<Obstacle> obstacle(const WaitingJob& job, std::optional<Instant> ends) const;
  void take(const WaitingJob& job);

  // Reserves what the job needs; jobs that end by `at` may still use it. nullopt: no job may.
  void reserve(const WaitingJob& job, std::optional<Instant> at);
  // Returns the name of the job that has a reservation in this job's share; nullptr if none has.
  const std::string* first_of(const WaitingJob& job) const;
  // Records that a job which would borrow must wait, for any reason. behind_borrower() then returns
  // true for later jobs of its share.
  void borrower_waits(const WaitingJob& job);
  bool behind_borrower(const WaitingJob& job) const;
  // Returns the earliest instant at which the ends of running jobs leave the job what it needs.
  std::optional<Instant> earliest(const WaitingJob& job, Allocations& allocations) const;

  // -- reclaiming: computed as if some allocations had ended

  // Returns true for running jobs of the same queue whose share holds more than it owns, and for
  // jobs of the same share with lower priority, if the share allows preemption.
  bool may_be_preempted(const Allocation& allocation, const WaitingJob& to) const;
  // Returns true if the job would have what it needs, owned or borrowed, once these allocations and
  // all that are already ending have ended.
  bool fits_without(const WaitingJob& job, const Allocations& allocations,
                    std::span<const uint32_t> ended) const;
  // Returns the same for owned capacity only.
  bool own_without(const WaitingJob& job, const Allocations& allocations,
                   std::span<const uint32_t> ended) const;
  // Returns true if preempting the allocation, in addition to the ended ones, is fair: its share
  // still holds more than it owns, and would keep at least what it owns. Keeping less is fair, too,
  // unless the share could then reclaim it by priority, and so on forever.
  bool beyond_without(const Allocations& allocations, uint32_t allocation,
                      std::span<const uint32_t> ended, const WaitingJob& to) const;
  // Records that these allocations are ending.
  void leave(const Allocations& allocations, std::span<const uint32_t> ended);

 private:
  struct Share {
    const QuotaShare* definition = nullptr;
    std::vector<std::optional<double>> capacity;  // by unit; nullopt: unlimited
    const std::string* first = nullptr;           // the job that has the reservation
    bool borrower_waits = false;
  };
  using Amounts = std::vector<double>;  // by unit
  // The amounts of all shares of a queue, in one vector, since the search for jobs to preempt
  // copies it for each candidate: by share, and by unit within it.
  using Held = std::vector<double>;
  struct Queue {
    std::vector<std::string_view> units;
    std::vector<Share> shares;
    std::unordered_map<std::string_view, size_t> by_name;
    std::vector<double> lent;  // by unit: the capacity of all shares that lend
    Held used;
    Held reserved;  // used, without allocations that are ending, with reservations
    std::optional<Instant> reserved_at;  // the earliest of all reservations
    bool never = false;                  // one of them has no known instant

    std::optional<size_t> find(std::string_view name) const;
    double& of(Held& held, size_t share, size_t unit) const {
      return held[share * units.size() + unit];
    }
    double of(const Held& held, size_t share, size_t unit) const {
      return held[share * units.size() + unit];
    }
    void add(Held& held, size_t share, const Amounts& amounts, double sign = 1) const;
  };

  static Amounts amounts(const Queue& queue, const std::vector<Demand>& demands);
  // Checks whether the share may have these amounts in addition to what all shares hold. Returns
  // nullopt if it may.
  static std::optional<Obstacle> check(const Queue& queue, const Held& held, size_t share,
                                       const Amounts& amounts);
  static double borrowable(const Queue& queue, size_t share, size_t unit);
  static bool holds_beyond(const Queue& queue, const Held& held, size_t share,
                           const Amounts& amounts);
  // Returns `reserved` as if the allocations had ended.
  static Held without(const Queue& queue, const Allocations& allocations,
                      std::span<const uint32_t> ended);

  std::vector<Queue> queues_;
};

}  // namespace trainyard::schedule
