// LinkedOffer is an agent's offer to run another attempt, made over its link to the server: the
// agent sends Idle before its last fact, and waits for a NextOrder (docs/decisions/38). NextOrder
// (next_order.hpp) is the same for an agent with its launcher on the same machine.
//
// Threads: deliver(), message() and cancel() from any; the others from one.
#pragma once

#include <optional>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

// The file in the agent's directory in which it leaves the order of another host for the program
// that started the agent.
inline constexpr const char* kNextHostFile = "next-host.json";

// The allocation in which an agent runs, from its command line.
struct AgentAllocation {
  uint64_t number = 0;  // of the Slurm job; 0: the agent runs one attempt only
  uint32_t served = 0;  // attempts before the current one
  Duration idle_max{};  // the longest wait for an order
  Duration time_left{};
};

class LinkedOffer {
 public:
  // The allocation's `time_left` starts to run now.
  LinkedOffer(const AgentAllocation& allocation, Clock& clock);

  // True if another attempt may follow one that ended with this fact: false if the failure may be
  // the machine's.
  bool may_follow(const wire::StateFact& last) const;
  // Returns the offer, with the current times.
  wire::Idle message(bool keeps_host) const;

  // Accepts a message from the server.
  void deliver(const wire::Message& message);
  // Ends the wait, since the agent must end.
  void cancel();
  // Waits for an order. nullopt: none arrived in time, or the server releases the allocation.
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
