#include "exposition/text_format.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>

namespace trainyard::exposition {
namespace {

Families two_families() {
  Families families;
  auto& jobs = families.add("trainyard_jobs", FamilyType::gauge, "Jobs, by \\ state.\n\"All\".");
  jobs.sample({{"state", "active"}}, 3);
  jobs.sample({{"state", "a\"b\\c\nd"}, {"queue", "q"}}, 12'000'000);
  families.counter("trainyard_points_total", "Points.", .25);
  return families;
}

TEST(TextFormat, WritesTheTextFormat) {
  EXPECT_EQ(format_text(two_families(), TextFormat::text),
            "# HELP trainyard_jobs Jobs, by \\\\ state.\\n\"All\".\n"
            "# TYPE trainyard_jobs gauge\n"
            "trainyard_jobs{state=\"active\"} 3\n"
            "trainyard_jobs{state=\"a\\\"b\\\\c\\nd\",queue=\"q\"} 12000000\n"
            "# HELP trainyard_points_total Points.\n"
            "# TYPE trainyard_points_total counter\n"
            "trainyard_points_total 0.25\n");
}

TEST(TextFormat, WritesOpenMetrics) {
  EXPECT_EQ(format_text(two_families(), TextFormat::openmetrics),
            "# HELP trainyard_jobs Jobs, by \\\\ state.\\n\\\"All\\\".\n"
            "# TYPE trainyard_jobs gauge\n"
            "trainyard_jobs{state=\"active\"} 3\n"
            "trainyard_jobs{state=\"a\\\"b\\\\c\\nd\",queue=\"q\"} 12000000\n"
            "# HELP trainyard_points Points.\n"
            "# TYPE trainyard_points counter\n"
            "trainyard_points_total 0.25\n"
            "# EOF\n");
}

TEST(TextFormat, IncludesFormattedFamiliesOfLowerModules) {
  PrometheusText below;
  below.begin("requests_total", "counter", "Requests in_total .");
  below.sample("requests_total", {{"operation", "a"}}, 2);
  below.begin("agents", "gauge", "Agents.");
  below.sample("agents", {}, 1);
  Families families;
  families.gauge("t", "T.", 3);
  families.add(below);
  const std::string rest = "# HELP t T.\n# TYPE t gauge\nt 3\n";
  EXPECT_EQ(format_text(families, TextFormat::text), below.text() + rest);
  EXPECT_EQ(format_text(families, TextFormat::openmetrics),
            "# HELP requests Requests in_total .\n# TYPE requests counter\n"
            "requests_total{operation=\"a\"} 2\n"
            "# HELP agents Agents.\n# TYPE agents gauge\nagents 1\n" +
                rest + "# EOF\n");
}

TEST(TextFormat, WritesCumulativeBucketsOfHistograms) {
  Histogram histogram;
  for (const double seconds : {.0001, .0005, .0006, 3.0, 1000.0}) histogram.add(seconds);
  Families families;
  families.add("t", FamilyType::histogram, "Times.").histogram({{"operation", "A"}}, histogram);
  const std::string text = format_text(families, TextFormat::text);
  for (const char* line :
       {"t_bucket{operation=\"A\",le=\"0.0005\"} 2\n", "t_bucket{operation=\"A\",le=\"0.001\"} 3\n",
        "t_bucket{operation=\"A\",le=\"5\"} 4\n", "t_bucket{operation=\"A\",le=\"+Inf\"} 5\n",
        "t_sum{operation=\"A\"} 1003.0012\n", "t_count{operation=\"A\"} 5\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  const std::string open = format_text(families, TextFormat::openmetrics);
  EXPECT_NE(open.find("t_bucket{operation=\"A\",le=\"5.0\"} 4\n"), std::string::npos) << open;
}

TEST(TextFormat, WritesInfinityAndNaN) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(number_text(std::nan("")), "NaN");
  EXPECT_EQ(number_text(infinity), "+Inf");
  EXPECT_EQ(number_text(-infinity), "-Inf");
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(0.0005), "0.0005");
  EXPECT_EQ(number_text(-1e300), "-1e+300");
  EXPECT_EQ(number_text(1'700'000'000.123), "1700000000.123");
}

TEST(TextFormat, IsChosenByTheAcceptHeader) {
  EXPECT_EQ(choose_format(""), TextFormat::text);
  EXPECT_EQ(choose_format("*/*"), TextFormat::text);
  EXPECT_EQ(choose_format("text/plain"), TextFormat::text);
  EXPECT_EQ(choose_format("application/openmetrics-text;version=1.0.0,"
                          "application/openmetrics-text;version=0.0.1;q=0.75,"
                          "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            TextFormat::openmetrics);
  EXPECT_EQ(choose_format("text/plain, application/openmetrics-text;q=0.5"), TextFormat::text);
  EXPECT_EQ(choose_format("application/openmetrics-text;q=0"), TextFormat::text);
  EXPECT_EQ(choose_format("application/openmetrics-text;q=x"), TextFormat::text);
  EXPECT_EQ(choose_format(std::string(10'000, ',')), TextFormat::text);
}

TEST(TextFormat, ReplacesBytesThatScrapersReject) {
  Families families;
  families.add("t", FamilyType::gauge, "T.").sample({{"name", std::string("a\xff\0b", 4)}}, 1);
  const std::string text = format_text(families, TextFormat::text);
  EXPECT_NE(text.find("t{name=\"a\xef\xbf\xbd\xef\xbf\xbd"
                      "b\"} 1\n"),
            std::string::npos)
      << text;
}

// Parses the line of one sample. Returns nullopt for a malformed line.
std::optional<std::pair<std::map<std::string, std::string>, std::string>> read_sample(
    std::string_view line, std::string_view name) {
  std::map<std::string, std::string> labels;
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(name.size());
  if (line.starts_with('{')) {
    do {
      line.remove_prefix(1);
      const size_t equals = line.find("=\"");
      if (equals == line.npos) return std::nullopt;
      const std::string label(line.substr(0, equals));
      line.remove_prefix(equals + 2);
      std::string value;
      while (!line.empty() && line[0] != '"') {
        if (line[0] == '\\') {
          line.remove_prefix(1);
          value += line[0] == 'n' ? '\n' : line[0];
        } else {
          value += line[0];
        }
        line.remove_prefix(1);
      }
      if (line.empty() || !labels.emplace(label, value).second) return std::nullopt;
      line.remove_prefix(1);
    } while (line.starts_with(','));
    if (!line.starts_with('}')) return std::nullopt;
    line.remove_prefix(1);
  }
  if (!line.starts_with(' ')) return std::nullopt;
  return std::pair{labels, std::string(line.substr(1))};
}

// For any bytes in labels, each sample is one line, which parses to the same sample.
TEST(TextFormat, RoundTripsAnyBytesInLabels) {
  std::mt19937_64 random(17);
  constexpr std::string_view kNasty = "\"\\\n{}=, #é\xff\xc3\r\t\x7f";
  const auto text_of_labels = [&] {
    std::string text;
    for (size_t i = random() % 12; i > 0; --i) text += kNasty[random() % kNasty.size()];
    return text;
  };
  for (int round = 0; round < 2'000; ++round) {
    Families families;
    auto& family = families.add("t", FamilyType::gauge, "T.");
    std::map<std::string, std::string> wanted;
    Labels shared, own;
    for (size_t i = random() % 4; i > 0; --i)
      shared.emplace_back("s" + std::to_string(i), text_of_labels());
    for (size_t i = random() % 4; i > 0; --i)
      own.emplace_back("o" + std::to_string(i), text_of_labels());
    for (const auto* labels : {&shared, &own})
      for (const auto& [name, value] : *labels) wanted[name] = to_label_value(value);
    const double value = double(int64_t(random() % 2'000'000) - 1'000'000) / 128;
    family.sample(std::make_shared<const Labels>(shared), own, value);
    for (const TextFormat format : enumerators<TextFormat>()) {
      const std::string text = format_text(families, format);
      const size_t begin = text.find("\nt") + 1;
      const size_t end = text.find('\n', begin);
      const auto read = read_sample(std::string_view(text).substr(begin, end - begin), "t");
      ASSERT_TRUE(read) << text;
      EXPECT_EQ(read->first, wanted) << text;
      EXPECT_EQ(std::stod(read->second), value) << text;
      EXPECT_EQ(text.substr(end + 1), format == TextFormat::text ? "" : "# EOF\n");
    }
  }
}

}  // namespace
}  // namespace trainyard::exposition
