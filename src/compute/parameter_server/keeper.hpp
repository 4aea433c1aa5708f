// What one server keeps and how it answers: a state machine without links or clocks, a message in, messages out.
//
// Workers train in rounds; each ends its round at every server (Tick), and begins the next when all of them said Proceed.
//
//   synchronous    a round's gradients are kept by worker until every worker has ended the round, then folded in the order
//                  of ranks and applied: bit for bit what an allreduce (one_shot) and the same rule on each worker gives
//   asynchronous   a gradient is applied when it comes; nobody waits
//   bounded        the same, but who is `staleness` rounds ahead of the slowest waits: so whoever pulls in its round c sees
//                  all that anyone pushed in rounds before c - staleness (stale synchronous parallel, Ho et al. 2013)
//
// Bytes of a round with P numbers, W workers, all dense: 2 W * 4 P, and some 50 for each slice and message.
//
// Threads: confined to one. Errors: none; a request that makes no sense is answered with why, and changes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "parameter_server/messages.hpp"
#include "parameter_server/placement.hpp"

namespace trainyard::parameter_server {

struct Consistency {
  enum class Kind : uint8_t { synchronous, bounded, asynchronous };
  Kind kind = Kind::synchronous;
  uint64_t staleness = 0;  // rounds; of bounded
};

struct Outgoing {
  uint32_t worker = 0;
  Answer answer;
};

class Keeper {
 public:
  // Requires: server < placement.servers(), workers > 0; the placement outlives it.
  Keeper(const Placement& placement, uint32_t server, uint32_t workers, Consistency consistency);

  std::vector<Outgoing> heard(uint32_t worker, Request request);
  // All workers have left.
  bool is_finished() const { return left_.size() == clocks_.size(); }
  uint64_t slowest_round() const;

 private:
  struct Kept {
    Slice slice;
    std::vector<float> values;
    std::vector<float> state;
    // Synchronous: what each worker pushed in its round, by worker; sparse rows apart while nobody pushed all.
    std::map<uint32_t, std::vector<float>> dense;
    std::map<uint64_t, std::map<uint32_t, std::vector<float>>> sparse;
  };

  Answer answer(uint32_t worker, Assign& request);
  Answer answer(uint32_t worker, Push& request);
  Answer answer(uint32_t worker, Pull& request);
  // Why these rows cannot be ours; empty when they can.
  std::string wrong(const Rows& rows, const std::string* values) const;
  Kept& kept_of(uint32_t table, uint64_t row);
  const Table& table_of(const Kept& kept) const { return placement_.tables()[kept.slice.table]; }
  // Calls with a slice, a row in it, how many rows from it on, and where their values lie.
  template <class Each>
  void for_each_part(const Rows& rows, const Each& each);
  void apply(Kept& kept, uint64_t row, std::span<const float> gradient);
  void apply_round();
  void apply_dense(Kept& kept);
  void apply_sparse(Kept& kept);
  void let_proceed(std::vector<Outgoing>& out);

  const Placement& placement_;
  const uint32_t server_;
  const Consistency consistency_;
  std::map<std::pair<uint32_t, uint64_t>, Kept> kept_;  // by table and first row
  std::vector<uint64_t> clocks_;                        // rounds that each worker has ended
  std::set<uint32_t> waiting_;                          // for the next round
  std::set<uint32_t> left_;
  uint64_t rounds_applied_ = 0;  // synchronous
};

}  // namespace trainyard::parameter_server
