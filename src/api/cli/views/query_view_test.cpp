#include "cli/views/query_view.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

Json query_field(const char* name, const char* value) {
  return {{"field", name}, {"value", value}};
}

TEST(QueryTable, HasAColumnForEachField) {
  const Json answer = {
      {"results",
       {{query_field("host", "algo-1"), query_field("count(*)", "3"), query_field("@ptr", "x")},
        {query_field("count(*)", "12")}}}};
  EXPECT_EQ(query_table({}, answer),
            "host    count(*)\n"
            "algo-1  3\n"
            "        12\n");
  EXPECT_EQ(query_table({}, Json::object()), "");
}

TEST(QueryTable, KeepsEscapesFromTheTerminal) {
  const std::string page =
      query_table({}, {{"results", {{query_field("@message", "\x1b[2J<b>\ntwo")}}}});
  EXPECT_EQ(page.find('\x1b'), std::string::npos) << page;
  EXPECT_NE(page.find("<b>"), std::string::npos);
}

TEST(QueryStatistics, AreOneLine) {
  EXPECT_EQ(query_statistics({{"statistics",
                               {{"recordsMatched", 3.0},
                                {"recordsScanned", 120.0},
                                {"bytesScanned", 12288.0},
                                {"estimatedRecordsSkipped", 0.0}}}}),
            "3 of 120 events match, 12.0 KiB read");
  EXPECT_EQ(query_statistics({{"statistics", {{"estimatedRecordsSkipped", 7.0}}}}),
            "0 of 0 events match, 0 B read, 7 skipped: too many groups");
}

}  // namespace
}  // namespace trainyard::cli
