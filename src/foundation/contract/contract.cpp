#include "contract/contract.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "contract/aws_texts.hpp"

namespace trainyard::contract {
namespace {

// Converts "FullyReplicated" to "FULLY_REPLICATED", the form of enumerations in init-config.json. A
// sequence of capitals or digits is one word ("ShardedByS3Key" -> "SHARDED_BY_S3_KEY").
std::string in_capitals(std::string_view text) {
  std::string capitals;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool upper = text[i] >= 'A' && text[i] <= 'Z';
    const bool word_begins = upper && i > 0 && !(text[i - 1] >= 'A' && text[i - 1] <= 'Z');
    if (word_begins) capitals += '_';
    capitals += text[i] >= 'a' && text[i] <= 'z' ? static_cast<char>(text[i] - 'a' + 'A') : text[i];
  }
  return capitals;
}

Json input_data_config(const HostConfig& host) {
  Json config = Json::object();
  for (const auto& channel : host.channels) {
    Json entry = {
        {"TrainingInputMode", channel.input_mode},
        {"S3DistributionType",
         channel.distribution.empty() ? "FullyReplicated" : channel.distribution},
        {"RecordWrapperType", channel.record_wrapper.empty() ? "None" : channel.record_wrapper}};
    if (!channel.content_type.empty()) entry["ContentType"] = channel.content_type;
    config[channel.name] = std::move(entry);
  }
  return config;
}

Json resource_config(const HostConfig& host) {
  Json groups = Json::array();
  for (const auto& group : host.groups) {
    groups.push_back({{"instance_group_name", group.name},
                      {"instance_type", group.instance_type},
                      {"hosts", group.hosts}});
  }
  return {{"current_host", host.current_host},
          {"current_instance_type", host.current_instance_type},
          {"current_group_name", host.current_group},
          // Both names are set: the toolkit's documentation uses this one, its code the other.
          {"current_instance_group", host.current_group},
          {"hosts", host.hosts},
          {"instance_groups", std::move(groups)},
          {"network_interface_name", host.network_interface}};
}

Json init_config(const HostConfig& host) {
  Json channels = Json::object();
  bool all_file = true;
  for (const auto& channel : host.channels) {
    const bool sharded = channel.distribution == "ShardedByS3Key";
    all_file = all_file && channel.input_mode == "File";
    Json s3 = {
        {"s3DataType",
         in_capitals(channel.s3_data_type.empty() ? "S3Prefix" : channel.s3_data_type)},
        {"s3Uri", channel.s3_uri},
        {"s3DataDistributionType",
         in_capitals(channel.distribution.empty() ? "FullyReplicated" : channel.distribution)},
        {"attributeNames", nullptr}};
    if (!channel.attribute_names.empty()) s3["attributeNames"] = channel.attribute_names;
    Json shuffle = nullptr;
    if (channel.shuffle_seed) shuffle = {{"seed", *channel.shuffle_seed}};
    channels[channel.name] = {
        {"s3DataSource", channel.file_system.is_null() ? std::move(s3) : Json(nullptr)},
        {"fileSystemDataSource", channel.file_system},
        {"compressionType",
         in_capitals(channel.compression.empty() ? "None" : channel.compression)},
        {"recordWrapper",
         in_capitals(channel.record_wrapper.empty() ? "None" : channel.record_wrapper)},
        {"shuffleConfig", std::move(shuffle)},
        {"inputMode", in_capitals(channel.input_mode)},
        {"sharded", sharded}};
  }
  const auto position = std::find(host.hosts.begin(), host.hosts.end(), host.current_host);
  return {
      {"inputMode", all_file ? "FILE" : in_capitals(host.channels.front().input_mode)},
      {"channels", std::move(channels)},
      {"checkpointChannel", nullptr},
      {"hostConfig",
       {{"clusterSize", host.hosts.size()}, {"hostNumber", (position - host.hosts.begin()) + 1}}},
      {"enableDataAgentDownloads", false},
      {"jobRunInfo", nullptr}};
}

}  // namespace

