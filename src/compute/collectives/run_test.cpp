// Tests the execution of a plan: the tags of its messages, and the order of their receivers.
#include "collectives/run.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "collectives/testing/cases.hpp"
#include "collectives/testing/transports.hpp"
#include "collectives/transport/memory/memory_transport.hpp"

namespace trainyard::collectives {
namespace {

using plan::Algorithm;
using plan::Operation;
using plan::Plan;
using plan::Range;
using plan::Steps;
using namespace testing;

// Rank 0 of two swaps its first two messages of equal length, and otherwise follows its plan.
TEST(Messages, OfEqualLengthFailIfSwapped) {
  size_t changed = 0;
  for (const Case& one : all_cases()) {
    const size_t elements = 24;
    const std::vector<Range> blocks{{0, 12}, {12, 24}};
    for (const bool in_order : {true, false}) {
      Plan plan = plan_of(one, 0, 2, elements, blocks);
      plan.root = one.operation == Operation::reduce || one.operation == Operation::gather ? 1 : 0;
      Steps sends;
      for (size_t round = 0; round < rounds(plan); ++round) add_round(plan, round, sends);
      std::erase_if(sends,
                    [](const plan::Step& step) { return step.action != plan::Action::send; });
      size_t later = 1;
      while (later < sends.size() && sends[later].range.size() != sends[0].range.size()) ++later;
      if (later >= sends.size()) continue;
      if (!in_order) std::swap(sends[0], sends[later]);

      auto transports = connect_in_memory(2);
      std::vector<std::byte> theirs(elements * 4), ours(elements * 4);
      constexpr int receiver = 1;
      for (const plan::Step& step : sends) {
        transports[0]->send(std::span(&receiver, 1), tag_of({5, 7}, plan, step),
                            std::span<const std::byte>(theirs).subspan(step.range.begin * 4,
                                                                       step.range.size() * 4));
      }
      plan.rank = receiver;
      Workspace workspace;
      collectives::Run run(plan, {}, {5, 7},
                           Buffers{ours.data(), 0, ours.data(), 0, Type::f32, Reduction::sum, 0},
                           workspace, *transports[1]);
      const auto advanced = run.advance();
      EXPECT_EQ(bool(advanced), in_order) << name_of(one, 2, elements);
      if (in_order || advanced) continue;
      EXPECT_EQ(advanced.error().kind, Kind::conflict) << advanced.error().message;
      EXPECT_NE(advanced.error().message.find("rank 0"), std::string::npos)
          << advanced.error().message;
      ++changed;
    }
  }
  EXPECT_GE(changed, 8u);  // otherwise this test has little value
}

class Listening final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) override {
    notified.assign(peers.begin(), peers.end());
    ForwardingTransport::send(peers, tag, bytes);
  }
  std::vector<int> notified;
};

// If all ranks began with the first rank, the last rank would receive everything last.
TEST(Messages, ToAllRanksBeginWithTheNextRank) {
  constexpr int ranks = 5;
  auto transports = connect_in_memory(ranks);
  std::vector<std::unique_ptr<Listening>> listening;
  std::vector<std::byte> values(ranks * 4);
  std::vector<Range> blocks;
  for (size_t k = 0; k < ranks; ++k) blocks.push_back({k, k + 1});
  for (int rank = 0; rank < ranks; ++rank) {
    Plan plan;
    plan.operation = Operation::all_gather;
    plan.algorithm = Algorithm::direct;
    plan.rank = rank;
    plan.ranks = ranks;
    plan.elements = ranks;
    plan.blocks = blocks;
    listening.push_back(std::make_unique<Listening>(std::move(transports[size_t(rank)])));
    Workspace workspace;
    collectives::Run run(plan, {}, {5, 7},
                         Buffers{values.data(), 0, values.data(), 0, Type::f32, Reduction::sum, 0},
                         workspace, *listening.back());
    ASSERT_TRUE(run.advance());
    std::vector<int> expected;
    for (int k = 1; k < ranks; ++k) expected.push_back((rank + k) % ranks);
    EXPECT_EQ(listening.back()->notified, expected) << rank;
  }
}

}  // namespace
}  // namespace trainyard::collectives
