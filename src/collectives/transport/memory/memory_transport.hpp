// Ranks inside one process: messages through a shared table. For tests, and as the plainest model of a
// transport.
//
// Threads: each transport is confined to one thread at a time; the table they share is guarded by its own
// mutex. Lifetime: the transports share the table; whoever goes last frees it.
#pragma once

#include <memory>
#include <vector>

#include "collectives/transport.hpp"

namespace trainyard::collectives {

class MemoryTransport : public Transport {
 public:
  virtual uint64_t bytes_sent() const = 0;
};

std::vector<std::unique_ptr<MemoryTransport>> connect_in_memory(int size);

}  // namespace trainyard::collectives
