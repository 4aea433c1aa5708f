// Carries out a plan: the only loop that turns steps into I/O.
//
// Threads: confined to one thread at a time. Lifetime: data, scratch and transport outlive the run.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "collectives/plan/plan.hpp"
#include "collectives/transport.hpp"

namespace trainyard::collectives {

// What the steps' ranges point into.
struct Buffer {
  std::span<std::byte> data;
  std::span<std::byte> scratch;  // as long as data; what is in it afterwards means nothing
  size_t element_bytes = 1;
  // data = received combined with data; both hold the same number of whole elements. Null where nothing is
  // reduced.
  void (*reduce)(std::span<std::byte> data, std::span<const std::byte> received) = nullptr;
};

class Run {
 public:
  // Requires: buffer.data.size() == buffer.scratch.size(), all ranges within.
  Run(plan::Steps steps, Tag tag, Buffer buffer, Transport& transport);

  // Gets as far as it can without waiting. True when the plan is done.
  Result<bool> advance();
  // Gets to the end.
  Result<void> finish();

 private:
  std::span<std::byte> bytes_of(std::span<std::byte> whole, plan::Range range) const;

  const plan::Steps steps_;
  const Tag tag_;
  const Buffer buffer_;
  Transport& transport_;
  size_t position_ = 0;  // the next step that was not begun
};

}  // namespace trainyard::collectives
