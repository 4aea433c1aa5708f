// Implements parameter servers and their workers: some ranks of a group store tables of numbers,
// and the others push gradients and pull values.
//
//   const Options options = {.tables = {{"embedding", 1'000'000, 64, {Rule::Kind::adagrad, 0.05f}},
//                                       {"bias", 1000}},
//                            .servers = {0, 1}};
//   if (rank is one of options.servers) return serve(group, options);  // until all workers left
//
//   auto worker = TRY(Worker::join(group, options));
//   TRY(worker->assign(bias, initial));            // on one worker only
//   TRY(worker->end_round());
//   for (...) {
//     TRY(worker->pull(embedding, rows, values));  // the rows of this batch
//     ...
//     TRY(worker->push(embedding, rows, gradients));
//     TRY(worker->end_round());                    // waits as options.consistency demands
//   }
//   TRY(worker->leave());
//
// Use it if gradients are sparse, if workers differ in speed, or to move the summation to other
// machines. Group::allreduce is faster for dense gradients of equally fast workers.
//
// Threads: each confined to one. Errors: unavailable, naming the rank that died or timed out, on
// all other ranks within the group's timeouts; invalid, for invalid tables or rows; corrupt.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "parameter_server/placement.hpp"
#include "parameter_server/server_state.hpp"

namespace trainyard::parameter_server {

// The options of a parameter server; equal on all ranks.
struct Options {
  std::vector<Table> tables;  // all values are 0 until they are assigned
  std::vector<int> servers;   // ranks of the group; all others are workers, at least one
  Consistency consistency;
};

// Serves until all workers have left. Each rank of the group calls either serve or Worker::join.
Result<void> serve(collectives::Group& group, const Options& options);

class Mailbox;

class Worker {
 public:
  static Result<std::unique_ptr<Worker>> join(collectives::Group& group, const Options& options);
  ~Worker();

  // Transfer all rows of a table. Values are row after row.
  Result<void> assign(uint32_t table, std::span<const float> values);
  Result<void> push(uint32_t table, std::span<const float> gradient);
  Result<void> pull(uint32_t table, std::span<float> values);
  // Transfer the given rows, in any order. Values are row after row. If a row is pushed twice, both
  // gradients count.
  Result<void> push(uint32_t table, std::span<const uint64_t> rows,
                    std::span<const float> gradient);
  Result<void> pull(uint32_t table, std::span<const uint64_t> rows, std::span<float> values);

  // Ends the round of the preceding pushes and assigns, and waits until the next round may begin.
  Result<void> end_round();
  uint64_t round() const { return round_; }
  // Ends this worker; no call may follow. In synchronous mode, pushes since the last end_round()
  // are not applied.
  Result<void> leave();

  const Placement& placement() const { return placement_; }

 private:
  Worker(Placement placement, std::vector<int> servers, std::unique_ptr<Mailbox> mailbox);
  // The rows of one request: one request per server for named rows, one per slice for a whole
  // table. `at` is the position of each row (or slice) among the caller's values, in rows.
  struct RowRequest {
    uint32_t server = 0;
    Rows rows;
    std::vector<uint64_t> at;
  };
  Result<std::vector<RowRequest>> requests_for(uint32_t table, std::span<const uint64_t> rows,
                                               bool all, size_t values) const;
  template <class Message>
  Result<void> send_values(const std::vector<RowRequest>& requests, std::span<const float> values);
  Result<void> fetch(const std::vector<RowRequest>& requests, std::span<float> values);
  Result<Answer> receive_answer(uint32_t server);

  const Placement placement_;
  const std::vector<int> servers_;
  std::unique_ptr<Mailbox> mailbox_;
  uint64_t round_ = 0;
};

}  // namespace trainyard::parameter_server
