// A Group is one rank's handle on a distributed program: reductions, copies and barriers in which
// all ranks take part.
//
//   auto group = TRY(join_over_tcp({.endpoints = {{"algo-1", 7830}, {"algo-2", 7830}}, .rank = 0,
//                                   .shared_value = secret}));
//   TRY(group->allreduce(gradients, Reduction::sum));   // now equal on all ranks, bit for bit
//
//   const ReduceOptions average{.reduction = Reduction::average};
//   auto handle = group->start(calls::allreduce(buffer_view(bucket), average));
//   ...                                                 // the backward pass continues
//   TRY(handle.wait());
//
// Ranks on one machine share memory, whatever their host names are; the others are reached over
// TCP. table() lists the plan of each operation, with reasons.
//
// All ranks call the same operations in the same order with the same sizes; a call returns when the
// part of this rank is done. The order of additions depends only on the plan, the number of ranks
// and the element, never on the order of arrival. So all ranks get the same bits, and so do all
// runs with the same table (GroupOptions::deterministic).
//
// Threads: call from any thread; a group runs one operation at a time, in the order of the calls.
//          Several groups may work at the same time.
// Errors:  unavailable, when a rank has died, hangs or cannot be reached; cancelled, when the
//          caller's `cancelled` returned true; conflict, when a peer is in another operation;
//          corrupt, when its bytes are invalid. The message names the rank and the call's name.
//          After the first of these errors every later call returns it again. invalid, when
//          arguments are wrong: then nothing was sent.
// Units:   sizes in elements or bytes, depending on the type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "collectives/activity.hpp"
#include "collectives/types.hpp"

