// LinkedOffer is an agent's offer to serve another attempt, made over its link to the server: it
// says Idle before its last fact, and waits for a NextOrder (docs/decisions/38). NextOrder
// (next_order.hpp) is the same for an agent whose launcher is on its machine.
//
// Threads: deliver(), message() and cancel() from any; the others from one.
#pragma once

#include <optional>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

// Where an agent leaves the order of another host, in its directory, for the program that started
// it.
inline constexpr const char* kNextHostFile = "next-host.json";

// The allocation in which an agent runs, as its command line tells it.
struct AgentAllocation {
  uint64_t number = 0;  // of the Slurm job; 0: it serves one attempt
  uint32_t served = 0;  // attempts before the current one
  Duration idle_max{};  // so long the agent waits for an order
  Duration time_left{};
};

class LinkedOffer {
 public:
  // The time of the allocation passes from now on.
  LinkedOffer(const AgentAllocation& allocation, Clock& clock);

  // True if an attempt that ended with this fact may be followed by another one: not one that the
  // machine may have failed.
  bool may_follow(const wire::StateFact& last) const;
  // The message for now.
  wire::Idle message(bool keeps_host) const;

  // Takes a message of the server.
  void deliver(const wire::Message& message);
  // Ends the wait: the agent is to end.
  void cancel();
  // Waits for an order; nothing: none arrived in time, or the server releases the allocation.
  std::optional<wire::NextOrder> take();

 private:
  const AgentAllocation allocation_;
  Clock& clock_;
  const std::chrono::nanoseconds began_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<wire::NextOrder> order_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
};

}  // namespace trainyard::agent
