#include "cli/submission_check.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

std::string refusal(const Result<void>& result) { return result ? "" : result.error().message; }

std::string of_types(const char* resources) {
  return refusal(check_instance_types({{"ResourceConfig", Json::parse(resources)}}));
}

TEST(SubmissionCheck, SuggestsTheNearestInstanceType) {
  EXPECT_EQ(of_types(R"({"InstanceType": "ml.m5.large"})"), "");
  EXPECT_EQ(of_types(R"({"InstanceType": "ml.m5.larg"})"),
            "unknown instance type 'ml.m5.larg'; did you mean ml.m5.large?");
  EXPECT_EQ(of_types(R"({"InstanceType": "Standard_NC24ads_A100_v4"})"),
            "unknown instance type 'Standard_NC24ads_A100_v4'");
  EXPECT_EQ(of_types(R"({"InstanceGroups": [{"InstanceType": "ml.m5.large"},
                                            {"InstanceType": "ml.p3.2xlagre"}]})"),
            "unknown instance type 'ml.p3.2xlagre'; did you mean ml.p3.2xlarge?");
  EXPECT_EQ(of_types("{}"), "");
  EXPECT_EQ(refusal(check_instance_types(Json::object())), "");
}

TEST(SubmissionCheck, RequiresTheProgramToBeOneOfTheFiles) {
  const Upload upload{"code", "./src", "bucket", "jobs/a/input/code/"};
  const auto check = [&](const char* message) {
    return refusal(
        check_program({{"AlgorithmSpecification", {{"ContainerEntrypoint", Json::parse(message)}}}},
                      upload, {"lib/a.py", "train.py"}));
  };
  EXPECT_EQ(check(R"(["python3", "/opt/ml/input/data/code/train.py"])"), "");
  EXPECT_EQ(check(R"(["python3", "/opt/ml/input/data/code/tran.py"])"),
            "the program 'tran.py' was not found in ./src");
  EXPECT_EQ(check(R"(["/opt/ml/input/data/other/run"])"), "");
  EXPECT_EQ(check("[]"), "");
}

}  // namespace
}  // namespace trainyard::cli
