// The ranks of one distributed program, as one of them holds it: sums, copies and waits that all of them take
// part in.
//
//   auto group = TRY(join_over_tcp({.endpoints = {{"algo-1", 7830}, {"algo-2", 7830}}, .rank = 0,
//                                   .shared_value = secret}));
//   TRY(group->allreduce(gradients, Reduction::sum));   // now the same on all ranks, bit for bit
//
//   auto handle = group->start(calls::allreduce(numbers(bucket), {.reduction = Reduction::average}));
//   ...                                                 // the backward pass goes on
//   TRY(handle.wait());
//
// Ranks on one machine share memory, whatever their host names say; the others are reached over TCP. Which plan
// an operation takes is written in table(), with reasons.
//
// All ranks call the same operations in the same order with the same sizes; a call returns when this rank's
// part is done. The order of additions depends on plan, number of ranks and element alone, never on who came
// first: all ranks get the same bits, and with the same table every run does (GroupOptions::deterministic).
//
// Threads: call from anywhere; a group carries out one operation at a time, in the order of the calls. Several
//          groups may work at the same time.
// Errors:  unavailable when a rank died, hangs or cannot be reached; cancelled when the caller's `cancelled`
//          said so; conflict when a peer is in another operation; corrupt when its bytes make no sense. The
//          message names the rank and the call's name. The first of these is the group's last word: every later
//          call returns it again. invalid, when the arguments cannot be right: then nothing was sent.
// Units:   sizes in elements or bytes as the type says.
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
#include "collectives/types.hpp"

namespace trainyard::collectives {

namespace plan {
enum class Operation : uint8_t;
}
class Transport;
class Table;
class RegisteredMemory;
enum class Asked : uint8_t;

// Values in memory, aligned for their type.
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
  ConstBufferView(const void* data, size_t count, Type type) : data(data), count(count), type(type) {}
  ConstBufferView(BufferView numbers) : data(numbers.data), count(numbers.count), type(numbers.type) {}
};

// f16, bf16 and the two f8 have no C++ type here: Numbers{data, count, Type::bf16}.
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
BufferView numbers(std::span<Number> values) {
  return {values.data(), values.size(), type_of<Number>()};
}
template <class Number>
ConstBufferView numbers(std::span<const Number> values) {
  return {values.data(), values.size(), type_of<Number>()};
}

struct ReduceOptions {
  Reduction reduction = Reduction::sum;
  double prescale = 1;  // every rank's values are multiplied by this first, and rounded to their type
  std::string name;     // for people: the tensor. In errors, the timeline, the stall report
};

// One operation. Made by the functions in `calls`.
struct Call {
  plan::Operation operation;
  ConstBufferView input;
  BufferView output;
  ReduceOptions reducing;  // of what reduces nothing only the name counts
  int root = 0;
  std::vector<size_t> counts;           // elements by rank; empty: as even as can be
  std::vector<size_t> received_counts;  // all_to_all
  // A direct allreduce: how large its chunks are, in place of the table's; 0: as the table says. Registered memory goes
  // well in few large ones, which wait for each other less often.
  size_t chunk_bytes = 0;
};

namespace calls {

// In place: input and output are one.
Call allreduce(BufferView values, ReduceOptions reducing = {});
Call allreduce(ConstBufferView input, BufferView output, ReduceOptions reducing = {});
// Rank r gets counts[r] elements of the sum; without counts the sum is cut as evenly as can be, the first ranks
// getting one more. input.count is all of them, output.count ours.
Call reduce_scatter(ConstBufferView input, BufferView output, ReduceOptions reducing = {},
                    std::vector<size_t> counts = {});
// output.count is all of them; without counts every rank brings input.count.
Call all_gather(ConstBufferView input, BufferView output, std::vector<size_t> counts = {});
Call broadcast(BufferView values, int root);
// Only the root's output is written; input and output may be one there.
Call reduce(ConstBufferView input, BufferView output, int root, ReduceOptions reducing = {});
// Only the root needs an output: all blocks by rank.
Call gather(ConstBufferView input, BufferView output, int root, std::vector<size_t> counts = {});
// Only the root needs an input: all blocks by rank.
Call scatter(ConstBufferView input, BufferView output, int root, std::vector<size_t> counts = {});
// input holds what we bring for each rank, output what each brings us. Without counts all are equal.
Call all_to_all(ConstBufferView input, BufferView output, std::vector<size_t> counts = {},
                std::vector<size_t> received_counts = {});
Call barrier();

}  // namespace calls

