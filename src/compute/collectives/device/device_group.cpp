#include "collectives/device/device_group.hpp"

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/execute.hpp"
#include "collectives/plan/plan.hpp"

namespace trainyard::collectives {
namespace {

using plan::Operation;
using SteadyClock = std::chrono::steady_clock;

// A kernel of NCCL takes at least ten microseconds: the stream is polled this often before the
// thread sleeps between polls.
constexpr int kPollsWithoutSleep = 1000;
constexpr auto kSleepBetweenPolls = std::chrono::microseconds(50);

// Returns the ncclDataType_t for copies or for reductions; -1 if NCCL has none.
int data_type(Type type) {
  switch (type) {
    case Type::i8:
      return 0;
    case Type::u8:
    case Type::boolean:
      return 1;
    case Type::i32:
      return 2;
    case Type::i64:
      return 4;
    case Type::f16:
      return 6;
    case Type::f32:
      return 7;
    case Type::f64:
      return 8;
    case Type::bf16:
      return 9;
    case Type::f8e4m3:
      return 10;
    case Type::f8e5m2:
      return 11;
    case Type::i16:
      break;
  }
  return -1;
}

// Returns the ncclRedOp_t; -1 if NCCL has none.
int reduction_of(Type type, Reduction reduction) {
  constexpr int sum = 0, product = 1, maximum = 2, minimum = 3, average = 4;
  const bool boolean = type == Type::boolean;  // a byte of 0 or 1
  switch (reduction) {
    case Reduction::sum:
      return boolean ? maximum : sum;
    case Reduction::product:
      return boolean ? minimum : product;
    case Reduction::maximum:
      return maximum;
    case Reduction::minimum:
      return minimum;
    case Reduction::average:
      return is_integer(type) ? -1 : average;
    default:
      return -1;
  }
}

// Returns the position of a rank's block in a buffer.
struct Bytes {
  size_t begin = 0;
  size_t size = 0;
};
std::vector<Bytes> lay_out(const std::vector<size_t>& counts, size_t elements, size_t element_bytes,
                           int ranks) {
  std::vector<Bytes> blocks;
  size_t begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const size_t size =
        (counts.empty() ? plan::piece(elements, rank, ranks).size() : counts[size_t(rank)]) *
        element_bytes;
    blocks.push_back({begin, size});
    begin += size;
  }
  return blocks;
}

const std::byte* at(const ConstBufferView& numbers, const Bytes& block) {
  return static_cast<const std::byte*>(numbers.data) + block.begin;
}
std::byte* at(const BufferView& numbers, const Bytes& block) {
  return static_cast<std::byte*>(numbers.data) + block.begin;
}

}  // namespace

Result<std::unique_ptr<DeviceGroup>> DeviceGroup::make(Group& group, DeviceOptions options) {
  // All ranks first report whether they loaded NCCL. Otherwise a rank might wait in NCCL for a rank
  // without NCCL.
  const auto loaded = nccl::load(options.nccl, options.cuda);
  const auto errors =
      TRY(group.all_gather(loaded ? "" : loaded.error().message).in("joining the ranks over NCCL"));
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    if (!errors[rank].empty())
      return unavailable("rank " + std::to_string(rank) + ": " + errors[rank]);
  }
  std::unique_ptr<DeviceGroup> device(new DeviceGroup(group, std::move(options), *loaded));
  nccl::Id id{};
  Result<void> made = ok();
  if (group.rank() == 0)
    made = device->check_status(device->nccl_.ncclGetUniqueId(&id), "creating an NCCL identifier");
  // When no ID could be made, all ranks receive zeros, which are not a valid ID.
  TRY(group.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0)
          .in("joining the ranks over NCCL"));
  TRY(made);
  bool none = true;
  for (const char byte : id.bytes) none = none && byte == 0;
  if (none) return unavailable("rank 0 could not create an NCCL identifier");
  TRY(device->check_status(
      device->nccl_.ncclCommInitRank(&device->communicator_, group.size(), id, group.rank()),
      "joining the ranks over NCCL"));
  return device;
}

DeviceGroup::DeviceGroup(Group& group, DeviceOptions options, const nccl::Functions& nccl)
    : group_(group), options_(std::move(options)), nccl_(nccl) {}

