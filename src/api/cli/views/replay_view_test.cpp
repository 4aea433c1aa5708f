#include "cli/views/replay_view.hpp"

#include <gtest/gtest.h>

#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

Json replay_outcome(const std::string& name, int64_t wait, double used) {
  return {{"Name", name},
          {"Complete", true},
          {"Waits",
           {{"Jobs", 3},
            {"NotStarted", 0},
            {"MeanMilliseconds", wait},
            {"MedianMilliseconds", wait},
            {"P95Milliseconds", 2 * wait},
            {"LongestMilliseconds", 2 * wait}}},
          {"Groups",
           {{{"By", "share"}, {"Key", "ann"}, {"Waits", {{"MeanMilliseconds", wait}}}},
            {{"By", "share"}, {"Key", "bob"}, {"Waits", {{"MeanMilliseconds", 0}}}}}},
          {"Cpus", 8},
          {"Gpus", 0},
          {"CpuUtilization", used},
          {"CpusUsed", {8, 8, 4, 0}},
          {"MakespanMilliseconds", 60'000},
          {"UnfinishedJobs", 0}};
}

Json replay_answer() {
  Json as_it_is = replay_outcome("as it is", 61'000, 0.5);
  as_it_is["StartErrorMedianMilliseconds"] = 200;
  as_it_is["StartErrorP95Milliseconds"] = 900;
  return {
      {"Completed", true},
      {"PeriodStart", 1'763'631'900},
      {"PeriodEnd", 1'763'635'500},
      {"Jobs", 3},
      {"JobsBefore", 1},
      {"RunningJobs", 2},
      {"Outcomes",
       {replay_outcome("recorded", 60'000, 0.5), as_it_is,
        replay_outcome("a machine more", 5'000, 0.25)}},
      {"MostAffected",
       {{{"JobName", "mnist"},
         {"Waits", {{{"Milliseconds", 60'000}}, {{"Milliseconds", 61'000}}, Json::object()}}}}}};
}

TEST(ReplayPage, HasAColumnForEachOutcome) {
  EXPECT_EQ(replay_page({}, replay_answer()),
            "period    2025-11-20 09:45:00Z to 2025-11-20 10:45:00Z\n"
            "jobs      3 jobs, and 1 from before it that are not counted\n"
            "\n"
            "                recorded  as it is  a machine more\n"
            "wait, mean         1m00s     1m01s            5.0s\n"
            "wait, median       1m00s     1m01s            5.0s\n"
            "wait, p95          2m00s     2m02s             10s\n"
            "wait, longest      2m00s     2m02s             10s\n"
            "not started            0         0               0\n"
            "unfinished             0         0               0\n"
            "last end after     1m00s     1m00s           1m00s\n"
            "vCPU in use        50.0%     50.0%           25.0%\n"
            "  mean of ann      1m00s     1m01s            5.0s\n"
            "  mean of bob         0s        0s              0s\n"
            "\n"
            "vCPU in use over time, of 8 (9: all of them)\n"
            "recorded        9940\n"
            "as it is        9940\n"
            "a machine more  9940\n"
            "\n"
            "waits of jobs  recorded  as it is  a machine more\n"
            "mnist             1m00s     1m01s     not started\n"
            "\n"
            "Starts of the replay as it is differ from the recorded ones by 0.2s (median) and "
            "0.9s (p95).\n"
            "2 jobs still running: without an end in the replay.\n");
}

TEST(ReplayPage, PaintsTheBestValueWhereTheyDiffer) {
  const OutputStyle colours{.colours = true, .unicode = true, .columns = 100};
  const std::string page = replay_page(colours, replay_answer());
  EXPECT_NE(page.find(paint(colours, Paint::green, "5.0s")), std::string::npos) << page;
  EXPECT_NE(page.find(paint(colours, Paint::green, "50.0%")), std::string::npos) << page;
  EXPECT_EQ(page.find(paint(colours, Paint::green, "1m00s")), std::string::npos) << page;
}

TEST(ReplayPage, FitsEveryTerminal) {
  Json answer = replay_answer();
  for (int i = 0; i < 6; ++i)
    answer["Outcomes"].push_back(
        replay_outcome("a variant with a long name, number " + std::to_string(i), 1'000, 0.1));
  for (Json& job : answer["MostAffected"])
    for (int i = 0; i < 6; ++i) job["Waits"].push_back({{"Milliseconds", 1'000}});
  for (int columns = 60; columns <= 200; columns += 7)
    for (const bool unicode : {false, true}) {
      const OutputStyle style{.unicode = unicode, .columns = columns};
      const std::string page = replay_page(style, answer);
      size_t begin = 0;
      for (size_t end; (end = page.find('\n', begin)) != std::string::npos; begin = end + 1)
        EXPECT_LE(width_of(page.substr(begin, end - begin)), columns) << page;
    }
}

TEST(ReplayPage, ShowsHostileNamesAsText) {
  Json answer = replay_answer();
  answer["Outcomes"][2]["Name"] = "\033[2Jevil\n\r\x07";
  answer["MostAffected"][0]["JobName"] = "\033]0;evil\x07";
  const std::string page = replay_page({}, answer);
  EXPECT_EQ(page.find('\033'), std::string::npos);
  EXPECT_EQ(page.find('\x07'), std::string::npos);
}

TEST(ReplayPage, ReportsAMissingReplayAndAPeriodWithoutJobs) {
  EXPECT_EQ(replay_page({}, Json::object()), "no replay\n");
  Json none = replay_answer();
  none["Jobs"] = 0;
  EXPECT_NE(replay_page({}, none).find("no jobs were created in this period"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::cli
