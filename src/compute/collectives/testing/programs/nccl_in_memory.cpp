// Implements the functions of NCCL and of the CUDA driver that DeviceGroup uses, over ordinary
// memory. Ranks are threads of one process, and each thread has one stream. As on a GPU, a call
// only enqueues an operation. The operation ends when the data of all ranks that it needs has
// arrived, which cuStreamQuery detects.
//
// Threads: each communicator is confined to one; the state that they share is guarded by its mutex.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#define PUBLIC extern "C" __attribute__((visibility("default")))

struct Id {
  char bytes[128];
};

namespace {

using Bytes = std::vector<std::byte>;
constexpr int kInvalidArgument = 4;
constexpr int kNotReady = 600;

struct Rendezvous {
  std::mutex mutex;
  std::map<uint64_t, std::map<int, Bytes>> brought;          // by operation, by rank
  std::map<std::pair<int, int>, std::deque<Bytes>> mailbox;  // by (from, to)
};
std::mutex rendezvous_mutex;
std::map<uint64_t, std::shared_ptr<Rendezvous>> all_rendezvous;  // guarded by rendezvous_mutex
std::atomic<uint64_t> identities = 0;

// The operations on the stream of this thread that are not done. Each returns true when it is.
thread_local std::deque<std::function<bool()>> stream;

size_t size_of(int type) {
  constexpr size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return sizes[type];
}

Bytes copy(const void* from, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(from);
  return Bytes(bytes, bytes + size);
}

template <class Number>
void reduce_as(const std::map<int, Bytes>& all, void* into, size_t count, int reduction) {
  for (size_t i = 0; i < count; ++i) {
    Number result{};
    bool first = true;
    for (const auto& [rank, bytes] : all) {
      Number value;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      if (first) {
        result = value;
      } else if (reduction == 0 || reduction == 4) {
        result = Number(result + value);
      } else if (reduction == 1) {
        result = Number(result * value);
      } else {
        result = reduction == 2 ? std::max(result, value) : std::min(result, value);
      }
      first = false;
    }
    if (reduction == 4) result = Number(result / Number(all.size()));
    std::memcpy(static_cast<std::byte*>(into) + i * sizeof result, &result, sizeof result);
  }
}

int reduce(const std::map<int, Bytes>& all, void* into, size_t count, int type, int reduction) {
  switch (type) {
    case 0:
      return reduce_as<int8_t>(all, into, count, reduction), 0;
    case 1:
      return reduce_as<uint8_t>(all, into, count, reduction), 0;
    case 2:
      return reduce_as<int32_t>(all, into, count, reduction), 0;
    case 4:
      return reduce_as<int64_t>(all, into, count, reduction), 0;
    case 7:
      return reduce_as<float>(all, into, count, reduction), 0;
    case 8:
      return reduce_as<double>(all, into, count, reduction), 0;
    default:
      return kInvalidArgument;
  }
}

}  // namespace

struct ncclComm {
  std::shared_ptr<Rendezvous> rendezvous;
  size_t ranks;
  int rank;
  uint64_t operations = 0;
};

namespace {

// Contributes the bytes of this rank to the next operation. Calls `end` when all ranks have
// contributed, or rank `from` has.
void bring(ncclComm* comm, Bytes bytes, bool ours, int from,
           std::function<void(const std::map<int, Bytes>&)> end) {
  const uint64_t operation = comm->operations++;
  if (ours) {
    const std::scoped_lock lock(comm->rendezvous->mutex);
    comm->rendezvous->brought[operation][comm->rank] = std::move(bytes);
  }
  stream.push_back([comm, operation, from, end = std::move(end)] {
    const std::scoped_lock lock(comm->rendezvous->mutex);
    const auto& brought = comm->rendezvous->brought[operation];
    if (from >= 0 ? !brought.contains(from) : brought.size() < comm->ranks) return false;
    end(brought);
    return true;
  });
}

}  // namespace

PUBLIC int ncclGetVersion(int* version) { return *version = 22000, 0; }
PUBLIC const char* ncclGetErrorString(int answer) {
  return answer == 4 ? "invalid argument" : "unknown";
}
PUBLIC int ncclGetUniqueId(Id* id) {
  const uint64_t identity = ++identities;
  std::memcpy(id->bytes, &identity, sizeof identity);
  return 0;
}
PUBLIC int ncclCommInitRank(ncclComm** comm, int ranks, Id id, int rank) {
  uint64_t identity = 0;
  std::memcpy(&identity, id.bytes, sizeof identity);
  if (identity == 0 || rank < 0 || rank >= ranks) return kInvalidArgument;
  const std::scoped_lock lock(rendezvous_mutex);
  auto& rendezvous = all_rendezvous[identity];
  if (!rendezvous) rendezvous = std::make_shared<Rendezvous>();
  *comm = new ncclComm{rendezvous, size_t(ranks), rank};
  return 0;
}
PUBLIC int ncclCommDestroy(ncclComm* comm) { return delete comm, 0; }
PUBLIC int ncclCommAbort(ncclComm* comm) {
  stream.clear();
  return delete comm, 0;
}
PUBLIC int ncclCommGetAsyncError(ncclComm*, int* state) { return *state = 0, 0; }
PUBLIC int ncclGroupStart() { return 0; }
PUBLIC int ncclGroupEnd() { return 0; }

PUBLIC int ncclAllReduce(const void* from, void* into, size_t count, int type, int reduction,
                         ncclComm* comm, void*) {
  if (type < 0 || type > 11 || reduction < 0 || reduction > 4) return kInvalidArgument;
  bring(comm, copy(from, count * size_of(type)), true, -1,
        [=](const auto& brought) { reduce(brought, into, count, type, reduction); });
  return 0;
}
PUBLIC int ncclReduce(const void* from, void* into, size_t count, int type, int reduction, int root,
                      ncclComm* comm, void*) {
  if (type < 0 || type > 11 || reduction < 0 || reduction > 4) return kInvalidArgument;
  bring(comm, copy(from, count * size_of(type)), true, comm->rank == root ? -1 : comm->rank,
        [=](const auto& brought) {
          if (comm->rank == root) reduce(brought, into, count, type, reduction);
        });
  return 0;
}
PUBLIC int ncclBroadcast(const void* from, void* into, size_t count, int type, int root,
                         ncclComm* comm, void*) {
  if (type < 0 || type > 11) return kInvalidArgument;
  const bool ours = comm->rank == root;
  bring(comm, ours ? copy(from, count * size_of(type)) : Bytes(), ours, root,
        [=](const auto& brought) {
          std::memcpy(into, brought.at(root).data(), count * size_of(type));
        });
  return 0;
}
PUBLIC int ncclSend(const void* from, size_t count, int type, int peer, ncclComm* comm, void*) {
  const std::scoped_lock lock(comm->rendezvous->mutex);
  comm->rendezvous->mailbox[{comm->rank, peer}].push_back(copy(from, count * size_of(type)));
  return 0;
}
PUBLIC int ncclRecv(void* into, size_t count, int type, int peer, ncclComm* comm, void*) {
  stream.push_back([=] {
    const std::scoped_lock lock(comm->rendezvous->mutex);
    auto& letters = comm->rendezvous->mailbox[{peer, comm->rank}];
    if (letters.empty()) return false;
    std::memcpy(into, letters.front().data(),
                std::min(letters.front().size(), count * size_of(type)));
    letters.pop_front();
    return true;
  });
  return 0;
}

PUBLIC int cuStreamQuery(void*) {
  while (!stream.empty() && stream.front()()) stream.pop_front();
  return stream.empty() ? 0 : kNotReady;
}