DeviceGroup::~DeviceGroup() {
  if (communicator_ != nullptr) (void)nccl_.ncclCommDestroy(communicator_);
}

Result<void> DeviceGroup::check_status(int answer, const char* doing) const {
  if (answer == nccl::kSuccess || answer == nccl::kInProgress) return ok();
  return unavailable(std::string(doing) + ": NCCL: " + nccl_.ncclGetErrorString(answer));
}

Result<void> DeviceGroup::run(const Call& call, nccl::Stream stream) {
  if (failure_) return *failure_;
  TRY(check(call, size_t(group_.rank()), size_t(group_.size())).in(name_of(call)));
  if (plan::reduces(call.operation)) {
    const Type type = call.input.type;
    int version = 0;
    TRY(check_status(nccl_.ncclGetVersion(&version), "reading NCCL's version"));
    const bool f8 = type == Type::f8e4m3 || type == Type::f8e5m2;
    if (data_type(type) < 0 || reduction_of(type, call.reducing.reduction) < 0 ||
        (f8 && version < nccl::kVersionWithF8)) {
      return invalid(name_of(call) + ": NCCL " + std::to_string(version) + " has no " +
                     std::string(to_string(call.reducing.reduction)) + " of " +
                     std::string(to_string(type)));
    }
    if (call.reducing.prescale != 1)
      return invalid(name_of(call) +
                     ": prescale is not supported on GPUs: scale the values before the call");
  }
  auto result = enqueue(call, stream);
  if (result) result = wait(stream);
  // all streams are empty
  if (result && call.operation == Operation::barrier) return group_.barrier();
  if (result) return ok();
  return fail(std::move(result).error().in(name_of(call)));
}

Result<void> DeviceGroup::enqueue(const Call& call, nccl::Stream stream) {
  const int type = data_type(call.input.type);
  const int reduction = reduction_of(call.input.type, call.reducing.reduction);
  switch (call.operation) {
    case Operation::allreduce:
      return check_status(nccl_.ncclAllReduce(call.input.data, call.output.data, call.input.count,
                                              type, reduction, communicator_, stream),
                          "ncclAllReduce");
    case Operation::reduce:
      return check_status(nccl_.ncclReduce(call.input.data, call.output.data, call.input.count,
                                           type, reduction, call.root, communicator_, stream),
                          "ncclReduce");
    case Operation::broadcast:
      return check_status(
          nccl_.ncclBroadcast(call.output.data, call.output.data,
                              call.output.count * bytes_of(call.output.type), data_type(Type::u8),
                              call.root, communicator_, stream),
          "ncclBroadcast");
    case Operation::barrier:
      return ok();
    case Operation::reduce_scatter:
    case Operation::all_gather:
    case Operation::gather:
    case Operation::scatter:
    case Operation::all_to_all:
      break;
  }
  // Calls between ncclGroupStart and ncclGroupEnd become one operation.
  TRY(check_status(nccl_.ncclGroupStart(), "ncclGroupStart"));
  auto result = exchange(call, stream);
  auto ended = check_status(nccl_.ncclGroupEnd(), "ncclGroupEnd");
  return result ? ended : result;
}

Result<void> DeviceGroup::send(const void* from, size_t size, int peer, nccl::Stream stream) {
  if (size == 0) return ok();
  return check_status(nccl_.ncclSend(from, size, data_type(Type::u8), peer, communicator_, stream),
                      "ncclSend");
}

Result<void> DeviceGroup::receive(void* into, size_t size, int peer, nccl::Stream stream) {
  if (size == 0) return ok();
  return check_status(nccl_.ncclRecv(into, size, data_type(Type::u8), peer, communicator_, stream),
                      "ncclRecv");
}

// Runs reduce_scatter: each rank is the root of the reduction of its block.
Result<void> DeviceGroup::reduce_blocks(const Call& call, nccl::Stream stream) {
  const size_t element_bytes = bytes_of(call.input.type);
  const auto blocks = lay_out(call.counts, call.input.count, element_bytes, group_.size());
  for (int peer = 0; peer < group_.size(); ++peer) {
    const Bytes& block = blocks[size_t(peer)];
    if (block.size == 0) continue;
    TRY(check_status(nccl_.ncclReduce(at(call.input, block), call.output.data,
                                      block.size / element_bytes, data_type(call.input.type),
                                      reduction_of(call.input.type, call.reducing.reduction), peer,
                                      communicator_, stream),
                     "ncclReduce"));
  }
  return ok();
}

