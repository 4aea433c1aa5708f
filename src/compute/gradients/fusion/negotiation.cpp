#include "gradients/fusion/negotiation.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace trainyard::gradients {
namespace {

constexpr size_t kWordBits = 64;
constexpr uint64_t bit_of(size_t position) { return uint64_t{1} << position % kWordBits; }

// The interval of checks for tensors that have waited too long.
constexpr Duration kStallCheckInterval = 1s;

size_t words_for(size_t positions) { return 1 + (positions + kWordBits - 1) / kWordBits; }

// Returns true if the signatures describe the same tensor; the priority may differ.
bool same(Signature a, const Signature& b) {
  a.priority = b.priority;
  return a == b;
}

// Returns true if the agreement fits the request of this rank. The sizes that rank 0 sends must
// equal the sizes of this rank's memory.
bool fits(const Agreement& agreement, const Signature& own, size_t me, size_t members) {
  Signature agreed = agreement.signature;
  const bool gathers = agreed.operation == Operation::all_gather;
  const bool exchanges = agreed.operation == Operation::all_to_all;
  if ((gathers || exchanges) && !agreed.shape.empty() && !own.shape.empty())
    agreed.shape[0] = own.shape[0];
  if (exchanges) agreed.splits = own.splits;
  if (!same(std::move(agreed), own)) return false;
  if (gathers) return agreement.rows[me] == own.rows();
  return !exchanges || std::equal(own.splits.begin(), own.splits.end(),
                                  agreement.rows.begin() + ptrdiff_t(me * members));
}

}  // namespace

Negotiation::Negotiation(int rank, int ranks, Limits limits)
    : rank_(rank),
      ranks_(ranks),
      limits_(limits),
      coordinator_(ranks, limits_.stalls),
      cache_(limits_.cache_entries_max) {
  for (int each = 0; each < ranks; ++each) sets_[0].push_back(each);
}

bool Negotiation::is_member(int set) const {
  const auto found = sets_.find(set);
  return found != sets_.end() &&
         std::binary_search(found->second.begin(), found->second.end(), rank_);
}

bool Negotiation::matches(const Pending& pending) const {
  const auto* entry = cache_.find(key_of(pending.signature));
  return entry && entry->own && same(*entry->own, pending.signature);
}

// Chooses the state of a tensor, or of all tensors of a group: either all of them are reported to
// rank 0, or none.
void Negotiation::route(const std::vector<std::string>& keys) {
  const bool known = std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    const auto found = pending_.find(key);
    return found != pending_.end() && matches(found->second);
  });
  for (const std::string& key : keys) {
    const auto found = pending_.find(key);
    if (found == pending_.end()) continue;
    found->second.state = known ? State::known : State::fresh;
    if (known) found->second.position = *cache_.position_of(key);
  }
}

// A group is reported to rank 0 as a whole. So all of its tensors are reported when one of them is
// no longer known.
void Negotiation::forgotten(const std::string& key) {
  const auto found = pending_.find(key);
  if (found == pending_.end() || found->second.state != State::known) return;
  found->second.state = State::fresh;
  const Signature& signature = found->second.signature;
  if (signature.group.empty()) return;
  for (auto& [other_key, other] : pending_) {
    if (other.state == State::known && other.signature.set == signature.set &&
        other.signature.group == signature.group)
      other.state = State::fresh;
  }
}

Result<void> Negotiation::submit(Signature signature, Duration now) {
  TRY(check(signature, sets_, rank_));
  if (signature.operation == Operation::join) {
    if (joining_.contains(signature.set)) return conflict("this rank has joined already");
    joining_.emplace(signature.set, State::fresh);
    return ok();
  }
  if (joining_.contains(signature.set))
    return invalid("this rank has joined, so it cannot submit tensors");
  const std::string key = key_of(signature);
  const std::string group = signature.group;
  const std::string group_key = key_of(signature.set, group);
  const uint32_t group_members = signature.group_members;
  if (pending_.contains(key))
    return conflict("a tensor of this name was submitted already and is not done");
  pending_.emplace(key, Pending{std::move(signature), now, State::held, orders_++});
  if (group.empty()) {
    route({key});
    return ok();
  }
  auto& keys = held_[group_key];
  keys.push_back(key);
  if (keys.size() >= group_members) {
    route(keys);
    held_.erase(group_key);
  }
  return ok();
}

