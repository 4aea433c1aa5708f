// Converts CreateTrainingJob's request to a domain::JobSpec.
#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "base/check.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "domain/instance_type.hpp"
#include "domain/limits.hpp"
#include "objects/objects.hpp"
#include "protocol/json.hpp"
#include "sagemaker/algorithm_metrics.hpp"
#include "sagemaker/no_effect.hpp"
#include "sagemaker/training_job.hpp"

namespace trainyard::api::sagemaker {
namespace {

namespace sagemaker = shapes::sagemaker;

// Makes the failure for an unsupported parameter, with an alternative.
Failure not_yet(std::string_view member, std::string_view instead) {
  return validation_exception(std::string(member) +
                              " is not supported by this server yet: " + std::string(instead));
}

bool given(const std::optional<std::string>& text) { return text && !text->empty(); }

std::string without_last_slashes(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

Outcome<std::string> s3_uri(const std::string& uri, const std::string& where) {
  auto location = objects::parse_s3_uri(uri);
  if (!location)
    return validation_exception("Invalid S3 URI '" + shorten(uri, 200) + "' at " + where + ": " +
                                location.error().message);
  return uri;
}

Outcome<Done> refuse_what_is_not_here(const sagemaker::CreateTrainingJobRequest& request) {
  if (request.debug_rule_configurations && !request.debug_rule_configurations->empty())
    return not_yet("DebugRuleConfigurations", "leave the rules out");
  if (request.remote_debug_config &&
      request.remote_debug_config->enable_remote_debug.value_or(false))
    return not_yet("RemoteDebugConfig", "leave it out");
  if (request.session_chaining_config &&
      request.session_chaining_config->enable_session_tag_chaining.value_or(false))
    return not_yet("SessionChainingConfig", "leave it out");
  if (request.serverless_job_config)
    return not_yet("ServerlessJobConfig", "name a TrainingImage and a ResourceConfig");
  if (request.mlflow_config) return not_yet("MlflowConfig", "leave it out");
  if (request.model_package_config) return not_yet("ModelPackageConfig", "leave it out");
  return Done{};
}

Outcome<Done> read_algorithm(const sagemaker::CreateTrainingJobRequest& request,
                             const FindImage& find_image, domain::JobSpec& spec) {
  if (!request.algorithm_specification)
    return validation_exception("AlgorithmSpecification is required: it names the TrainingImage");
  const auto& algorithm = *request.algorithm_specification;
  if (given(algorithm.algorithm_name))
    return not_yet("AlgorithmSpecification.AlgorithmName",
                   "name an image as AlgorithmSpecification.TrainingImage");
  if (!given(algorithm.training_image))
    return validation_exception(
        "AlgorithmSpecification.TrainingImage is required: it names what the job runs");
  spec.image = *algorithm.training_image;
  const auto image = find_image(spec.image);
  if (!image)
    return validation_exception("TrainingImage '" + shorten(spec.image, 255) +
                                "': " + image.error().message);
  spec.entrypoint = algorithm.container_entrypoint.value_or(std::vector<std::string>());
  spec.arguments = algorithm.container_arguments.value_or(std::vector<std::string>());

  std::set<std::string> names;
  for (const auto& metric :
       algorithm.metric_definitions.value_or(std::vector<sagemaker::MetricDefinition>())) {
    auto definition = metric_definition(*metric.name, *metric.regex);
    if (!definition) return validation_exception(definition.error().message);
    if (!names.insert(*metric.name).second)
      return validation_exception("Metric names must be unique, but " + *metric.name +
                                  " is defined twice");
    spec.metrics.push_back(*std::move(definition));
  }
  for (const auto& [name, regex] : algorithm_metrics(spec.image, *image)) {
    if (names.contains(name)) continue;
    auto definition = metric_definition(name, regex);
    CHECK(definition, "the metrics of an algorithm are valid");
    spec.metrics.push_back(*std::move(definition));
  }
  return Done{};
}

Failure channel_fault(const domain::Channel& channel, const std::string& text) {
  return validation_exception("Channel " + channel.name + ": " + text);
}

// Returns the input mode of a channel: its own, or the algorithm's.
Outcome<domain::InputMode> input_mode_of(const sagemaker::Channel& channel,
                                         const std::string& of_algorithm) {
  const std::string mode = channel.input_mode.value_or(of_algorithm);
  if (mode == "File") return domain::InputMode::file;
  if (mode == "Pipe") return domain::InputMode::pipe;
  if (mode == "FastFile") return domain::InputMode::fast_file;
  return not_yet("Channel " + *channel.channel_name + ": InputMode " + mode,
                 "use File, FastFile or Pipe");
}

// Checks the combination of a channel's options, as SageMaker does.
Outcome<Done> check_channel(const domain::Channel& channel, const domain::JobSpec& spec) {
  const bool pipe = channel.input_mode == domain::InputMode::pipe;
  if (channel.compression != "None" && !pipe)
    return channel_fault(
        channel, "CompressionType " + channel.compression + " can be used only in Pipe mode");
  if (channel.record_wrapper != "None" && !pipe)
    return channel_fault(
        channel, "RecordWrapperType " + channel.record_wrapper + " can be used only in Pipe mode");
  const bool augmented = channel.s3_data_type == "AugmentedManifestFile";
  if (augmented && !pipe)
    return channel_fault(channel, "S3DataType AugmentedManifestFile can be used only in Pipe mode");
  if (augmented == channel.attribute_names.empty())
    return channel_fault(
        channel, augmented
                     ? "an AugmentedManifestFile needs AttributeNames: which attributes of its "
                       "records are streamed"
                     : "AttributeNames are only for S3DataType AugmentedManifestFile");
  for (const auto& group : channel.groups)
    if (std::none_of(spec.groups.begin(), spec.groups.end(),
                     [&](const domain::InstanceGroup& each) { return each.name == group; }))
      return channel_fault(channel, "instance group not found: " + group);
  return Done{};
}

Outcome<Done> read_s3_source(const sagemaker::S3DataSource& source, domain::Channel& out) {
  out.s3_data_type = *source.s3_data_type;
  out.s3_uri = TRY(s3_uri(*source.s3_uri, "channel " + out.name));
  if (out.s3_data_type != "S3Prefix" && out.s3_data_type != "ManifestFile" &&
      out.s3_data_type != "AugmentedManifestFile")
    return not_yet("Channel " + out.name + ": S3DataType " + out.s3_data_type,
                   "use S3Prefix, ManifestFile or AugmentedManifestFile");
  if (source.hub_access_config)
    return not_yet("Channel " + out.name + ": HubAccessConfig", "copy the data into a bucket");
  out.attribute_names = source.attribute_names.value_or(std::vector<std::string>());
  out.groups = source.instance_group_names.value_or(std::vector<std::string>());
  out.distribution =
      source.s3_data_distribution_type.value_or("FullyReplicated") == "ShardedByS3Key"
          ? domain::Distribution::sharded_by_s3_key
          : domain::Distribution::fully_replicated;
  return Done{};
}

Outcome<Done> read_file_system_source(const sagemaker::FileSystemDataSource& source,
                                      const domain::FileSystems& file_systems,
                                      domain::Channel& out) {
  if (out.input_mode != domain::InputMode::file)
    return channel_fault(out, "a FileSystemDataSource can be used only in File mode");
  if (out.shuffle_seed)
    return channel_fault(
        out, "ShuffleConfig is for S3: the order of a file system's files is the program's");
  auto resolved = domain::resolve_source(
      file_systems, {*source.file_system_id, *source.file_system_type, *source.directory_path,
                     *source.file_system_access_mode == "rw"});
  if (!resolved) return channel_fault(out, resolved.error().message);
  out.file_system = std::move(*resolved);
  return Done{};
}

Outcome<domain::Channel> read_channel(const sagemaker::Channel& channel,
                                      const std::string& mode_of_algorithm,
                                      const domain::FileSystems& file_systems,
                                      const domain::JobSpec& spec) {
  domain::Channel out;
  out.name = *channel.channel_name;
  out.content_type = channel.content_type.value_or("");
  out.compression = channel.compression_type.value_or("None");
  out.record_wrapper = channel.record_wrapper_type.value_or("None");
  out.input_mode = TRY(input_mode_of(channel, mode_of_algorithm));
  if (channel.shuffle_config) out.shuffle_seed = channel.shuffle_config->seed;
  const auto source = channel.data_source.value_or(sagemaker::DataSource());
  if (source.dataset_source)
    return not_yet("Channel " + out.name + ": DatasetSource", "use an S3DataSource");
  if (!source.s3_data_source == !source.file_system_data_source)
    return channel_fault(out, "DataSource needs either S3DataSource or FileSystemDataSource");
  if (source.s3_data_source) {
    TRY(read_s3_source(*source.s3_data_source, out));
  } else {
    TRY(read_file_system_source(*source.file_system_data_source, file_systems, out));
  }
  TRY(check_channel(out, spec));
  return out;
}

// Checks that the files of different channels in /opt/ml/input/data have different names.
Outcome<Done> check_names(const std::vector<domain::Channel>& channels) {
  for (const auto& channel : channels) {
    for (const auto& other : channels) {
      if (&other == &channel || !other.name.starts_with(channel.name)) continue;
      const auto rest = std::string_view(other.name).substr(channel.name.size());
      if (rest.empty())
        return validation_exception("Channel names must be unique, but " + channel.name +
                                    " is given twice");
      const bool file = channel.input_mode != domain::InputMode::pipe;
      const bool fifo = rest.size() > 1 && rest[0] == '_' &&
                        rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
      if (file ? rest == "-manifest" : fifo)
        return channel_fault(other, "that is the name of a file of channel " + channel.name);
    }
  }
  return Done{};
}

Outcome<Done> read_channels(const sagemaker::CreateTrainingJobRequest& request,
                            const domain::FileSystems& file_systems, domain::JobSpec& spec) {
  const auto mode = request.algorithm_specification->training_input_mode.value_or("File");
  for (const auto& channel : request.input_data_config.value_or(std::vector<sagemaker::Channel>()))
    spec.channels.push_back(TRY(read_channel(channel, mode, file_systems, spec)));
  return check_names(spec.channels);
}

// Checks a limit that the model lacks. `path`: the member's, as in AWS's texts about constraints.
Outcome<Done> at_most(const std::string& path, int64_t value, int64_t most) {
  if (value <= most) return Done{};
  return validation_exception(
      "1 validation error detected: Value '" + std::to_string(value) + "' at '" + path +
      "' failed to satisfy constraint: Member must have value less than or equal to " +
      std::to_string(most));
}

Outcome<domain::InstanceGroup> group_of(std::string name, const std::string& type, int64_t count) {
  if (!domain::find_instance_type(type))
    return validation_exception("The instance type " + type + " is not known to this server");
  if (count < 1)
    return validation_exception("An instance group needs at least one instance, but " + name +
                                " has none");
  TRY(at_most("resourceConfig.instanceCount", count, domain::kGangHostsMax));
  return domain::InstanceGroup{std::move(name), type, static_cast<uint32_t>(count)};
}

Outcome<Done> add_group(std::string name, const std::string& type, int64_t count,
                        domain::JobSpec& spec) {
  spec.groups.push_back(TRY(group_of(std::move(name), type, count)));
  return at_most("resourceConfig.instanceGroups, over which instanceCount is summed", spec.hosts(),
                 domain::kGangHostsMax);
}

// Checks the rules in the model's documentation of InstancePreferences.
Outcome<Done> check_preferences(const sagemaker::CreateTrainingJobRequest& request) {
  const auto& resources = *request.resource_config;
  const std::pair<const char*, bool> excluded[] = {
      {"InstanceType", resources.instance_type.has_value()},
      {"InstanceGroups", resources.instance_groups.has_value()},
      {"InstancePlacementConfig", resources.instance_placement_config.has_value()},
      {"EnableManagedSpotTraining", request.enable_managed_spot_training.value_or(false)}};
  for (const auto& [member, present] : excluded)
    if (present)
      return validation_exception(std::string("InstancePreferences is mutually exclusive with ") +
                                  member);
  size_t with_count = 0;
  std::set<std::string> types;
  for (const auto& each : *resources.instance_preferences) {
    if (each.training_plan_arns && !each.training_plan_arns->empty())
      return not_yet("ResourceConfig.InstancePreferences.TrainingPlanArns", "leave it out");
    if (!types.insert(*each.instance_type).second)
      return validation_exception(
          "An instance type can appear only once in InstancePreferences, but " +
          *each.instance_type + " is given twice");
    if (each.instance_count) ++with_count;
  }
  const size_t all = resources.instance_preferences->size();
  if (resources.instance_count ? with_count != 0 : with_count != all)
    return validation_exception(
        "InstancePreferences needs InstanceCount either on every preference or once in "
        "ResourceConfig");
  return Done{};
}

Outcome<Done> read_preferences(const sagemaker::CreateTrainingJobRequest& request,
                               domain::JobSpec& spec) {
  TRY(check_preferences(request));
  for (const auto& each : *request.resource_config->instance_preferences) {
    const int64_t count =
        each.instance_count ? *each.instance_count : *request.resource_config->instance_count;
    spec.preferences.push_back(TRY(group_of("homogeneousCluster", *each.instance_type, count)));
  }
  spec.groups = {spec.preferences.front()};
  return Done{};
}

Outcome<Done> read_resources(const sagemaker::CreateTrainingJobRequest& request,
                             domain::JobSpec& spec) {
  if (!request.resource_config) return validation_exception("ResourceConfig is required");
  const auto& resources = *request.resource_config;
  spec.keep_alive_seconds = resources.keep_alive_period_in_seconds.value_or(0);
  if (spec.keep_alive_seconds > 0 && request.enable_managed_spot_training.value_or(false))
    return validation_exception(
        "KeepAlivePeriodInSeconds is not supported when EnableManagedSpotTraining is set to true: "
        "spot capacity cannot be kept");
  if (given(resources.volume_kms_key_id))
    return not_yet("ResourceConfig.VolumeKmsKeyId",
                   "leave out volume_kms_key, and keep the data directory on an encrypted disk");
  if (given(resources.training_plan_arn))
    return not_yet("ResourceConfig.TrainingPlanArn", "leave it out");
  if (resources.selected_instance_type || resources.selected_instance_count)
    return validation_exception(
        "SelectedInstanceType and SelectedInstanceCount are read-only: leave them out of "
        "ResourceConfig");
  spec.volume_gib = resources.volume_size_in_gb.value_or(kVolumeGibDefault);
  TRY(at_most("resourceConfig.volumeSizeInGB", spec.volume_gib, domain::kVolumeGibMax));
  if (resources.instance_preferences && !resources.instance_preferences->empty())
    return read_preferences(request, spec);
  const bool groups = resources.instance_groups && !resources.instance_groups->empty();
  if (groups && (resources.instance_type || resources.instance_count))
    return validation_exception(
        "ResourceConfig takes either InstanceGroups or InstanceType and InstanceCount, not both");
  if (!groups) {
    if (!resources.instance_type || !resources.instance_count)
      return validation_exception(
          "ResourceConfig needs InstanceType and InstanceCount, or InstanceGroups");
    return add_group("homogeneousCluster", *resources.instance_type, *resources.instance_count,
                     spec);
  }
  std::set<std::string> names;
  for (const auto& group : *resources.instance_groups) {
    if (!group.instance_type || !group.instance_count || !group.instance_group_name)
      return validation_exception(
          "Every instance group needs InstanceType, InstanceCount and InstanceGroupName");
    if (!names.insert(*group.instance_group_name).second)
      return validation_exception("Instance group names must be unique, but " +
                                  *group.instance_group_name + " is given twice");
    TRY(add_group(*group.instance_group_name, *group.instance_type, *group.instance_count, spec));
  }
  return Done{};
}

Outcome<Done> read_output(const sagemaker::CreateTrainingJobRequest& request,
                          domain::JobSpec& spec) {
  if (!request.output_data_config || !given(request.output_data_config->s3_output_path))
    return validation_exception("OutputDataConfig.S3OutputPath is required");
  const auto& output = *request.output_data_config;
  if (given(output.kms_key_id))
    return not_yet("OutputDataConfig.KmsKeyId",
                   "leave out output_kms_key, and keep the data directory on an encrypted disk");
  spec.compress_model = output.compression_type.value_or("GZIP") != "NONE";
  spec.output_uri =
      without_last_slashes(TRY(s3_uri(*output.s3_output_path, "OutputDataConfig.S3OutputPath")));
  return Done{};
}

// Checks the path of a synchronised directory in the container. It must not hide files of the
// platform.
Outcome<std::string> local_path(const std::string& given_path, const std::string& member) {
  const std::string path = without_last_slashes(given_path);
  const auto refused = [&](const std::string& why) {
    return validation_exception(member + " '" + shorten(given_path, 200) +
                                "' cannot be used: " + why);
  };
  if (!path.starts_with('/')) return refused("it must be an absolute path");
  const auto parts = split(std::string_view(path).substr(1), '/');
  for (const auto part : parts)
    if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string_view::npos)
      return refused("it must be a plain path, without empty parts, '.' and '..'");
  if (path == "/opt" || path == "/opt/ml" || path.starts_with("/opt/ml/input/") ||
      path == "/opt/ml/input")
    return refused("the job's own files are there");
  for (const std::string system : {"/proc", "/sys", "/dev"})
    if (path == system || path.starts_with(system + "/"))
      return refused("the system's own files are there");
  return path;
}

Outcome<Done> read_checkpoint(const sagemaker::CreateTrainingJobRequest& request,
                              domain::JobSpec& spec) {
  if (!request.checkpoint_config) return Done{};
  domain::SyncedDirectory checkpoint;
  checkpoint.uri = without_last_slashes(
      TRY(s3_uri(request.checkpoint_config->s3_uri.value_or(""), "CheckpointConfig.S3Uri")));
  checkpoint.path =
      TRY(local_path(request.checkpoint_config->local_path.value_or("/opt/ml/checkpoints"),
                     "CheckpointConfig.LocalPath"));
  spec.checkpoint = std::move(checkpoint);
  return Done{};
}

bool overlap(const std::string& a, const std::string& b) {
  return (a + "/").starts_with(b + "/") || (b + "/").starts_with(a + "/");
}

// Requires: the checkpoint was read.
Outcome<Done> read_tensorboard(const sagemaker::CreateTrainingJobRequest& request,
                               domain::JobSpec& spec) {
  if (!request.tensor_board_output_config) return Done{};
  const auto& given_config = *request.tensor_board_output_config;
  const std::string output =
      TRY(s3_uri(given_config.s3_output_path.value_or(""), "TensorBoardOutputConfig.S3OutputPath"));
  const std::string given_path = given_config.local_path.value_or("/opt/ml/output/tensorboard");
  const std::string member = "TensorBoardOutputConfig.LocalPath";
  const std::string path = TRY(local_path(given_path, member));
  if (spec.checkpoint && overlap(path, spec.checkpoint->path))
    return validation_exception(
        member + " '" + shorten(given_path, 200) +
        "' cannot be used: it overlaps with CheckpointConfig.LocalPath, whose files are uploaded "
        "to another place");
  spec.tensorboard = {domain::tensorboard_uri(output, *request.training_job_name), path};
  return Done{};
}

Outcome<Done> read_times(const sagemaker::CreateTrainingJobRequest& request,
                         domain::JobSpec& spec) {
  const auto stopping = request.stopping_condition.value_or(sagemaker::StoppingCondition());
  spec.max_runtime_seconds = stopping.max_runtime_in_seconds.value_or(kMaxRuntimeSecondsDefault);
  if (spec.max_runtime_seconds > kMaxRuntimeSecondsMax)
    return validation_exception("MaxRuntimeInSeconds must be at most " +
                                std::to_string(kMaxRuntimeSecondsMax) + " (28 days)");
  TRY(at_most("stoppingCondition.maxWaitTimeInSeconds",
              stopping.max_wait_time_in_seconds.value_or(0), domain::kSecondsMax));
  if (!request.enable_managed_spot_training.value_or(false)) {
    if (stopping.max_wait_time_in_seconds)
      return validation_exception(
          "Invalid MaxWaitTimeInSeconds. It is supported only when EnableManagedSpotTraining is "
          "set to true");
  } else {
    if (!stopping.max_wait_time_in_seconds ||
        *stopping.max_wait_time_in_seconds < spec.max_runtime_seconds)
      return validation_exception(
          "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to "
          "MaxRuntimeInSeconds");
    spec.spot = true;
    spec.max_wait_seconds = stopping.max_wait_time_in_seconds;
  }
  spec.max_pending_seconds = stopping.max_pending_time_in_seconds;
  if (request.retry_strategy)
    spec.retries_max = static_cast<uint32_t>(*request.retry_strategy->maximum_retry_attempts);
  return Done{};
}

}  // namespace

Outcome<domain::JobSpec> job_spec_of(const sagemaker::CreateTrainingJobRequest& request,
                                     const FindImage& find_image,
                                     const domain::FileSystems& file_systems) {
  domain::JobSpec spec;
  TRY(refuse_what_is_not_here(request));
  TRY(read_algorithm(request, find_image, spec));
  TRY(read_resources(request, spec));
  TRY(read_channels(request, file_systems, spec));
  TRY(read_output(request, spec));
  TRY(read_checkpoint(request, spec));
  TRY(read_tensorboard(request, spec));
  TRY(read_times(request, spec));
  spec.role_arn = *request.role_arn;
  spec.hyperparameters = request.hyper_parameters.value_or(std::map<std::string, std::string>());
  spec.environment = request.environment.value_or(std::map<std::string, std::string>());
  spec.network_isolation = request.enable_network_isolation.value_or(false);
  spec.encrypt_traffic = request.enable_inter_container_traffic_encryption.value_or(false);
  std::string text;
  write_json(*sagemaker::CreateTrainingJob::shape().input, &request, text);
  spec.request = TRY(parse_json(text));
  spec.notes = notes_of(spec.request, kTrainingJobNoEffect);
  return spec;
}

Result<domain::MetricDefinition> metric_definition(const std::string& name,
                                                   const std::string& regex) {
  const std::string where = "The regex '" + shorten(regex, 500) + "' of metric " + name;
  const re2::RE2 compiled(regex, re2::RE2::Quiet);
  if (!compiled.ok()) return invalid(where + " cannot be used: " + compiled.error());
  if (compiled.NumberOfCapturingGroups() < 1)
    return invalid(where + " needs a group, in parentheses, that holds the value");
  return domain::MetricDefinition{name, regex};
}

Outcome<std::vector<domain::Tag>> tags_of(const std::vector<sagemaker::Tag>& tags) {
  std::vector<domain::Tag> out;
  std::set<std::string> keys;
  for (const auto& tag : tags) {
    if (!keys.insert(to_lower(*tag.key)).second)
      return validation_exception(
          "Duplicate tag keys found. Please note that Tag keys are case insensitive.");
    if (to_lower(*tag.key).starts_with("aws:"))
      return validation_exception("Tag keys that begin with aws: are reserved: " + *tag.key);
    out.push_back({*tag.key, *tag.value});
  }
  if (out.size() > kTagsMax)
    return validation_exception("A resource has at most " + std::to_string(kTagsMax) + " tags");
  return out;
}

}  // namespace trainyard::api::sagemaker
