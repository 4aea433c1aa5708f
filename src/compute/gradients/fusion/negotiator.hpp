// A Negotiator runs collectives by name: each rank submits tensors when they are ready, in any order and from any thread. A
// background thread determines which ones all ranks have, fuses small ones and reduces them in the same order on all ranks.
// Horovod calls this controller and tensor fusion.
//
//   auto negotiator = TRY(Negotiator::start(std::move(group)));
//   auto handle = negotiator->submit({.name = "layer1.weight", .input = gradients, .output = gradients,
//                                     .reduction = Reduction::average});
//   ...                                            // the backward pass continues
//   TRY(handle.wait());
//
// A cycle compares the submitted tensors with the response cache; one AND over the bits of all ranks tells which of the known
// tensors all ranks have. For a new or changed tensor, rank 0 collects the requests of the ranks and answers which tensors all
// of them reduce. Ready tensors are ordered by priority, fused into buffers and reduced. negotiation.hpp decides this without
// I/O; the negotiator is the loop.
//
// A name may be outstanding only once on each rank: submit() refuses a second request. Ranks whose requests of one name differ
// (shape, type, operation ..) all get an error that names the ranks and the difference; other tensors are not affected.
// Tensors of one `group` complete together or fail together.
//
// Order of additions: that of group.hpp, with the position of an element in its fusion buffer instead of
// its tensor. All ranks always get the same bits. Which tensors are fused depends on timing, so runs may differ in the last
// bit; with Options::reproducible only groups are fused, and runs do not differ.
//
// Threads: call from anywhere. `on_done`, `allocate` and the options' functions are called by the background
//          thread, one at a time: they must not wait for a handle, add_set() or stop(); they may submit.
// Errors:  of a handle: invalid or conflict for a request that cannot be or that the ranks do not agree upon;
//          unavailable when a rank died or a stall lasted too long, naming the ranks and the tensor; cancelled
//          after stop(), ours or another rank's. A dead rank fails everything outstanding and all that follows.
// Lifetime: a request's memory is the negotiator's until its handle is done.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "collectives/group.hpp"
#include "gradients/fusion/request.hpp"

namespace trainyard::gradients {

// What became of a request.
struct Outcome {
  // all_gather: rows by member of the set; all_to_all: rows received from each; reduce_scatter: rows of each.
  std::vector<uint64_t> rows;
  int last = -1;  // join: the rank that joined last
  int set = -1;   // add_set: the set's number
};

struct Request {
  std::string name;
  Operation operation = Operation::allreduce;
  // allreduce, adasum, reduce_scatter, all_gather, all_to_all: what we bring. broadcast: at the root only.
  collectives::ConstBufferView input;
  // allreduce, adasum, broadcast: as many as the input, which may be the same memory. The others: either given here when
  // its size is known, or made by `allocate`. A broadcast sends output.data where input.data is null.
  collectives::BufferView output;
  // The output's memory, for `elements` of the input's type, when the ranks have said how many there are. Null
  // fails the request here with "no memory", after the ranks have carried it out.
  std::function<void*(size_t elements, const Outcome& outcome)> allocate;
  std::vector<uint64_t> shape;   // empty: one dimension of input.count, or output.count
  std::vector<uint64_t> splits;  // all_to_all: rows for each member of the set; empty: as even as can be
  collectives::Reduction reduction = collectives::Reduction::sum;
  double prescale = 1;   // values are multiplied by this before they are combined
  double postscale = 1;  // and by this after; both round to the type
  int root = 0;          // broadcast: a rank of the whole group
  Compression compression;
  int priority = 0;  // larger comes first among those that are ready in one cycle
  // Of group_members requests with one such name: none is carried out before all are submitted everywhere.
  std::string group;
  uint32_t group_members = 0;
  int set = 0;  // which ranks: see add_set
  // Called exactly once, before wait() returns; by the submitting thread when the request cannot be at all.
  std::function<void(const Result<Outcome>&)> on_done;
};

// Threads: one at a time. Dropping a handle waits for nothing.
class Handle {
 public:
  struct State;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  bool done() const;
  // Returns true when submit() refused the request: it is invalid, or its name is outstanding. Other ranks are not told.
  bool refused() const;
  // Waiting also ends the pause of the cycle, since this thread submits nothing more.
  Result<Outcome> wait();