namespace trainyard::collectives {

namespace plan {
enum class Operation : uint8_t;
}
class Transport;
class Table;
class RegisteredMemory;
enum class PlanScope : uint8_t;

// A BufferView refers to values in memory, aligned for their type.
struct BufferView {
  void* data = nullptr;
  size_t count = 0;
  Type type = Type::u8;
};
struct ConstBufferView {
  const void* data = nullptr;
  size_t count = 0;
  Type type = Type::u8;
  ConstBufferView() = default;
  ConstBufferView(const void* data, size_t count, Type type)
      : data(data), count(count), type(type) {}
  ConstBufferView(BufferView numbers)
      : data(numbers.data), count(numbers.count), type(numbers.type) {}
};

// f16, bf16 and the two f8 have no C++ type here: use BufferView{data, count, Type::bf16}.
template <class Number>
constexpr Type type_of();
template <>
constexpr Type type_of<double>() {
  return Type::f64;
}
template <>
constexpr Type type_of<float>() {
  return Type::f32;
}
template <>
constexpr Type type_of<int64_t>() {
  return Type::i64;
}
template <>
constexpr Type type_of<int32_t>() {
  return Type::i32;
}
template <>
constexpr Type type_of<int16_t>() {
  return Type::i16;
}
template <>
constexpr Type type_of<int8_t>() {
  return Type::i8;
}
template <>
constexpr Type type_of<uint8_t>() {
  return Type::u8;
}
template <>
constexpr Type type_of<std::byte>() {
  return Type::u8;
}
template <>
constexpr Type type_of<bool>() {
  return Type::boolean;
}

template <class Number>
BufferView buffer_view(std::span<Number> values) {
  return {values.data(), values.size(), type_of<Number>()};
}
template <class Number>
ConstBufferView buffer_view(std::span<const Number> values) {
  return {values.data(), values.size(), type_of<Number>()};
}

struct ReduceOptions {
  Reduction reduction = Reduction::sum;
  // before the reduction, each rank multiplies its values by this and rounds them to their type
  double prescale = 1;
  std::string name;  // name of the tensor, for errors, the timeline and the stall report
};

// A Call describes one collective operation. The functions in `calls` make it.
struct Call {
  plan::Operation operation;
  ConstBufferView input;
  BufferView output;
  ReduceOptions reducing;  // other operations use the name only
  int root = 0;
  std::vector<size_t> counts;           // elements by rank; empty: as even as possible
  std::vector<size_t> received_counts;  // all_to_all
  // Chunk size of a direct allreduce; 0: the size in the table. Registered memory is reduced faster
  // in few large chunks, which wait for each other less often.
  size_t chunk_bytes = 0;
};

namespace calls {

// Without an input, `values` is both input and output.
Call allreduce(BufferView values, ReduceOptions reducing = {});
Call allreduce(ConstBufferView input, BufferView output, ReduceOptions reducing = {});
// Describes a reduction of which rank r gets counts[r] elements. Without counts the result is split
// as evenly as possible, and the first ranks get one element more. input.count counts all elements,
// output.count those of this rank.
Call reduce_scatter(ConstBufferView input, BufferView output, ReduceOptions reducing = {},
                    std::vector<size_t> counts = {});
// Describes the concatenation of all inputs by rank. output.count counts all elements; without
// counts every rank contributes input.count.
Call all_gather(ConstBufferView input, BufferView output, std::vector<size_t> counts = {});
Call broadcast(BufferView values, int root);
// Describes a reduction to the root. Only the root's output is written; there, input and output may
// be the same buffer.
Call reduce(ConstBufferView input, BufferView output, int root, ReduceOptions reducing = {});
// Describes a concatenation on the root: only the root needs an output, which gets all blocks by
// rank.
Call gather(ConstBufferView input, BufferView output, int root, std::vector<size_t> counts = {});
// Describes a distribution from the root: only the root needs an input, which has all blocks by
// rank.
Call scatter(ConstBufferView input, BufferView output, int root, std::vector<size_t> counts = {});
// input has the elements for each rank, by rank, and output gets the elements from each rank.
// Without counts all blocks have equal sizes.
Call all_to_all(ConstBufferView input, BufferView output, std::vector<size_t> counts = {},
                std::vector<size_t> received_counts = {});
Call barrier();

}  // namespace calls

// A Handle refers to a started operation. The group uses its buffers until wait() returns or done()
// is true.
// Threads: confined to one at a time. Destroying a handle does not wait, but the buffers must live
// until the operation is done: call wait().
class Handle {
 public:
  struct State;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  bool done() const;
  Result<void> wait();

 private:
  std::shared_ptr<State> state_;  // shared with the group's worker; the last one frees it
};

// An InPlaceMemory is memory that Group::register_in_place has registered, so that local ranks can
// map it. The destructor makes the pages private again and keeps their content; until then they
// must not be freed. Threads: confined to one at a time. Lifetime: may outlive its group.
class InPlaceMemory {
 public:
  InPlaceMemory(std::shared_ptr<RegisteredMemory> registered, std::span<std::byte> pages);
  ~InPlaceMemory();
  InPlaceMemory(const InPlaceMemory&) = delete;
  InPlaceMemory& operator=(const InPlaceMemory&) = delete;
  std::span<std::byte> pages() const { return pages_; }

 private:
  // shared with the groups; the last one frees it
  const std::shared_ptr<RegisteredMemory> registered_;
  const std::span<std::byte> pages_;
  const int process_;  // the process that registered it: a child of fork() has a copy
};

// Counters since the group was made.
struct Counters {
  uint64_t operations = 0;
  uint64_t bytes = 0;  // bytes in the buffers of the callers
  double seconds = 0;  // time in operations, including waits for other ranks
};

struct GroupOptions {
  // Uses the defaults of the table instead of measured costs: every run with these ranks and hosts
  // adds in the same order.
  bool deterministic = false;
  // The user's rows for the table (select.hpp), equal on all ranks:
  // "allreduce=one_shot:0-64K,ring:64K-".
  std::string plans;
  // Keeps the last kTimelineSpansMax operations for timeline().
  bool timeline = false;
  ActivityFile activity = {};                           // where the collectives are counted
  static constexpr size_t kTimelineSpansMax = 100'000;  // a hundred bytes each
};

class Group {
 public:
  // Agrees with the other ranks on a table. Errors: also invalid, for invalid `plans`.
  static Result<std::unique_ptr<Group>> make(std::unique_ptr<Transport> transport,
                                             GroupOptions options = {});
  ~Group();  // sends a goodbye; a rank that still needs this one then fails
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Stops counting this group's collectives, and returns the counter. For a caller that runs
  // collectives of its own, in addition to its user's, and counts the latter itself.
  ActivityCounter& count_elsewhere();