bool Negotiation::wants_stall_check(Duration now) const {
  Duration age = 0ms;
  for (const auto& [key, pending] : pending_) age = std::max(age, now - pending.since);
  const auto& stalls = limits_.stalls;
  const Duration since = now - last_stall_check_;
  return (stalls.stall_report_after > 0ms && age >= stalls.stall_report_after &&
          since >= stalls.stall_report_after) ||
         (stalls.stall_fail_after > 0ms && age >= stalls.stall_fail_after &&
          since >= kStallCheckInterval);
}

// Sets the bits of tensors that this rank need not submit: those of sets to which it does not
// belong, and of sets that it has joined.
void Negotiation::make_base_bits() {
  base_.assign(words_for(cache_.positions()), ~uint64_t{0});
  base_[0] = kFlagsMax;
  for (size_t position = 0; position < cache_.positions(); ++position) {
    const auto* entry = cache_.at(position);
    if (!entry) continue;
    const int set = entry->agreement.signature.set;
    const auto joining = joining_.find(set);
    const bool joined = joining != joining_.end() && joining->second == State::known;
    if (is_member(set) && !joined) base_[1 + position / kWordBits] &= ~bit_of(position);
  }
  base_is_old_ = false;
}

// Training steps repeat themselves. So in most cycles the base is unchanged, and the cost is
// proportional to the outstanding tensors.
std::vector<uint64_t> Negotiation::bits(Duration now) {
  if (base_is_old_) make_base_bits();
  auto words = base_;
  bool needs_answer = leaving_ || new_settings_;
  for (const auto& [set, state] : joining_) needs_answer = needs_answer || state == State::fresh;
  for (const auto& [key, pending] : pending_) {
    needs_answer = needs_answer || pending.state == State::fresh;
    if (pending.state == State::known) {
      words[1 + pending.position / kWordBits] |= bit_of(pending.position);
    } else if (const auto position = cache_.position_of(key)) {
      words[1 + *position / kWordBits] &= ~bit_of(*position);
    }
  }
  if (needs_answer) words[0] &= ~kNoAnswerNeeded;
  if (wants_stall_check(now)) words[0] &= ~kNoStallCheck;
  return words;
}

Result<bool> Negotiation::apply_bits(std::span<const uint64_t> all, Duration now) {
  if (all.size() != words_for(cache_.positions()))
    return corrupt("the response caches of the ranks differ");
  // Plans tensors first and evicts later, so that positions do not change while they are read.
  for (size_t position = 0; position < cache_.positions(); ++position) {
    const auto* entry = cache_.at(position);
    if (!entry || !(all[1 + position / kWordBits] & bit_of(position))) continue;
    ready_.push_back(entry->agreement);
    take_pending(key_of(entry->agreement.signature));
    cache_.touch(position);
    ++plan_.cached;
  }
  stall_check_ = !(all[0] & kNoStallCheck);
  if (stall_check_) last_stall_check_ = now;
  return !(all[0] & kNoAnswerNeeded) || stall_check_;
}

Report Negotiation::report(Duration now) {
  Report report;
  report.leaving = leaving_;
  std::vector<Pending*> fresh;
  for (auto& [key, pending] : pending_) {
    if (pending.state == State::fresh) fresh.push_back(&pending);
    if (stall_check_)
      report.waiting.push_back(
          {key, uint64_t(std::max<int64_t>((now - pending.since).count(), 0))});
  }
  std::sort(fresh.begin(), fresh.end(),
            [](const Pending* a, const Pending* b) { return a->order < b->order; });
  for (Pending* pending : fresh) {
    pending->state = State::reported;
    report.requests.push_back(pending->signature);
  }
  for (auto& [set, state] : joining_) {
    if (state != State::fresh) continue;
    state = State::reported;
    Signature& join = report.requests.emplace_back();
    join.name = "join";
    join.operation = Operation::join;
    join.set = set;
  }
  return report;
}

Result<Answer> Negotiation::answer(std::span<const Report> reports) {
  if (reports.size() != size_t(ranks_))
    return corrupt("the number of reports is not the number of ranks");
  auto answer = TRY(coordinator_.answer(reports, sets_, cache_));
  answer.settings = std::exchange(new_settings_, std::nullopt);
  return answer;
}

