#include "cli/activity_view.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

const OutputStyle kPlain{};

JobView job_of(Json hosts) {
  return *job_view(Json{{"Name", "mnist"}, {"Status", "InProgress"}, {"Hosts", std::move(hosts)}});
}

Json rank(int number, int output, int collective) {
  Json json{{"Rank", number}, {"Collectives", 100}};
  if (output >= 0) json["SecondsSinceOutput"] = output;
  if (collective >= 0) json["SecondsSinceCollective"] = collective;
  return json;
}

TEST(ActivityTable, ShowsEachHostAndRank) {
  const JobView job = job_of(
      {{{"Name", "algo-1"}, {"SecondsSinceOutput", 3}, {"Ranks", {rank(0, 3, 0), rank(1, 75, 71)}}},
       {{"Name", "algo-2"}, {"Ranks", {rank(2, -1, 71)}}}});
  EXPECT_EQ(activity_table(kPlain, job),
            "host    rank  last output  last collective\n"
            "algo-1  all   3s ago\n"
            "algo-1  0     3s ago       0s ago\n"
            "algo-1  1     1m15s ago    1m11s ago\n"
            "algo-2  2                  1m11s ago\n");
}

TEST(ActivityTable, PaintsQuietTimesOfAMinuteOrMore) {
  OutputStyle colours;
  colours.colours = true;
  const auto painted = [&](int seconds) {
    const JobView job = job_of({{{"Name", "algo-1"}, {"SecondsSinceOutput", seconds}}});
    return activity_table(colours, job)
               .find(paint(colours, Paint::yellow, duration_text(std::chrono::seconds(seconds)))
                         .substr(0, 5)) != std::string::npos;
  };
  EXPECT_FALSE(painted(59));
  EXPECT_TRUE(painted(60));
}

TEST(ActivityTable, NamesTheRanksThatAreQuietLongest) {
  Json ranks = Json::array();
  for (int i = 0; i < 40; ++i) ranks.push_back(rank(i, -1, i == 7 ? 500 : 1));
  const std::string table =
      activity_table(kPlain, job_of({{{"Name", "algo-1"}, {"Ranks", ranks}}}));
  EXPECT_NE(table.find("rank  last collective\nalgo-1  7 "), std::string::npos) << table;
  EXPECT_NE(table.find("and 8 other ranks\n"), std::string::npos) << table;
}

TEST(ActivityJson, LeavesOutUnknownMembers) {
  const JobView job =
      job_of({{{"Name", "algo-1"}, {"SecondsSinceOutput", 3}, {"Ranks", {rank(0, -1, 71)}}}});
  EXPECT_EQ(activity_json(job),
            Json::parse(R"([{"Host":"algo-1","SecondsSinceOutput":3},)"
                        R"({"Host":"algo-1","Rank":0,"SecondsSinceCollective":71}])"));
}

TEST(ActivityJson, HasTheFaultsOfRanks) {
  const Json fault{{"Fault", "StuckRank"}, {"Rank", 3}, {"Message", "rank 3 is stuck"}};
  const Json host{{"Name", "algo-2"}, {"Faults", Json::array({fault})}};
  const JobView job = job_of(Json::array({host}));
  EXPECT_EQ(activity_json(job), Json::parse(R"([{"Host":"algo-2","Fault":"StuckRank","Rank":3,)"
                                            R"("Message":"rank 3 is stuck"}])"));
}

TEST(ActivityTable, IsEmptyWhenNothingIsKnown) {
  EXPECT_EQ(activity_table(kPlain, job_of({{{"Name", "algo-1"}}})), "");
  EXPECT_EQ(activity_table(kPlain, job_of(Json::array())), "");
}

}  // namespace
}  // namespace trainyard::cli
