// Executes one operation: checks the arguments, chooses the plan, lays out the buffers. Private to
// the module; callers use group.hpp.
//
// Threads: confined to one thread at a time. Errors: as in group.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/group.hpp"
#include "collectives/plan/plan.hpp"
#include "collectives/run.hpp"
#include "collectives/select.hpp"
#include "collectives/transport.hpp"

namespace trainyard::collectives {

// Checks the arguments before anything is sent. Errors: invalid.
Result<void> check(const Call& call, size_t rank, size_t ranks);

// An operation that is about to run: its plan without the blocks, and the caller's buffers.
struct PreparedCall {
  const Call& call;
  const Choice& choice;
  Tag tag;
  size_t element_bytes;
  plan::Plan plan;
  Buffers buffers;
  bool reads_input;  // the plan reads the input itself: no copy is needed
  bool scales;       // the input is multiplied by reducing.prescale first
};

// Returns the operation and the name of a call, for messages: "allreduce of layer1".
std::string name_of(const Call& call);

class Executor {
 public:
  // `activity` counts and describes the calls; the owner of the executor announces them.
  Executor(std::unique_ptr<Transport> transport, Table table, ActivityCounter& activity);

  Result<void> execute(const Call& call);
  Result<void> send(int peer, ConstBufferView values);
  Result<void> receive(int peer, BufferView values);

  Transport& transport() { return *transport_; }
  const Table& table() const { return table_; }
  const std::vector<int>& hosts() const { return hosts_; }
  // Returns the name of the plan that a call gets.
  std::string plan_of(const Call& call) const;
  uint64_t operations() const { return operations_; }

 private:
  // Computes the range of each rank in the buffer. Empty `counts` split it as evenly as possible.
  void lay_out(const std::vector<size_t>& counts, size_t elements,
               std::vector<plan::Range>& blocks) const;
  Tag next_tag(const Call& call, const Choice& choice);
  Result<void> run(const plan::Plan& plan, std::span<const int> team, Tag tag,
                   const Buffers& buffers);
  Result<void> run(const PreparedCall& work) { return run(work.plan, {}, work.tag, work.buffers); }
  Result<void> allreduce_by_hosts(const PreparedCall& work);
  Result<void> reduce_scatter(PreparedCall& work);
  Result<void> all_gather(PreparedCall& work);
  Result<void> reduce(PreparedCall& work);
  Result<void> gather(PreparedCall& work);
  Result<void> scatter(PreparedCall& work);
  Result<void> all_to_all(PreparedCall& work);
  Result<void> run_single_rank(const Call& call);
  std::byte* work_copy(const Call& call);

  const std::unique_ptr<Transport> transport_;
  ActivityCounter& activity_;
  const int rank_;
  const int ranks_;
  const Table table_;
  const std::vector<int> hosts_;
  Workspace workspace_;
  std::unique_ptr<std::byte[]> work_;  // for plans that add in place; reused by later operations
  size_t work_bytes_ = 0;
  std::vector<plan::Range> blocks_;
  std::vector<plan::Range> received_blocks_;
  uint64_t operations_ = 0;
  std::vector<uint64_t> sent_to_;        // by peer: messages of send()
  std::vector<uint64_t> received_from_;  // by peer: messages of receive()
};

// Measures the costs of the links on rank 0. All ranks call it and get equal costs.
Result<Costs> measure(Transport& transport);

}  // namespace trainyard::collectives
