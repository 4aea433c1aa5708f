#include "trainyard_api/timeline/file_events.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trainyard::api::trainyard_api {
namespace {

using Notes = std::vector<std::string>;

// A job from second 1,000 to 2,000, which trains from 1,100.
const TraceFrame kFrame{from_milliseconds(1'000'000), from_milliseconds(2'000'000),
                        from_milliseconds(1'100'000), Duration{}};

struct Added {
  std::string text;  // the events, without the names of processes
  Notes notes;
};

Added added_of(const std::vector<TraceFile>& files, const TraceFrame& frame = kFrame,
               size_t bytes_max = 1 << 20) {
  TraceEvents events(1 << 20);
  Added out;
  add_file_events(files, frame, bytes_max, events, out.notes);
  const Json trace = *parse_json(std::move(events).text(Json::object()));
  for (const Json& event : trace["traceEvents"])
    if (!event["name"].get<std::string>().starts_with("process_")) out.text += dump(event) + "\n";
  return out;
}

TEST(FileEvents, AreShiftedToTheClockOfTheJob) {
  const std::string file =
      R"([{"name":"process_name","ph":"M","pid":0,"args":{"start_time_since_epoch_in_micros":1200000000}},
          {"name":"step","cat":"train","ph":"X","pid":0,"tid":3,"ts":5.75,"dur":2.5,"args":{"n":1}}])";
  EXPECT_EQ(
      added_of({{"rank-0.json", file}}).text,
      R"({"args":{"n":1},"cat":"train","dur":3,"name":"step","ph":"X","pid":1000000,"tid":3,"ts":1200000005})"
      "\n");
  TraceFrame ahead = kFrame;
  ahead.own_ahead = 7s;
  EXPECT_EQ(
      added_of({{"rank-0.json", file}}, ahead).text,
      R"({"args":{"n":1},"cat":"train","dur":3,"name":"step","ph":"X","pid":1000000,"tid":3,"ts":1207000005})"
      "\n");
  EXPECT_EQ(added_of({{"rank-0.json", file}}).notes, Notes());
}

TEST(FileEvents, BeginWithTheTrainingIfTheirClockIsUnknown) {
  const std::string event = R"({"name":"a","ph":"i","pid":1,"tid":1,"ts":40})";
  const std::string expected =
      R"({"name":"a","ph":"i","pid":1000000,"s":"t","tid":1,"ts":1100000000})"
      "\n";
  Added added = added_of({{"a.json", "[" + event + "]"}});
  EXPECT_EQ(added.text, expected);
  EXPECT_EQ(added.notes,
            Notes{"a.json: its clock is unknown, so it is placed where training starts"});
  for (const char* started : {"0", "939000000", "2061000000"}) {
    added =
        added_of({{"a.json", R"([{"ph":"M","pid":1,"args":{"start_time_since_epoch_in_micros":)" +
                                 std::string(started) + "}}," + event + "]"}});
    EXPECT_EQ(added.text, expected);
    EXPECT_EQ(added.notes,
              Notes{"a.json: its clock differs, so it is placed where training starts"});
  }
}

TEST(FileEvents, HaveDifferentProcessesAndIdsForEachFile) {
  const std::string file =
      R"([{"name":"f","ph":"s","id":7,"pid":"main","tid":"stream 7","ts":1},
          {"name":"f","ph":"f","bp":"e","id":7,"pid":4,"tid":-1,"ts":2},
          {"name":"thread_name","ph":"M","pid":4,"tid":-1,"args":{"name":"loader"}}])";
  EXPECT_EQ(
      added_of({{"a", file}, {"b", R"([{"name":"f","ph":"s","id":7,"pid":4,"tid":1,"ts":1}])"}})
          .text,
      R"({"id":"0:7","name":"f","ph":"s","pid":1000000,"tid":1000000000,"ts":1100000000})"
      "\n"
      R"({"bp":"e","id":"0:7","name":"f","ph":"f","pid":1000001,"tid":1000000001,"ts":1100000001})"
      "\n"
      R"({"args":{"name":"loader"},"name":"thread_name","ph":"M","pid":1000001,"tid":1000000001})"
      "\n"
      R"({"id":"1:7","name":"f","ph":"s","pid":1000100,"tid":1,"ts":1100000000})"
      "\n");
}

TEST(FileEvents, HaveProcessesNamedAfterTheFile) {
  TraceEvents events(1 << 20);
  Notes notes;
  add_file_events(
      {{"rank-0.json",
        R"([{"ph":"X","pid":0,"ts":1},{"ph":"M","pid":0,"name":"process_name","args":{"name":"x"}}])"}},
      kFrame, 1 << 20, events, notes);
  EXPECT_NE(std::move(events).text({}).find(R"({"args":{"name":"rank-0.json: x"})"),
            std::string::npos);
}

TEST(FileEvents, CountUnreadableEvents) {
  const Added added = added_of({{"a", R"([{"ph":"X"},{"ph":"Q","ts":1},{"ts":1},{"ph":5,"ts":1},{x},
                                     {"ph":"X","ts":1,"dur":-1},{"ph":"i","ts":1}])"},
                                {"b", "no trace"},
                                {"c", "[]"}});
  EXPECT_EQ(added.text,
            R"({"name":"","ph":"i","pid":1000000,"s":"t","tid":1000000000,"ts":1100000000})"
            "\n");
  EXPECT_EQ(added.notes,
            (Notes{"a: its clock is unknown, so it is placed where training starts",
                   "a: 6 events could not be read", "b: it has no list of trace events"}));
}

TEST(FileEvents, AreLimited) {
  std::string file = "[";
  for (int i = 0; i < 1'000; ++i) file += R"({"name":"a","ph":"i","pid":1,"tid":1,"ts":1},)";
  const Added added =
      added_of({{"big", file}, {"small", R"([{"name":"b","ph":"i","ts":1}])"}}, kFrame, 10'000);
  EXPECT_LT(added.text.size(), 11'000u);
  EXPECT_NE(added.text.find(R"("name":"b")"), std::string::npos) << "each file has its share";
  EXPECT_EQ(added.notes.at(1), "big: the first events only");

  const std::string long_texts = R"([{"name":")" + std::string(5'000, 'n') + R"(","cat":")" +
                                 std::string(5'000, 'c') + R"(","id":")" + std::string(5'000, 'i') +
                                 R"(","ph":"i","ts":1,"args":{"a":")" + std::string(5'000, 'a') +
                                 R"("}}])";
  const std::string text = added_of({{"long", long_texts}}).text;
  EXPECT_LT(text.size(), 1'000u);
  EXPECT_NE(text.find(R"("args":{"bytes_left_out":5008})"), std::string::npos) << text;

  std::string many = "[";
  for (int i = 0; i < 200; ++i)
    many += R"({"name":"a","ph":"i","tid":1,"ts":1,"pid":)" + std::to_string(i) + "},";
  EXPECT_EQ(added_of({{"many", many}}).notes.at(1), "many: 100 events could not be read");
}

}  // namespace
}  // namespace trainyard::api::trainyard_api
