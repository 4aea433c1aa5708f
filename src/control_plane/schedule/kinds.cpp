#include "schedule/kinds.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>

#include "schedule/shares.hpp"

namespace trainyard::schedule {
namespace {

struct Hash {
  uint64_t value = 0x9e3779b97f4a7c15u;
  void add(uint64_t number) { value = (value ^ number ^ (value >> 29)) * 0xbf58476d1ce4e5b9u; }
  void add(double number) { add(std::bit_cast<uint64_t>(number)); }
  void add(std::string_view text) { add(uint64_t(std::hash<std::string_view>()(text))); }
};

bool same_requests(const WaitingJob& a, const WaitingJob& b) {
  return std::ranges::equal(a.requests, b.requests, [](const HostRequest& x, const HostRequest& y) {
    return x.count == y.count && same(x.share, y.share) && x.instance_type == y.instance_type;
  });
}

bool same_needs(const std::vector<Need>& a, const std::vector<Need>& b) {
  return std::ranges::equal(a, b, [](const Need& x, const Need& y) {
    return x.limit == y.limit && x.amount == y.amount && x.cpus == y.cpus &&
           x.for_good == y.for_good;
  });
}

bool same_choices(const Choices& a, const Choices& b) {
  return a.same_as(b) || std::ranges::equal(a, b, [](const Choice& x, const Choice& y) {
           return same_needs(x.needs, y.needs) && x.environment == y.environment &&
                  x.instance_types == y.instance_types;
         });
}

bool same_kind(const WaitingJob& a, const WaitingJob& b, bool shares_differ) {
  return a.queue == b.queue && (!shares_differ || a.share == b.share) && same_requests(a, b) &&
         same_choices(a.choices, b.choices) &&
         std::ranges::equal(a.demands, b.demands, [](const Demand& x, const Demand& y) {
           return x.amount == y.amount && x.unit == y.unit;
         });
}

uint64_t hash_of_requests(const WaitingJob& waiting) {
  Hash hash;
  for (const HostRequest& request : waiting.requests) {
    hash.add(request.share.cpus);
    hash.add(uint64_t(request.share.memory_bytes));
    hash.add(uint64_t(request.share.gpus) << 32 | request.count);
  }
  return hash.value;
}

uint64_t hash_of(const WaitingJob& waiting, bool shares_differ, uint64_t requests) {
  Hash hash{requests};
  hash.add(uint64_t(waiting.queue));
  if (shares_differ) hash.add(std::string_view(waiting.share));
  for (const Choice& choice : waiting.choices)
    for (const Need& need : choice.needs) {
      hash.add(uint64_t(need.limit));
      hash.add(need.amount);
    }
  for (const Demand& demand : waiting.demands) hash.add(demand.amount);
  return hash.value;
}

// A hash table of numbers with open addressing; `same` compares those with equal hashes.
class Table {
 public:
  template <class Same>
  uint32_t find_or_add(uint64_t hash, uint32_t next, Same same) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.number == kNone) {
        slot = {hash, next};
        ++used_;
        return next;
      }
      if (slot.hash == hash && same(slot.number)) return slot.number;
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Slot {
    uint64_t hash = 0;
    uint32_t number = kNone;
  };
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == kNone) continue;
      size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].number != kNone) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }
  std::vector<Slot> slots_ = std::vector<Slot>(256);
  size_t used_ = 0;
};

}  // namespace

Kinds kinds_of(const std::vector<WaitingJob>& waiting, const std::vector<Queue>& queues) {
  Kinds found;
  found.kind_of.reserve(waiting.size());
  Table kinds, shapes;
  for (uint32_t i = 0; i < waiting.size(); ++i) {
    const WaitingJob& job = waiting[i];
    const bool shares_differ = !queues[job.queue].quota_shares.empty();
    // Children of an array are adjacent.
    if (i > 0 && same_kind(waiting[i - 1], job, shares_differ)) {
      found.kind_of.push_back(found.kind_of.back());
      continue;
    }
    const uint64_t requests = hash_of_requests(job);
    const uint32_t kind = kinds.find_or_add(
        hash_of(job, shares_differ, requests), uint32_t(found.kinds.size()), [&](uint32_t known) {
          return same_kind(waiting[found.kinds[known].like], job, shares_differ);
        });
    if (kind == found.kinds.size()) {
      const uint32_t shape = shapes.find_or_add(
          requests, uint32_t(found.shapes.size()),
          [&](uint32_t known) { return same_requests(waiting[found.shapes[known]], job); });
      if (shape == found.shapes.size()) found.shapes.push_back(i);
      found.kinds.push_back({i, shape});
    }
    found.kind_of.push_back(kind);
  }
  return found;
}

}  // namespace trainyard::schedule
