// A ServerState stores the slices of one parameter server, and answers requests. It is a state
// machine without I/O or clocks, whose input is a message and whose output is messages.
//
// Workers train in rounds. A worker sends Tick to every server at the end of a round, and begins
// the next when all servers have sent Proceed.
//
//   synchronous    The gradients of a round are stored by worker until every worker has ended the
//                  round. They are then summed in the order of ranks and applied: bit for bit the
//                  result of an allreduce (one_shot) followed by the same rule on each worker.
//   asynchronous   A gradient is applied when it arrives, and no worker waits.
//   bounded        As asynchronous, but a worker that is `staleness` rounds ahead of the slowest
//                  one waits. So a pull in round c sees everything that was pushed in rounds before
//                  c - staleness (stale synchronous parallel, Ho et al. 2013).
//
// A round with P numbers and W workers, all dense, sends 2 W * 4 P bytes, and about 50 bytes for
// each slice and message.
//
// Threads: confined to one. Errors: none; an invalid request is answered with Refused, and changes
// nothing.
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
  uint64_t staleness = 0;  // rounds; for `bounded`
};

struct Outgoing {
  uint32_t worker = 0;
  Answer answer;
};

class ServerState {
 public:
  // Requires: server < placement.servers(), workers > 0; the placement outlives it.
  ServerState(const Placement& placement, uint32_t server, uint32_t workers,
              Consistency consistency);

  // Handles a request, and returns the answers to send, possibly to other workers.
  std::vector<Outgoing> handle(uint32_t worker, Request request);
  // Returns true if all workers have left.
  bool is_finished() const { return left_.size() == rounds_ended_.size(); }
  uint64_t slowest_round() const;

 private:
  struct StoredSlice {
    Slice slice;
    std::vector<float> values;
    std::vector<float> state;
    // synchronous: the sum of each worker's pushes in this round, by worker. Pushes of single rows
    // are in `sparse`.
    std::map<uint32_t, std::vector<float>> dense;
    std::map<uint64_t, std::map<uint32_t, std::vector<float>>> sparse;
  };

  Answer answer(uint32_t worker, Assign& request);
  Answer answer(uint32_t worker, Push& request);
  Answer answer(uint32_t worker, Pull& request);
  // Describes why a request for these rows is invalid; empty if it is valid.
  std::string error_in(const Rows& rows, const std::string* values) const;
  StoredSlice& slice_at(uint32_t table, uint64_t row);
  const Table& table_of(const StoredSlice& stored) const {
    return placement_.tables()[stored.slice.table];
  }
  // Calls each(slice, first row, number of rows, offset of their values in the request).
  template <class Each>
  void for_each_part(const Rows& rows, const Each& each);
  void apply(StoredSlice& stored, uint64_t row, std::span<const float> gradient);
  void apply_round();
  void apply_dense(StoredSlice& stored);
  void apply_sparse(StoredSlice& stored);
  void send_proceeds(std::vector<Outgoing>& out);

  const Placement& placement_;
  const uint32_t server_;
  const Consistency consistency_;
  std::map<std::pair<uint32_t, uint64_t>, StoredSlice> slices_;  // by table and first row
  std::vector<uint64_t> rounds_ended_;                           // by worker
  // workers that wait for the next round
  std::set<uint32_t> waiting_;
  std::set<uint32_t> left_;
  uint64_t rounds_applied_ = 0;  // synchronous
};

}  // namespace trainyard::parameter_server