  int rank() const;
  int size() const;
  // Returns a number for each rank; two ranks have equal numbers exactly when they share memory.
  const std::vector<int>& hosts() const;
  const Table& table() const;

  Result<void> run(const Call& call);
  // Runs on the thread of the group, after the operations that were started before. Does not block.
  Handle start(Call call);

  // Reduce the values of all ranks element by element, in place.
  Result<void> allreduce(std::span<float> values, Reduction reduction = Reduction::sum);
  Result<void> allreduce(std::span<double> values, Reduction reduction = Reduction::sum);
  // Copies `bytes` from `root` to all other ranks. The size must be equal on all ranks.
  Result<void> broadcast(std::span<std::byte> bytes, int root);
  // Concatenates `mine` of all ranks, by rank. Sizes must be equal on all ranks: all.size() ==
  // size() * mine.size().
  Result<void> all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  // Gathers texts, whose lengths may differ between ranks. Limit: kGatherBytesMax for all texts
  // together.
  Result<std::vector<std::string>> all_gather(std::string_view mine);
  // Returns when every rank has called it.
  Result<void> barrier();

  // Send and receive between two ranks, in order, independently of the other ranks. Two ranks that
  // both send large messages before they receive may wait for each other forever: use all_to_all
  // instead.
  Result<void> send(int peer, ConstBufferView values, std::string_view name = {});
  Result<void> receive(int peer, BufferView values, std::string_view name = {});
  // Returns true if a message from `peer` has begun to arrive (also a message of another
  // operation): then receive() does not wait for `peer` to send. May wait for operations in
  // progress, but not for messages. Requires: no receive() from this peer is in progress.
  Result<bool> has_message(int peer);
  // Run like operations of start(): one after the other, in the order of the calls.
  Handle start_send(int peer, ConstBufferView values, std::string_view name = {});
  Handle start_receive(int peer, BufferView values, std::string_view name = {});

  // Splits the group into one group for each color, in the order of ranks. All ranks call it;
  // returns null for a negative color. Without `options`, a part has the options of this group,
  // including its plans; a part on one host ignores plans between hosts.
  Result<std::unique_ptr<Group>> split(int color);
  Result<std::unique_ptr<Group>> split(int color, GroupOptions options);
  // Splits in the same way, but returns only the transport, for protocols other than these
  // operations.
  Result<std::unique_ptr<Transport>> split_transport(int color);

  // Allocates memory that local ranks access directly: operations on it need fewer copies, or none.
  // free() frees it.
  // Requires: freed before the group ends, and not while an operation uses it. After an operation
  // on it has failed, allocate new memory: a rank that does not know of the failure yet may still
  // write its part of the result.
  // Errors: exhausted; unavailable where memory cannot be shared (over TCP only): use ordinary
  // memory then.
  Result<std::span<std::byte>> allocate(size_t bytes);
  void free(std::span<std::byte> memory);
  // Registers existing memory in place: local ranks can map its whole pages. Their address and
  // content do not change, so pointers to them stay valid. After fork(), a child writes to its own
  // copy; pages that it has not written may still change when the parent or an operation writes to
  // them. Registration copies the memory once, so it suits buffers that are reduced repeatedly.
  // Partial pages at both ends are not registered; operations copy their bytes.
  // Requires: no thread writes to it meanwhile; the rest as for allocate(): after a failure,
  // destroy the result at once.
  // Errors: also invalid, when the memory contains no whole page.
  Result<std::unique_ptr<InPlaceMemory>> register_in_place(std::span<std::byte> memory);

