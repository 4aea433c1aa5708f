// How long a rank waits for others, and whom it blames when nothing comes.
//
// Whom we wait for may itself wait, for a rank that waits for another: the one that is stuck is the one that does not
// wait. So whoever waits in vain says so again and again, with the rank that it would blame as far as it knows, and
// whoever hears a new name passes it on. Who says nothing is in no wait of this group: stuck, stopped, or late. A
// rank that has begun to wait before our patience is over has been heard when we blame.
//
//   0          a step        2 steps ..                    the limit   + 2 steps
//   we wait    we say so     again, and when it changes                we blame
//
// Threads: confined to one at a time. Errors: none.
// Units: a step is a twentieth of the limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"

namespace trainyard::collectives {

class Timeout {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Timeout(int rank, int ranks, Duration limit, Time now);

  void set_limit(Duration limit);
  Duration limit() const { return limit_; }
  Duration step() const;

  // Something came or went, or a wait begins.
  void moved(Time now) { moved_at_ = now; }
  Time moved_at() const { return moved_at_; }
  // `peer` waits, and would blame `guilty`. Requires: both are ranks.
  void heard(int peer, int guilty, Time now);

  // Who is at fault, as far as we know, that none of `waited_for` does anything; we, where there are none.
  int guilty(std::span<const int> waited_for, Time now) const;
  // Whom to name to the others, when it is time to say it (again).
  std::optional<int> word(std::span<const int> waited_for, Time now);
  bool is_over(Time now) const;

 private:
  struct Word {
    int guilty = 0;
    Time at;
  };
  static constexpr int steps_in_limit = 20;  // few words; and a wait that begins late is still heard of
  static constexpr int steps_until_blame =
      2;                                  // beyond the limit: until who began to wait within it has said so
  static constexpr int steps_heard = 10;  // a word holds until the next, which is late where cores are busy

  const int rank_;
  Duration limit_;
  Time moved_at_;
  std::vector<std::optional<Word>> heard_;  // by rank
  std::optional<Word> said_;
};

}  // namespace trainyard::collectives
