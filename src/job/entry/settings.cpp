#include "entry/settings.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "contract/contract.hpp"

namespace trainyard::entry {

namespace {

constexpr int kInformation = 20;  // logging.INFO
constexpr const char* kMasterPort = "7777";

// The SDK's own options. Other names that begin with sagemaker_ are options of the framework.
constexpr std::array<std::string_view, 9> kOfSdk = {
    "sagemaker_program",
    "sagemaker_submit_directory",
    "sagemaker_enable_cloudwatch_metrics",
    "sagemaker_region",
    "sagemaker_container_log_level",
    "sagemaker_job_name",
    "default_user_module_name",
    "_tuning_objective_metric",
    "sagemaker_s3_output",
};

// If one of these is set and the SDK names no groups, the current group takes part in the
// distribution.
constexpr std::array kDistributionFlags = {
    "sagemaker_mpi_enabled",
    "sagemaker_parameter_server_enabled",
    "sagemaker_distributed_dataparallel_enabled",
    "sagemaker_pytorch_ddp_enabled",
    "sagemaker_pytorch_xla_multi_worker_enabled",
    "sagemaker_multi_worker_mirrored_strategy_enabled",
    "sagemaker_torch_distributed_enabled",
};

Result<std::vector<std::string>> names_at(const Json& object, const char* name,
                                          std::string_view file) {
  std::vector<std::string> names;
  const auto found = object.find(name);
  if (found == object.end()) return names;
  if (!found->is_array())
    return invalid(std::string(file) + ": " + name + " must be an array of names");
  for (const auto& each : *found) {
    if (!each.is_string())
      return invalid(std::string(file) + ": " + name + " must be an array of names");
    names.push_back(each.get<std::string>());
  }
  return names;
}

Result<Json> object_of(const std::string& text, const char* file) {
  auto object = TRY(parse_json(text).in(file));
  if (!object.is_object()) return invalid(std::string(file) + " must be a JSON object");
  return object;
}

Result<std::vector<Group>> read_groups(const Json& resource_config) {
  std::vector<Group> groups;
  const auto found = resource_config.find("instance_groups");
  if (found == resource_config.end()) return groups;
  constexpr const char* file = "resourceconfig.json";
  if (!found->is_array()) return invalid("resourceconfig.json: instance_groups must be an array");
  for (const auto& each : *found) {
    if (!each.is_object())
      return invalid("resourceconfig.json: an instance group must be an object");
    Group group;
    group.name = TRY(string_at(each, "instance_group_name").in(file));
    group.instance_type = string_or(each, "instance_type", "");
    group.hosts = TRY(names_at(each, "hosts", file));
    groups.push_back(std::move(group));
  }
  return groups;
}

// Returns Python's truth value.
bool is_true(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

Result<void> sort_hyperparameters(const Json& all, Settings& settings, Values& of_sdk) {
  for (const auto& [name, value] : all.items()) {
    Json read = value.is_string() ? value_of(value.get_ref<const std::string&>()) : value;
    if (std::ranges::find(kOfSdk, name) != kOfSdk.end()) {
      of_sdk[name] = std::move(read);
    } else if (name.starts_with("sagemaker_")) {
      settings.framework[name] = std::move(read);
    } else {
      settings.user[name] = std::move(read);
    }
  }
  return {};
}

void find_distribution(Settings& settings) {
  if (const auto named = settings.framework.find("sagemaker_distribution_instance_groups");
      named != settings.framework.end()) {
    settings.distribution_groups = named->second;
  } else {
    settings.distribution_groups = Json::array();
    if (std::ranges::any_of(kDistributionFlags,
                            [&](const char* flag) { return settings.enabled(flag); }))
      settings.distribution_groups.push_back(settings.current_group);
  }
  if (settings.groups.empty()) {
    settings.distribution_hosts = settings.hosts;
    return;
  }
  for (const auto& group : settings.groups) {
    if (std::ranges::find(settings.distribution_groups, Json(group.name)) ==
        settings.distribution_groups.end())
      continue;
    settings.distribution_hosts.insert(settings.distribution_hosts.end(), group.hosts.begin(),
                                       group.hosts.end());
  }
}

// Returns the content of SM_TRAINING_ENV: all settings, by the toolkit's names.
Json training_environment(const Settings& settings, const Json& group_hosts,
                          const Json& group_names, const Json& groups_by_name, const Json& channels,
                          const std::string& module_name) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const std::string& base = settings.base;
  return {{"additional_framework_parameters", settings.framework},
          {"channel_input_dirs", channels},
          {"current_host", settings.current_host},
          {"current_instance_group", settings.current_group},
          {"current_instance_group_hosts", group_hosts},
          {"current_instance_type", settings.current_instance_type},
          {"distribution_hosts", settings.distribution_hosts},
          {"distribution_instance_groups", settings.distribution_groups},
          {"framework_module", or_null(settings.framework_module)},
          {"hosts", settings.hosts},
          {"hyperparameters", settings.user},
          {"input_config_dir", base + "/input/config"},
          {"input_data_config", settings.input_data_config},
          {"input_dir", base + "/input"},
          {"instance_groups", group_names},
          {"instance_groups_dict", groups_by_name},
          {"is_hetero", settings.groups.size() > 1},
          {"is_master", settings.current_host == settings.master()},
          {"is_modelparallel_enabled", nullptr},
          {"is_smddpmprun_installed", false},
          {"is_smddprun_installed", false},
          {"job_name", or_null(settings.job_name)},
          {"log_level", settings.log_level},
          {"master_hostname", settings.master()},
          {"model_dir", base + "/model"},
          {"module_dir", settings.module_dir},
          {"module_name", module_name},
          {"network_interface_name", settings.network_interface},
          {"num_cpus", settings.cpus},
          {"num_gpus", settings.gpus},
          {"num_neurons", 0},
          {"output_data_dir", base + "/output/data"},
          {"output_dir", base + "/output"},
          {"output_intermediate_dir", base + "/output/intermediate"},
          {"resource_config", settings.resource_config},
          {"topology", settings.resource_config.value("topology", Json::array())},
          {"user_entry_point", settings.program}};
}

Json groups_by_name(const Settings& settings) {
  Json groups = Json::object();
  const auto found = settings.resource_config.find("instance_groups");
  if (found != settings.resource_config.end())
    for (const auto& group : *found)
      groups[group["instance_group_name"].get_ref<const std::string&>()] = group;
  return groups;
}

// Returns the values of the SM_ variables, by their names in lower case.
Values script_values(const Settings& settings) {
  Json group_hosts = Json::array(), group_names = Json::array();
  for (const auto& group : settings.groups) {
    if (group.name == settings.current_group) group_hosts = group.hosts;
    group_names.push_back(group.name);
  }
  const Json by_name = groups_by_name(settings);
  Json channels = Json::object(), channel_names = Json::array();
  for (const auto& [name, config] : settings.input_data_config.items()) {
    channels[name] = settings.base + "/input/data/" + name;
    channel_names.push_back(name);
  }
  std::string module_name = settings.program;
  if (module_name.ends_with(".py")) module_name.resize(module_name.size() - 3);

  const std::string& base = settings.base;
  Values values = {
      {"hosts", settings.hosts},
      {"network_interface_name", settings.network_interface},
      {"hps", settings.user},
      {"user_entry_point", settings.program},
      {"framework_params", settings.framework},
      {"resource_config", settings.resource_config},
      {"input_data_config", settings.input_data_config},
      {"output_data_dir", base + "/output/data"},
      {"channels", channel_names},
      {"current_host", settings.current_host},
      {"current_instance_type", settings.current_instance_type},
      {"current_instance_group", settings.current_group},
      {"current_instance_group_hosts", group_hosts},
      {"instance_groups", group_names},
      {"instance_groups_dict", by_name},
      {"distribution_instance_groups", settings.distribution_groups},
      {"is_hetero", settings.groups.size() > 1},
      {"module_name", module_name},
      {"log_level", settings.log_level},
      {"framework_module", settings.framework_module},
      {"input_dir", base + "/input"},
      {"input_config_dir", base + "/input/config"},
      {"output_dir", base + "/output"},
      {"num_cpus", settings.cpus},
      {"num_gpus", settings.gpus},
      {"num_neurons", 0},
      {"model_dir", base + "/model"},
      {"module_dir", settings.module_dir},
      {"training_env",
       training_environment(settings, group_hosts, group_names, by_name, channels, module_name)},
      {"user_args", user_arguments(settings.user)},
      {"output_intermediate_dir", base + "/output/intermediate"},
  };
  if (const auto topology = settings.resource_config.find("topology");
      topology != settings.resource_config.end() && is_true(*topology))
    values["topology"] = *topology;
  for (const auto& [name, path] : channels.items()) values["channel_" + name] = path;
  for (const auto& [name, value] : settings.user) values["hp_" + name] = value;
  return values;
}

}  // namespace

bool Settings::in_distribution() const {
  return std::ranges::find(distribution_groups, Json(current_group)) != distribution_groups.end();
}

bool Settings::enabled(const std::string& framework_name) const {
  const auto found = framework.find(framework_name);
  return found != framework.end() && is_true(found->second);
}

Result<Settings> read_settings(const Found& found) {
  Settings settings;
  settings.base = found.base;
  settings.cpus = found.cpus;
  settings.gpus = static_cast<int>(found.gpus.size());
  settings.gpu_cpus = found.gpus;
  const auto hyperparameters = TRY(object_of(found.hyperparameters, "hyperparameters.json"));
  settings.resource_config = TRY(object_of(found.resource_config, "resourceconfig.json"));
  settings.input_data_config = TRY(object_of(found.input_data_config, "inputdataconfig.json"));
  Values of_sdk;
  TRY(sort_hyperparameters(hyperparameters, settings, of_sdk));
  const auto framework_setting = [&](const char* hyperparameter) {
    const auto value = of_sdk.find(hyperparameter);
    return value == of_sdk.end() ? "" : argument_text(value->second);
  };

  settings.program = contract::variable_of(found.variables, "SAGEMAKER_PROGRAM");
  if (settings.program.empty()) settings.program = framework_setting("sagemaker_program");
  settings.module_dir = framework_setting("sagemaker_submit_directory");
  if (settings.module_dir.empty())
    settings.module_dir = contract::variable_of(found.variables, "SAGEMAKER_SUBMIT_DIRECTORY");
  if (settings.module_dir.empty()) settings.module_dir = settings.code_directory();
  settings.log_level = kInformation;
  if (const auto level = contract::variable_of(found.variables, "SAGEMAKER_CONTAINER_LOG_LEVEL");
      !level.empty())
    settings.log_level = value_of(level);
  if (of_sdk.contains("sagemaker_container_log_level"))
    settings.log_level = of_sdk["sagemaker_container_log_level"];
  settings.job_name = contract::variable_of(found.variables, "TRAINING_JOB_NAME");
  settings.sdk_job_name = framework_setting("sagemaker_job_name");
  settings.region = framework_setting("sagemaker_region");
  if (settings.region.empty())
    settings.region = contract::variable_of(found.variables, "AWS_REGION");
  settings.framework_module = contract::variable_of(found.variables, "SAGEMAKER_TRAINING_MODULE");

  constexpr const char* file = "resourceconfig.json";
  const auto& resources = settings.resource_config;
  settings.current_host = TRY(string_at(resources, "current_host").in(file));
  settings.hosts = TRY(names_at(resources, "hosts", file));
  if (std::ranges::find(settings.hosts, settings.current_host) == settings.hosts.end())
    return invalid("resourceconfig.json: current_host is not one of hosts");
  settings.current_instance_type = string_or(resources, "current_instance_type", "local");
  settings.current_group = string_or(resources, "current_group_name", "homogeneousCluster");
  settings.network_interface = string_or(resources, "network_interface_name", "eth0");
  settings.groups = TRY(read_groups(resources));
  find_distribution(settings);
  return settings;
}

Result<void> check_program(std::string_view program) {
  const std::string advice =
      ". Set the hyperparameter sagemaker_program to a path inside the source directory, such as "
      "'train.py' or 'bin/train.sh'";
  if (program.empty()) return invalid("The training entry point has no name" + advice);
  constexpr std::string_view allowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-/";
  const std::string which = "The training entry point '" + shorten(program, 120) + "' is invalid: ";
  if (program.find_first_not_of(allowed) != std::string_view::npos)
    return invalid(which + "only letters, digits and . _ + - / are allowed" + advice);
  if (program.starts_with('-') || program.starts_with('/') || program.starts_with('+'))
    return invalid(which + "it begins with '" + std::string(program.substr(0, 1)) + "'" + advice);
  for (const auto part : split(program, '/'))
    if (part.empty() || part == "." || part == "..")
      return invalid(which + "it leads out of the source directory" + advice);
  return {};
}

Variables script_variables(const Settings& settings, const Variables& present) {
  Variables variables;
  for (const auto& [name, value] : script_values(settings)) {
    // A variable cannot contain NUL, and its name no equals sign.
    const std::string text = variable_text(value);
    if (name.find_first_of(std::string_view("=\0", 2)) != std::string::npos) continue;
    if (text.find('\0') == std::string::npos) variables["SM_" + to_upper(name)] = text;
  }
  variables["SAGEMAKER_JOB_NAME"] = settings.sdk_job_name;
  variables["CURRENT_HOST"] = settings.current_host;
  variables["SAGEMAKER_REGION"] = settings.region;

  // Modules next to the script can be imported, and its output is unbuffered.
  const std::string path = contract::variable_of(present, "PYTHONPATH");
  variables["PYTHONPATH"] = settings.code_directory() + (path.empty() ? "" : ":" + path);
  const auto unless_present = [&](const char* name, const std::string& value) {
    if (!present.contains(name)) variables[name] = value;
  };
  unless_present("PYTHONUNBUFFERED", "1");
  // The framework images set these as well, for scripts that connect the hosts themselves.
  unless_present("MASTER_ADDR", settings.master());
  unless_present("MASTER_PORT", kMasterPort);
  unless_present("NCCL_SOCKET_IFNAME", settings.network_interface);
  unless_present("GLOO_SOCKET_IFNAME", settings.network_interface);
  unless_present("NCCL_IB_DISABLE", "1");
  unless_present("NCCL_DEBUG", "WARN");
  return variables;
}

bool is_of_host(std::string_view variable) {
  static const std::set<std::string_view> names = {"SM_CURRENT_HOST",
                                                   "SM_CURRENT_INSTANCE_TYPE",
                                                   "SM_CURRENT_INSTANCE_GROUP",
                                                   "SM_CURRENT_INSTANCE_GROUP_HOSTS",
                                                   "SM_RESOURCE_CONFIG",
                                                   "SM_NUM_CPUS",
                                                   "SM_NUM_GPUS",
                                                   "SM_TRAINING_ENV",
                                                   "CURRENT_HOST"};
  return names.contains(variable);
}

}  // namespace trainyard::entry