// Runs all_gather: each rank broadcasts its block.
Result<void> DeviceGroup::broadcast_blocks(const Call& call, nccl::Stream stream) {
  const size_t element_bytes = bytes_of(call.input.type);
  const auto blocks = lay_out(call.counts, call.output.count, element_bytes, group_.size());
  for (int peer = 0; peer < group_.size(); ++peer) {
    const Bytes& block = blocks[size_t(peer)];
    if (block.size == 0) continue;
    std::byte* const data = at(call.output, block);
    TRY(check_status(
        nccl_.ncclBroadcast(peer == group_.rank() ? call.input.data : data, data, block.size,
                            data_type(Type::u8), peer, communicator_, stream),
        "ncclBroadcast"));
  }
  return ok();
}

Result<void> DeviceGroup::exchange(const Call& call, nccl::Stream stream) {
  const int ranks = group_.size();
  const bool is_root = group_.rank() == call.root;
  const size_t element_bytes = bytes_of(call.input.data ? call.input.type : call.output.type);
  const auto blocks_of = [&](size_t elements) {
    return lay_out(call.counts, elements, element_bytes, ranks);
  };
  switch (call.operation) {
    case Operation::reduce_scatter:
      return reduce_blocks(call, stream);
    case Operation::all_gather:
      return broadcast_blocks(call, stream);
    case Operation::gather: {
      TRY(send(call.input.data, call.input.count * element_bytes, call.root, stream));
      const auto blocks = blocks_of(call.output.count);
      for (int peer = 0; is_root && peer < ranks; ++peer) {
        const Bytes& block = blocks[size_t(peer)];
        TRY(receive(at(call.output, block), block.size, peer, stream));
      }
      return ok();
    }
    case Operation::scatter: {
      const auto blocks = blocks_of(call.input.count);
      for (int peer = 0; is_root && peer < ranks; ++peer) {
        const Bytes& block = blocks[size_t(peer)];
        TRY(send(at(call.input, block), block.size, peer, stream));
      }
      return receive(call.output.data, call.output.count * element_bytes, call.root, stream);
    }
    default: {  // all_to_all
      const auto sent = blocks_of(call.input.count);
      const auto received = lay_out(call.received_counts, call.output.count, element_bytes, ranks);
      for (int peer = 0; peer < ranks; ++peer) {
        const Bytes& to = sent[size_t(peer)];
        const Bytes& from = received[size_t(peer)];
        TRY(send(at(call.input, to), to.size, peer, stream));
        TRY(receive(at(call.output, from), from.size, peer, stream));
      }
      return ok();
    }
  }
}

Result<void> DeviceGroup::wait(nccl::Stream stream) {
  const auto until = SteadyClock::now() + options_.peer_timeout;
  for (int polls = 0;; ++polls) {
    const int answer = nccl_.cuStreamQuery(stream);
    if (answer == 0) return ok();
    if (answer != nccl::kStreamNotReady)
      return unavailable("the GPU's stream failed with CUDA's error " + std::to_string(answer));
    int state = nccl::kSuccess;
    TRY(check_status(nccl_.ncclCommGetAsyncError(communicator_, &state), "ncclCommGetAsyncError"));
    TRY(check_status(state, "communicating between the GPUs"));
    if (options_.cancelled && options_.cancelled()) return cancelled("this rank was cancelled");
    if (SteadyClock::now() >= until)
      return unavailable("timed out: the ranks' GPUs did not finish within " +
                         std::to_string(options_.peer_timeout.count()) + " ms");
    if (polls >= kPollsWithoutSleep) std::this_thread::sleep_for(kSleepBetweenPolls);
  }
}

Error DeviceGroup::fail(Error error) {
  // Otherwise the kernel would wait on the GPU forever, and the destructor would wait for the
  // kernel.
  (void)nccl_.ncclCommAbort(std::exchange(communicator_, nullptr));
  // NCCL does not report which rank is lost; the group does.
  if (error.kind == Kind::unavailable) {
    if (auto others = group_.barrier(); !others) error.message += "; " + others.error().message;
  }
  failure_ = error;
  return error;
}

}  // namespace trainyard::collectives
