// Makes and reads the files, variables and exit rules of the job contract (SageMaker's): the agent
// writes them; entry, trainers and jobs read them.
//
// Pure: only text. Files lie below `base` (/opt/ml), where the agent writes them.
//
// Threads: pure functions. Errors: invalid, naming file and member.
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
// $PATH where an image names none.
inline constexpr std::string_view kUsualPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// of /opt/ml/output/failure that FailureReason shows
inline constexpr size_t kFailureCharactersMax = 1024;

struct ChannelConfig {
  std::string name;
  std::string content_type;    // "" when none
  std::string input_mode;      // "File", "Pipe", "FastFile"
  std::string distribution;    // "FullyReplicated", "ShardedByS3Key"
  std::string record_wrapper;  // "None", "RecordIO"
  std::string compression;     // "None", "Gzip"
  std::string s3_data_type;
  std::string s3_uri;
  std::vector<std::string> attribute_names = {};
  std::optional<int64_t> shuffle_seed = {};
  Json file_system = nullptr;  // instead of S3: in the form of init-config.json
};

struct GroupConfig {
  std::string name;
  std::string instance_type;
  std::vector<std::string> hosts;
};

// The job's configuration as one host sees it.
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
  std::map<std::string, std::string> environment;  // of the request
  std::vector<ChannelConfig> channels;
  std::string checkpoint_path;   // in the container; "" when the job has no checkpoints
  std::string tensorboard_path;  // likewise; "" when TensorBoard's files are not kept
  Json metric_definitions = Json::array();
  Json request = Json::object();  // the Create request, verbatim
};

// Path below /opt/ml -> content: input/config/hyperparameters.json and its neighbours.
std::map<std::string, std::string> input_files(const HostConfig& host);

// Directories below /opt/ml that exist before the container starts.
std::vector<std::string> directories(const HostConfig& host);

// Returns /opt/ml/input/data/<channel>-manifest: the objects below `prefix_uri` that this host
// received.
std::string channel_manifest(const std::string& prefix_uri,
                             const std::vector<std::string>& relative_keys);

// Returns the platform's environment variables; `endpoint` has the URLs of the in-job relay for API
// and object store, and the URL and token of the in-job credentials endpoint. The request's own
// environment wins for equal names.
struct EndpointConfig {
  std::string api_url;            // AWS_ENDPOINT_URL, S3_ENDPOINT_URL
  std::string objects_url;        // if the object store is a different server
  std::string credentials_url;    // AWS_CONTAINER_CREDENTIALS_FULL_URI
  std::string credentials_token;  // AWS_CONTAINER_AUTHORIZATION_TOKEN
  std::string ca_bundle;          // path inside the container
  std::string data_path = {};     // AWS_DATA_PATH: likewise, of the directory with endpoints.json
};
std::map<std::string, std::string> environment(const HostConfig& host,
                                               const EndpointConfig& endpoint);
// Returns those of a container outside the training contract: the endpoints, and nothing of
// training.
std::map<std::string, std::string> plain_environment(const HostConfig& host,
                                                     const EndpointConfig& endpoint);

// resourceconfig.json, as a job reads it.
struct Resources {
  std::string current_host;
  std::vector<std::string> hosts;
  std::string network_interface;
};
Result<Resources> read_resources(std::string_view json);
Result<std::map<std::string, std::string>> read_hyperparameters(std::string_view json);
// Reads inputdataconfig.json, ordered by name: sets name, content_type, input_mode, distribution
// and record_wrapper.
Result<std::vector<ChannelConfig>> read_channels(std::string_view json);

// Returns the reported part of the failure file: UTF-8, without surrounding blanks, its first
// kFailureCharactersMax characters.
std::string failure_text(std::string_view file);

// Returns "AlgorithmError: <failure text>, exit code: N". `failure` is the failure file's content,
// "" without one.
std::string failure_reason(std::string_view failure, int exit_code);

}  // namespace trainyard::contract
