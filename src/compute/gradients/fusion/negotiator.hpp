// A Negotiator runs collectives by name: each rank submits tensors when they are ready, in any
// order and from any thread. A background thread determines which tensors all ranks have submitted,
// fuses small ones, and reduces them in the same order on all ranks. Horovod calls these parts
// controller and tensor fusion.
//
//   auto negotiator = TRY(Negotiator::start(std::move(group)));
//   auto handle = negotiator->submit({.name = "layer1.weight", .input = gradients,
//                                     .output = gradients, .reduction = Reduction::average});
//   ...                                            // the backward pass continues
//   TRY(handle.wait());
//
// A cycle compares the submitted tensors with the response cache. One AND over the bits of all
// ranks finds the cached tensors that all ranks have submitted. For new or changed tensors, rank 0
// collects the requests of the ranks and answers which tensors all ranks reduce. Ready tensors are
// ordered by priority, fused into buffers and reduced. negotiation.hpp makes these decisions
// without I/O; the negotiator is the loop around it.
//
// A name may be outstanding only once on each rank: submit() rejects a second request. If requests
// of one name differ between ranks (shape, type, operation ..), all ranks get an error that names
// the ranks and the difference; other tensors are not affected. Tensors of one `group` complete
// together or fail together.
//
// Order of additions: as in group.hpp, where the position of an element is its position in the
// fusion buffer. All ranks always get the same bits. Timing determines which tensors are fused, so
// runs may differ in the last bit. With Options::reproducible only groups are fused, and runs do
// not differ.
//
// Threads: call from any thread. The background thread calls `on_done`, `allocate` and the
// functions
//          in Options, one at a time. They must not wait for a handle, add_set() or stop(); they
//          may submit.
// Errors:  of a handle: invalid or conflict, if a request is invalid or differs between ranks;
// unavailable, if a rank died or a stall lasted too long, naming the ranks and the tensor;
// cancelled after stop() on any rank. After a rank died, all outstanding and later
//          requests fail.
// Lifetime: the caller keeps the memory of a request, and does not write to it, until its handle is
// done.
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

// The result of a request.
struct Outcome {
  // all_gather: rows by member of the set; all_to_all: rows received from each; reduce_scatter:
  // rows of each.
  std::vector<uint64_t> rows;
  int last = -1;  // join: the rank that joined last
  int set = -1;   // add_set: number of the set
};

struct Request {
  std::string name;
  Operation operation = Operation::allreduce;
  // allreduce, adasum, reduce_scatter, all_gather, all_to_all: the contribution of this rank.
  // broadcast: at the root only.
  collectives::ConstBufferView input;
  // allreduce, adasum, broadcast: as many elements as the input, and possibly the same memory.
  // Other operations: set here, if the size is known, or else allocated by `allocate`. A broadcast
  // sends output.data if input.data is null.
  collectives::BufferView output;
  // Returns memory for the output, for `elements` of the input's type; called when the ranks have
  // exchanged the sizes. If it returns null, the request fails on this rank with "no memory", after
  // the ranks have carried it out.
  std::function<void*(size_t elements, const Outcome& outcome)> allocate;
  std::vector<uint64_t> shape;  // empty: one dimension of input.count, or output.count
  // all_to_all: rows for each member of the set; empty: as even as possible
  std::vector<uint64_t> splits;
  collectives::Reduction reduction = collectives::Reduction::sum;
  double prescale = 1;   // values are multiplied by this before they are combined
  double postscale = 1;  // and by this afterwards; both round to the type
  int root = 0;          // broadcast: a rank of the whole group
  Compression compression;
  int priority = 0;  // larger priorities come first among the tensors that are ready in one cycle
  // Requests with one group name, of which there are group_members: none is carried out before all
  // are submitted on all ranks.
  std::string group;
  uint32_t group_members = 0;
  int set = 0;  // the ranks that take part: see add_set
  // Called exactly once, before wait() returns. For an invalid request, the submitting thread calls
  // it.
  std::function<void(const Result<Outcome>&)> on_done;
};

// A Handle refers to a submitted request. Threads: confined to one at a time. The destructor does
// not wait.
class Handle {
 public:
  struct State;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  bool done() const;
  // Returns true if submit() rejected the request because it is invalid or its name is outstanding.
  // Other ranks do not receive it.
  bool refused() const;
  // Waits for the result. Also shortens the pause before the next cycle, since this thread submits
  // nothing while it waits.
  Result<Outcome> wait();

