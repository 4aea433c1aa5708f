// Quota shares: what each has of its own, what it lends and borrows.
//
// A share takes what is its own at any time. It may go beyond that, up to its borrow_max, where shares that lend have
// capacity idle; what a share that does not lend has idle stays its own. For each unit: what all shares hold beyond
// their own is never more than what lenders have idle.
//
// Who waits for quota first in its share keeps it from those behind it: what it needs counts as held, for all who would
// not be over by the time it starts.
//
// Threads: confined to one. Lifetime: refers to the snapshot. Private to this room.
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
  // What stands against a job.
  struct Obstacle {
    enum class What { full, promised, too_small, no_share } what = What::full;
    std::string_view unit;
    double needs = 0;
    double used = 0;
    double capacity = 0;
    double borrowable = 0;  // besides, at most
    bool borrows = false;   // it would have to borrow
  };

  Quotas(const Snapshot& snapshot, const Allocations& allocations);

  bool concern(size_t line) const { return !lines_[line].shares.empty(); }
  // It would have to borrow, and may.
  bool would_borrow(const Waiting& job) const;
  // Nothing: it may take it. `ends`: when the job is over at the latest.
  std::optional<Obstacle> obstacle(const Waiting& job, std::optional<Instant> ends) const;
  void take(const Waiting& job);

  // Keeps what the job needs from those who would not be over at `at`; nothing: from everybody.
  void reservation(const Waiting& job, std::optional<Instant> at);
  // Who is promised something in its share.
  const std::string* first_of(const Waiting& job) const;
  // Somebody of its share who would borrow waits before it, for whatever.
  void borrower_waits(const Waiting& job);
  bool behind_borrower(const Waiting& job) const;
  // The earliest instant at which what runs leaves it what it needs.
  std::optional<Instant> earliest(const Waiting& job, Allocations& allocations) const;

  // -- taking back: as if holdings had ended

  // Running jobs of its line that hold something beyond their share's own, and those of its own share that are less
  // urgent, where the share lets them give way.
  bool may_give_way(const Allocation& allocation, const Waiting& to) const;
  // It would have what it needs, of its own or with what it borrows, once these and all that leave have ended.
  bool fits_without(const Waiting& job, const Allocations& allocations,
                    std::span<const uint32_t> ended) const;
  // As that, and of its own only.
  bool own_without(const Waiting& job, const Allocations& allocations, std::span<const uint32_t> ended) const;
  // Its share would still hold something beyond its own, and not have less than its own without it; or less, where it
  // could not take that back in turn, for ever.
  bool beyond_without(const Allocations& allocations, uint32_t allocation, std::span<const uint32_t> ended,
                      const Waiting& to) const;
  // These were told to end.
  void leave(const Allocations& allocations, std::span<const uint32_t> ended);

 private:
  struct Share {
    const QuotaShare* is = nullptr;
    std::vector<std::optional<double>> capacity;  // by unit; nothing: not limited
    std::vector<double> used;                     // by unit
    // The same without what leaves and with what was promised.
    std::vector<double> promised;
    const std::string* first = nullptr;  // whom it was promised to
    bool borrower_waits = false;
  };
  struct Line {
    std::vector<std::string_view> units;
    std::vector<Share> shares;
    std::unordered_map<std::string_view, size_t> by_name;
    std::optional<Instant> promised_at;  // of all promises, the earliest
    bool never = false;                  // of one of them, the instant is not known
  };
  using Amounts = std::vector<double>;  // by unit
  enum class Book { used, promised };

  const Share* share_of(const Line& line, std::string_view name) const;
  static Amounts amounts(const Line& line, const std::vector<Demand>& demands);
  static std::vector<double>& of(Share& share, Book book) {
    return book == Book::used ? share.used : share.promised;
  }
  static const std::vector<double>& of(const Share& share, Book book) {
    return book == Book::used ? share.used : share.promised;
  }
  // Of shares in that book; nothing stands against: nothing.
  std::optional<Obstacle> check(const Line& line, const std::vector<Share>& shares, const Share& its,
                                const Amounts& amounts, Book book) const;
  static double borrowable(const Line& line, const Share& its, size_t unit);
  static bool holds_beyond(const Share& its, const Amounts& amounts);
  std::vector<Share> without(const Line& line, const Allocations& allocations,
                             std::span<const uint32_t> ended) const;

  std::vector<Line> lines_;
};

}  // namespace trainyard::schedule
