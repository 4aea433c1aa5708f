// Limits counts how much of each named limit is free, and which job is the first to wait for it.
// That job gets a reservation for the instant at which the limit will be free; other jobs that need
// the same limit may take only what does not delay it. All other jobs proceed.
//
// Threads: confined to one. Lifetime: refers to the snapshot. Private to this module.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/allocations.hpp"
#include "schedule/plan.hpp"

namespace trainyard::schedule {

// Returns the amount of the limit that a placed job needs.
inline double amount_of(const Need& need, double cpus) { return need.cpus ? cpus : need.amount; }

class Limits {
 public:
  // The reason why a limit rejects a choice.
  struct Obstacle {
    enum class What { full, reserved, too_small } what = What::full;
    size_t limit = 0;
    double needs = 0;
    double kept = 0;  // the part kept for inactive shares of the queue
  };
  // The reservation of the first job that waits for a limit.
  struct Claim {
    const std::string* by_whom = nullptr;
    std::string reason;
    std::optional<Instant> at;  // the limit is free for the job by then
    double spare = 0;           // what is free then in addition to the reservation
  };

  Limits(const Snapshot& snapshot, const Allocations& allocations);

  const Limit& limit(size_t index) const { return snapshot_.limits[index]; }
  double used(size_t index) const { return snapshot_.limits[index].total - free_[index]; }
  double free(size_t index) const { return free_[index]; }
  const std::optional<Claim>& claim(size_t index) const { return claims_[index]; }
  // Returns the part of the limit that the queue keeps for inactive shares.
  double kept(size_t queue, size_t limit) const;

  // Returns the limits that reject a job of this queue that ends at `ends`. Empty: it may take what
  // it needs.
  std::vector<Obstacle> obstacles(const Choice& choice, size_t queue, double cpus,
                                  std::optional<Instant> ends) const;
  void take(const Choice& choice, double cpus, std::optional<Instant> ends);

  // Reserves what the choice needs, at the instant `at`, for a waiting job. Keeps earlier
  // reservations. `free_then`: by need, what is free at that instant. Returns false if nothing was
  // reserved.
  bool reserve(const Choice& choice, size_t queue, double cpus, const std::string& to,
               const std::string& reason, std::optional<Instant> at,
               const std::vector<double>& free_then);
  // Returns the earliest instant at which everything that the choice needs is free, by the ends of
  // running jobs, and in `free_then` what is free then.
  std::optional<Instant> earliest(const Choice& choice, size_t queue, double cpus,
                                  Allocations& allocations, std::vector<double>& free_then) const;

  // Returns true if everything that the choice needs would be free without these allocations.
  bool fits_without(const Choice& choice, size_t queue, double cpus, std::optional<Instant> ends,
                    const Allocations& allocations, const std::vector<uint32_t>& ended) const;

 private:
  // Returns true if the amount includes capacity that is reserved for another job.
  bool delays_reservation(const Choice& choice, size_t limit, double amount,
                          std::optional<Instant> ends) const;

  const Snapshot& snapshot_;
  std::vector<double> free_;
  std::vector<std::optional<Claim>> claims_;
  std::vector<std::vector<std::pair<size_t, double>>> kept_;  // by queue
};

// Smaller differences between amounts are ignored: their sums have rounding errors.
inline constexpr double kRoundingAmount = 1e-6;

}  // namespace trainyard::schedule
