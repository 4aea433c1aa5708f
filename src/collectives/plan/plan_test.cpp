// Every plan, with all ranks stepped in one thread: equal to the reference bit for bit, never stuck, and as
// costly as its comment says.
#include "collectives/plan/plan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "base/random.hpp"
#include "collectives/reference.hpp"
#include "collectives/run.hpp"
#include "collectives/transport/memory/memory_transport.hpp"

namespace trainyard::collectives {
namespace {

using plan::Action;
using plan::Range;
using plan::Steps;

constexpr int ranks_max = 9;

// Values of very different size and sign: any other order of additions gives other bits.
std::vector<std::vector<float>> awkward_inputs(int ranks, size_t elements) {
  SeededRandom random(uint64_t(ranks) * 1000003 + elements);
  std::vector<std::vector<float>> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float> input(elements);
    for (float& value : input) {
      const float magnitude = std::ldexp(1.0f, int(random.below(40)) - 20);
      value = (float(random.below(2000001)) / 1000000.0f - 1.0f) * magnitude;
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

void add_floats(std::span<std::byte> data, std::span<const std::byte> received) {
  for (size_t at = 0; at < data.size(); at += sizeof(float)) {
    float ours, theirs;
    std::memcpy(&ours, &data[at], sizeof ours);
    std::memcpy(&theirs, &received[at], sizeof theirs);
    ours = theirs + ours;
    std::memcpy(&data[at], &ours, sizeof ours);
  }
}

// All ranks of one operation, in one thread, in turn.
class Circle {
 public:
  Circle(std::vector<std::vector<float>> data, const std::function<Steps(int rank)>& plan)
      : data_(std::move(data)), scratch_(data_), transports_(connect_in_memory(int(data_.size()))) {
    for (size_t rank = 0; rank < data_.size(); ++rank) {
      const Buffer buffer{std::as_writable_bytes(std::span(data_[rank])),
                          std::as_writable_bytes(std::span(scratch_[rank])), sizeof(float), add_floats};
      runs_.push_back(std::make_unique<Run>(plan(int(rank)), Tag{1, 2}, buffer, *transports_[rank]));
    }
  }

  // Answers with how often everyone had a turn. A turn in which nobody gets further would be a deadlock.
  int run() {
    std::vector<bool> done(runs_.size());
    for (int turns = 1; turns <= 4 * ranks_max; ++turns) {
      bool all = true;
      for (size_t rank = 0; rank < runs_.size(); ++rank) {
        if (!done[rank]) {
          auto advanced = runs_[rank]->advance();
          EXPECT_TRUE(advanced) << advanced.error().message;
          if (!advanced) return 0;
          done[rank] = *advanced;
        }
        all = all && done[rank];
      }
      if (all) return turns;
    }
    ADD_FAILURE() << "deadlock";
    return 0;
  }

  const std::vector<float>& data(int rank) const { return data_[size_t(rank)]; }
  uint64_t bytes_sent() const {
    uint64_t sum = 0;
    for (const auto& transport : transports_) sum += transport->bytes_sent();
    return sum;
  }

 private:
  std::vector<std::vector<float>> data_;
  std::vector<std::vector<float>> scratch_;
  std::vector<std::unique_ptr<MemoryTransport>> transports_;
  std::vector<std::unique_ptr<Run>> runs_;
};

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

size_t elements_sent(const Steps& steps) {
  size_t sum = 0;
  for (const auto& step : steps) sum += step.action == Action::send ? step.range.size() : 0;
  return sum;
}

const size_t awkward_sizes[] = {0, 1, 2, 3, 5, 8, 9, 17, 64, 1009, 65537};

TEST(Piece, pieces_cover_everything_and_differ_by_at_most_one) {
  for (const size_t elements : awkward_sizes) {
    for (int parts = 1; parts <= ranks_max; ++parts) {
      size_t expected_begin = 0;
      for (int part = 0; part < parts; ++part) {
        const Range range = plan::piece(elements, part, parts);
        EXPECT_EQ(range.begin, expected_begin);
        EXPECT_LE(range.size(), elements / size_t(parts) + 1);
        EXPECT_GE(range.size(), elements / size_t(parts));
        expected_begin = range.end;
      }
      EXPECT_EQ(expected_begin, elements);
    }
  }
}

TEST(RingAllreduce, equals_the_reference_bit_for_bit_on_every_rank) {
  for (int ranks = 1; ranks <= ranks_max; ++ranks) {
    for (const size_t elements : awkward_sizes) {
      const auto inputs = awkward_inputs(ranks, elements);
      const auto expected = reference::allreduce_sum(
          inputs, [&](size_t element) { return plan::ring_first_rank(ranks, elements, element); });
      Circle circle(inputs, [&](int rank) { return plan::ring_allreduce(rank, ranks, elements); });
      circle.run();
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_TRUE(equal_bits(circle.data(rank), expected))
            << ranks << " ranks, " << elements << " elements";
      }
    }
  }
}

TEST(RingAllreduce, the_order_of_additions_matters_to_these_inputs) {
  // Else the test above would show nothing about the order.
  const auto inputs = awkward_inputs(5, 1009);
  EXPECT_FALSE(equal_bits(reference::allreduce_sum(inputs, [](size_t) { return 0; }),
                          reference::allreduce_sum(inputs, [](size_t) { return 2; })));
}

TEST(RingAllreduce, costs_what_its_comment_says) {
  for (int ranks = 1; ranks <= ranks_max; ++ranks) {
    for (const size_t elements : awkward_sizes) {
      size_t all = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Steps steps = plan::ring_allreduce(rank, ranks, elements);
        all += elements_sent(steps);
        if (elements % size_t(ranks) == 0) {
          EXPECT_EQ(elements_sent(steps) * size_t(ranks), 2 * size_t(ranks - 1) * elements);
          EXPECT_EQ(steps.size(),
                    elements == 0 ? 0 : size_t(3 * 2 * (ranks - 1)));  // send, receive, combine a round
        }
      }
      EXPECT_EQ(all, 2 * size_t(ranks - 1) * elements);
      Circle circle(awkward_inputs(ranks, elements),
                    [&](int rank) { return plan::ring_allreduce(rank, ranks, elements); });
      circle.run();
      EXPECT_EQ(circle.bytes_sent(), 2 * size_t(ranks - 1) * elements * sizeof(float));
    }
  }
}

TEST(RingAllGather, brings_uneven_blocks_everywhere) {
  for (int ranks = 1; ranks <= ranks_max; ++ranks) {
    std::vector<Range> blocks;
    size_t total = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const size_t size = size_t(rank * rank % 4);  // 0 1 0 1 ..: some bring nothing
      blocks.push_back({total, total + size});
      total += size;
    }
    std::vector<std::vector<float>> inputs(size_t(ranks), std::vector<float>(total, -1.0f));
    std::vector<std::vector<float>> own;
    for (int rank = 0; rank < ranks; ++rank) {
      const Range block = blocks[size_t(rank)];
      std::iota(inputs[size_t(rank)].begin() + ptrdiff_t(block.begin),
                inputs[size_t(rank)].begin() + ptrdiff_t(block.end), float(100 * rank));
      own.emplace_back(inputs[size_t(rank)].begin() + ptrdiff_t(block.begin),
                       inputs[size_t(rank)].begin() + ptrdiff_t(block.end));
    }
    Circle circle(inputs, [&](int rank) { return plan::ring_all_gather(rank, blocks); });
    circle.run();
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(circle.data(rank), reference::all_gather(own));
    EXPECT_EQ(circle.bytes_sent(), size_t(ranks - 1) * total * sizeof(float));
  }
}

TEST(TreeBroadcast, brings_the_roots_data_everywhere_in_log2_rounds) {
  for (int ranks = 1; ranks <= ranks_max; ++ranks) {
    for (int root = 0; root < ranks; ++root) {
      for (const size_t elements : {0, 1, 1009}) {
        const auto inputs = awkward_inputs(ranks, elements);
        Circle circle(inputs, [&](int rank) { return plan::tree_broadcast(rank, ranks, elements, root); });
        circle.run();
        for (int rank = 0; rank < ranks; ++rank)
          EXPECT_TRUE(equal_bits(circle.data(rank), inputs[size_t(root)]));
        EXPECT_EQ(circle.bytes_sent(), size_t(ranks - 1) * elements * sizeof(float));
        size_t rounds = 0;
        while ((1 << rounds) < ranks) ++rounds;
        EXPECT_EQ(plan::tree_broadcast(root, ranks, elements, root).size(), elements == 0 ? 0 : rounds);
      }
    }
  }
}

}  // namespace
}  // namespace trainyard::collectives