  // Ends the group because this rank cannot continue: the operations of the others fail at once
  // with its name and `why`.
  void abandon(std::string_view why);

  Counters counters() const;
  // Describes the current operation and its duration, for a stall report; empty if there is none.
  std::string current_operation() const;
  // Returns the operations so far in the trace event format (chrome://tracing, Perfetto).
  std::string timeline() const;

  // Limits the memory that a length from a peer can make this rank allocate.
  static constexpr uint64_t kGatherBytesMax = uint64_t{256} << 20;

 private:
  class Impl;
  explicit Group(std::unique_ptr<Impl> inside);
  static Result<std::unique_ptr<Group>> make(std::unique_ptr<Transport> transport,
                                             GroupOptions options, PlanScope scope);
  std::unique_ptr<Impl> impl_;
};

struct Endpoint {
  // a name or an address, or several separated by commas, of which the first that answers is used
  std::string host;
  uint16_t port = 0;
};

struct TcpOptions {
  std::vector<Endpoint> endpoints;  // by rank; equal on all ranks
  int rank = 0;                     // rank of this process
  // The secret of the group: only ranks that know it can join. Ranks prove that they know it, and
  // never send it. It also separates ranks of different jobs that connect to an address by mistake.
  // At most kSharedValueBytesMax.
  std::string shared_value;
  // A descriptor that already listens at this rank's endpoint, for callers that let the kernel
  // choose a port before they publish it. The group closes it. -1: the group creates a listener.
  int listener = -1;
  // Time for the slowest host to start and its name to become resolvable (SageMaker's tools wait 15
  // minutes for names).
  Duration join_deadline = 10min;
  // The longest wait for a peer that sends nothing; a peer may be busy reading a large shard. The
  // error names the rank that is stuck, not a rank that waits for it, and is reported at most a
  // tenth of this time later. A peer whose machine is lost is detected far sooner, by TCP keepalive
  // (kDeadPeerMax).
  Duration peer_timeout = 10min;
  // Called at least every kCancelCheckInterval while waiting; true ends the wait with `cancelled`.
  // May be empty.
  std::function<bool()> cancelled;
  // false: ranks on one machine use TCP, too; for tests and measurements.
  bool share_memory = true;
  // The number of sockets for large messages between two ranks, equal on all ranks. On some
  // networks one TCP flow cannot use the whole link.
  int sockets_per_peer = 1;
  // TLS on every connection, with the secret as its key; shared memory is not encrypted. Equal on
  // all ranks.
  // Errors: unavailable where the machine has no OpenSSL.
  bool encrypt = false;
  GroupOptions group;

  static constexpr size_t kSharedValueBytesMax = 256;
  static constexpr int kSocketsPerPeerMax = 32;            // more than any network needs
  static constexpr Duration kCancelCheckInterval = 100ms;  // a delay that users do not notice
  // longer than the retries of a lost packet, short enough for users
  static constexpr Duration kDeadPeerMax = 20s;
};

// Joins all other ranks. Listens at this rank's endpoint, and connects to lower ranks until they
// answer.
// Errors: also invalid, for invalid options.
Result<std::unique_ptr<Group>> join_over_tcp(TcpOptions options);

// Makes a group of `size` ranks within this process, one for each thread that runs a rank, for
// tests and single hosts. Buffers are read without a copy: after a failed operation they must live
// until it has failed on all ranks.
std::vector<std::unique_ptr<Group>> join_in_memory(int size,
                                                   GroupOptions options = {.deterministic = true});

}  // namespace trainyard::collectives
