#include "trainyard_api/timeline/trace_file.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trainyard::api::trainyard_api {
namespace {

// Returns the events of a file, one a line, and "skipped N" if events were skipped.
std::string events_in(std::string_view bytes) {
  TraceFileReader reader(bytes);
  if (!reader.is_trace()) return "not a trace";
  std::string text;
  while (const auto event = reader.next()) text += dump(*event) + "\n";
  if (reader.skipped() > 0) text += "skipped " + std::to_string(reader.skipped());
  return text;
}

TEST(TraceFile, ReadsBothForms) {
  EXPECT_EQ(events_in(R"([{"a":1},{"b":"}]"}])"), "{\"a\":1}\n{\"b\":\"}]\"}\n");
  EXPECT_EQ(events_in(" \n[\n{\"a\":1},\n\n{\"b\":{\"c\":[1]}}\n]\n"),
            "{\"a\":1}\n{\"b\":{\"c\":[1]}}\n");
  EXPECT_EQ(
      events_in(R"({"displayTimeUnit": "ms", "traceEvents" : [{"a":"\"{"}], "x": [{"b":1}]})"),
      "{\"a\":\"\\\"{\"}\n");
  EXPECT_EQ(events_in("[]"), "");
}

TEST(TraceFile, ReadsTheCompleteEventsOfATruncatedFile) {
  EXPECT_EQ(events_in("[\n{\"a\":1},\n{\"b\":2},\n"), "{\"a\":1}\n{\"b\":2}\n");
  EXPECT_EQ(events_in("[\n{\"a\":1},\n{\"b\":\"x"), "{\"a\":1}\n");
  EXPECT_EQ(events_in("[{\"a\":\"\\"), "");
  EXPECT_EQ(events_in("["), "");
}

TEST(TraceFile, RejectsOtherFiles) {
  for (const char* text : {"", " ", "x", "{", "{}", "\"[\"", "{\"traceEvents\"",
                           "{\"traceEvents\":", "{\"traceEvents\": {}}", "\x1f\x8b\x08"})
    EXPECT_EQ(events_in(text), "not a trace") << text;
}

TEST(TraceFile, SkipsInvalidEvents) {
  EXPECT_EQ(events_in("[{\"a\":1},{a:1},{\"b\":1e999},{\"c\":1}]"),
            "{\"a\":1}\n{\"c\":1}\nskipped 2");
  EXPECT_EQ(events_in("[1,{\"a\":1}]"), "") << "it ends where it is no list of objects";
  std::string deep = "[";
  for (int i = 0; i < 1'000; ++i) deep += "{\"a\":";
  deep += "1" + std::string(1'000, '}') + "]";
  EXPECT_EQ(events_in(deep), "skipped 1");
  const std::string long_event = "{\"a\":\"" + std::string(kTraceEventBytesMax, 'x') + "\"}";
  EXPECT_EQ(events_in("[" + long_event + ",{\"b\":1}]"), "{\"b\":1}\nskipped 1");
}

TEST(TraceFile, ReadsNoMoreObjectsThanItsSizeAllows) {
  std::string bytes = "[";
  for (size_t i = 0; i < 2'000; ++i) bytes += "{},";
  TraceFileReader reader(bytes);
  size_t events = 0;
  while (reader.next()) ++events;
  EXPECT_EQ(events, bytes.size() / kTraceEventBytesMin + kTraceFewEvents);
  EXPECT_TRUE(reader.cut_off());
}

TEST(TraceFile, SkipsNoMoreObjectsThanItsLimit) {
  std::string bytes = "[";
  for (size_t i = 0; i < 2 * kTraceSkippedMax; ++i) bytes += "{a very wrong event},";
  TraceFileReader reader(bytes);
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.skipped(), kTraceSkippedMax);
  EXPECT_TRUE(reader.cut_off());
}

std::string time_text(const char* event) {
  const auto time = time_of_event(*parse_json(event));
  return time ? std::to_string(int64_t(time->begin)) + "+" + std::to_string(int64_t(time->length))
              : "none";
}

TEST(TraceFile, ChecksInstants) {
  EXPECT_EQ(time_text(R"({"ts":5,"dur":2.5})"), "5+2");
  EXPECT_EQ(time_text(R"({"ts":5})"), "5+0");
  EXPECT_EQ(time_text(R"({"ts":-5})"), "-5+0");
  for (const char* event :
       {"{}", R"({"ts":"5"})", R"({"ts":null})", R"({"ts":1e300})", R"({"ts":-1e18})",
        R"({"ts":5,"dur":-1})", R"({"ts":5,"dur":1e300})", R"({"ts":5,"dur":"1"})"})
    EXPECT_EQ(time_text(event), "none") << event;
}

TEST(TraceFile, ReadsTheClockFromTheFile) {
  TraceFileClock clock = clock_of_file(
      R"([{"ph":"X","ts":5,"dur":2},{"ph":"i","ts":3},{"ph":"M","ts":900,"args":{"name":"a"}}])");
  EXPECT_EQ(clock.events, 2u);
  EXPECT_EQ(clock.first, 3);
  EXPECT_EQ(clock.last, 7);
  EXPECT_FALSE(clock.started);
  clock = clock_of_file(
      R"([{"ph":"M","name":"process_name","args":{"start_time_since_epoch_in_micros":1763631900000000}},
          {"ph":"X","ts":5,"dur":2}])");
  EXPECT_EQ(clock.started, 1763631900000000);
  clock = clock_of_file(R"([{"ph":"X","ts":1763631900000000.25,"dur":2}])");
  EXPECT_EQ(clock.started, 0) << "its instants are since 1970";
  clock = clock_of_file(
      R"({"baseTimeNanoseconds": 1763631900000000000, "traceEvents": [{"ph":"X","ts":5}]})");
  EXPECT_EQ(clock.started, 1763631900000000);
  clock = clock_of_file(
      R"([{"ph":"M","args":{"start_time_since_epoch_in_micros":1e300}},{"ph":"X","ts":5}])");
  EXPECT_FALSE(clock.started);
  EXPECT_EQ(clock_of_file("").events, 0u);
}

}  // namespace
}  // namespace trainyard::api::trainyard_api
