// Named counted limits: how much of each is left, and who waits for it first. Whoever waits first for a limit is promised
// it for the instant at which it will be free; others that need the same limit may take of it only what does not delay
// that. Nobody else is held back.
//
// Threads: confined to one. Lifetime: refers to the snapshot. Private to this room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/allocations.hpp"
#include "schedule/plan.hpp"

namespace trainyard::schedule {

// What a placed job needs of it.
inline double amount_of(const Need& need, double cpus) { return need.cpus ? cpus : need.amount; }

class Limits {
 public:
  // What stands against a choice, at one limit.
  struct Obstacle {
    enum class What { full, promised, too_small } what = What::full;
    size_t limit = 0;
    double needs = 0;
    double kept = 0;  // of it, for shares of the line that are not active
  };
  // Whoever waits for a limit first.
  struct Claim {
    const std::string* by_whom = nullptr;
    std::string reason;
    std::optional<Instant> at;  // then it is free for them, at the latest
    double spare = 0;           // of it, besides
  };

  Limits(const Snapshot& snapshot, const Allocations& allocations);

  const Limit& limit(size_t index) const { return snapshot_.limits[index]; }
  double used(size_t index) const { return snapshot_.limits[index].total - free_[index]; }
  double free(size_t index) const { return free_[index]; }
  const std::optional<Claim>& claim(size_t index) const { return claims_[index]; }
  // Of that limit, for shares of that line that are not active.
  double kept(size_t line, size_t limit) const;

  // For a job of this line that is over at `ends`; empty: it may take them.
  std::vector<Obstacle> obstacles(const Choice& choice, size_t line, double cpus,
                                  std::optional<Instant> ends) const;
  void take(const Choice& choice, double cpus, std::optional<Instant> ends);

  // Promises what the choice needs, for the instant `at`, to a job that waits for it; where it is promised to somebody
  // already, that stays. `free_then`: by need, what is free at that instant. False: nothing was promised.
  bool reservation(const Choice& choice, size_t line, double cpus, const std::string& to,
                   const std::string& reason, std::optional<Instant> at,
                   const std::vector<double>& free_then);
  // The earliest instant at which all that the choice needs is free, by the ends of what runs, and what is free then.
  std::optional<Instant> earliest(const Choice& choice, size_t line, double cpus, Allocations& allocations,
                                  std::vector<double>& free_then) const;

  // All that the choice needs would be free, had these ended.
  bool fits_without(const Choice& choice, size_t line, double cpus, std::optional<Instant> ends,
                    const Allocations& allocations, const std::vector<uint32_t>& ended) const;

 private:
  // It would take of a limit what was promised to somebody.
  bool delays_reservation(const Choice& choice, size_t limit, double amount,
                          std::optional<Instant> ends) const;

  const Snapshot& snapshot_;
  std::vector<double> free_;
  std::vector<std::optional<Claim>> claims_;
  std::vector<std::vector<std::pair<size_t, double>>> kept_;  // by line
};

// Sums of amounts are rounded: this much is no lack.
inline constexpr double kRoundingAmount = 1e-6;

}  // namespace trainyard::schedule
