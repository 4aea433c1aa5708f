// A Negotiation determines which tensors all ranks have submitted. It is one rank's part, as a
// state machine without I/O.
//
//   a cycle     bits() -> AND over all ranks -> apply_bits()
//               if that returns true: report() -> rank 0 -> answer() -> all ranks -> apply_answer()
//               take_plan(): the batches that all ranks carry out now, equal on all ranks
//
//   a tensor    held  --group is complete-->  known   --all bits set-->  planned
//                          |                    |  ^
//                          |          forgotten |  | (next time)
//                          v                    v  |
//                        fresh --sent-->  reported --answered-->  planned, or failed
//
// held: other tensors of its group were not submitted on this rank yet. known: it is in the
// response cache, so a bit reports it. fresh: it must be reported to rank 0. All ranks make the
// same plans: only bits and answers change a rank's cache and sets, and all ranks receive the same
// bits and answers.
//
// Threads: confined to one at a time.
// Errors:  submit(): invalid, conflict. answer() and the apply functions: corrupt, if data of a
// peer is invalid.
// Units:   `now` counts from an arbitrary zero, and never decreases.
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

// The result of a cycle.
struct Plan {
  std::vector<Batch> batches;        // in this order, by all members of their sets
  std::vector<Agreement> faults;     // tensors that fail
  std::vector<uint32_t> leaving;     // ranks that leave; not empty: the negotiation ends
  std::string stalls;                // a report for users
  uint64_t cached = 0;               // tensors that were in the cache
  std::optional<Settings> settings;  // set when they change
  bool operator==(const Plan&) const = default;
};

class Negotiation {
 public:
  struct Limits {
    Settings settings;
    size_t cache_entries_max = 1024;
    bool reproducible = false;
    uint64_t tensor_bytes_max = ~uint64_t{0};  // of a tensor that is fused
    Coordinator::Limits stalls;
  };
  Negotiation(int rank, int ranks, Limits limits);

  const Sets& sets() const { return sets_; }
  const Settings& settings() const { return limits_.settings; }

  Result<void> submit(Signature signature, Duration now);
  // The next report announces to all ranks that this rank leaves.
  void leave() { leaving_ = true; }
  // Rank 0 only: the next answer changes the settings of all ranks.
  void change(Settings settings) { new_settings_ = settings; }
  bool idle() const { return pending_.empty() && !leaving_; }

  // Returns a word of flags, then a bit for each position of the cache, which is set unless this
  // rank still has to submit the tensor.
  std::vector<uint64_t> bits(Duration now);
  // Returns true if rank 0 must answer in this cycle. `all` is the AND of the bits() of all ranks.
  Result<bool> apply_bits(std::span<const uint64_t> all, Duration now);
  Report report(Duration now);
  // Answers the reports of all ranks, which are by rank. Rank 0 only.
  Result<Answer> answer(std::span<const Report> reports);
  Result<void> apply_answer(const Answer& answer);
  // Returns the plan and ends the cycle.
  Plan take_plan();

  static constexpr uint64_t kNoAnswerNeeded = 1;  // flag: this rank needs no answer from rank 0
  // flag: no tensor has waited for too long on this rank
  static constexpr uint64_t kNoStallCheck = 2;
  static constexpr uint64_t kFlagsMax = 3;
  static constexpr uint32_t kCycleMicrosecondsMax = 1'000'000;  // no step may wait longer

 private:
  enum class State : uint8_t { held, known, fresh, reported };
  struct Pending {
    Signature signature;
    Duration since{};
    State state = State::held;
    uint64_t order = 0;
    size_t position = 0;  // known: position in the cache
  };

  bool is_member(int set) const;
  void make_base_bits();
  bool matches(const Pending& pending) const;
  void route(const std::vector<std::string>& keys);
  void forgotten(const std::string& key);
  bool wants_stall_check(Duration now) const;
  std::optional<Signature> take_pending(const std::string& key);
  Result<void> apply(const Agreement& agreement);
  void remove_set(int set);

  const int rank_;
  const int ranks_;
  Limits limits_;
  Coordinator coordinator_;  // used on rank 0 only
  ResponseCache cache_;
  Sets sets_;
  int next_set_ = 1;
  std::map<std::string, Pending> pending_;                // by key
  std::map<std::string, std::vector<std::string>> held_;  // by set and group: keys submitted so far
  std::map<int, State> joining_;  // by set: fresh, reported, or known once rank 0 has received it
  bool leaving_ = false;
  bool stall_check_ = false;  // in this cycle
  Duration last_stall_check_{};
  uint64_t orders_ = 0;
  std::vector<uint64_t> base_;
  bool base_is_old_ = true;  // base_ must be made again; only answers change it
  std::optional<Settings> new_settings_;

  std::vector<Agreement> ready_;  // of this cycle
  Plan plan_;
};

}  // namespace trainyard::gradients
