#include "alarms/evaluation.hpp"

#include <gtest/gtest.h>

namespace trainyard::alarms {
namespace {

AlarmSettings settings_of(int64_t needed, int64_t periods, Missing missing) {
  AlarmSettings settings;
  settings.queries = {{.id = "m", .metric = WatchedMetric{.period = 60s}}};
  settings.threshold = 5.0;
  settings.evaluation_periods = periods;
  settings.datapoints_to_alarm = needed;
  settings.missing = missing;
  return settings;
}

// Makes a datapoint of each character, the latest last: '0' is within the threshold, 'X' breaches
// it, '-' is missing.
std::vector<Datapoint> range_from_text(std::string_view text) {
  std::vector<Datapoint> range;
  for (size_t i = 0; i < text.size(); ++i) {
    Datapoint point{.at = Instant{} + int64_t(i) * Duration(1min)};
    if (text[i] != '-') point.value = text[i] == 'X' ? 9 : 1;
    range.push_back(point);
  }
  return range;
}

// Returns "A": alarm, "O": ok, "I": insufficient data, "R": the current state remains.
std::string evaluated(std::string_view range, int64_t needed, int64_t periods, Missing missing) {
  std::string found;
  for (const State present : enumerators<State>()) {
    const auto evaluation =
        evaluate_alarm(settings_of(needed, periods, missing), range_from_text(range), present);
    const std::string one =
        evaluation.because == Evaluation::Because::retained || evaluation.state == present
            ? "present"
            : std::string(kStates.text(evaluation.state));
    found += (found.empty() ? "" : " ") + one;
  }
  if (found == "present present present") return "R";
  if (found == "present ok ok") return "O";
  if (found == "alarm present alarm") return "A";
  if (found == "insufficient_data insufficient_data present") return "I";
  return found;
}

// The rows are the tables of AWS's documentation: 5 datapoints, of which 3 of 3 or 2 of 3 must
// breach.
TEST(Evaluation, TreatsMissingDataAsAwsDocuments) {
  const struct {
    std::string_view range;
    int64_t needed;
    std::string_view missing, ignore, breaching, not_breaching;
  } rows[] = {{"0-X-X", 3, "O", "O", "O", "O"}, {"----0", 3, "O", "O", "O", "O"},
              {"-----", 3, "I", "R", "A", "O"}, {"0XX-X", 3, "A", "A", "A", "A"},
              {"--X--", 3, "A", "R", "A", "O"}, {"0-X-X", 2, "A", "A", "A", "A"},
              {"00X0X", 2, "A", "A", "A", "A"}, {"0-X--", 2, "O", "O", "A", "O"},
              {"----0", 2, "O", "O", "A", "O"}, {"---X-", 2, "A", "R", "A", "O"}};
  for (const auto& row : rows) {
    EXPECT_EQ(evaluated(row.range, row.needed, 3, Missing::missing), row.missing) << row.range;
    EXPECT_EQ(evaluated(row.range, row.needed, 3, Missing::ignore), row.ignore) << row.range;
    EXPECT_EQ(evaluated(row.range, row.needed, 3, Missing::breaching), row.breaching) << row.range;
    EXPECT_EQ(evaluated(row.range, row.needed, 3, Missing::not_breaching), row.not_breaching)
        << row.range;
  }
}

TEST(Evaluation, UsesTheLatestDatapointsOfARangeWithGaps) {
  EXPECT_EQ(evaluated("--X", 1, 1, Missing::missing), "A");
  EXPECT_EQ(evaluated("X--", 1, 1, Missing::missing), "A") << "the range is longer than one period";
  EXPECT_EQ(evaluated("XX0", 1, 1, Missing::missing), "O") << "only the latest counts";
  EXPECT_EQ(evaluated("--00X", 1, 3, Missing::missing), "A");
  EXPECT_EQ(evaluated("XX000", 2, 3, Missing::breaching), "O")
      << "the latest three datapoints are present";
  EXPECT_EQ(evaluated("----X", 3, 3, Missing::missing), "R") << "one datapoint cannot decide";
  EXPECT_EQ(evaluated("---XX", 2, 3, Missing::missing), "A");
  const auto evaluation = evaluate_alarm(settings_of(2, 3, Missing::not_breaching),
                                         range_from_text("--X-0"), State::ok);
  EXPECT_EQ(evaluation.compared.size(), 2u);
  EXPECT_EQ(evaluation.compared[0].value, 1) << "the latest is first";
  EXPECT_EQ(evaluation.breaching, 1);
  EXPECT_EQ(evaluation.filled, 1);
}

TEST(Evaluation, ComparesWithThresholdsAndBands) {
  const struct {
    Comparison comparison;
    bool below, equal, above;
  } rows[] = {{Comparison::greater_or_equal, false, true, true},
              {Comparison::greater, false, false, true},
              {Comparison::less, true, false, false},
              {Comparison::less_or_equal, true, true, false}};
  for (const auto& row : rows) {
    AlarmSettings settings{.comparison = row.comparison, .threshold = 5.0};
    const auto compare = [&](double value) { return breaches(settings, {.value = value}); };
    EXPECT_EQ(compare(4), row.below);
    EXPECT_EQ(compare(5), row.equal);
    EXPECT_EQ(compare(6), row.above);
  }
  const auto of_band = [](Comparison comparison, double value) {
    return breaches({.comparison = comparison}, {.value = value, .band = Bounds{1, 2}});
  };
  EXPECT_TRUE(of_band(Comparison::outside_band, 0.5) && of_band(Comparison::outside_band, 3));
  EXPECT_FALSE(of_band(Comparison::outside_band, 1) || of_band(Comparison::below_band, 3));
  EXPECT_TRUE(of_band(Comparison::below_band, 0.5) && of_band(Comparison::above_band, 3));
}

TEST(Evaluation, RangeEndsWithTheLastWholePeriod) {
  auto settings = settings_of(1, 2, Missing::missing);
  const Instant minute = Instant{} + 1000 * Duration(1min);
  EXPECT_EQ(evaluation_range(settings, minute + 30s).to, minute);
  EXPECT_EQ(evaluation_range(settings, minute + 30s).from, minute - 4min);
  EXPECT_EQ(evaluation_range(settings, minute + 500ms).to, minute - 1min)
      << "datapoints may be late";
  EXPECT_EQ(evaluation_interval(settings), 10s);
  settings.queries[0].metric->period = 10s;
  EXPECT_LT(evaluation_interval(settings), 10s) << "an alarm fires within one period";
  settings.queries[0].metric->period = 1h;
  EXPECT_EQ(evaluation_interval(settings), 10s);
}

TEST(AlarmSettings, RoundTripThroughJson) {
  AlarmSettings settings = settings_of(2, 3, Missing::ignore);
  settings.account = "123456789012";
  settings.description = "";
  settings.actions = {{"a"}, {"b", "c"}, {"d"}};
  settings.tags = {{"team", "x"}};
  settings.listed = true;
  settings.queries[0].metric->dimensions = {{"b", "2"}, {"a", "1"}};
  settings.queries[0].metric->statistic = "p99";
  settings.queries[0].returns_data = false;
  settings.queries.push_back({.id = "e", .expression = "m * 2", .label = "twice", .period = 300s});
  settings.watched_id = "e";
  settings.low_sample_count = "ignore";
  const auto read = read_settings(write(settings));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, settings);
  EXPECT_EQ(settings.period(), 300s);
  EXPECT_FALSE(read_settings(Json{{"comparison", "weird"}}));
  EXPECT_FALSE(read_settings(Json{{"queries", {{{"metric", {{"dimensions", "x"}}}}}}}));
}

}  // namespace
}  // namespace trainyard::alarms
