// A Circle executes the steps of all ranks of an operation on one thread, for the tests of the
// plans.
//
// Threads: confined to one. Errors: a failed expectation of the test that calls.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "collectives/plan/plan.hpp"
#include "collectives/reduce/float_formats.hpp"
#include "collectives/reference.hpp"
#include "collectives/run.hpp"
#include "collectives/transport/memory/memory_transport.hpp"

namespace trainyard::collectives::testing {

using reference::Bytes;

template <class Number>
void put_number(Bytes& bytes, size_t index, Number number) {
  std::memcpy(bytes.data() + index * sizeof number, &number, sizeof number);
}

// Returns values of very different magnitude and sign, whose sums depend on the order of additions.
inline Bytes awkward_values(Type type, size_t elements, uint64_t seed) {
  SeededRandom random(seed * 1000003 + elements);
  Bytes bytes(elements * bytes_of(type));
  for (size_t i = 0; i < elements; ++i) {
    // Magnitudes that differ widely, but whose sums and products fit the type.
    const int span = type == Type::f64 || type == Type::f32 || type == Type::bf16 ? 20 : 3;
    const float value =
        (float(random.below(2000001)) / 1000000.0f - 1.0f) *
        formats::float_of(uint32_t(127 - span + int(random.below(uint64_t(2 * span)))) << 23);
    switch (type) {
      case Type::f64:
        put_number(bytes, i, double(value) * 1.000000000123);
        break;
      case Type::f32:
        put_number(bytes, i, value);
        break;
      case Type::f16:
        put_number(bytes, i, formats::to_f16(value));
        break;
      case Type::bf16:
        put_number(bytes, i, formats::to_bf16(value));
        break;
      case Type::f8e4m3:
        put_number(bytes, i, formats::to_f8e4m3(value));
        break;
      case Type::f8e5m2:
        put_number(bytes, i, formats::to_f8e5m2(value));
        break;
      case Type::boolean:
        put_number(bytes, i, uint8_t(random.below(8) == 0));
        break;
      default:
        for (size_t k = 0; k < bytes_of(type); ++k)
          bytes[i * bytes_of(type) + k] = std::byte(uint8_t(random.below(256)));
    }
  }
  return bytes;
}

inline std::vector<Bytes> awkward_inputs(Type type, int ranks, size_t elements) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < ranks; ++rank)
    inputs.push_back(awkward_values(type, elements, uint64_t(rank) + 1));
  return inputs;
}

class Circle {
 public:
  explicit Circle(int ranks) : transports_(connect_in_memory(ranks)), workspaces_(size_t(ranks)) {}

  int size() const { return int(transports_.size()); }

  // Executes the plans of every rank one after the other, all ranks concurrently. Many iterations
  // without progress of any rank are a deadlock.
  struct Part {
    plan::Plan plan;
    std::vector<int> team;
    Buffers buffers;
  };
  void run(const std::function<std::vector<Part>(int rank)>& parts_of) {
    const Tag tag{operations_++, 7};
    std::vector<std::vector<Part>> parts;
    std::vector<size_t> position(size_t(size()), 0);
    std::vector<std::unique_ptr<Run>> runs(static_cast<size_t>(size()));
    for (int rank = 0; rank < size(); ++rank) parts.push_back(parts_of(rank));
    constexpr int iterations_max = 100000;
    for (int iteration = 0; iteration < iterations_max; ++iteration) {
      bool all = true;
      for (int k = 0; k < size(); ++k) {
        // Alternates the order of the ranks, on which no result may depend.
        const auto rank = size_t(iteration % 2 == 0 ? k : size() - 1 - k);
        if (position[rank] == parts[rank].size()) continue;
        const Part& part = parts[rank][position[rank]];
        if (!runs[rank]) {
          runs[rank] = std::make_unique<Run>(part.plan, part.team, tag, part.buffers,
                                             workspaces_[rank], *transports_[rank]);
        }
        auto advanced = runs[rank]->advance();
        ASSERT_TRUE(advanced) << advanced.error().message;
        if (*advanced) {
          runs[rank].reset();
          ++position[rank];
        }
        all = all && position[rank] == parts[rank].size();
      }
      if (all) return;
    }
    FAIL() << "deadlock";
  }

  uint64_t bytes_sent() const {
    uint64_t sum = 0;
    for (const auto& transport : transports_) sum += transport->bytes_sent();
    return sum;
  }

 private:
  std::vector<std::unique_ptr<MemoryTransport>> transports_;
  std::vector<Workspace> workspaces_;
  uint64_t operations_ = 0;
};

}  // namespace trainyard::collectives::testing
