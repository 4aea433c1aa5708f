// A GroupBuffer is memory that grows on demand. It is registered with a group if the group's ranks
// share memory.
//
// Threads: confined to one at a time. Errors: none; if memory cannot be registered, it is ordinary
// memory.
// Lifetime: the group outlives it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "collectives/group.hpp"

namespace trainyard::collectives {

class GroupBuffer {
 public:
  explicit GroupBuffer(Group& group) : group_(group) {}
  ~GroupBuffer() { release(); }
  GroupBuffer(const GroupBuffer&) = delete;
  GroupBuffer& operator=(const GroupBuffer&) = delete;

  // Returns at least `size` bytes. The content is lost when the buffer grows.
  std::byte* bytes(size_t size);

 private:
  void release();

  Group& group_;
  std::span<std::byte> registered_;
  std::unique_ptr<std::byte[]> ordinary_;
  size_t size_ = 0;
};

}  // namespace trainyard::collectives
