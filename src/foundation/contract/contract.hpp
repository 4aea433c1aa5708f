// Makes and reads the files, variables and exit rules of SageMaker's training contract. The agent
// writes them; entry, trainers and jobs read them.
//
// The functions return texts; the agent writes the files below kBase (/opt/ml).
//
// Threads: pure functions. Errors: invalid, with the file and the member.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::contract {

inline constexpr std::string_view kBase = "/opt/ml";
// $PATH if an image does not set it.
inline constexpr std::string_view kUsualPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// limit of the part of /opt/ml/output/failure that FailureReason shows
inline constexpr size_t kFailureCharactersMax = 1024;

struct ChannelConfig {
  std::string name;
  std::string content_type;    // "": none
  std::string input_mode;      // "File", "Pipe", "FastFile"
  std::string distribution;    // "FullyReplicated", "ShardedByS3Key"
  std::string record_wrapper;  // "None", "RecordIO"
  std::string compression;     // "None", "Gzip"
  std::string s3_data_type;
  std::string s3_uri;
  std::vector<std::string> attribute_names = {};
  std::optional<int64_t> shuffle_seed = {};
  Json file_system = nullptr;  // set instead of S3, in the form of init-config.json
};

struct GroupConfig {
  std::string name;
  std::string instance_type;
  std::vector<std::string> hosts;
};

// The configuration of a job for one host.
struct HostConfig {
  std::string job_name;
  std::string job_arn;
  std::string region;
  std::string current_host;
  std::string current_instance_type;
  std::string current_group;
  std::vector<std::string> hosts;
  std::vector<GroupConfig> groups;
  std::string network_interface = "eth0";
  std::map<std::string, std::string> hyperparameters;
  std::map<std::string, std::string> environment;  // variables of the request
  std::vector<ChannelConfig> channels;
  std::string checkpoint_path;   // in the container; "": the job has no checkpoints
  std::string tensorboard_path;  // in the container; "": TensorBoard's files are not kept
  Json metric_definitions = Json::array();
  Json request = Json::object();  // the Create request, verbatim
};

// Returns the files of input/config, such as hyperparameters.json: path below /opt/ml -> content.
std::map<std::string, std::string> input_files(const HostConfig& host);

// Returns the directories below /opt/ml that must exist before the container starts.
std::vector<std::string> directories(const HostConfig& host);

// Returns the content of /opt/ml/input/data/<channel>-manifest: the objects below `prefix_uri` that
// this host received.
std::string channel_manifest(const std::string& prefix_uri,
                             const std::vector<std::string>& relative_keys);

// The endpoints inside a job: the URLs of the relay for API and object store, and the URL and token
// of the credentials endpoint.
struct EndpointConfig {
  std::string api_url;            // AWS_ENDPOINT_URL, S3_ENDPOINT_URL
  std::string objects_url;        // set if the object store is another server
  std::string credentials_url;    // AWS_CONTAINER_CREDENTIALS_FULL_URI
  std::string credentials_token;  // AWS_CONTAINER_AUTHORIZATION_TOKEN
  std::string ca_bundle;          // path inside the container
  std::string data_path = {};     // AWS_DATA_PATH: directory of endpoints.json inside the container
};
// Returns the environment variables of a training container. Variables of the request take
// precedence over those of the platform.
std::map<std::string, std::string> environment(const HostConfig& host,
                                               const EndpointConfig& endpoint);
// Returns the environment variables of a container outside the training contract: only the
// endpoints.
std::map<std::string, std::string> plain_environment(const HostConfig& host,
                                                     const EndpointConfig& endpoint);

// The content of resourceconfig.json.
struct Resources {
  std::string current_host;
  std::vector<std::string> hosts;
  std::string network_interface;
};
Result<Resources> read_resources(std::string_view json);
Result<std::map<std::string, std::string>> read_hyperparameters(std::string_view json);
// Reads inputdataconfig.json. Returns the channels ordered by name; sets name, content_type,
// input_mode, distribution and record_wrapper.
Result<std::vector<ChannelConfig>> read_channels(std::string_view json);

// Returns the value of a variable of a container; "" if it is not set.
std::string variable_of(const std::map<std::string, std::string>& variables,
                        const std::string& name);

// Returns the part of the failure file that is reported: its first kFailureCharactersMax
// characters, as UTF-8, without surrounding blanks.
std::string failure_text(std::string_view file);

// Returns "AlgorithmError: <failure text>, exit code: N". `failure` is the content of the
// failure file; "": there is none.
std::string failure_reason(std::string_view failure, int exit_code);

}  // namespace trainyard::contract