// An operation that was started. Its buffers are the group's until wait() returns or done() says so.
// Threads: confined to one at a time. Dropping a handle waits for nothing: the buffers must live until the
// operation is done, so wait.
class Handle {
 public:
  struct State;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  bool done() const;
  Result<void> wait();

 private:
  std::shared_ptr<State>
      state_;  // shared with the group's worker, which finishes it; whoever is last frees it
};

// Memory that local ranks map because Group::adopt said so. When this goes, the pages are private again, with what is
// in them; until then whoever allocated them must not have them back.
// Threads: confined to one at a time. Lifetime: it may outlive its group.
class AdoptedMemory {
 public:
  AdoptedMemory(std::shared_ptr<RegisteredMemory> registered, std::span<std::byte> pages);
  ~AdoptedMemory();
  AdoptedMemory(const AdoptedMemory&) = delete;
  AdoptedMemory& operator=(const AdoptedMemory&) = delete;
  std::span<std::byte> pages() const { return pages_; }

 private:
  const std::shared_ptr<RegisteredMemory> registered_;  // shared with the groups; whoever is last frees it
  const std::span<std::byte> pages_;
  const int process_;  // that adopted it: a child of fork() has a copy
};

// What a group has done since it began.
struct Counters {
  uint64_t operations = 0;
  uint64_t bytes = 0;  // of the callers' buffers
  double seconds = 0;  // in operations, waiting for others included
};

struct GroupOptions {
  // The table's defaults instead of measured costs: every run with these ranks and hosts adds in the same order.
  bool deterministic = false;
  // The user's own rows for the table (select.hpp), the same on all ranks: "allreduce=one_shot:0-64K,ring:64K-".
  std::string plans;
  // Keeps the last timeline_spans_max operations for timeline().
  bool timeline = false;
  static constexpr size_t timeline_spans_max = 100'000;  // a hundred bytes each
};

class Group {
 public:
  // Agrees with the other ranks on a table. Errors: also invalid, for `plans` that make no sense.
  static Result<std::unique_ptr<Group>> make(std::unique_ptr<Transport> transport, GroupOptions options = {});
  ~Group();  // takes leave of the others, who may go on without this rank until they need it
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const;
  int size() const;
  // By rank, a number that ranks share exactly when they share memory.
  const std::vector<int>& hosts() const;
  const Table& table() const;

  Result<void> run(const Call& call);
  // Carried out by the group's own thread after what was started before. Never waits.
  Handle start(Call call);

  // In place: every rank's values combined element by element.
  Result<void> allreduce(std::span<float> values, Reduction reduction = Reduction::sum);
  Result<void> allreduce(std::span<double> values, Reduction reduction = Reduction::sum);
  // `bytes` of `root` to all; the others' are overwritten. Equally long everywhere.
  Result<void> broadcast(std::span<std::byte> bytes, int root);
  // What every rank brought, by rank. Equally long everywhere: all.size() == size() * mine.size().
  Result<void> all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  // The same for texts of any length. Limit: gather_bytes_max for all of them together.
  Result<std::vector<std::string>> all_gather(std::string_view mine);
  // Returns when every rank has called it.
  Result<void> barrier();

  // Between two ranks, while the others may do anything: what one sends the other receives, in order. Two ranks
  // that both send much before they receive may wait for each other for ever: then all_to_all is the right call.
  Result<void> send(int peer, ConstBufferView values, std::string_view name = {});
  Result<void> receive(int peer, BufferView values, std::string_view name = {});
  // Carried out as what start() was given: one after the other, in the order of the calls.
  Handle start_send(int peer, ConstBufferView values, std::string_view name = {});
  Handle start_receive(int peer, BufferView values, std::string_view name = {});

  // Groups of the ranks that give the same color, in the order of their ranks; null for a negative color. All
  // ranks call it. Without options a part has this group's: its plans too, but for those between hosts where the part
  // is on one.
  Result<std::unique_ptr<Group>> split(int color);
  Result<std::unique_ptr<Group>> split(int color, GroupOptions options);
  // The same without a group around it, for protocols that are none of these operations.
  Result<std::unique_ptr<Transport>> split_transport(int color);

