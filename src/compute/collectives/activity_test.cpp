#include "collectives/activity.hpp"

#include <gtest/gtest.h>

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
  ActivityTest() { write(std::string(kActivityBytes, '\0')); }
  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::vector<ActivitySlot> slots() const {
    std::ifstream file(path_, std::ios::binary);
    return read_activity(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  // The number of collectives of a rank; -1: it is not in the table.
  int64_t counted(uint64_t rank) const {
    for (const ActivitySlot& slot : slots())
      if (slot.rank_and_one == rank + 1) return int64_t(slot.collectives);
    return -1;
  }
  const std::string path_ = testing::TempDir() + "activity-" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ActivityTest, CountersOfARankShareItsSlot) {
  ActivityCounter one({path_, 3}), other({path_, 4}), again({path_, 3});
  one.count();
  again.count();
  other.count();
  EXPECT_EQ(counted(3), 2);
  EXPECT_EQ(counted(4), 1);
  EXPECT_EQ(slots().size(), 2u);
}

TEST_F(ActivityTest, RanksTakeTheirSlotsAtTheSameTime) {
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

TEST_F(ActivityTest, ATableThatIsFullMissingOrTooShortCountsNothing) {
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
  EXPECT_EQ(counted(5), 4) << "a message between two is none";
  groups[0]->count_elsewhere().count();
  both([](Group& group) { EXPECT_TRUE(group.barrier()); });
  EXPECT_EQ(counted(5), 6) << "the count of the caller, and the barrier of the other rank";
}

}  // namespace
}  // namespace trainyard::collectives