 private:
  std::shared_ptr<State> state_;  // shared with the background thread; the last one frees it
};

enum class Phase : uint8_t {
  negotiate,    // from submission until all ranks have it
  copy_in,      // into the fusion buffer
  communicate,  // the collective itself
  copy_out,
  cycle  // no tensor: a cycle that found something to do
};
struct Event {
  Phase phase;
  Operation operation;
  std::string name;
  std::chrono::nanoseconds begin;  // since the negotiator started
  std::chrono::nanoseconds end;
};

// Rank 0's count for all ranks, but for the functions.
struct Options {
  Settings settings;
  uint32_t cache_entries_max = 1024;  // tensors whose signatures are kept: a bit each in every cycle
  // A tensor that some ranks wait for this long is reported with the ranks that did not submit it; 0: never.
  Duration stall_report_after = 60s;
  Duration stall_fail_after = 0ms;  // and fails after this long; 0: never
  bool reproducible = false;        // fuse groups only
  // Larger tensors are carried out where they lie: copying them costs more than a call. 0: by what a call costs, 128 KiB
  // where all ranks share memory, else 1 MiB.
  uint64_t fused_tensor_bytes_max = 0;
  // Measures while training goes on, and changes the settings on all ranks until it has found good ones (tuner.hpp).
  bool autotune = false;
  uint64_t autotune_seed = 1;
  // How often a rank looks up that has nothing to do; more often (every cycle) while there are sets.
  Duration idle_cycle = 10ms;
  std::function<void(const std::string& report)> on_stall;
  std::function<void(const Settings& tried, double bytes_per_second)> on_tried;  // of rank 0, by the tuner
  std::function<void(const Event&)> on_event;  // for a timeline; empty: clocks are not read
};

struct Counters {
  uint64_t cycles = 0;
  uint64_t slow_cycles = 0;  // in which rank 0 was asked
  uint64_t tensors = 0;
  uint64_t collectives = 0;  // fewer than tensors where fusion worked
  uint64_t cached_tensors = 0;
};

class Negotiator {
 public:
  // All ranks of the group call it. The negotiator owns the group; no other thread may call it.
  static Result<std::unique_ptr<Negotiator>> start(std::unique_ptr<collectives::Group> group,
                                                   Options options = {});
  ~Negotiator();  // stop()
  Negotiator(const Negotiator&) = delete;
  Negotiator& operator=(const Negotiator&) = delete;

  int rank() const;
  int size() const;
  const collectives::Group& group() const;

  // Never waits.
  Handle submit(Request request);
  // The same for requests that complete together; `group` and `group_members` are set here. All ranks give the
  // same names in the same order.
  std::vector<Handle> submit_together(std::vector<Request> requests);
  // This rank has no more data: it takes part in sums, averages and barriers with zeros until all have joined.
  // Outcome::last is the rank that joined last. Everything else fails meanwhile on the other ranks, which go on.
  Handle join(int set = 0);

  // Some of the ranks, as a group of their own. All ranks of the whole group call both, with the same arguments,
  // and wait in them. Set 0 is everyone. Errors: invalid, for ranks that are none.
  Result<int> add_set(std::vector<int> ranks);
  Result<void> remove_set(int set);
  // In ascending order; empty when there is no such set.
  std::vector<int> members_of(int set) const;

  // Ends the negotiator on all ranks: what is outstanding anywhere fails with `cancelled`, and our rank's name.
  // Waits for the cycle that is under way.
  void stop();

  Counters counters() const;
  Settings settings() const;
  bool tuning() const;  // on rank 0: the settings may still change
  // The names that were submitted here and are not done, in their order.
  std::vector<std::string> outstanding() const;

 private:
  class Impl;
  explicit Negotiator(std::unique_ptr<Impl> inside);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainyard::gradients
