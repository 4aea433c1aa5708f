#include "metric_math/statistic.hpp"

#include <gtest/gtest.h>

namespace trainyard::metric_math {
namespace {

std::vector<observe::Sample> one_to(int last) {
  std::vector<observe::Sample> samples;
  for (int i = last; i > 0; --i) samples.push_back(observe::sample_of(Instant{}, i));
  return samples;
}

std::optional<double> of(std::string_view text, std::vector<observe::Sample> samples) {
  const auto statistic = parse_statistic(text);
  EXPECT_TRUE(statistic) << text;
  return value_of(*statistic, std::move(samples));
}

TEST(Statistic, SummarisesAHundredSamples) {
  const struct {
    std::string_view text;
    double value;
  } rows[] = {{"Average", 50.5},
              {"Sum", 5050},
              {"Minimum", 1},
              {"Maximum", 100},
              {"SampleCount", 100},
              {"p50", 50},
              {"p99", 99},
              {"p99.9", 100},
              {"p0", 1},
              {"p100", 100},
              {"tm90", 45.5},
              {"TM(10%:90%)", 50.5},
              {"IQM", 50.5},
              {"TM(:10)", 5.5},
              {"TM(91:)", 95.5},
              {"tc90", 90},
              {"TC(1:10)", 10},
              {"ts90", 4095},
              {"TS(1:10)", 55},
              {"PR(:25)", 25},
              {"PR(11:20)", 10},
              {"WM(10%:90%)", 50.45},
              {"wm100", 50.5},
              {"WM(50:60)", 55.0}};
  for (const auto& row : rows) {
    const auto value = of(row.text, one_to(100));
    ASSERT_TRUE(value) << row.text;
    if (row.text.starts_with("WM("))
      EXPECT_NEAR(*value, row.value, 0.6) << row.text;
    else
      EXPECT_DOUBLE_EQ(*value, row.value) << row.text;
  }
}

TEST(Statistic, WeightsSamplesByTheirCounts) {
  std::vector<observe::Sample> samples{{.count = 99, .sum = 99, .minimum = 1, .maximum = 1},
                                       {.count = 1, .sum = 1000, .minimum = 1000, .maximum = 1000}};
  EXPECT_EQ(of("p99", samples), 1);
  EXPECT_EQ(of("p99.5", samples), 1000);
  EXPECT_EQ(of("tm99", samples), 1);
  EXPECT_EQ(of("PR(:500)", samples), 99);
}

TEST(Statistic, HasNoPercentileOfStatisticSets) {
  EXPECT_FALSE(of("p50", {{.count = 2, .sum = 3, .minimum = 1, .maximum = 2}}));
  EXPECT_FALSE(of("p50", {}));
  EXPECT_EQ(of("p50", {{.count = 2, .sum = 4, .minimum = 2, .maximum = 2}}), 2);
}

TEST(Statistic, RejectsInvalidTexts) {
  for (const char* text : {"",
                           "90",
                           "average",
                           "p",
                           "p101",
                           "p-1",
                           "pnan",
                           "p1e2",
                           "p(10:20)",
                           "TM(10)",
                           "TM(:)",
                           "TM(10%:90)",
                           "TM(90%:10%)",
                           "PR(10%:20%)",
                           "PR90",
                           "TM(a:b)",
                           "xx90",
                           "TM(10%:90%",
                           "IQM1",
                           "TM(0%:101%)",
                           "tm99999999999999999999999999"}) {
    const auto statistic = parse_statistic(text);
    ASSERT_FALSE(statistic) << text;
    EXPECT_TRUE(statistic.error().message.starts_with("unknown statistic '")) << text;
  }
}

}  // namespace
}  // namespace trainyard::metric_math