 private:
  std::shared_ptr<State> state_;  // shared with the background thread; the last one frees it
};

enum class Phase : uint8_t {
  negotiate,    // from submission until all ranks have submitted
  copy_in,      // into the fusion buffer
  communicate,  // the collective operation
  copy_out,
  cycle  // a cycle that carried out tensors; has no name
};
struct Event {
  Phase phase;
  Operation operation;
  std::string name;
  std::chrono::nanoseconds begin;  // since the negotiator started
  std::chrono::nanoseconds end;
};

// The options of rank 0 apply to all ranks, except the functions.
struct Options {
  Settings settings;
  // tensors whose signatures are stored: a bit each in every cycle
  uint32_t cache_entries_max = 1024;
  // A tensor that only some ranks have submitted for this long is reported, with the ranks that did
  // not submit it; 0: never.
  Duration stall_report_after = 60s;
  Duration stall_fail_after = 0ms;  // such a tensor fails after this time; 0: never
  bool reproducible = false;        // fuse groups only
  // Larger tensors are not fused, since copying them costs more than a call. 0: chosen by the cost
  // of a call: 128 KiB if all ranks share memory, else 1 MiB.
  uint64_t fused_tensor_bytes_max = 0;
  // Measures the throughput during training, and changes the settings of all ranks until the best
  // ones are found (tuner.hpp).
  bool autotune = false;
  uint64_t autotune_seed = 1;
  // The pause between cycles of a rank that has nothing to do; while there are sets, the
  // pause of `settings`.
  Duration idle_cycle = 10ms;
  std::function<void(const std::string& report)> on_stall;
  // called on rank 0, for each setting that the tuner measured
  std::function<void(const Settings& tried, double bytes_per_second)> on_tried;
  std::function<void(const Event&)> on_event;  // for a timeline; empty: clocks are not read
};

struct Counters {
  uint64_t cycles = 0;
  uint64_t slow_cycles = 0;  // cycles with an answer from rank 0
  uint64_t tensors = 0;
  uint64_t collectives = 0;  // fewer than tensors if tensors were fused
  uint64_t cached_tensors = 0;
};

class Negotiator {
 public:
  // All ranks of the group call it. The negotiator owns the group; no other thread may call it.
  static Result<std::unique_ptr<Negotiator>> start(std::unique_ptr<collectives::Group> group,
                                                   Options options = {});
  ~Negotiator();  // calls stop()
  Negotiator(const Negotiator&) = delete;
  Negotiator& operator=(const Negotiator&) = delete;

  int rank() const;
  int size() const;
  const collectives::Group& group() const;

  // Submits a request. Never waits.
  Handle submit(Request request);
  // Submits requests that complete together; sets their `group` and `group_members`. All ranks pass
  // the same names in the same order.
  std::vector<Handle> submit_together(std::vector<Request> requests);
  // Reports that this rank has no more data: it contributes zeros to sums, averages and barriers
  // until all ranks have joined. Outcome::last is the rank that joined last. Other operations fail
  // meanwhile on the other ranks, which continue.
  Handle join(int set = 0);

  // Add or remove a set, a group of some of the ranks. All ranks of the whole group call both
  // functions, with the same arguments, and wait in them. Set 0 contains all ranks. Errors:
  // invalid, for unknown ranks.
  Result<int> add_set(std::vector<int> ranks);
  Result<void> remove_set(int set);
  // Returns the ranks in ascending order; empty for an unknown set.
  std::vector<int> members_of(int set) const;

  // Ends the negotiator on all ranks: all outstanding requests fail with `cancelled` and the name
  // of this rank. Waits for the current cycle.
  void stop();

  Counters counters() const;
  // Returns the time at which the negotiator started, to which the times of events are relative.
  std::chrono::steady_clock::time_point began() const;
  Settings settings() const;
  bool tuning() const;  // on rank 0: true while the tuner may still change the settings
  // Returns the names that were submitted on this rank and are not done, in the order of
  // submission.
  std::vector<std::string> outstanding() const;

 private:
  class Impl;
  explicit Negotiator(std::unique_ptr<Impl> inside);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainyard::gradients
