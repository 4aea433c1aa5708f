#include "cli/views/explain_view.hpp"

#include <gtest/gtest.h>

#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

const Instant kExplained = from_milliseconds(1'763'631'900'000);  // 09:45:00

Json waiting_answer() {
  return {{"JobName", "big"},
          {"Waiting", true},
          {"WaitReason", "waits for 2 more vCPU on machine box-1 (needs 8, 6 free)"},
          {"StartTime", 1'763'632'620.0},
          {"Complete", true},
          {"Changes",
           {{{"Kind", "ShrinkGang"},
             {"Description", "request 1 instance instead of 2"},
             {"Now", true},
             {"StartTime", 1'763'631'900.0}},
            {{"Kind", "StopRunningJob"},
             {"Description", "stop training-job/a, which runs"},
             {"Now", false},
             {"StartTime", 1'763'632'020.0}}}}};
}

TEST(ExplainPage, ShowsTheReasonTheStartAndTheChanges) {
  EXPECT_EQ(explain_page({}, "big", waiting_answer(), kExplained),
            "job      big\n"
            "reason   waits for 2 more vCPU on machine box-1 (needs 8, 6 free)\n"
            "starts   in 12m00s, by 2025-11-20 09:57:00Z, if nothing changes\n"
            "\n"
            "starts    by                    if you\n"
            "now                             request 1 instance instead of 2\n"
            "in 2m00s  2025-11-20 09:47:00Z  stop training-job/a, which runs\n");
}

TEST(ExplainPage, TellsThatNothingHelps) {
  Json answer = waiting_answer();
  answer.erase("StartTime");
  answer["Changes"] = Json::array();
  answer["Complete"] = false;
  const std::string page = explain_page({}, "big", answer, kExplained);
  EXPECT_NE(page.find("unknown, if nothing changes"), std::string::npos) << page;
  EXPECT_NE(page.find("No single change"), std::string::npos) << page;
  EXPECT_NE(page.find("Not every change was tried"), std::string::npos) << page;
}

TEST(ExplainPage, TellsThatTheJobDoesNotWait) {
  EXPECT_EQ(explain_page({}, "big", {{"Waiting", false}}, kExplained),
            "big does not wait; `trainyard describe` shows its state\n");
}

TEST(ExplainPage, FitsTheTerminalAndShowsTextAsText) {
  Json answer = waiting_answer();
  answer["WaitReason"] = "held by \033]0;owned\a training-job/a (4), training-job/b (4), and more";
  answer["Changes"][1]["Description"] =
      "raise vCPU of compute environment a-name-that-is-long\033[2J from 8 to 12, said at length";
  for (const int width : {60, 80, 120, 200}) {
    const OutputStyle style{.live = true, .unicode = true, .columns = width};
    const std::string page = explain_page(style, "digits (4b7d)", answer, kExplained);
    for (const auto& line : wrap(page, 0)) EXPECT_LE(width_of(line), width) << line;
    EXPECT_EQ(page.find('\033'), std::string::npos) << page;
    EXPECT_NE(page.find("length"), std::string::npos) << "the text is whole\n" << page;
  }
}

Json preview_answer() {
  Json answer = waiting_answer();
  answer["StartsNow"] = false;
  answer["CostPerHour"] = {
      {"Currency", "USD"}, {"Amount", "0.115000"}, {"OnDemandAmount", "0.115000"}};
  answer["CostAtMaxRuntime"] = {
      {"Currency", "USD"}, {"Amount", "2.760000"}, {"OnDemandAmount", "2.760000"}};
  return answer;
}

TEST(PreviewPage, ShowsTheStartTheCostAndTheChanges) {
  EXPECT_EQ(preview_page({}, "big", preview_answer(), kExplained),
            "job      big\n"
            "starts   in 12m00s, by 2025-11-20 09:57:00Z, if nothing changes\n"
            "reason   waits for 2 more vCPU on machine box-1 (needs 8, 6 free)\n"
            "cost     0.115 USD an hour, 2.76 USD at its time limit\n"
            "\n"
            "starts    by                    if you\n"
            "now                             request 1 instance instead of 2\n"
            "in 2m00s  2025-11-20 09:47:00Z  stop training-job/a, which runs\n");
}

TEST(PreviewPage, IsShortForAJobThatStartsNow) {
  Json answer = preview_answer();
  answer["StartsNow"] = true;
  answer.erase("WaitReason");
  answer["CostPerHour"]["Unpriced"] = {"ml.new"};
  answer["Notes"] = {"ProfilerConfig has no effect\033[2J"};
  const std::string page = preview_page({}, "big", answer, kExplained);
  EXPECT_NE(page.find("starts   now\n"), std::string::npos) << page;
  EXPECT_NE(page.find("and an unknown price"), std::string::npos) << page;
  EXPECT_NE(page.find("note     ProfilerConfig has no effect"), std::string::npos) << page;
  EXPECT_EQ(page.find('\033'), std::string::npos) << page;
  EXPECT_EQ(page.find("if you"), std::string::npos) << page;
}

}  // namespace
}  // namespace trainyard::cli
