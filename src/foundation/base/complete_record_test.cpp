#include "base/complete_record.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace trainyard {
namespace {

struct Slot {
  std::string user = "everyone";
  std::optional<int> row;
  std::string note;
};

struct Coach {
  std::vector<Slot> slots;
};

constexpr auto kSlot = complete(json_record<Slot>("seat", [](auto& side, auto& slot) {
  side("user", slot.user);
  side("row", slot.row);
  side.if_set("note", slot.note);
}));

constexpr auto kCoach =
    json_record<Coach>("coach", [](auto& side, auto& coach) { side("seats", coach.slots, kSlot); });

TEST(CompleteRecord, ReadsWrittenRecords) {
  const auto read = kSlot.read(kSlot.write({"ann", 3, "aisle"}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->user, "ann");
  EXPECT_EQ(read->row, 3);
  EXPECT_EQ(read->note, "aisle");
}

TEST(CompleteRecord, AcceptsNullAndOmissionOfOptionalMembers) {
  const auto read = kSlot.read({{"user", "ann"}, {"row", nullptr}});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->row, std::nullopt);
}

TEST(CompleteRecord, NamesAMissingMember) {
  EXPECT_EQ(kSlot.read({{"row", 1}}).error().message, "'user' is missing");
  EXPECT_EQ(kSlot.read({{"user", nullptr}, {"row", 1}}).error().message, "'user' is missing");
  EXPECT_EQ(kSlot.read({{"user", "ann"}}).error().message, "'row' is missing");
  EXPECT_FALSE(kSlot.read(Json::array()));
}

TEST(CompleteRecord, DescribesMembersOfOtherRecords) {
  EXPECT_TRUE(kCoach.read({{"seats", {{{"user", "ann"}, {"row", 1}}}}}));
  EXPECT_EQ(kCoach.read({{"seats", {{{"row", 1}}}}}).error().message,
            "coach.seats: 'user' is missing");
}

}  // namespace
}  // namespace trainyard
