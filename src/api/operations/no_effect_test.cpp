#include "operations/no_effect.hpp"

#include <gtest/gtest.h>

namespace trainyard::api {
namespace {

constexpr NoEffect kTable[] = {{"VpcConfig", "hosts share a network"},
                               {"Profiler", "nothing is profiled", "Profiler.Disable"},
                               {"Check.Enable", "nothing is checked"},
                               {"Channels[].Source.Licence", "data has no licence"}};

std::vector<std::string> notes(const char* request) {
  return notes_of(Json::parse(request), kTable);
}

TEST(NoEffect, MakesANoteForEachSetMember) {
  using Notes = std::vector<std::string>;
  EXPECT_EQ(notes("{}"), Notes());
  EXPECT_EQ(notes(R"({"VpcConfig": {"Subnets": ["a"]}, "Check": {"Enable": true}})"),
            (Notes{"VpcConfig has no effect here: hosts share a network",
                   "Check.Enable has no effect here: nothing is checked"}));
  EXPECT_EQ(notes(R"({"Channels": [{"Source": {}}, {"Source": {"Licence": {"Accept": true}}}]})"),
            (Notes{"Channels[].Source.Licence has no effect here: data has no licence"}));
}

TEST(NoEffect, IgnoresEmptyValues) {
  for (const char* request :
       {R"({"VpcConfig": {}})", R"({"VpcConfig": null})", R"({"VpcConfig": ""})",
        R"({"Check": {"Enable": false}})", R"({"Check": true})", R"({"Channels": {}})",
        R"({"Profiler": {"Disable": true, "Path": "s3://a"}})", R"([])"})
    EXPECT_TRUE(notes(request).empty()) << request;
  EXPECT_EQ(notes(R"({"Profiler": {"Disable": false, "Path": "s3://a"}})").size(), 1u);
}

}  // namespace
}  // namespace trainyard::api
