#include "contract/contract.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "contract/clients.hpp"
#include "contract/entry.hpp"
#include "contract/log_line.hpp"

namespace trainyard::contract {
namespace {

HostConfig two_hosts() {
  HostConfig host;
  host.job_name = "digits-1";
  host.job_arn = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/digits-1";
  host.region = "eu-west-1";
  host.current_host = "algo-2";
  host.current_instance_type = "ml.m5.large";
  host.current_group = "homogeneousCluster";
  host.hosts = {"algo-1", "algo-2"};
  host.groups = {{"homogeneousCluster", "ml.m5.large", {"algo-1", "algo-2"}}};
  host.hyperparameters = {{"epochs", "10"}, {"name", "\"abc\""}};
  host.environment = {{"LANG", "de_DE.UTF-8"}, {"MINE", "1"}};
  host.channels = {
      {"train", "text/csv", "File", "ShardedByS3Key", "None", "None", "S3Prefix",
       "s3://data/digits/train"},
      {"val", "", "File", "FullyReplicated", "None", "None", "S3Prefix", "s3://data/digits/val"}};
  host.checkpoint_path = "/opt/ml/checkpoints";
  host.tensorboard_path = "/opt/ml/output/tensorboard";
  host.metric_definitions = Json::array({{{"Name", "loss"}, {"Regex", "loss=([0-9.]+)"}}});
  host.request = {{"TrainingJobName", "digits-1"}};
  return host;
}

std::string golden(const std::string& name) {
  std::ifstream file("golden/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The golden files have line breaks for readability; they are compared as documents.
TEST(Contract, InputFilesMatchTheGoldenOnes) {
  const auto files = input_files(two_hosts());
  ASSERT_EQ(files.size(), 9u);
  for (const auto& [path, content] : files) {
    const auto name = path.substr(path.rfind('/') + 1);
    const auto expected = parse_json(golden(name));
    ASSERT_TRUE(expected) << name;
    EXPECT_EQ(*parse_json(content), *expected) << name << ":\n" << parse_json(content)->dump(2);
  }
}

TEST(Contract, EnvironmentMatchesTheGoldenOne) {
  EndpointConfig endpoint{"http://169.254.170.2:4566",
                          "",
                          "http://169.254.170.2/v2/credentials/11-22",
                          "secret",
                          "/ca.pem",
                          std::string(kClientsInside)};
  std::string text;
  for (const auto& [name, value] : environment(two_hosts(), endpoint))
    text += name + "=" + value + "\n";
  EXPECT_EQ(text, golden("environment.txt"));
}

TEST(Contract, SetsTheUrlOfASeparateObjectStore) {
  const auto variables = environment(two_hosts(), {"http://a", "http://b", "", "", ""});
  EXPECT_EQ(variables.at("AWS_ENDPOINT_URL"), "http://a");
  EXPECT_EQ(variables.at("S3_ENDPOINT_URL"), "http://b");
  EXPECT_EQ(variables.at("AWS_ENDPOINT_URL_S3"), "http://b");
  EXPECT_FALSE(variables.contains("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"));
}

TEST(Contract, EndpointsJsonHasSchemeAndAddressOfEachServer) {
  const auto addresses = [](const char* api, const char* objects) {
    const Json partition = parse_json(endpoints_json(api, objects))->at("partitions").at(0);
    std::string text;
    for (const Json& of :
         {partition.at("defaults"), partition.at("services").at("s3").at("defaults")})
      text += of.at("protocols").at(0).get<std::string>() + " " +
              of.at("hostname").get<std::string>() + "\n";
    return text;
  };
  EXPECT_EQ(addresses("http://169.254.170.2:4566", ""),
            "http 169.254.170.2:4566\nhttp 169.254.170.2:4566\n");
  EXPECT_EQ(addresses("http://169.254.170.2:4566", "https://s3.lan/path"),
            "http 169.254.170.2:4566\nhttps s3.lan\n");
}

TEST(Contract, WithoutHyperparametersTheFileIsAnEmptyObject) {
  auto host = two_hosts();
  host.hyperparameters.clear();
  host.channels.clear();
  EXPECT_EQ(input_files(host).at("input/config/hyperparameters.json"), "{}");
  EXPECT_EQ(input_files(host).at("input/config/inputdataconfig.json"), "{}");
}

TEST(Contract, ReadsWrittenFiles) {
  const auto files = input_files(two_hosts());
  const auto resources = read_resources(files.at("input/config/resourceconfig.json"));
  ASSERT_TRUE(resources);
  EXPECT_EQ(resources->current_host, "algo-2");
  EXPECT_EQ(resources->hosts, (std::vector<std::string>{"algo-1", "algo-2"}));
  EXPECT_EQ(resources->network_interface, "eth0");
  EXPECT_EQ(read_hyperparameters(files.at("input/config/hyperparameters.json"))->at("name"),
            "\"abc\"");
  const auto channels = read_channels(files.at("input/config/inputdataconfig.json"));
  ASSERT_TRUE(channels);
  ASSERT_EQ(channels->size(), 2u);
  EXPECT_EQ(channels->at(0).distribution, "ShardedByS3Key");
  EXPECT_EQ(channels->at(0).content_type, "text/csv");
}

TEST(Contract, ErrorsNameFileAndMember) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"[]", "must be a JSON object"},
      {"{", "resourceconfig.json"},
      {R"({"hosts":["a"],"network_interface_name":"eth0"})", "current_host"},
      {R"({"current_host":"a","network_interface_name":"eth0"})", "hosts"},
      {R"({"current_host":"a","hosts":[1],"network_interface_name":"eth0"})", "hosts"},
      {R"({"current_host":"b","hosts":["a"],"network_interface_name":"eth0"})", "not one of hosts"},
      {R"({"current_host":"a","hosts":["a"]})", "network_interface_name"}};
  for (const auto& [json, word] : faults) {
    const auto read = read_resources(json);
    ASSERT_FALSE(read) << json;
    EXPECT_EQ(read.error().kind, Kind::invalid);
    EXPECT_NE(read.error().message.find(word), std::string::npos) << read.error().message;
  }
  EXPECT_FALSE(read_hyperparameters(R"({"epochs":10})"));
  EXPECT_FALSE(read_channels(R"({"train":7})"));
  EXPECT_FALSE(read_channels(R"({"train":{}})"));
}

TEST(Contract, ManifestHasPrefixAndKeys) {
  EXPECT_EQ(channel_manifest("s3://b/p/", {"a", "c/d"}), R"([{"prefix":"s3://b/p/"},"a","c/d"])");
}

TEST(Contract, FormatsFailureReasons) {
  EXPECT_EQ(failure_reason("no memory\n", 3), "AlgorithmError: no memory, exit code: 3");
  EXPECT_EQ(failure_reason("", 1), "AlgorithmError: , exit code: 1");
  // 1024 characters, of any number of bytes; invalid UTF-8 is replaced.
  std::string umlauts;
  for (int i = 0; i < 2000; ++i) umlauts += "\xC3\xA4";
  EXPECT_EQ(failure_text(umlauts).size(), 2 * kFailureCharactersMax);
  EXPECT_EQ(failure_text("\xFF!"), "\xEF\xBF\xBD!");
}

TEST(Contract, PassesValuesToEntry) {
  const auto entry_config = read_entry_config(write_entry_config({"5ec7e7", 1.5}));
  ASSERT_TRUE(entry_config);
  EXPECT_EQ(entry_config->gang_secret, "5ec7e7");
  EXPECT_EQ(entry_config->cpus, 1.5);
  EXPECT_FALSE(read_entry_config("{}"));
  EXPECT_FALSE(read_entry_config("[1"));
}

TEST(Contract, RejectsImpossibleSharesForEntry) {
  const auto read = [](const std::string& cpus) {
    return read_entry_config(R"({"gang_secret":"5ec7e7","cpus":)" + cpus + "}");
  };
  for (const char* cpus : {"0", "0.5", "1048576"}) EXPECT_TRUE(read(cpus)) << cpus;
  for (const char* cpus : {"-1", "2147483648", "4294967296", "9223372036854775807",
                           "18446744073709551615", "1e300", "-1e300"}) {
    const auto entry_config = read(cpus);
    ASSERT_FALSE(entry_config) << cpus;
    EXPECT_NE(entry_config.error().message.find("host.json: invalid cpus: "), std::string::npos)
        << entry_config.error().message;
  }
}

TEST(Contract, FindsVariables) {
  EXPECT_EQ(variable_of({{"A", "1"}}, "A"), "1");
  EXPECT_EQ(variable_of({{"A", "1"}}, "B"), "");
}

TEST(LogLine, IsFormattedAndCutOff) {
  EXPECT_EQ(format_line("epoch %d: %.2f", 3, 0.5), "epoch 3: 0.50");
  EXPECT_EQ(format_line("%s", std::string(600, 'x').c_str()), std::string(511, 'x'));
}

TEST(LogLine, HasTheFormatOfSageMaker) {
  EXPECT_EQ(log_line(*parse_iso8601("2026-11-27T09:45:01Z"), "Epoch[0] Train-accuracy=0.5"),
            "[11/27/2026 09:45:01 INFO 1] Epoch[0] Train-accuracy=0.5");
}

}  // namespace
}  // namespace trainyard::contract