std::optional<Signature> Negotiation::take_pending(const std::string& key) {
  const auto found = pending_.find(key);
  if (found == pending_.end()) return {};
  std::optional<Signature> signature = std::move(found->second.signature);
  if (found->second.state == State::held) {
    // The tensor fails before its group is complete. The rest of the group waits until the name is
    // submitted again.
    auto& keys = held_[key_of(signature->set, signature->group)];
    std::erase(keys, key);
  }
  pending_.erase(found);
  return signature;
}

// Forgets a process set, and fails its requests that are pending.
void Negotiation::remove_set(int set) {
  sets_.erase(set);
  joining_.erase(set);
  for (size_t position = 0; position < cache_.positions(); ++position) {
    const auto* entry = cache_.at(position);
    if (entry && entry->agreement.signature.set == set)
      cache_.forget(key_of(entry->agreement.signature));
  }
  std::vector<std::string> gone;
  for (const auto& [key, pending] : pending_) {
    if (pending.signature.set == set) gone.push_back(key);
  }
  for (const std::string& key : gone) {
    Agreement& fault = plan_.faults.emplace_back();
    fault.signature = *take_pending(key);
    fault.fault = "set " + std::to_string(set) + " was removed";
  }
}

// Rank 0 is a peer, so its answers are checked: they must fit the sets that all ranks know.
Result<void> Negotiation::apply(const Agreement& agreement) {
  const Signature& signature = agreement.signature;
  const std::string key = key_of(signature);
  const auto set = sets_.find(signature.set);
  if (set == sets_.end()) return corrupt("the answer names an unknown process set");
  if (!agreement.fault.empty()) {
    take_pending(key);
    plan_.faults.push_back(agreement);
    return ok();
  }
  const size_t members = set->second.size();
  if (signature.operation == Operation::join) {
    joining_.erase(signature.set);
    ready_.push_back(agreement);
    return ok();
  }
  TRY(check(signature, sets_, set->second.front()).in("the answer"));
  const size_t rows = signature.operation == Operation::all_gather   ? members
                      : signature.operation == Operation::all_to_all ? members * members
                                                                     : 0;
  if (agreement.rows.size() != rows)
    return corrupt("the answer lacks a number of rows for each rank");
  for (const uint64_t count : agreement.rows) {
    if (count > kElementsMax / std::max<uint64_t>(signature.row_elements(), 1))
      return corrupt("the answer has too many rows");
  }
  auto own = take_pending(key);
  const auto me =
      std::lower_bound(set->second.begin(), set->second.end(), rank_) - set->second.begin();
  if (own && !fits(agreement, *own, size_t(me), members))
    return corrupt("the answer does not match this rank's request, " + name_of(signature));
  const bool has_joined =
      joining_.contains(signature.set) && joining_.at(signature.set) != State::fresh;
  if (!own && is_member(signature.set) && !has_joined)
    return corrupt("the answer names a tensor that this rank did not submit, " +
                   name_of(signature));
  if (agreement.keep) forgotten(cache_.put(agreement, std::move(own)));
  if (signature.operation == Operation::add_set) {
    auto& ranks = sets_[next_set_++];
    for (const uint64_t rank : signature.splits) ranks.push_back(int(rank));
  }
  if (signature.operation == Operation::remove_set) remove_set(signature.root);
  ready_.push_back(agreement);
  return ok();
}

Result<void> Negotiation::apply_answer(const Answer& answer) {
  base_is_old_ = true;
  for (const std::string& key : answer.forgotten) {
    cache_.forget(key);
    forgotten(key);
  }
  // Rank 0 has recorded the joins that were reported to it. This answer may have completed them.
  for (auto& [set, state] : joining_) {
    if (state == State::reported) state = State::known;
  }
  for (const Agreement& agreement : answer.ready) TRY(apply(agreement));
  plan_.leaving = answer.leaving;
  plan_.stalls = answer.stalls;
  if (answer.settings) {
    if (answer.settings->cycle_microseconds > kCycleMicrosecondsMax)
      return corrupt("the answer's cycle time is too long");
    limits_.settings = *answer.settings;
    plan_.settings = answer.settings;
  }
  return ok();
}

Plan Negotiation::take_plan() {
  plan_.batches =
      batches_of(std::exchange(ready_, {}),
                 {limits_.settings.fusion_bytes, limits_.tensor_bytes_max, limits_.reproducible});
  return std::exchange(plan_, {});
}

}  // namespace trainyard::gradients
