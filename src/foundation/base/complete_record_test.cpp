#include "base/complete_record.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace trainyard {
namespace {

struct Seat {
  std::string user = "everyone";
  std::optional<int> row;
  std::string note;
};

struct Coach {
  std::vector<Seat> seats;
};

constexpr auto kSeat = complete(json_record<Seat>("seat", [](auto& side, auto& seat) {
  side("user", seat.user);
  side("row", seat.row);
  side.if_set("note", seat.note);
}));

constexpr auto kCoach =
    json_record<Coach>("coach", [](auto& side, auto& coach) { side("seats", coach.seats, kSeat); });

TEST(CompleteRecord, ReadsWhatItWrote) {
  const auto read = kSeat.read(kSeat.write({"ann", 3, "aisle"}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->user, "ann");
  EXPECT_EQ(read->row, 3);
  EXPECT_EQ(read->note, "aisle");
}

TEST(CompleteRecord, AcceptsNullAndOmissionWhereTheyAreWritten) {
  const auto read = kSeat.read({{"user", "ann"}, {"row", nullptr}});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->row, std::nullopt);
}

TEST(CompleteRecord, NamesTheMemberThatIsMissing) {
  EXPECT_EQ(kSeat.read({{"row", 1}}).error().message, "'user' is missing");
  EXPECT_EQ(kSeat.read({{"user", nullptr}, {"row", 1}}).error().message, "'user' is missing");
  EXPECT_EQ(kSeat.read({{"user", "ann"}}).error().message, "'row' is missing");
  EXPECT_FALSE(kSeat.read(Json::array()));
}

TEST(CompleteRecord, IsAFormOfOtherRecords) {
  EXPECT_TRUE(kCoach.read({{"seats", {{{"user", "ann"}, {"row", 1}}}}}));
  EXPECT_EQ(kCoach.read({{"seats", {{{"row", 1}}}}}).error().message,
            "coach.seats: 'user' is missing");
}

}  // namespace
}  // namespace trainyard