  // Memory that local ranks read where it lies: operations on it need fewer copies, or none. Freed with free().
  // Requires: freed before the group ends, and not while an operation uses it. After an operation on it has failed,
  // take new memory: a rank that has not heard of it yet may still write its part of the result.
  // Errors: exhausted; unavailable where nothing can be shared (over TCP alone): take ordinary memory then.
  Result<std::span<std::byte>> allocate(size_t bytes);
  void free(std::span<std::byte> memory);
  // The same for memory that is there already: its whole pages become what local ranks map, where they are and with
  // what is in them, so every pointer to them stays good. What a child of fork() writes there is its own; what it
  // reads where it has not written may still change with the parent's, and with what operations write. It costs a copy:
  // for buffers that are reduced again and again. What lies at the edges, outside whole pages, is copied as before.
  // Requires: nobody writes to it meanwhile; the rest as for allocate(): after a failure, let go of it at once.
  // Errors: also invalid, where there is no whole page.
  Result<std::unique_ptr<AdoptedMemory>> adopt(std::span<std::byte> memory);

  // Ends the group because this rank cannot go on: the others' operations fail with our name and `why`, at
  // once.
  void abandon(std::string_view why);

  Counters counters() const;
  // What is under way and for how long, in words; empty when nothing is. For a stall report.
  std::string under_way() const;
  // The operations so far in the trace event format that browsers show (chrome://tracing, Perfetto).
  std::string timeline() const;

  // A bound on what one peer's announced length can make us allocate.
  static constexpr uint64_t gather_bytes_max = uint64_t{256} << 20;

 private:
  class Impl;
  explicit Group(std::unique_ptr<Impl> inside);
  static Result<std::unique_ptr<Group>> make(std::unique_ptr<Transport> transport, GroupOptions options,
                                             Asked asked);
  std::unique_ptr<Impl> impl_;
};

struct Endpoint {
  std::string host;  // a name or an address; several, separated by commas: the first that answers is taken
  uint16_t port = 0;
};

struct TcpOptions {
  std::vector<Endpoint> endpoints;  // of all ranks, in their order; the same on all
  int rank = 0;                     // which of them we are
  // The group's secret: only who knows it is let in. It is proved, never sent. Ranks of different jobs that meet
  // at one address by mistake are kept apart by it. At most shared_value_bytes_max.
  std::string shared_value;
  // A descriptor that listens at our own endpoint already, for those who ask the kernel for a free port before they
  // tell it to the others: the group closes it. -1: the group listens by itself.
  int listener = -1;
  // How long the slowest host may take to come up and become resolvable (SageMaker's own tools give names 15
  // min).
  Duration join_deadline = 10min;
  // How long nothing may come from a peer that we wait for: it may read a large shard first, but not for
  // ever. Then the one that is stuck is named, not one that waits for it itself: a tenth of this later at most. A peer
  // whose machine is gone is found far sooner, by TCP keepalive (dead_peer_max).
  Duration silence_max = 10min;
  // Asked at least every cancel_check_interval while waiting; true ends the wait with `cancelled`. May be
  // empty.
  std::function<bool()> cancelled;
  // False keeps ranks on one machine on TCP: for tests and measurements.
  bool share_memory = true;
  // How many sockets carry the large messages between two ranks, the same on all: one flow of some networks is slower
  // than the link.
  int sockets_per_peer = 1;
  // TLS on every connection, with the group's secret as its key; memory that ranks share stays as it is. The same on
  // all ranks. Errors: unavailable where the machine has no OpenSSL.
  bool encrypt = false;
  GroupOptions group;

  static constexpr size_t shared_value_bytes_max = 256;
  static constexpr int sockets_per_peer_max = 32;           // more than any network's flows need
  static constexpr Duration cancel_check_interval = 100ms;  // what a person does not notice
  static constexpr Duration dead_peer_max =
      20s;  // longer than a lost packet's retries, shorter than a person's patience
};

// Meets all other ranks: listens at our own endpoint, connects to those before us until they answer.
// Errors: also invalid, when the options cannot be right.
Result<std::unique_ptr<Group>> join_over_tcp(TcpOptions options);

// Groups of `size` ranks inside this process, one for each thread that plays a rank. For tests and single hosts. Bytes
// are read where they lie: when an operation has failed, its buffers must live until it has failed on all ranks.
std::vector<std::unique_ptr<Group>> join_in_memory(int size, GroupOptions options = {.deterministic = true});

}  // namespace trainyard::collectives
