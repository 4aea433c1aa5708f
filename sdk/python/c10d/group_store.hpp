// A GroupStore is the part of torch's store that belongs to one process group: the keys of its
// rendezvous, and a directory of the ranks that send to each rank.
//
// Threads: call from any thread. Errors: unavailable, with the first line of torch's own text.
// Lifetime: a KeyValueStore may outlive its GroupStore.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sdk/python/c10d/rendezvous.hpp"

namespace trainyard::sdk {

class GroupStore {
 public:
  // `timeout` limits each wait for a key. `ending` ends such waits; the group sets it.
  GroupStore(c10::intrusive_ptr<c10d::Store> store, std::chrono::milliseconds timeout,
             std::shared_ptr<const std::atomic<bool>> ending);

  // Returns the keys below `name`. With `alone`, a read waits in the store instead of polling it;
  // then no other thread of this process may use the store.
  KeyValueStore part(const std::string& name, bool alone) const;

  // Adds `rank` to the directory of the ranks that send to `to`.
  Result<void> announce(int rank, int to) const;
  // Returns entry `number` of the directory of the ranks that send to `rank`, if it is written.
  std::optional<int> sender(int rank, int64_t number) const;

 private:
  c10::intrusive_ptr<c10d::Store> directory(int rank) const;

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::chrono::milliseconds timeout_;
  // Shared with the group and its connections; the last one frees it.
  const std::shared_ptr<const std::atomic<bool>> ending_;
};

}  // namespace trainyard::sdk
