#include "containers/id_range.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace trainyard::containers {
namespace {

TEST(OwnIds, CountsContiguousIdsFromRoot) {
  struct Case {
    const char* text;
    uint32_t count;
    bool whole_machine;
  } const cases[] = {
      {"         0          0 4294967295\n", kIdsOfRange, true},
      {"         0       1000          1\n", 1, false},
      {"         0       1000          1\n         1     100000      65536\n", kIdsOfRange, false},
      {"         0       1000          1\n         1     100000      999\n", 1000, false},
      {"         0       1000          1\n         5     100000      999\n", 1, false},
      {"         5          0          9\n", 0, false},
      {"", 0, false},
      {"what is this\n0 -1 x\n", 0, false},
  };
  for (const auto& each : cases) {
    const OwnIds own = parse_own_ids(each.text);
    EXPECT_EQ(own.count, each.count) << each.text;
    EXPECT_EQ(own.whole_machine, each.whole_machine) << each.text;
  }
}

TEST(OwnIds, ReturnsThePiecesOfTheMap) {
  using Pieces = std::vector<uint32_t>;
  EXPECT_EQ(parse_own_ids("0 0 4294967295\n").pieces, Pieces{kIdsOfRange});
  EXPECT_EQ(parse_own_ids("0 1000 1\n").pieces, Pieces{1});
  EXPECT_EQ(parse_own_ids("0 1000 1\n1 100000 65536\n").pieces, (Pieces{1, kIdsOfRange - 1}));
  EXPECT_EQ(parse_own_ids("0 1000 1\n1 100000 999\n1000 300000 500\n").pieces,
            (Pieces{1, 999, 500}));
}

class Claims : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  const std::string first_ = "id_range_test-1." + std::to_string(::getpid());
  const std::string second_ = "id_range_test-2." + std::to_string(::getpid());
};

bool everybody(const std::string&) { return true; }
bool unused(const std::string& owner) { return owner.find("id_range_test") == std::string::npos; }

TEST_F(Claims, AreDistinctAndStable) {
  const auto first = claim_id_range(first_, everybody);
  const auto second = claim_id_range(second_, everybody);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->first, second->first);
  EXPECT_EQ((first->first - kFirstRange) % kIdsOfRange, 0u);
  const auto again = claim_id_range(first_, everybody);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->first, first->first);
  release_id_range(second_, first->first);  // a range of another owner
  EXPECT_TRUE(os::exists("/run/trainyard/ids/" +
                         std::to_string((first->first - kFirstRange) / kIdsOfRange)));
  release_id_range(first_, first->first);
  release_id_range(second_, second->first);
  EXPECT_FALSE(os::exists("/run/trainyard/ids/" +
                          std::to_string((first->first - kFirstRange) / kIdsOfRange)));
}

TEST_F(Claims, OfDeadProcessesAreReused) {
  const auto first = claim_id_range(first_, everybody);
  ASSERT_TRUE(first);
  const std::string path =
      "/run/trainyard/ids/" + std::to_string((first->first - kFirstRange) / kIdsOfRange);
  ASSERT_TRUE(os::write_file(path, "id_range_test-dead"));
  const auto again = claim_id_range(first_, unused);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->first, first->first);
  release_id_range(first_, again->first);
}

TEST_F(Claims, UserNamespaceExistsWhileItsDescriptorIsOpen) {
  const auto held = make_user_namespace(IdRange{kFirstRange, kIdsOfRange});
  ASSERT_TRUE(held) << held.error().message;
  char target[64] = {};
  ASSERT_GT(::readlink(("/proc/self/fd/" + std::to_string(held->descriptor())).c_str(), target,
                       sizeof target - 1),
            0);
  EXPECT_TRUE(std::string(target).starts_with("user:[")) << target;
}

}  // namespace
}  // namespace trainyard::containers
