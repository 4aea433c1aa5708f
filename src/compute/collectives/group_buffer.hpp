// A GroupBuffer is memory that grows on demand, registered with a group where its ranks share
// memory.
//
// Threads: confined to one at a time. Errors: none; where memory cannot be registered, it is
// ordinary memory.
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
  ~GroupBuffer() { let_go(); }
  GroupBuffer(const GroupBuffer&) = delete;
  GroupBuffer& operator=(const GroupBuffer&) = delete;

  // Returns at least `size` bytes. The content is lost when the buffer grows.
  std::byte* bytes(size_t size);

 private:
  void let_go();

  Group& group_;
  std::span<std::byte> registered_;
  std::unique_ptr<std::byte[]> ordinary_;
  size_t size_ = 0;
};

}  // namespace trainyard::collectives