std::map<std::string, std::string> input_files(const HostConfig& host) {
  std::map<std::string, std::string> files = {
      {"input/config/hyperparameters.json", dump(Json(host.hyperparameters))},
      {"input/config/inputdataconfig.json", dump(input_data_config(host))},
      {"input/config/resourceconfig.json", dump(resource_config(host))},
      {"input/config/init-config.json", dump(init_config(host))},
      {"input/config/trainingjobconfig.json", dump(host.request)},
      {"input/config/metric-definition-regex.json", dump(host.metric_definitions)},
      {"input/config/upstreamoutputdataconfig.json", "[]"}};
  if (!host.checkpoint_path.empty())
    files["input/config/checkpointconfig.json"] = dump(Json{{"LocalPath", host.checkpoint_path}});
  if (!host.tensorboard_path.empty())
    files["input/config/tensorboardoutputconfig.json"] =
        dump(Json{{"LocalPath", host.tensorboard_path}});
  return files;
}

std::vector<std::string> directories(const HostConfig& host) {
  std::vector<std::string> paths = {
      "input/config", "input/data",          "model",
      "output/data",  "output/intermediate", "output/metrics/sagemaker",
      "code",         "checkpoints"};
  for (const auto& channel : host.channels) {
    // A channel in Pipe mode has no directory, but FIFOs with this name as prefix.
    if (channel.input_mode != "Pipe") paths.push_back("input/data/" + channel.name);
  }
  return paths;
}

std::string channel_manifest(const std::string& prefix_uri,
                             const std::vector<std::string>& relative_keys) {
  Json manifest = Json::array({{{"prefix", prefix_uri}}});
  for (const auto& key : relative_keys) manifest.push_back(key);
  return dump(manifest);
}

std::map<std::string, std::string> environment(const HostConfig& host,
                                               const EndpointConfig& endpoint) {
  auto variables = plain_environment(host, endpoint);
  variables.insert({{"TRAINING_JOB_NAME", host.job_name},
                    {"TRAINING_JOB_ARN", host.job_arn},
                    {"DMLC_INTERFACE", host.network_interface}});
  return variables;
}

std::map<std::string, std::string> plain_environment(const HostConfig& host,
                                                     const EndpointConfig& endpoint) {
  std::map<std::string, std::string> variables = {
      {"AWS_REGION", host.region},
      {"AWS_DEFAULT_REGION", host.region},
      {"HOSTNAME", host.current_host},
      {"PATH", std::string(kUsualPath)},
      {"LANG", "C.UTF-8"},
      {"LC_ALL", "C.UTF-8"},
      {"HOME", "/root"},
  };
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) variables[name] = value;
  };
  add("AWS_ENDPOINT_URL", endpoint.api_url);
  const auto& objects_url = endpoint.objects_url.empty() ? endpoint.api_url : endpoint.objects_url;
  add("S3_ENDPOINT_URL", objects_url);      // read by SageMaker's own toolkit
  add("AWS_ENDPOINT_URL_S3", objects_url);  // read by the SDKs
  add("AWS_CONTAINER_CREDENTIALS_FULL_URI", endpoint.credentials_url);
  add("AWS_CONTAINER_AUTHORIZATION_TOKEN", endpoint.credentials_token);
  // Clients complete the relative form with this address; old SDKs support only this form.
  constexpr std::string_view relative_to = "http://169.254.170.2/";
  if (endpoint.credentials_url.starts_with(relative_to)) {
    variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] =
        endpoint.credentials_url.substr(relative_to.size() - 1);
  }
  add("AWS_CA_BUNDLE", endpoint.ca_bundle);
  add("AWS_DATA_PATH", endpoint.data_path);  // read by SDKs that do not know AWS_ENDPOINT_URL
  // Otherwise these SDKs call STS at a global host, which endpoints.json cannot change.
  if (!endpoint.data_path.empty()) add("AWS_STS_REGIONAL_ENDPOINTS", "regional");
  for (const auto& [name, value] : host.environment) variables[name] = value;
  return variables;
}

std::string variable_of(const std::map<std::string, std::string>& variables,
                        const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

std::string failure_reason(std::string_view failure, int exit_code) {
  return std::string(kAlgorithmError) + failure_text(failure) +
         ", exit code: " + std::to_string(exit_code);
}

}  // namespace trainyard::contract
