#include "log_routing/metric_publisher.hpp"

#include <gtest/gtest.h>

namespace trainyard::log_routing {
namespace {

// 2026-11-20T09:45:00Z.
const Instant kNow = from_milliseconds(1'795'167'900'000);

MetricFilter filter_of(const std::string& pattern, const std::string& value) {
  return {.pattern = pattern, .metric_namespace = "N", .metric_name = "m", .value = value};
}

std::vector<observe::LogEvent> events(const std::vector<std::string>& messages) {
  std::vector<observe::LogEvent> made;
  for (const auto& message : messages) made.push_back({kNow, kNow, message});
  return made;
}

// Formats values and their dimensions: "1 2{host=a}".
std::string shown(const std::vector<observe::MetricRecord>& records) {
  std::string out;
  for (const auto& record : records) {
    out += (out.empty() ? "" : " ") + std::to_string(int(record.sample.sum));
    for (const auto& [name, value] : record.key.dimensions)
      out.append("{").append(name).append("=").append(value).append("}");
  }
  return out;
}

std::string published(const MetricFilter& filter, const std::vector<std::string>& messages) {
  auto publisher = MetricPublisher::make("eu-west-1", filter);
  if (!publisher) return publisher.error().message;
  std::vector<observe::MetricRecord> records;
  publisher->add(events(messages), kNow, records);
  return shown(records);
}

TEST(MetricPublisher, PublishesTheValueOfEachMatch) {
  const std::vector<std::string> json{R"({"bytes": 12, "host": "a", "t": "7"})",
                                      R"({"bytes": null, "host": "b"})", R"({"bytes": 5})", "text"};
  EXPECT_EQ(published(filter_of("ERROR", "1"), {"ERROR a", "fine", "ERROR b"}), "1 1");
  EXPECT_EQ(published(filter_of("{ $.bytes = * }", "$.bytes"), json), "12 5");
  EXPECT_EQ(published(filter_of("{ $.host = * }", "$.t"), json), "7");
  EXPECT_EQ(published(filter_of("[ip, status = 5*, bytes]", "$bytes"),
                      {"1.2.3.4 500 17", "1.2.3.4 200 18", "1.2.3.4 503 -", "1 2"}),
            "17");
  EXPECT_EQ(published(filter_of("[ip, status, bytes]", "$other"), {"1 2 3"}), "");
  EXPECT_EQ(published(filter_of("[v]", "$v"), {"nan", "inf", "1e999", "2"}), "2");
}

TEST(MetricPublisher, TakesDimensionsFromTheEvent) {
  auto filter = filter_of("{ $.v > 0 }", "$.v");
  filter.dimensions = {{"host", "$.host"}};
  EXPECT_EQ(published(filter, {R"({"v": 1, "host": "a"})", R"({"v": 2})",
                               R"({"v": 3, "host": {"x": 1}})", R"({"v": 4, "host": ""})"}),
            R"(1{host=a} 3{host={"x":1}})");
}

TEST(MetricPublisher, LimitsTheSeries) {
  auto filter = filter_of("{ $.id = * }", "1");
  filter.dimensions = {{"id", "$.id"}};
  auto publisher = *MetricPublisher::make("eu-west-1", filter);
  std::vector<observe::MetricRecord> records;
  for (int i = 0; i < 1'500; ++i)
    publisher.add(events({R"({"id": )" + std::to_string(i) + "}"}), kNow, records);
  EXPECT_EQ(records.size(), kSeriesMax);
  EXPECT_EQ(publisher.dropped(), 500u);
  records.clear();
  publisher.add(events({R"({"id": 3})"}), kNow, records);
  EXPECT_EQ(records.size(), 1u) << "existing series are still published";
}

TEST(MetricPublisher, PublishesTheDefaultValueForMinutesWithoutAMatch) {
  auto filter = filter_of("ERROR", "1");
  filter.default_value = 0;
  auto publisher = *MetricPublisher::make("eu-west-1", filter);
  std::vector<observe::MetricRecord> records;
  publisher.add({{kNow, kNow, "fine"}}, kNow, records);
  publisher.finish_minutes(kNow + 59s, records);
  EXPECT_TRUE(records.empty()) << "the minute has not passed";
  publisher.add({{kNow + 60s, kNow, "fine"}, {kNow + 61s, kNow, "ERROR"}}, kNow + 61s, records);
  publisher.finish_minutes(kNow + 180s, records);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].sample.sum, 1);
  EXPECT_EQ(records[1].sample.sum, 0);
  EXPECT_EQ(records[1].sample.at, kNow);
  publisher.finish_minutes(kNow + 600s, records);
  EXPECT_EQ(records.size(), 2u) << "minutes without events publish no default value";
}

TEST(MetricFilter, RejectsInvalidValuesAndDimensions) {
  const auto why = [](MetricFilter filter) {
    const auto checked = filter.check();
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(why(filter_of("", "1")), "");
  EXPECT_EQ(why(filter_of("", "$.a[0].b")), "");
  EXPECT_EQ(why(filter_of("", "one")), "Invalid metric value: one");
  EXPECT_EQ(why(filter_of("", "$")), "Invalid metric value: $");
  EXPECT_EQ(why(filter_of("", "$.a b")), "Invalid metric value: $.a b");
  EXPECT_EQ(why(filter_of("", "inf")), "Invalid metric value: inf");
  EXPECT_TRUE(why(filter_of("{ $.a", "1")).starts_with("Invalid filter pattern"));
  auto filter = filter_of("", "1");
  filter.default_value = 0;
  filter.dimensions = {{"a", "$.a"}};
  EXPECT_EQ(why(filter),
            "Invalid metric transformation: dimensions and default value are mutually exclusive "
            "properties.");
  filter.default_value.reset();
  for (const char* name : {"b", "c", "d"}) filter.dimensions[name] = "$.a";
  EXPECT_EQ(why(filter), "A metric filter can have at most 3 dimensions.");
}

TEST(MetricFilter, RoundTripsAsText) {
  auto filter = filter_of("{ $.a = \"x\" }", "$.v");
  filter.default_value = 0.5;
  filter.unit = "Bytes";
  filter.created = kNow;
  const auto read = MetricFilter::from(filter.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), filter.text());
  EXPECT_EQ(read->default_value, 0.5);
  EXPECT_FALSE(MetricFilter::from("[]"));
}

}  // namespace
}  // namespace trainyard::log_routing
