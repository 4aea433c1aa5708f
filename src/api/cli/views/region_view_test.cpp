#include "cli/views/region_view.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

Json regions_named(const std::vector<std::string>& names) {
  Json listed = Json::array();
  for (const auto& name : names) listed.push_back({{"regionName", name}});
  return Json{{"regionInfo", listed}};
}

Json jobs_created(const std::vector<std::pair<std::string, double>>& jobs) {
  Json listed = Json::array();
  for (const auto& [name, at] : jobs) listed.push_back({{"Name", name}, {"CreationTime", at}});
  return Json{{"Jobs", listed}};
}

std::vector<std::string> names_with_regions(const Json& merged) {
  std::vector<std::string> names;
  for (const Json& job : merged.at("Jobs"))
    names.push_back(job.at("Name").get<std::string>() + "@" + job.at("Region").get<std::string>());
  return names;
}

TEST(RegionNames, KeepTheOrderOfTheAnswer) {
  EXPECT_EQ(*region_names(regions_named({"us-east-1", "eu-west-1"})),
            (std::vector<std::string>{"us-east-1", "eu-west-1"}));
}

TEST(RegionNames, RejectTextsThatAreNotNames) {
  for (const char* name : {"", "EU", "eu west", "eu\r\nX-Amz-Date: 1", "../eu", "eu_1"})
    EXPECT_EQ(region_names(regions_named({"us-east-1", name})).error().kind, Kind::invalid) << name;
  EXPECT_FALSE(region_names(regions_named({std::string(65, 'a')})));
  EXPECT_TRUE(region_names(regions_named({std::string(64, 'a')})));
  EXPECT_FALSE(region_names(Json{{"regionInfo", {1}}}));
  for (const Json& without : {Json::object(), Json(1), regions_named({})})
    EXPECT_EQ(region_names(without).error().message, "the server lists no regions");
}

TEST(RegionNames, HaveALimit) {
  std::vector<std::string> names(kRegionsMax, "eu-west-1");
  EXPECT_EQ(region_names(regions_named(names))->size(), kRegionsMax);
  names.push_back("eu-west-2");
  const auto refused = region_names(regions_named(names));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::exhausted);
  EXPECT_NE(refused.error().message.find("lists 65 regions"), std::string::npos);
}

TEST(MergeRegions, OrdersJobsOfAllRegionsByCreation) {
  const std::vector<RegionJobs> regions{
      {"eu-west-1", jobs_created({{"d", 40.5}, {"b", 20}})},
      {"us-east-1", jobs_created({{"c", 40}, {"same", 20}, {"a", 10}})}};
  EXPECT_EQ(names_with_regions(merge_regions(regions, 100)),
            (std::vector<std::string>{"d@eu-west-1", "c@us-east-1", "b@eu-west-1", "same@us-east-1",
                                      "a@us-east-1"}));
}

TEST(MergeRegions, KeepsTheNewestJobsOnly) {
  const std::vector<RegionJobs> regions{{"eu-west-1", jobs_created({{"b", 20}})},
                                        {"us-east-1", jobs_created({{"c", 30}, {"a", 10}})}};
  EXPECT_EQ(names_with_regions(merge_regions(regions, 2)),
            (std::vector<std::string>{"c@us-east-1", "b@eu-west-1"}));
}

TEST(MergeRegions, ReplacesTheRegionThatAnAnswerClaims) {
  Json answer = jobs_created({{"a", 1}});
  answer["Jobs"][0]["Region"] = "mars-1";
  EXPECT_EQ(names_with_regions(merge_regions({{"eu-west-1", answer}}, 2)),
            std::vector<std::string>{"a@eu-west-1"});
}

TEST(MergeRegions, OrdersJobsWithoutATimeLastAndSkipsWhatIsNotAJob) {
  const Json odd{{"Jobs", {7, {{"Name", "x"}, {"CreationTime", "soon"}}}}};
  EXPECT_EQ(names_with_regions(
                merge_regions({{"eu-west-1", odd}, {"us-east-1", jobs_created({{"a", 1}})}}, 9)),
            (std::vector<std::string>{"a@us-east-1", "x@eu-west-1"}));
}

TEST(MergeRegions, NamesTheRegionsWithoutAnAnswer) {
  const std::vector<RegionJobs> regions{{"eu-west-1", unavailable("connection refused")},
                                        {"us-east-1", jobs_created({})}};
  EXPECT_EQ(
      merge_regions(regions, 9),
      (Json{{"Jobs", Json::array()},
            {"MissingRegions", {{{"Region", "eu-west-1"}, {"Message", "connection refused"}}}}}));
}

TEST(MissingRegions, AreALineEach) {
  EXPECT_EQ(missing_regions_text({{"us-east-1", Json::object()}}), "");
  EXPECT_EQ(missing_regions_text({{"eu-west-1", unavailable("timed out\x1b[2J\nafter 10 s")},
                                  {"us-east-1", Json::object()},
                                  {"us-west-2", denied("not authorized")}}),
            "the jobs of region eu-west-1 are missing: timed out?[2J after 10 s\n"
            "the jobs of region us-west-2 are missing: not authorized\n");
}

}  // namespace
}  // namespace trainyard::cli
