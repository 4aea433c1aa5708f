#include "collectives/activity.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/group.hpp"

namespace trainyard::collectives {
namespace {

class ActivityTest : public testing::Test {
 protected:
  ActivityTest() { write(std::string(kActivityTableBytes, '\0')); }
  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string table() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<ActivitySlot> slots() const { return read_activity(table()); }
  // Returns the record of a rank that is in the table.
  CallRecord calls(uint64_t rank) const {
    for (const RankRecord& each : read_calls(table()))
      if (each.rank == rank) return each.calls;
    return {};
  }
  // Returns the number of collectives of a rank; -1 if the rank is not in the table.
  int64_t counted(uint64_t rank) const {
    for (const ActivitySlot& slot : slots())
      if (slot.rank_and_one == rank + 1) return int64_t(slot.collectives);
    return -1;
  }
  const std::string path_ = testing::TempDir() + "activity-" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ActivityTest, CountersOfOneRankShareASlot) {
  ActivityCounter one({path_, 3}), other({path_, 4}), again({path_, 3});
  one.count();
  again.count();
  other.count();
  EXPECT_EQ(counted(3), 2);
  EXPECT_EQ(counted(4), 1);
  EXPECT_EQ(slots().size(), 2u);
}

TEST_F(ActivityTest, RanksMayTakeTheirSlotsConcurrently) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 8; ++rank)
    threads.emplace_back([this, rank] {
      ActivityCounter counter({path_, rank / 2});
      for (int i = 0; i < 1'000; ++i) counter.count();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(slots().size(), 4u);
  for (uint64_t rank = 0; rank < 4; ++rank) EXPECT_EQ(counted(rank), 2'000);
}

TEST_F(ActivityTest, CountsNothingIfTheTableIsFullMissingOrTooShort) {
  std::string full;
  for (uint64_t i = 1; i <= kActivitySlots; ++i) {
    const ActivitySlot slot{i + 1'000, 0, 0, 0};
    full.append(reinterpret_cast<const char*>(&slot), sizeof slot);
  }
  write(full);
  ActivityCounter({path_, 0}).count();
  EXPECT_EQ(counted(0), -1);
  write("short");
  ActivityCounter({path_, 0}).count();
  ActivityCounter({"/no/such/table", 0}).count();
  ActivityCounter(ActivityFile{}).count();
}

TEST_F(ActivityTest, AGroupCountsItsCollectives) {
  auto groups = join_in_memory(2, {.deterministic = true, .activity = {path_, 5}});
  const auto both = [&](const auto& work) {
    std::thread other([&] { work(*groups[1]); });
    work(*groups[0]);
    other.join();
  };
  both([](Group& group) { EXPECT_TRUE(group.barrier()); });
  both([](Group& group) {
    float value = 1;
    EXPECT_TRUE(group.allreduce(std::span(&value, 1)));
  });
  EXPECT_EQ(counted(5), 4) << "two of each rank, which have one number here";
  both([](Group& group) {
    float value = 1;
    if (group.rank() == 0)
      EXPECT_TRUE(group.send(1, ConstBufferView(&value, 1, Type::f32)));
    else
      EXPECT_TRUE(group.receive(0, BufferView{&value, 1, Type::f32}));
  });
  EXPECT_EQ(counted(5), 4) << "a message between two ranks does not count";
  groups[0]->count_elsewhere().count();
  both([](Group& group) { EXPECT_TRUE(group.barrier()); });
  EXPECT_EQ(counted(5), 6) << "the count of the caller, and the barrier of the other rank";
}

TEST_F(ActivityTest, DescribesTheCurrentCallOfARank) {
  ActivityCounter counter({path_, 3, 77}, 1, 4);
  const auto now = std::chrono::steady_clock::now();
  EXPECT_TRUE(counter.describes());
  counter.announce(now);
  counter.enter(CallKind::allreduce, 4096, 5);
  counter.beat();
  CallRecord record = calls(3);
  EXPECT_EQ(record.group, 77u);
  EXPECT_EQ(record.rank, 1u);
  EXPECT_EQ(record.ranks, 4u);
  EXPECT_EQ(record.kind, uint64_t(CallKind::allreduce));
  EXPECT_EQ(record.bytes, 4096u);
  EXPECT_EQ(record.label, 5u);
  EXPECT_EQ(record.beats, 1u);
  EXPECT_EQ(record.completed, 0u);

  counter.leave(now + std::chrono::seconds(2), true);
  counter.beat();
  counter.announce(now + std::chrono::seconds(5));
  counter.enter(CallKind::barrier, 0, 6);
  record = calls(3);
  EXPECT_EQ(record.completed, 1u);
  EXPECT_EQ(record.inside_ns, 2'000'000'000u);
  EXPECT_GE(record.outside_ns, 3'000'000'000u);
  EXPECT_EQ(record.beats, 1u) << "beats outside of a call do not count";
}

TEST_F(ActivityTest, DoesNotCountMessagesBetweenTwoRanksAsTimeOutside) {
  ActivityCounter counter({path_, 0}, 0, 2);
  const auto now = std::chrono::steady_clock::now();
  counter.announce(now);
  counter.enter(CallKind::barrier, 0, 1);
  counter.leave(now, true);
  const uint64_t before = calls(0).outside_ns;
  counter.exclude(now, now + std::chrono::seconds(3));
  counter.announce(now + std::chrono::seconds(4));
  counter.enter(CallKind::barrier, 0, 2);
  EXPECT_EQ(calls(0).outside_ns - before, 1'000'000'000u);
  EXPECT_EQ(calls(0).inside_ns, 3'000'000'000u);
}

TEST_F(ActivityTest, StoresTheLoadsOfLinks) {
  ActivityCounter counter({path_, 0}, 0, 9);
  std::vector<LinkLoad> loads;
  for (int peer = 1; peer <= 6; ++peer)
    loads.push_back({peer, std::chrono::nanoseconds(10 * peer), uint64_t(peer)});
  counter.set_links(loads);
  const CallRecord record = calls(0);
  EXPECT_EQ(record.links[3].peer_and_one, 5u);
  EXPECT_EQ(record.links[3].busy_ns, 40u);
  EXPECT_EQ(record.links[3].busy_bytes, 4u);
}

TEST_F(ActivityTest, DoesNotBeginACallWithInvalidArguments) {
  ActivityCounter counter({path_, 0}, 0, 2);
  const auto now = std::chrono::steady_clock::now();
  counter.announce(now);
  counter.leave(now, false);
  counter.enter(CallKind::barrier, 0, 1);
  EXPECT_EQ(calls(0).kind, uint64_t(CallKind::none)) << "its announcement was removed";
  EXPECT_EQ(calls(0).completed, 0u);
}

TEST_F(ActivityTest, DescribesTheLargestGroupOfAProcess) {
  auto small = std::make_unique<ActivityCounter>(ActivityFile{path_, 2, 1}, 0, 2);
  auto large = std::make_unique<ActivityCounter>(ActivityFile{path_, 2, 2}, 3, 8);
  ActivityCounter equal({path_, 2, 3}, 3, 8);
  ActivityCounter alone({path_, 2, 4}, 0, 1);
  EXPECT_FALSE(small->describes());
  EXPECT_TRUE(large->describes());
  EXPECT_FALSE(equal.describes()) << "the older one of two is kept";
  EXPECT_FALSE(alone.describes());
  EXPECT_EQ(calls(2).group, 2u);
  small.reset();
  EXPECT_EQ(calls(2).group, 2u);
  large.reset();
  EXPECT_EQ(calls(2).ranks, 0u) << "the group has ended";
}

TEST_F(ActivityTest, ReplacesTheRecordOfAnotherProcess) {
  ActivitySlot slot{1, 0, 0, 0};
  CallRecord old;
  old.writer = uint64_t{1} << 32 | 1;  // of process 1, which runs no tests
  old.ranks = 100;
  old.completed = 9;
  std::string bytes(kActivityTableBytes, '\0');
  bytes.replace(0, sizeof slot, reinterpret_cast<const char*>(&slot), sizeof slot);
  bytes.replace(kActivityBytes, sizeof old, reinterpret_cast<const char*>(&old), sizeof old);
  write(bytes);
  const ActivityCounter counter({path_, 0}, 0, 2);
  EXPECT_EQ(calls(0).ranks, 2u);
  EXPECT_EQ(calls(0).completed, 0u);
}

TEST_F(ActivityTest, WritesNoRecordsToATableOfAnEarlierAgent) {
  write(std::string(kActivityBytes, '\0'));
  ActivityCounter counter({path_, 0}, 0, 2);
  EXPECT_FALSE(counter.describes());
  counter.announce(std::chrono::steady_clock::now());
  counter.enter(CallKind::barrier, 0, 1);
  counter.leave(std::chrono::steady_clock::now(), true);
  counter.count();
  EXPECT_EQ(counted(0), 1);
}

TEST_F(ActivityTest, AGroupDescribesItsCalls) {
  auto groups = join_in_memory(2, {.deterministic = true, .activity = {path_, 5}});
  std::thread other([&] {
    EXPECT_TRUE(groups[1]->barrier());
    EXPECT_TRUE(groups[1]->barrier());
  });
  EXPECT_TRUE(groups[0]->barrier());
  EXPECT_TRUE(groups[0]->barrier());
  other.join();
  CallRecord record = calls(5);
  EXPECT_EQ(record.ranks, 2u);
  EXPECT_EQ(record.completed, 2u) << "of the rank that came first; the ranks have one number here";
  EXPECT_EQ(record.kind, uint64_t(CallKind::none));
  EXPECT_GT(record.inside_ns, 0u);
  groups[0]->count_elsewhere();
  other = std::thread([&] { EXPECT_TRUE(groups[1]->barrier()); });
  EXPECT_TRUE(groups[0]->barrier());
  other.join();
  EXPECT_EQ(calls(5).completed, 2u);
}

}  // namespace
}  // namespace trainyard::collectives
