#include "gradients/fusion/timeline.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace trainyard::gradients {
namespace {

using std::chrono::steady_clock;
using std::chrono::system_clock;

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int64_t microseconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             system_clock::now().time_since_epoch())
      .count();
}

TEST(Timeline, BeginsWithItsWallClock) {
  const std::string path = ::testing::TempDir() + "timeline_test.json";
  Timeline timeline;
  const int64_t before = microseconds_since_1970();
  ASSERT_TRUE(timeline.start(path, false, steady_clock::now() - std::chrono::seconds(5)));
  const int64_t after = microseconds_since_1970();
  EXPECT_FALSE(timeline.start(path, false, steady_clock::now())) << "it is being written";
  timeline.write({Phase::communicate, Operation::allreduce, "a\"b", std::chrono::microseconds(7),
                  std::chrono::microseconds(9)});
  timeline.write({Phase::cycle, Operation::allreduce, "", {}, {}});
  timeline.stop();
  std::string text = content_of(path);
  std::remove(path.c_str());
  const std::string head =
      "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"trainyard\","
      "\"start_time_since_epoch_in_micros\":";
  ASSERT_TRUE(text.starts_with(head)) << text;
  const int64_t began = std::stoll(text.substr(head.size()));
  // A step of the wall clock during the test is possible, of a second at most.
  EXPECT_GE(began, before - 6'000'000);
  EXPECT_LE(began, after - 4'000'000);
  EXPECT_EQ(text.substr(text.find('\n', 2) + 1),
            R"({"name":"thread_name","ph":"M","pid":0,"tid":1,"args":{"name":"a\"b"}},
{"name":"TRAINYARD_ALLREDUCE","ph":"X","pid":0,"tid":1,"ts":7.000,"dur":2.000},
{"name":"process_name","ph":"M","pid":0,"args":{"name":"trainyard"}}
]
)");
}

}  // namespace
}  // namespace trainyard::gradients
