#include "entry/settings.hpp"

#include <gtest/gtest.h>

#include "os/files.hpp"

namespace trainyard::entry {
namespace {

Found found_with(Json hyperparameters) {
  Found found;
  found.hyperparameters = dump(hyperparameters);
  found.resource_config =
      R"({"current_host":"algo-2","current_instance_type":"ml.m5.large","current_group_name":"work",
          "hosts":["algo-1","algo-2","algo-3"],"network_interface_name":"eth0",
          "instance_groups":[{"instance_group_name":"read","instance_type":"ml.c5.large","hosts":["algo-1"]},
                             {"instance_group_name":"work","instance_type":"ml.m5.large","hosts":["algo-2","algo-3"]}]})";
  found.input_data_config = R"({"train":{"TrainingInputMode":"File"}})";
  return found;
}

// The output of SageMaker's own toolkit (5.1.4) for the same files, with 2 cores and no GPU.
TEST(Settings, MakeTheToolkitsVariablesAndArguments) {
  const auto text = os::read_file("golden/script.json");
  ASSERT_TRUE(text) << text.error().message;
  const Json golden = *parse_json(*text);
  Found found;
  found.hyperparameters = dump(golden["hyperparameters"]);
  found.resource_config = dump(golden["resource_config"]);
  found.input_data_config = dump(golden["input_data_config"]);
  found.variables["TRAINING_JOB_NAME"] = "j";
  found.cpus = 2;
  const auto settings = read_settings(found);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(Json(user_arguments(settings->user)), golden["arguments"]);
  const auto variables = script_variables(*settings, {});
  for (const auto& [name, value] : golden["variables"].items()) {
    ASSERT_TRUE(variables.contains(name)) << name;
    EXPECT_EQ(variables.at(name), value.get<std::string>()) << name;
  }
  for (const auto& [name, value] : variables) {
    if (!name.starts_with("SM_")) continue;
    EXPECT_TRUE(golden["variables"].contains(name)) << name;
  }
}

TEST(Settings, FindTheProgram) {
  Found found = found_with({{"sagemaker_program", "\"train.py\""}});
  EXPECT_EQ(read_settings(found)->program, "train.py");
  found = found_with({{"sagemaker_program", "train.py"}});
  EXPECT_EQ(read_settings(found)->program, "train.py");
  found.variables["SAGEMAKER_PROGRAM"] = "other.py";
  EXPECT_EQ(read_settings(found)->program, "other.py");
}

TEST(Settings, FindTheSources) {
  Found found = found_with({{"sagemaker_submit_directory", "\"s3://b/k\""}});
  found.variables["SAGEMAKER_SUBMIT_DIRECTORY"] = "/opt/program";
  EXPECT_EQ(read_settings(found)->module_dir, "s3://b/k");
  found = found_with(Json::object());
  EXPECT_EQ(read_settings(found)->module_dir, "/opt/ml/code");
  found.variables["SAGEMAKER_SUBMIT_DIRECTORY"] = "/opt/program";
  EXPECT_EQ(read_settings(found)->module_dir, "/opt/program");
}

TEST(Settings, FindTheHostsOfADistribution) {
  const auto hosts = [](Json hyperparameters) {
    return read_settings(found_with(std::move(hyperparameters)))->distribution_hosts;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(hosts(Json::object()), Names{});
  EXPECT_EQ(hosts({{"sagemaker_mpi_enabled", "false"}}), Names{});
  // Without names it is the host's own group.
  EXPECT_EQ(hosts({{"sagemaker_mpi_enabled", "true"}}), (Names{"algo-2", "algo-3"}));
  EXPECT_EQ(hosts({{"sagemaker_torch_distributed_enabled", "true"},
                   {"sagemaker_distribution_instance_groups", "[\"read\", \"work\"]"}}),
            (Names{"algo-1", "algo-2", "algo-3"}));
  const auto apart =
      read_settings(found_with({{"sagemaker_mpi_enabled", "true"},
                                {"sagemaker_distribution_instance_groups", "[\"read\"]"}}));
  EXPECT_FALSE(apart->in_distribution());
  EXPECT_EQ(apart->master(), "algo-1");
}

TEST(Settings, RejectFilesOutsideOfTheContract) {
  Found found = found_with(Json::object());
  found.resource_config = R"({"current_host":"algo-9","hosts":["algo-1"]})";
  EXPECT_FALSE(read_settings(found));
  found = found_with(Json::object());
  found.hyperparameters = "[]";
  EXPECT_FALSE(read_settings(found));
  found = found_with(Json::object());
  found.resource_config = R"({"current_host":"algo-1","hosts":["algo-1"],"instance_groups":[3]})";
  EXPECT_FALSE(read_settings(found));
}

TEST(Settings, AcceptOnlyProgramsInTheSources) {
  for (const char* good : {"train.py", "bin/train.sh", "a-b_c+d.1/x", ".hidden/run"})
    EXPECT_TRUE(check_program(good)) << good;
  for (const char* bad :
       {"", "-c", "/bin/sh", "../x.py", "a/../x", "a//b", "x;y", "x y", "./x", "+x", "$(x)"})
    EXPECT_FALSE(check_program(bad)) << bad;
}

TEST(Settings, KeepVariablesOfImageAndJob) {
  const auto settings = read_settings(found_with({{"sagemaker_program", "train.py"}}));
  const auto variables = script_variables(
      *settings, {{"PYTHONPATH", "/opt/lib"}, {"NCCL_DEBUG", "INFO"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(variables.at("PYTHONPATH"), "/opt/ml/code:/opt/lib");
  EXPECT_FALSE(variables.contains("NCCL_DEBUG"));
  EXPECT_FALSE(variables.contains("MASTER_PORT"));
  EXPECT_EQ(variables.at("MASTER_ADDR"), "algo-1");
}

}  // namespace
}  // namespace trainyard::entry
