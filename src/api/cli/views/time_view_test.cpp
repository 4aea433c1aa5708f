#include "cli/views/time_view.hpp"

#include <gtest/gtest.h>

#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

Json timed_job() {
  return {{"JobName", "mnist"},
          {"WallMilliseconds", 80'500},
          {"HeldMilliseconds", 70'500},
          {"EffectiveTrainingTimeRatio", 0.745},
          {"Goodput", 0.851},
          {"LostWorkIsKnown", true},
          {"Uses",
           {{{"Use", "Queued"}, {"Milliseconds", 10'000}},
            {{"Use", "Starting"}, {"Milliseconds", 500}},
            {{"Use", "Training"}, {"Milliseconds", 60'000}},
            {{"Use", "QueuedAgain"}, {"Milliseconds", 10'000}}}}};
}

Json timed_group(const char* key, int64_t wall, int64_t training) {
  return {{"Key", key},
          {"Jobs", 2},
          {"WallMilliseconds", wall},
          {"EffectiveTrainingTimeRatio", double(training) / double(wall)},
          {"Goodput", 0.9},
          {"LostWorkIsKnown", true},
          {"Uses",
           {{{"Use", "Queued"}, {"Milliseconds", wall - training}},
            {{"Use", "Training"}, {"Milliseconds", training}}}}};
}

TEST(TimePage, ShowsEachUse) {
  EXPECT_EQ(time_page({}, "mnist", timed_job()),
            "job      mnist\n"
            "ETTR     74.5% of its time\n"
            "goodput  85.1% of the time on machines\n"
            "\n"
            "use            time   part\n"
            "queued          10s  12.4%  [##....................]\n"
            "starting       0.5s   0.6%  [......................]\n"
            "training      1m00s  74.5%  [################......]\n"
            "queued again    10s  12.4%  [##....................]\n"
            "total         1m20s\n");
}

TEST(TimePage, SaysThatLostWorkIsUnknown) {
  Json answer = timed_job();
  answer["LostWorkIsKnown"] = false;
  const std::string page = time_page({}, "mnist", answer);
  EXPECT_NE(page.find("at most 74.5%"), std::string::npos) << page;
  EXPECT_NE(page.find("an unknown part of its training is lost"), std::string::npos) << page;
}

TEST(TimePage, HasNoGoodputOfAJobThatHeldNoMachine) {
  const std::string page = time_page({}, "mnist",
                                     {{"WallMilliseconds", 10'000},
                                      {"HeldMilliseconds", 0},
                                      {"EffectiveTrainingTimeRatio", 0.0},
                                      {"Goodput", 0.0},
                                      {"Uses", {{{"Use", "Queued"}, {"Milliseconds", 10'000}}}}});
  EXPECT_EQ(page.find("goodput"), std::string::npos) << page;
  EXPECT_NE(page.find("queued"), std::string::npos) << page;
}

TEST(TimeTable, AddsUpGroups) {
  const Json answer{
      {"Groups", {timed_group("user/ann", 100'000, 50'000), timed_group("", 100'000, 90'000)}},
      {"Total", timed_group("", 200'000, 140'000)}};
  EXPECT_EQ(time_table({}, "user", answer),
            "user      jobs   time  queued  training   ETTR  goodput\n"
            "user/ann     2  1m40s   50.0%     50.0%  50.0%    90.0%\n"
            "(none)       2  1m40s   10.0%     90.0%  90.0%    90.0%\n"
            "total        2  3m20s   30.0%     70.0%  70.0%    90.0%\n");
  EXPECT_EQ(time_table({}, "user", Json::object()), "no jobs\n");
}

TEST(TimeViews, FitTheTerminalAndShowTextAsText) {
  Json group = timed_group("a-user-with-a-name-that-is-much-longer\033[2J", 100'000, 50'000);
  group["LostWorkIsKnown"] = false;
  for (const int width : {60, 80, 120, 200}) {
    const OutputStyle style{.live = true, .unicode = true, .columns = width};
    for (const std::string& page :
         {time_page(style, "mnist\033[2J", timed_job()),
          time_table(style, "user", {{"Groups", {group}}, {"Total", group}})}) {
      for (const auto& line : wrap(page, 0)) EXPECT_LE(width_of(line), width) << line;
      EXPECT_EQ(page.find('\033'), std::string::npos) << page;
    }
  }
}

}  // namespace
}  // namespace trainyard::cli
