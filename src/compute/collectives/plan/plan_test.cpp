// Tests every plan, with all ranks stepped in one thread: results equal the reference bit for bit,
// no rank gets stuck, and the costs equal those in the plan's comment.
#include "collectives/plan/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "collectives/testing/cases.hpp"
#include "collectives/testing/circle.hpp"

namespace trainyard::collectives {
namespace {

using plan::Algorithm;
using plan::Operation;
using plan::Plan;
using plan::Range;
using plan::Steps;
using namespace testing;

// Returns the buffers of all ranks after a reduction, out of place when the plan reads its input.
std::vector<Bytes> after(Circle& circle, const Case& one, Type type, Reduction reduction,
                         const std::vector<Bytes>& inputs, size_t elements, bool in_place,
                         std::span<const Range> blocks) {
  const int ranks = circle.size();
  std::vector<Bytes> outputs = inputs;
  if (!in_place) {
    for (Bytes& output : outputs) std::fill(output.begin(), output.end(), std::byte(0xee));
  }
  circle.run([&](int rank) -> std::vector<Circle::Part> {
    const auto index = size_t(rank);
    const Buffers buffers{in_place ? outputs[index].data() : inputs[index].data(),
                          0,
                          outputs[index].data(),
                          0,
                          type,
                          reduction,
                          reduction == Reduction::average ? ranks : 0};
    return {{plan_of(one, rank, ranks, elements, blocks), {}, buffers}};
  });
  return outputs;
}

void expect_reduced(Circle& circle, const Case& one, Type type, Reduction reduction,
                    size_t elements, const std::vector<plan::Expression>& expressions,
                    bool in_place) {
  const int ranks = circle.size();
  const auto blocks = uneven_blocks(ranks, elements);
  const auto inputs = awkward_inputs(type, ranks, elements);
  const Bytes expected =
      ranks == 1 ? inputs[0] : reference::reduced(type, reduction, inputs, [&](size_t element) {
        return expressions[element];
      });
  const auto outputs =
      after(circle, one, type, reduction, inputs, elements, in_place || ranks == 1, blocks);
  const int root = plan_of(one, 0, ranks, elements, blocks).root;
  for (int rank = 0; rank < ranks; ++rank) {
    if (one.operation == Operation::reduce && rank != root) continue;
    Range own{0, elements};
    if (one.operation == Operation::reduce_scatter) own = blocks[size_t(rank)];
    const size_t size = bytes_of(type);
    ASSERT_TRUE(std::equal(expected.begin() + ptrdiff_t(own.begin * size),
                           expected.begin() + ptrdiff_t(own.end * size),
                           outputs[size_t(rank)].begin() + ptrdiff_t(own.begin * size)))
        << name_of(one, ranks, elements) << ", " << to_string(type) << " " << to_string(reduction)
        << ", rank " << rank << (in_place ? ", in place" : "");
  }
}

std::vector<plan::Expression> expressions_of(const Case& one, int ranks, size_t elements) {
  const auto blocks = uneven_blocks(ranks, elements);
  std::vector<plan::Expression> expressions;
  for (size_t element = 0; element < elements; ++element) {
    expressions.push_back(expression(plan_of(one, 0, ranks, elements, blocks), element));
  }
  return expressions;
}

TEST(Plans, EveryTypeAndReductionEqualsTheReferenceBitForBit) {
  for (int ranks = 1; ranks <= kRanksMax; ++ranks) {
    Circle circle(ranks);
    for (const Case& one : kReductionsOfAll) {
      const size_t elements = size_t(ranks) + 8;  // odd and even; divisible by few numbers of ranks
      const auto expressions = expressions_of(one, ranks, elements);
      for (int type = 0; type < kTypesCount; ++type) {
        for (int reduction = 0; reduction < kReductionsCount; ++reduction) {
          if (!exists(Type(type), Reduction(reduction))) continue;
          expect_reduced(circle, one, Type(type), Reduction(reduction), elements, expressions,
                         true);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Plans, SupportUnevenAndEmptySizes) {
  for (int ranks = 1; ranks <= kRanksMax; ++ranks) {
    Circle circle(ranks);
    for (const Case& one : kReductionsOfAll) {
      for (const size_t elements : {0, 1, 2, 3, 16, 17, 101}) {
        const auto expressions = expressions_of(one, ranks, elements);
        for (const Type type : {Type::f32, Type::f16}) {
          expect_reduced(circle, one, type, Reduction::sum, elements, expressions, true);
          if (reads_input(one.operation, one.algorithm))
            expect_reduced(circle, one, type, Reduction::sum, elements, expressions, false);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Plans, InputsDependOnTheOrderOfAdditions) {
  // Otherwise the tests above would not check the order.
  const auto inputs = awkward_inputs(Type::f32, 5, 101);
  const auto ring = expressions_of({Operation::allreduce, Algorithm::ring, 0}, 5, 101);
  const auto tree = expressions_of({Operation::allreduce, Algorithm::tree, 0}, 5, 101);
  const auto by = [&](const auto& expressions) {
    return reference::reduced(Type::f32, Reduction::sum, inputs,
                              [&](size_t i) { return expressions[i]; });
  };
  EXPECT_NE(by(ring), by(tree));
}

// -- hierarchical

void expect_hierarchical(Circle& circle, const std::vector<int>& hosts, size_t elements,
                         Algorithm between, std::span<const std::pair<Type, Reduction>> kinds) {
  const int ranks = int(hosts.size());
  std::vector<plan::Expression> expressions;
  for (size_t element = 0; element < elements; ++element)
    expressions.push_back(plan::hierarchical_expression(hosts, elements, between, element));
  std::vector<std::vector<plan::Stage>> stages;
  for (int rank = 0; rank < ranks; ++rank)
    stages.push_back(plan::hierarchical(rank, hosts, elements, 9, between, 4));
  for (const auto& [type, reduction] : kinds) {
    const auto inputs = awkward_inputs(type, ranks, elements);
    const Bytes expected = reference::reduced(type, reduction, inputs,
                                              [&](size_t element) { return expressions[element]; });
    std::vector<Bytes> outputs = inputs;
    circle.run([&, type = type, reduction = reduction](int rank) {
      std::vector<Circle::Part> parts;
      for (const plan::Stage& stage : stages[size_t(rank)]) {
        std::byte* begin = outputs[size_t(rank)].data() + stage.begin * bytes_of(type);
        parts.push_back({stage.plan, stage.team,
                         Buffers{begin, 0, begin, 0, type, reduction,
                                 reduction == Reduction::average ? ranks : 0}});
      }
      return parts;
    });
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_EQ(outputs[size_t(rank)], ranks == 1 ? inputs[0] : expected)
          << ranks << " ranks, " << elements << " elements, " << to_string(type) << " "
          << to_string(reduction) << ", rank " << rank;
    }
  }
}

constexpr std::pair<Type, Reduction> kSomeKinds[] = {
    {Type::f32, Reduction::sum}, {Type::bf16, Reduction::average}, {Type::i32, Reduction::product}};

TEST(Hierarchical, EveryTypeAndReductionEqualsTheReferenceBitForBit) {
  std::vector<std::pair<Type, Reduction>> kinds;
  for (int type = 0; type < kTypesCount; ++type) {
    for (int reduction = 0; reduction < kReductionsCount; ++reduction) {
      if (exists(Type(type), Reduction(reduction)))
        kinds.emplace_back(Type(type), Reduction(reduction));
    }
  }
  for (int ranks = 1; ranks <= kRanksMax; ++ranks) {
    Circle circle(ranks);
    // Spreads the ranks over two and three hosts as evenly as possible, in blocks and round-robin.
    std::vector<int> halves, thirds;
    for (int rank = 0; rank < ranks; ++rank) {
      halves.push_back(rank * 2 / ranks);
      thirds.push_back(rank % 3);
    }
    for (const auto& hosts : {halves, thirds}) {
      expect_hierarchical(circle, hosts, size_t(ranks) + 8, Algorithm::ring, kinds);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Hierarchical, EqualsTheReferenceOnAnyPlacement) {
  const std::vector<int> placements[] = {{0},
                                         {5, 5},
                                         {0, 1},
                                         {0, 0, 1, 1},
                                         {0, 1, 0, 1},
                                         {0, 1, 2},
                                         {2, 2, 2},
                                         {0, 0, 1},
                                         {0, 0, 0, 1, 1, 1},
                                         {3, 1, 1, 3, 2, 2, 2},
                                         {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3},
                                         {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  for (const auto& hosts : placements) {
    Circle circle(int(hosts.size()));
    for (const size_t elements : {0, 1, 5, 64, 101}) {
      for (const Algorithm between :
           {Algorithm::ring, Algorithm::halving_doubling, Algorithm::direct}) {
        expect_hierarchical(circle, hosts, elements, between, kSomeKinds);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Hierarchical, TrafficPerHostEqualsTheFormula) {
  // Counts from the steps that a host sends as much as in a ring of hosts, not of ranks.
  for (int hosts = 2; hosts <= 5; ++hosts) {
    for (int local = 1; local <= 4; ++local) {
      const int ranks = hosts * local;
      std::vector<int> host_of;
      for (int rank = 0; rank < ranks; ++rank) host_of.push_back(rank % hosts);
      const size_t elements = size_t(ranks) * 60;  // divisible by both
      for (const Algorithm between : {Algorithm::ring, Algorithm::direct}) {
        std::vector<size_t> sent(static_cast<size_t>(hosts)), received(static_cast<size_t>(hosts));
        for (int rank = 0; rank < ranks; ++rank) {
          for (const auto& stage : plan::hierarchical(rank, host_of, elements, 7, between, 60)) {
            Steps steps;
            for (size_t round = 0; round < rounds(stage.plan); ++round)
              add_round(stage.plan, round, steps);
            for (const plan::Step& step : steps) {
              for (size_t member = 0; member < stage.team.size(); ++member) {
                const int peer = stage.team[member];
                if (step.action == plan::Action::reduce ||
                    host_of[size_t(peer)] == host_of[size_t(rank)])
                  continue;
                if (step.peer != plan::kAllRanks && step.peer != int(member)) continue;
                const bool sends = step.action == plan::Action::send;
                (sends ? sent : received)[size_t(host_of[size_t(rank)])] += step.range.size();
              }
            }
          }
        }
        const size_t by_formula = 2 * size_t(hosts - 1) * elements / size_t(hosts);
        EXPECT_EQ(sent, std::vector<size_t>(size_t(hosts), by_formula))
            << hosts << " hosts of " << local;
        EXPECT_EQ(received, sent) << hosts << " hosts of " << local;
      }
    }
  }
}

// -- operations that only move elements

TEST(Plans, BlocksAndRootsReachTheRightRanks) {
  for (int ranks = 1; ranks <= kRanksMax; ++ranks) {
    Circle circle(ranks);
    for (const Case& one : kMovesOfAll) {
      if (one.operation == Operation::barrier) continue;
      for (const size_t elements : {0, 1, 7, 64}) {
        const auto blocks = uneven_blocks(ranks, elements);
        const Plan plan = plan_of(one, 0, ranks, elements, blocks);
        const Bytes whole = awkward_values(Type::u8, elements, 77);
        std::vector<Bytes> inputs(size_t(ranks), Bytes(elements, std::byte(0xee)));
        std::vector<Bytes> outputs = inputs;
        const auto put_own = [&](Bytes& bytes, Range own) {
          std::copy_n(whole.begin() + ptrdiff_t(own.begin), own.size(),
                      bytes.begin() + ptrdiff_t(own.begin));
        };
        for (int rank = 0; rank < ranks; ++rank) {
          const auto index = size_t(rank);
          if (one.operation == Operation::all_gather) put_own(outputs[index], blocks[index]);
          if (one.operation == Operation::broadcast && rank == plan.root) outputs[index] = whole;
          if (one.operation == Operation::gather) put_own(inputs[index], blocks[index]);
          if (one.operation == Operation::gather && rank == plan.root)
            put_own(outputs[index], blocks[index]);
          if (one.operation == Operation::scatter && rank == plan.root) {
            inputs[index] = whole;
            put_own(outputs[index], blocks[index]);
          }
        }
        circle.run([&](int rank) -> std::vector<Circle::Part> {
          const Buffers buffers{inputs[size_t(rank)].data(),
                                0,
                                outputs[size_t(rank)].data(),
                                0,
                                Type::u8,
                                Reduction::sum,
                                0};
          return {{plan_of(one, rank, ranks, elements, blocks), {}, buffers}};
        });
        for (int rank = 0; rank < ranks; ++rank) {
          Bytes expected = whole;
          if (one.operation == Operation::gather && rank != plan.root) continue;
          if (one.operation == Operation::scatter) {
            std::fill(expected.begin(), expected.end(), std::byte(0xee));
            put_own(expected, blocks[size_t(rank)]);
          }
          ASSERT_EQ(outputs[size_t(rank)], expected)
              << name_of(one, ranks, elements) << ", rank " << rank;
        }
      }
    }
  }
}

TEST(Plans, AllToAllDeliversEachBlockToItsRank) {
  for (int ranks = 1; ranks <= kRanksMax; ++ranks) {
    Circle circle(ranks);
    // Rank a sends (a + 2 b) % 5 elements to rank b, each with the value a * 16 + b.
    const auto size = [](int from, int to) { return size_t((from + 2 * to) % 5); };
    std::vector<std::vector<Range>> sent(static_cast<size_t>(ranks)),
        received(static_cast<size_t>(ranks));
    std::vector<Bytes> inputs(static_cast<size_t>(ranks)), outputs(static_cast<size_t>(ranks)),
        expected(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const auto index = size_t(rank);
      for (int peer = 0; peer < ranks; ++peer) {
        sent[index].push_back({inputs[index].size(), inputs[index].size() + size(rank, peer)});
        inputs[index].insert(inputs[index].end(), size(rank, peer), std::byte(rank * 16 + peer));
        received[index].push_back(
            {expected[index].size(), expected[index].size() + size(peer, rank)});
        expected[index].insert(expected[index].end(), size(peer, rank),
                               std::byte(peer * 16 + rank));
      }
      outputs[index] = Bytes(expected[index].size());
      std::copy_n(expected[index].begin() + ptrdiff_t(received[index][index].begin),
                  size(rank, rank),
                  // this rank's own block, which the caller copies
                  outputs[index].begin() + ptrdiff_t(received[index][index].begin));
    }
    circle.run([&](int rank) -> std::vector<Circle::Part> {
      const auto index = size_t(rank);
      Plan plan = plan_of({Operation::all_to_all, Algorithm::direct, 0}, rank, ranks,
                          inputs[index].size(), {});
      plan.blocks = sent[index];
      plan.received_blocks = received[index];
      const Buffers buffers{inputs[index].data(), 0, outputs[index].data(), 0, Type::u8,
                            Reduction::sum,       0};
      return {{plan, {}, buffers}};
    });
    EXPECT_EQ(outputs, expected) << ranks << " ranks";
  }
}

TEST(Barrier, NoRankIsDoneBeforeAllHaveEntered) {
  for (const Algorithm algorithm : {Algorithm::tree, Algorithm::one_shot}) {
    for (int ranks = 2; ranks <= kRanksMax; ++ranks) {
      auto transports = connect_in_memory(ranks);
      std::vector<Workspace> workspaces(static_cast<size_t>(ranks));
      std::vector<std::array<std::byte, 2>> bytes(static_cast<size_t>(ranks));
      std::vector<std::unique_ptr<collectives::Run>> runs;
      const int late = ranks / 2;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto index = size_t(rank);
        runs.push_back(std::make_unique<collectives::Run>(
            plan_of({Operation::barrier, algorithm, 0}, rank, ranks, 0, {}), std::span<const int>(),
            Tag{1, 1}, Buffers{bytes[index].data(), 0, bytes[index].data(), 0, Type::u8},
            workspaces[index], *transports[index]));
      }
      const auto advance_all = [&](bool all) {
        int done = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          if (rank == late && !all) continue;
          if (!runs[size_t(rank)]) {
            ++done;
            continue;
          }
          const auto advanced = runs[size_t(rank)]->advance();
          EXPECT_TRUE(advanced);
          if (advanced && *advanced) runs[size_t(rank)].reset(), ++done;
        }
        return done;
      };
      for (int i = 0; i < 10; ++i) EXPECT_EQ(advance_all(false), 0) << ranks << " ranks";
      int done = 0;
      for (int i = 0; i < 10; ++i) done = advance_all(true);
      EXPECT_EQ(done, ranks);
    }
  }
}

// -- messages

TEST(Messages, HaveUniqueNumbersPerPairOfRanksAndArriveInOrder) {
  for (const Case& one : all_cases()) {
    for (int ranks = 2; ranks <= kRanksMax; ++ranks) {
      const size_t elements = size_t(ranks) * 3 + 5;
      const auto blocks = uneven_blocks(ranks, elements);
      using MessageNumbers = std::map<std::pair<int, int>, std::vector<uint64_t>>;  // by (from, to)
      MessageNumbers sent, received;
      for (int rank = 0; rank < ranks; ++rank) {
        const Plan plan = plan_of(one, rank, ranks, elements, blocks);
        Steps steps;
        for (size_t round = 0; round < rounds(plan); ++round) add_round(plan, round, steps);
        for (const plan::Step& step : steps) {
          if (step.action == plan::Action::reduce) continue;
          const uint64_t number = message_number(plan, step);
          if (step.action != plan::Action::send) {
            received[{step.peer, rank}].push_back(number);
            continue;
          }
          for (int peer = 0; peer < ranks; ++peer) {
            if (peer != rank && (step.peer == plan::kAllRanks || step.peer == peer))
              sent[{rank, peer}].push_back(number);
          }
        }
      }
      EXPECT_EQ(sent, received) << name_of(one, ranks, elements);
      for (auto& [pair, numbers] : sent) {
        std::sort(numbers.begin(), numbers.end());
        EXPECT_TRUE(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end())
            << name_of(one, ranks, elements) << ", from " << pair.first << " to " << pair.second;
      }
    }
  }
}

// -- costs

struct Counted {
  std::vector<size_t> sent;              // by rank
  std::vector<size_t> elements_reduced;  // by rank
  size_t latencies = 0;
};

// Follows the steps of all ranks and counts. A message arrives one latency after it was sent. A
// rank sends when all messages of its earlier steps have arrived.
Counted count(const std::function<Plan(int rank)>& plan_of_rank, int ranks) {
  std::vector<std::vector<plan::Step>> steps(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const Plan plan = plan_of_rank(rank);
    for (size_t round = 0; round < rounds(plan); ++round)
      add_round(plan, round, steps[size_t(rank)]);
  }
  Counted counted{std::vector<size_t>(size_t(ranks)), std::vector<size_t>(size_t(ranks)), 0};
  // by (from, to): arrival of each message
  std::map<std::pair<int, int>, std::deque<size_t>> arrivals;
  std::vector<size_t> position(size_t(ranks), 0), now(size_t(ranks), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto index = size_t(rank);
      for (; position[index] < steps[index].size(); ++position[index]) {
        const plan::Step& step = steps[index][position[index]];
        if (step.action == plan::Action::send) {
          for (int peer = 0; peer < ranks; ++peer) {
            if (peer == rank || (step.peer != plan::kAllRanks && step.peer != peer)) continue;
            arrivals[{rank, peer}].push_back(now[index] + 1);
            counted.sent[index] += step.range.size();
          }
        } else if (step.action == plan::Action::receive ||
                   step.action == plan::Action::receive_into) {
          auto& queue = arrivals[{step.peer, rank}];
          if (queue.empty()) break;
          now[index] = std::max(now[index], queue.front());
          queue.pop_front();
        } else if (step.action == plan::Action::reduce) {
          counted.elements_reduced[index] += step.range.size() * step.operands;
        }
        moved = true;
      }
      counted.latencies = std::max(counted.latencies, now[index]);
    }
  }
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(position[size_t(rank)], steps[size_t(rank)].size());
  return counted;
}

TEST(Costs, StepsAndElementsMatchTheFormulas) {
  for (const Case& one : all_cases()) {
    for (int ranks = 1; ranks <= kRanksMax; ++ranks) {
      for (const size_t elements : {size_t(1), size_t(101), size_t(720 * ranks)}) {
        // thousands of chunks test nothing more
        if (one.chunk_elements > 0 && elements > 101) continue;
        const auto blocks = uneven_blocks(ranks, elements);
        const auto plan = [&](int rank) { return plan_of(one, rank, ranks, elements, blocks); };
        const Counted counted = count(plan, ranks);
        size_t all = 0;
        for (const size_t sent : counted.sent) all += sent;
        const plan::Cost cost = plan::cost(plan(0));
        EXPECT_EQ(cost.elements_sent_by_all, all) << name_of(one, ranks, elements);
        EXPECT_EQ(cost.elements_sent, *std::max_element(counted.sent.begin(), counted.sent.end()))
            << name_of(one, ranks, elements);
        EXPECT_EQ(cost.elements_reduced, *std::max_element(counted.elements_reduced.begin(),
                                                           counted.elements_reduced.end()))
            << name_of(one, ranks, elements);
        // When nothing is empty or split into chunks, the latencies are exact.
        if (one.chunk_elements == 0 && elements >= size_t(ranks) && !has_blocks(one.operation)) {
          EXPECT_EQ(cost.latencies, counted.latencies) << name_of(one, ranks, elements);
        }
      }
    }
  }
}

TEST(Costs, AllToAllSendsEachBlockOnce) {
  for (int ranks = 2; ranks <= kRanksMax; ++ranks) {
    // Rank a sends (a + 2 b) % 5 elements to rank b.
    std::vector<std::vector<Range>> sent(static_cast<size_t>(ranks)),
        received(static_cast<size_t>(ranks));
    const auto add = [](std::vector<Range>& blocks, int from, int to) {
      const size_t begin = blocks.empty() ? 0 : blocks.back().end;
      blocks.push_back({begin, begin + size_t((from + 2 * to) % 5)});
    };
    for (int rank = 0; rank < ranks; ++rank) {
      for (int peer = 0; peer < ranks; ++peer) {
        add(sent[size_t(rank)], rank, peer);
        add(received[size_t(rank)], peer, rank);
      }
    }
    const auto plan = [&](int rank) {
      const auto& own = sent[size_t(rank)];
      Plan one =
          plan_of({Operation::all_to_all, Algorithm::direct, 0}, rank, ranks, own.back().end, {});
      one.blocks = own;
      one.received_blocks = received[size_t(rank)];
      return one;
    };
    const Counted counted = count(plan, ranks);
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(cost(plan(rank)).elements_sent, counted.sent[size_t(rank)])
          << ranks << " ranks, rank " << rank;
  }
}

TEST(Costs, RingSendsTheMinimum) {
  for (int ranks = 2; ranks <= kRanksMax; ++ranks) {
    const size_t elements = size_t(ranks) * 1000;
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct}) {
      const Plan plan = plan_of({Operation::allreduce, algorithm, 0}, 0, ranks, elements, {});
      EXPECT_EQ(cost(plan).elements_sent * size_t(ranks), 2 * size_t(ranks - 1) * elements);
    }
  }
}

TEST(Piece, PiecesCoverEverythingAndDifferByAtMostOne) {
  for (const size_t elements : {0, 1, 2, 3, 5, 8, 9, 17, 64, 1009, 65537}) {
    for (int parts = 1; parts <= kRanksMax; ++parts) {
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

TEST(Names, RoundTrip) {
  for (int i = 0; i <= int(Operation::barrier); ++i)
    EXPECT_EQ(plan::operation_named(to_string(Operation(i))), Operation(i));
  for (int i = 0; i <= int(Algorithm::hierarchical); ++i)
    EXPECT_EQ(plan::algorithm_named(to_string(Algorithm(i))), Algorithm(i));
  EXPECT_FALSE(plan::algorithm_named("rings"));
}

}  // namespace
}  // namespace trainyard::collectives
