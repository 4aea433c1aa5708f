#include "cli/views/event_view.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

TEST(EventLine, NamesJobAndStatus) {
  EXPECT_EQ(event_line({}, {{"time", "2026-11-20T09:45:00Z"},
                            {"detail-type", "SageMaker Training Job State Change"},
                            {"detail",
                             {{"TrainingJobName", "mnist-1"},
                              {"TrainingJobStatus", "InProgress"},
                              {"SecondaryStatus", "Training"}}}}),
            "2026-11-20 09:45:00Z  SageMaker Training Job State Change  mnist-1  InProgress  "
            "Training\n");
  EXPECT_EQ(
      event_line({}, {{"time", "2026-11-20T09:45:00Z"},
                      {"detail-type", "Batch Job State Change"},
                      {"detail", {{"jobName", "night"}, {"jobId", "1-2"}, {"status", "FAILED"}}}}),
      "2026-11-20 09:45:00Z  Batch Job State Change  night  1-2  FAILED\n");
}

TEST(EventLine, HasTheMessageOfAFaultOfARank) {
  EXPECT_EQ(event_line({}, {{"time", "2026-11-20T09:45:00Z"},
                            {"source", "trainyard"},
                            {"detail-type", "Training Job Rank Fault"},
                            {"detail",
                             {{"JobName", "mnist-1"},
                              {"State", "Begun"},
                              {"Message", "rank 3 on algo-2 seems to be stuck"}}}}),
            "2026-11-20 09:45:00Z  Training Job Rank Fault  mnist-1  Begun: rank 3 on algo-2 seems "
            "to be stuck\n");
}

TEST(EventLine, ShowsOtherEventsWithoutHarm) {
  EXPECT_EQ(event_line({}, {{"time", "x\x1b[2J"}, {"detail-type", "a\nb"}, {"detail", {{"k", 1}}}}),
            "x?[2J  a b  {\"k\":1}\n");
  EXPECT_EQ(event_line({}, 5), "    {}\n");
}

TEST(EventLine, ColoursFailures) {
  OutputStyle style;
  style.colours = true;
  EXPECT_NE(event_line(style, {{"detail", {{"status", "FAILED"}}}}).find("\x1b[31mFAILED"),
            std::string::npos);
}

}  // namespace
}  // namespace trainyard::cli
