// Connects ranks within one process through a shared table of messages, for tests and as the
// simplest model of a transport.
//
// A message is a reference to the bytes of its sender until the receiver has read it. Nothing is
// copied earlier than necessary, so a plan that overwrites bytes too early gives wrong sums here,
// and a data race under the thread sanitizer.
//
// Threads: each transport is confined to one thread at a time; the table they share has its own
// mutex. Lifetime: the transports share the table; the last one frees it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/transport.hpp"

namespace trainyard::collectives {

class MemoryTransport : public Transport {
 public:
  virtual uint64_t bytes_sent() const = 0;
  virtual uint64_t messages_sent() const = 0;
};

std::vector<std::unique_ptr<MemoryTransport>> connect_in_memory(int size);

}  // namespace trainyard::collectives
