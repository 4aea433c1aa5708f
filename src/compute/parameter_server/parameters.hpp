// A parameter server: some ranks of a group keep tables of numbers, the others push gradients and pull values.
//
//   const Options options = {.tables = {{"embedding", 1'000'000, 64, {Rule::Kind::adagrad, 0.05f}}, {"bias", 1000}},
//                            .servers = {0, 1}};
//   if (rank is one of options.servers) return serve(group, options);      // until all workers have left
//
//   auto worker = TRY(Worker::join(group, options));
//   TRY(worker->assign(bias, initial));                                    // one worker does
//   TRY(worker->end_round());
//   for (...) {
//     TRY(worker->pull(embedding, rows, values));                          // the rows of this batch
//     ...
//     TRY(worker->push(embedding, rows, gradients));
//     TRY(worker->end_round());                                            // waits as options.consistency says
//   }
//   TRY(worker->leave());
//
// Worth it where gradients are sparse, where workers are unequal, or where extra machines shall take the sums off the
// workers; dense gradients of equal workers go faster by Group::allreduce.
//
// Threads: confined to one each. Errors: unavailable, naming the rank that died or went silent, for all others within the
// group's limits; invalid, when tables or rows are not what they must be; corrupt.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "parameter_server/keeper.hpp"
#include "parameter_server/placement.hpp"

namespace trainyard::parameter_server {

// The same on all ranks.
struct Options {
  std::vector<Table> tables;  // all numbers are 0 until they are assigned
  std::vector<int> servers;   // ranks of the group; all others are workers, at least one
  Consistency consistency;
};

// All ranks of the group call serve or Worker::join, together.
Result<void> serve(collectives::Group& group, const Options& options);

class Mail;

class Worker {
 public:
  static Result<std::unique_ptr<Worker>> join(collectives::Group& group, const Options& options);
  ~Worker();

  // All rows of a table, row after row.
  Result<void> assign(uint32_t table, std::span<const float> values);
  Result<void> push(uint32_t table, std::span<const float> gradient);
  Result<void> pull(uint32_t table, std::span<float> values);
  // Some rows, in any order; values are row after row. A row that is pushed twice counts twice.
  Result<void> push(uint32_t table, std::span<const uint64_t> rows, std::span<const float> gradient);
  Result<void> pull(uint32_t table, std::span<const uint64_t> rows, std::span<float> values);

  // What was pushed and assigned counts as this round's; waits until the next may begin.
  Result<void> end_round();
  uint64_t round() const { return round_; }
  // Nothing may follow. What was pushed since the last round ended is not applied (synchronous).
  Result<void> leave();

  const Placement& placement() const { return placement_; }

 private:
  Worker(Placement placement, std::vector<int> servers, std::unique_ptr<Mail> mail);
  // Whom to ask for what: one request a server for rows by name, one a slice for all; `at` is where each row's (or
  // slice's) values lie among the caller's, in rows.
  struct Ask {
    uint32_t server = 0;
    Rows rows;
    std::vector<uint64_t> at;
  };
  Result<std::vector<Ask>> asks(uint32_t table, std::span<const uint64_t> rows, bool all,
                                size_t values) const;
  template <class Message>
  Result<void> tell(const std::vector<Ask>& asks, std::span<const float> values);
  Result<void> fetch(const std::vector<Ask>& asks, std::span<float> values);
  Result<Answer> hear(uint32_t server);

  const Placement placement_;
  const std::vector<int> servers_;
  std::unique_ptr<Mail> mail_;
  uint64_t round_ = 0;
};

}  // namespace trainyard::parameter_server
