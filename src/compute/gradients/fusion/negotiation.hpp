// One rank's part in finding out which tensors all ranks have: a state machine that touches nothing.
//
//   a cycle     bits() -> AND over all ranks -> hear_bits()
//               where it says so: report() -> rank 0 -> answer() -> all ranks -> hear_answer()
//               take_plan(): what all ranks carry out now, the same everywhere
//
//   a tensor    held  --group is whole-->  known   --all bits set-->  planned
//                          |                 |  ^
//                          |       forgotten |  | (next time)
//                          v                 v  |
//                        fresh --reported--> asked --answered--> planned, or failed
//
// held: the rest of its group was not submitted here yet. known: it is in the response cache, so a bit says that
// we have it. fresh: rank 0 must be told. Every rank steps through the same plans, since all that changes its
// cache and sets are bits and answers, which all ranks hear alike.
//
// Threads: confined to one at a time.
// Errors:  of submit: invalid, conflict. Of the hearing: corrupt, when what a peer said makes no sense.
// Units:   `now` counts from any zero, but never goes back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "gradients/fusion/batches.hpp"
#include "gradients/fusion/coordinator.hpp"
#include "gradients/fusion/messages.hpp"
#include "gradients/fusion/response_cache.hpp"

namespace trainyard::gradients {

// What a cycle came to.
struct Plan {
  std::vector<Batch> batches;        // in this order, by all members of their sets
  std::vector<Agreement> faults;     // these names fail
  std::vector<uint32_t> leaving;     // not empty: the negotiation is over
  std::string stalls;                // for people
  uint64_t cached = 0;               // tensors that needed no question
  std::optional<Settings> settings;  // new ones
  bool operator==(const Plan&) const = default;
};

class Negotiation {
 public:
  struct Limits {
    Settings settings;
    size_t cache_entries_max = 1024;
    bool reproducible = false;
    uint64_t tensor_bytes_max = ~uint64_t{0};  // of one that is fused
    Coordinator::Limits stalls;
  };
  Negotiation(int rank, int ranks, Limits limits);

  const Sets& sets() const { return sets_; }
  const Settings& settings() const { return limits_.settings; }

  Result<void> submit(Signature signature, Duration now);
  // From the next report on all ranks know that we go.
  void leave() { leaving_ = true; }
  // Rank 0 only: with the next answer all ranks work with these.
  void change(Settings settings) { new_settings_ = settings; }
  bool idle() const { return pending_.empty() && !leaving_; }

  // A bit for each position of the cache: set unless we hold the tensor up. Before them a word of flags.
  std::vector<uint64_t> bits(Duration now);
  // Returns whether rank 0 must be asked. `all`: the AND of what all ranks' bits() gave.
  Result<bool> hear_bits(std::span<const uint64_t> all, Duration now);
  Report report(Duration now);
  // Rank 0 only: reports by rank.
  Result<Answer> answer(std::span<const Report> reports);
  Result<void> hear_answer(const Answer& answer);
  // Ends the cycle.
  Plan take_plan();

  static constexpr uint64_t nothing_to_say = 1;  // flags: we need no answer of rank 0
  static constexpr uint64_t no_roll_call = 2;    // nothing has waited for too long here
  static constexpr uint64_t flags_max = 3;
  static constexpr uint32_t cycle_microseconds_max = 1'000'000;  // no step may wait longer

 private:
  enum class State : uint8_t { held, known, fresh, asked };
  struct Pending {
    Signature signature;
    Duration since{};
    State state = State::held;
    uint64_t order = 0;
    size_t position = 0;  // known: in the cache
  };

  bool is_member(int set) const;
  void lay_base();
  bool matches(const Pending& pending) const;
  void route(const std::vector<std::string>& keys);
  void forgotten(const std::string& key);
  bool wants_roll_call(Duration now) const;
  std::optional<Signature> take_pending(const std::string& key);
  Result<void> apply(const Agreement& agreement);

  const int rank_;
  const int ranks_;
  Limits limits_;
  Coordinator coordinator_;  // rank 0's is the one that is asked
  ResponseCache cache_;
  Sets sets_;
  int next_set_ = 1;
  std::map<std::string, Pending> pending_;                // by key
  std::map<std::string, std::vector<std::string>> held_;  // by set and group: keys that were submitted so far
  std::map<int, State> joining_;  // by set: fresh, asked, or known once rank 0 has heard of it
  bool leaving_ = false;
  bool roll_call_ = false;  // in this cycle
  Duration last_roll_call_{};
  uint64_t orders_ = 0;
  std::vector<uint64_t> base_;
  bool base_is_old_ = true;  // only answers change it
  std::optional<Settings> new_settings_;

  std::vector<Agreement> ready_;  // of this cycle
  Plan plan_;
};

}  // namespace trainyard::gradients
