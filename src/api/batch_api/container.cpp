#include "batch_api/container.hpp"

#include <algorithm>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "batch/variables.hpp"
#include "batch_api/conversions.hpp"
#include "domain/limits.hpp"
#include "protocol/json.hpp"
#include "sagemaker/training_job.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kMemoryMebibytesMin = 4;  // as on AWS
using domain::kSharedMemoryMebibytesMax;
using domain::kVolumeGibMax;
constexpr size_t kPathBytesMax = 4096;
constexpr size_t kLogGroupBytesMax = 512;  // as in CloudWatch
constexpr size_t kLogPrefixBytesMax = 128;

template <class T>
bool has_elements(const std::optional<std::vector<T>>& list) {
  return list && !list->empty();
}

template <class Pair>
std::map<std::string, std::string> variables_of(const std::optional<std::vector<Pair>>& pairs) {
  std::map<std::string, std::string> variables;
  if (!pairs) return variables;
  for (const auto& each : *pairs)
    if (each.name) variables[*each.name] = each.value.value_or("");
  return variables;
}

// Resources by type. resourceRequirements override the deprecated members vcpus and memory.
template <class Container>
std::map<std::string, std::string> resources_of(const Container& container) {
  std::map<std::string, std::string> resources;
  if (container.vcpus) resources["VCPU"] = std::to_string(*container.vcpus);
  if (container.memory) resources["MEMORY"] = std::to_string(*container.memory);
  if (container.resource_requirements)
    for (const auto& each : *container.resource_requirements) resources[*each.type] = *each.value;
  return resources;
}

// Rejects unsupported properties that a user would rely on. Harmless ones are kept and echoed.
Outcome<Done> refuse_what_is_not_here(const batch::ContainerProperties& container) {
  if (has_elements(container.secrets))
    return cannot_run(
        "containerProperties.secrets",
        "it has no secret store; use environment, or an object that the job's role may read");
  if (container.privileged.value_or(false))
    return cannot_run(
        "A privileged container",
        "root in a container is always an unprivileged user of its machine; leave privileged out");
  if (container.repository_credentials)
    return cannot_run("containerProperties.repositoryCredentials",
                      "give them to this server's config");
  return Done{};
}

Outcome<int64_t> whole_number(const std::map<std::string, std::string>& resources,
                              const std::string& type, int64_t least, int64_t most) {
  const auto found = resources.find(type);
  if (found == resources.end()) return int64_t{0};
  const auto value = parse_int(found->second);
  if (!value || *value < least || *value > most)
    return client_exception("The resource requirement " + type +
                            " must be a whole number of at least " + std::to_string(least) +
                            " and at most " + std::to_string(most) + ", not '" +
                            shorten(found->second, 40) + "'");
  return *value;
}

Outcome<Done> read_share(const batch::ContainerProperties& container,
                         domain::InstanceGroup& group) {
  const auto resources = resources_of(container);
  const auto cpus_text = resources.find("VCPU");
  if (cpus_text == resources.end() || !resources.contains("MEMORY"))
    return client_exception(
        "The container needs resource requirements of the types VCPU and MEMORY");
  double cpus = 0;
  try {
    size_t used = 0;
    cpus = std::stod(cpus_text->second, &used);  // Fargate allows 0.25
    if (used != cpus_text->second.size()) cpus = 0;
  } catch (const std::exception&) {
    cpus = 0;
  }
  if (!(cpus > 0) || cpus > domain::kHostCpusMax)
    return client_exception("The resource requirement VCPU must be a number above 0 and at most " +
                            std::to_string(int64_t(domain::kHostCpusMax)) + ", not '" +
                            shorten(cpus_text->second, 40) + "'");
  const int64_t memory = TRY(whole_number(resources, "MEMORY", kMemoryMebibytesMin,
                                          domain::kHostMemoryBytesMax / kMebibyte));
  const int64_t gpus = TRY(whole_number(resources, "GPU", 1, domain::kHostGpusMax));
  group.instance_type = cpus_text->second + " vCPU, " + std::to_string(memory) + " MiB";
  if (gpus > 0) group.instance_type += ", " + std::to_string(gpus) + " GPU";
  group.share = domain::Share{cpus, memory * kMebibyte, gpus};
  return Done{};
}

// Normalizes an absolute path: removes "." and trailing slashes, and rejects "..".
Outcome<std::string> clean_path(const std::string& text, const std::string& member) {
  std::string path;
  bool good = text.starts_with('/') && text.size() <= kPathBytesMax;
  for (const auto part : split(text, '/')) {
    if (part.empty() || part == ".") continue;
    good &= part != ".." && part.find('\0') == std::string_view::npos;
    path.append("/").append(part);
  }
  if (!good || path.empty())
    return client_exception(member + " must be an absolute path without .., and not /: '" +
                            shorten(text, 200) + "'");
  return path;
}

std::string names_of(const domain::FileSystems& volumes) {
  std::string names;
  for (const auto& [path, each] : volumes) names += (names.empty() ? "" : ", ") + path;
  return names.empty() ? "none" : names;
}

// Finds the configured volume for a path of the machines.
Outcome<domain::Volume> volume_of_machine(const std::string& source_path, const Settings& settings,
                                          bool read_only) {
  const std::string path = TRY(clean_path(source_path, "volumes.host.sourcePath"));
  const domain::FileSystem* best = nullptr;
  domain::Volume volume;
  volume.read_only = read_only;
  for (const auto& [prefix, each] : settings.volumes) {
    const bool below = path == prefix || path.starts_with(prefix + "/");
    if (!below || (best && prefix.size() <= volume.name.size())) continue;
    best = &each;
    volume.name = prefix;
  }
  if (!best)
    return client_exception(
        "The volume " + path + " of its machine is not available to jobs: add a table [volumes.\"" +
        path + "\"] to this server's config (it has: " + names_of(settings.volumes) + ")");
  if (best->read_only && !read_only)
    return client_exception(
        "The volume " + volume.name +
        " is read-only by this server's config: set readOnly at its mount point");
  if (best->directory.empty()) {
    volume.kind = domain::VolumeKind::own;
    volume.name = path;
    return volume;
  }
  volume.kind = domain::VolumeKind::shared;
  if (path.size() > volume.name.size()) volume.path = path.substr(volume.name.size() + 1);
  return volume;
}

Outcome<domain::Volume> volume_of_file_system(const batch::EFSVolumeConfiguration& efs,
                                              const Settings& settings, bool read_only) {
  if (efs.authorization_config && !efs.authorization_config->access_point_id.value_or("").empty())
    return cannot_run("An access point of a file system", "name rootDirectory");
  if (efs.transit_encryption.value_or("DISABLED") == "ENABLED")
    return cannot_run("transitEncryption of a file system",
                      "its machines have it as a directory; leave it out");
  auto found = domain::resolve_source(
      settings.file_systems,
      {efs.file_system_id.value_or(""), "EFS", efs.root_directory.value_or("/"), !read_only});
  if (!found) return client_exception("efsVolumeConfiguration: " + found.error().message);
  domain::Volume volume;
  volume.kind = domain::VolumeKind::shared;
  volume.name = found->id;
  volume.path = found->path;
  volume.read_only = read_only;
  return volume;
}

Outcome<Done> claim_mount_point(std::set<std::string>& places, const std::string& path) {
  if (places.insert(path).second) return Done{};
  return client_exception("Two volumes are mounted at " + path);
}

Outcome<Done> read_volumes(const batch::ContainerProperties& container, const Settings& settings,
                           std::set<std::string>& places,
                           domain::ContainerOptions& container_options) {
  const auto volumes = container.volumes.value_or(std::vector<batch::Volume>());
  for (const auto& point : container.mount_points.value_or(std::vector<batch::MountPoint>())) {
    const std::string name = point.source_volume.value_or("");
    const auto found = std::ranges::find_if(
        volumes, [&](const batch::Volume& each) { return !name.empty() && each.name == name; });
    if (found == volumes.end())
      return client_exception("mountPoints.sourceVolume '" + shorten(name, 60) +
                              "' is not the name of one of the volumes");
    const bool read_only = point.read_only.value_or(false);
    const std::string source = found->host ? found->host->source_path.value_or("") : "";
    if (found->s3files_volume_configuration)
      return cannot_run("s3filesVolumeConfiguration", "let the container download its data");
    domain::Volume volume;
    volume.name = name;
    volume.read_only = read_only;
    if (found->efs_volume_configuration)
      volume = TRY(volume_of_file_system(*found->efs_volume_configuration, settings, read_only));
    else if (!source.empty())
      volume = TRY(volume_of_machine(source, settings, read_only));
    volume.destination =
        TRY(clean_path(point.container_path.value_or(""), "mountPoints.containerPath"));
    TRY(claim_mount_point(places, volume.destination));
    container_options.volumes.push_back(std::move(volume));
  }
  return Done{};
}

Outcome<Done> read_device(const batch::Device& device, const Settings& settings,
                          domain::ContainerOptions& container_options) {
  const std::string path =
      TRY(clean_path(device.host_path.value_or(""), "linuxParameters.devices.hostPath"));
  if (std::ranges::find(settings.devices, path) == settings.devices.end())
    return client_exception(
        "The device " + path +
        " is not available to jobs: add it to `devices` of [jobs] in this server's config");
  if (device.container_path.value_or(path) != path)
    return cannot_run(
        "A device at another path inside (" + shorten(*device.container_path, 100) + ")",
        "leave containerPath out");
  if (has_elements(device.permissions) && device.permissions->size() < 3)
    return cannot_run("A device with some permissions only", "leave permissions out");
  container_options.devices.push_back(path);
  return Done{};
}

Outcome<Done> read_linux_parameters(const batch::LinuxParameters& parameters,
                                    const Settings& settings, std::set<std::string>& places,
                                    domain::ContainerOptions& container_options) {
  for (const auto& device : parameters.devices.value_or(std::vector<batch::Device>()))
    TRY(read_device(device, settings, container_options));
  container_options.init = parameters.init_process_enabled;
  const auto mebibytes = [](int64_t requested, const char* member) -> Outcome<int64_t> {
    if (requested < 1 || requested > kSharedMemoryMebibytesMax)
      return client_exception(std::string(member) + " must be between 1 and " +
                              std::to_string(kSharedMemoryMebibytesMax) + " MiB");
    return requested * kMebibyte;
  };
  if (parameters.shared_memory_size)
    container_options.shared_memory_bytes =
        TRY(mebibytes(*parameters.shared_memory_size, "linuxParameters.sharedMemorySize"));
  for (const auto& each : parameters.tmpfs.value_or(std::vector<batch::Tmpfs>())) {
    static const std::set<std::string> kAsItIs = {"defaults", "rw",   "nosuid",
                                                  "nodev",    "exec", "relatime"};
    for (const auto& option : each.mount_options.value_or(std::vector<std::string>()))
      if (!kAsItIs.contains(option))
        return cannot_run("The mount option " + shorten(option, 40) + " of a tmpfs",
                          "they are rw, exec, nosuid and nodev");
    domain::Volume volume;
    volume.kind = domain::VolumeKind::memory;
    volume.destination =
        TRY(clean_path(each.container_path.value_or(""), "linuxParameters.tmpfs.containerPath"));
    volume.bytes = TRY(mebibytes(each.size.value_or(0), "linuxParameters.tmpfs.size"));
    TRY(claim_mount_point(places, volume.destination));
    container_options.volumes.push_back(std::move(volume));
  }
  // Without swap, swappiness has no effect, as on AWS.
  if (parameters.max_swap.value_or(0) != 0)
    return cannot_run("linuxParameters.maxSwap",
                      "its containers get no swap; use 0, or leave it out");
  if (parameters.swappiness && (*parameters.swappiness < 0 || *parameters.swappiness > 100))
    return client_exception("linuxParameters.swappiness must be between 0 and 100");
  return Done{};
}

Outcome<Done> read_limits(const batch::ContainerProperties& container, const Settings& settings,
                          domain::ContainerOptions& container_options) {
  for (const auto& limit : container.ulimits.value_or(std::vector<batch::Ulimit>())) {
    const std::string name = limit.name.value_or("");
    if (!domain::is_process_limit(name))
      return client_exception("ulimits.name '" + shorten(name, 40) +
                              "' is not a process limit, such as nofile");
    if (*limit.soft_limit < -1 || *limit.hard_limit < -1 ||
        uint64_t(*limit.soft_limit) > uint64_t(*limit.hard_limit))
      return client_exception("The soft limit of " + name +
                              " must be between 0 and its hard limit (-1 means no limit)");
    const auto most = settings.limits_max.find(name);
    if (most != settings.limits_max.end() && uint64_t(*limit.hard_limit) > most->second)
      return client_exception("ulimits." + name + ": a hard limit of " +
                              std::to_string(*limit.hard_limit) + " is more than the " +
                              std::to_string(most->second) +
                              " that this server's config allows: [ulimits] " + name);
    container_options.limits.push_back(
        {name, uint64_t(*limit.soft_limit), uint64_t(*limit.hard_limit)});
  }
  return Done{};
}

Outcome<Done> read_log(const batch::LogConfiguration& log, const std::string& region,
                       domain::ContainerOptions& container_options) {
  if (log.log_driver.value_or("awslogs") != "awslogs")
    return cannot_run("The log driver " + shorten(*log.log_driver, 40), "use awslogs");
  if (has_elements(log.secret_options))
    return cannot_run("logConfiguration.secretOptions", "leave it out");
  for (const auto& [name, value] : log.options.value_or(std::map<std::string, std::string>())) {
    const std::string member = "logConfiguration.options." + shorten(name, 60);
    const auto of = [&value = value](std::string_view allowed, size_t bytes_max) {
      return !value.empty() && value.size() <= bytes_max && std::ranges::all_of(value, [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               allowed.find(c) != std::string_view::npos;
      });
    };
    if (name == "awslogs-group") {
      if (!of("._/#-", kLogGroupBytesMax))
        return client_exception(member + " must be a valid name of a log group");
      container_options.log_group = value;
    } else if (name == "awslogs-stream-prefix") {
      if (!of("._/#-", kLogPrefixBytesMax))
        return client_exception(member + " cannot begin a stream's name");
      container_options.log_prefix = value;
    } else if (name == "awslogs-region") {
      if (value != region)
        return cannot_run(member + " other than the job's own region", "leave it out");
    } else if (name != "awslogs-create-group" && name != "mode" && name != "max-buffer-size") {
      return cannot_run(member, "leave it out; each line is an event");
    }
  }
  return Done{};
}

// Overrides vcpus or memory, which AWS accepts only where the definition has them, too.
Outcome<Done> override_deprecated(const batch::ContainerProperties& container,
                                  const std::string& type, const std::optional<int64_t>& given,
                                  std::optional<int64_t>& value) {
  if (!given) return Done{};
  for (const auto& each :
       container.resource_requirements.value_or(std::vector<batch::ResourceRequirement>()))
    if (each.type == type)
      return client_exception(
          "This value was submitted in a deprecated key and may conflict with the value provided "
          "by the job definition's resource requirements. Override " +
          type + " in containerOverrides.resourceRequirements");
  value = given;
  return Done{};
}

// Overrides resource requirements by their type. Deprecated members of the definition show the same
// number.
void override_requirements(batch::ContainerProperties& container,
                           const batch::ContainerOverrides& overrides) {
  if (!overrides.resource_requirements) return;
  if (!container.resource_requirements) container.resource_requirements.emplace();
  for (const auto& each : *overrides.resource_requirements) {
    auto& kept = *container.resource_requirements;
    std::erase_if(kept, [&](const auto& other) { return other.type == each.type; });
    kept.push_back(each);
    std::optional<int64_t>* deprecated = each.type == "VCPU"     ? &container.vcpus
                                         : each.type == "MEMORY" ? &container.memory
                                                                 : nullptr;
    if (!deprecated || !*deprecated) continue;
    const auto number = parse_int(*each.value);
    *deprecated = number ? std::optional(*number) : std::nullopt;
  }
}

}  // namespace

Failure cannot_run(const std::string& what, const std::string& instead) {
  return client_exception(what + " cannot be run by this server: " + instead);
}

Outcome<batch::ContainerProperties> container_of_task(const batch::EcsProperties& properties) {
  const auto tasks = properties.task_properties.value_or(std::vector<batch::EcsTaskProperties>());
  if (tasks.size() != 1 || !tasks[0].containers || tasks[0].containers->size() != 1)
    return cannot_run("ecsProperties with other than one task of one container",
                      "a job's host is one container; use a multi-node parallel job for several");
  const batch::EcsTaskProperties& task = tasks[0];
  const batch::TaskContainerProperties& from = task.containers->front();
  if (from.firelens_configuration) return cannot_run("firelensConfiguration", "use awslogs");
  if (from.start_timeout || from.stop_timeout)
    return cannot_run("startTimeout and stopTimeout", "leave them out");
  if (task.ipc_mode.value_or("") == "host" || task.pid_mode.value_or("") == "host")
    return cannot_run("ipcMode and pidMode of the host", "leave them out");
  batch::ContainerProperties container;
  container.image = from.image;
  container.command = from.command;
  container.environment = from.environment;
  container.linux_parameters = from.linux_parameters;
  container.log_configuration = from.log_configuration;
  container.mount_points = from.mount_points;
  container.privileged = from.privileged;
  container.readonly_root_filesystem = from.readonly_root_filesystem;
  container.repository_credentials = from.repository_credentials;
  container.resource_requirements = from.resource_requirements;
  container.secrets = from.secrets;
  container.ulimits = from.ulimits;
  container.user = from.user;
  container.volumes = task.volumes;
  container.ephemeral_storage = task.ephemeral_storage;
  container.execution_role_arn = task.execution_role_arn;
  container.job_role_arn = task.task_role_arn;
  return container;
}

Outcome<batch::ContainerOverrides> overrides_of_task(
    const batch::EcsPropertiesOverride& properties) {
  batch::ContainerOverrides overrides;
  const auto tasks =
      properties.task_properties.value_or(std::vector<batch::TaskPropertiesOverride>());
  if (tasks.empty() || !has_elements(tasks[0].containers)) return overrides;
  if (tasks.size() > 1 || tasks[0].containers->size() > 1)
    return client_exception("ecsPropertiesOverride names more containers than the definition has");
  const batch::TaskContainerOverrides& from = tasks[0].containers->front();
  overrides.command = from.command;
  overrides.environment = from.environment;
  overrides.resource_requirements = from.resource_requirements;
  return overrides;
}

void put_container(batch::EcsProperties& properties, const batch::ContainerProperties& container) {
  auto& task = properties.task_properties->front().containers->front();
  task.command = container.command;
  task.environment = container.environment;
  task.resource_requirements = container.resource_requirements;
}

Outcome<Done> check_container(const batch::ContainerProperties& container,
                              const std::string& place) {
  if (container.image.value_or("").empty()) return client_exception(place + ".image is required");
  std::set<std::string> resources;
  for (const auto& each :
       container.resource_requirements.value_or(std::vector<batch::ResourceRequirement>()))
    resources.insert(each.type.value_or(""));
  if (!container.vcpus && !resources.contains("VCPU"))
    return client_exception(place + " needs vCPUs: a resource requirement of type VCPU");
  if (!container.memory && !resources.contains("MEMORY"))
    return client_exception(place + " needs memory: a resource requirement of type MEMORY");
  for (const auto& each : container.environment.value_or(std::vector<batch::KeyValuePair>()))
    if (each.name.value_or("").starts_with(catalog::kReservedVariables))
      return client_exception("Environment variable names must not begin with AWS_BATCH_: " +
                              shorten(*each.name, 128));
  return Done{};
}

Outcome<Done> override_container(batch::ContainerProperties& container,
                                 const batch::ContainerOverrides& overrides) {
  if (overrides.command) container.command = overrides.command;
  if (overrides.instance_type) container.instance_type = overrides.instance_type;
  auto variables = variables_of(container.environment);
  for (const auto& [name, value] : variables_of(overrides.environment)) variables[name] = value;
  container.environment.emplace();
  for (const auto& [name, value] : variables) {
    batch::KeyValuePair pair;
    pair.name = name;
    pair.value = value;
    container.environment->push_back(std::move(pair));
  }
  TRY(override_deprecated(container, "VCPU", overrides.vcpus, container.vcpus));
  TRY(override_deprecated(container, "MEMORY", overrides.memory, container.memory));
  override_requirements(container, overrides);
  return Done{};
}

void put_parameters(batch::ContainerProperties& container,
                    const std::map<std::string, std::string>& parameters) {
  if (!container.command) return;
  for (std::string& word : *container.command) word = with_parameters(word, parameters);
}

Outcome<domain::InstanceGroup> group_of(const batch::ContainerProperties& container,
                                        const Settings& settings, const std::string& region) {
  TRY(refuse_what_is_not_here(container));
  domain::InstanceGroup group;
  group.name = "default";
  TRY(read_share(container, group));
  domain::Program& program = group.program.emplace();
  program.image = container.image.value_or("");
  program.arguments = container.command.value_or(std::vector<std::string>());
  program.environment = variables_of(container.environment);
  for (const auto& [name, value] : program.environment)
    if (name.starts_with(catalog::kReservedVariables))
      return client_exception("Environment variable names must not begin with AWS_BATCH_: " +
                              shorten(name, 128));
  domain::ContainerOptions& container_options = group.container_options;
  std::set<std::string> places;
  TRY(read_volumes(container, settings, places, container_options));
  if (container.linux_parameters)
    TRY(read_linux_parameters(*container.linux_parameters, settings, places, container_options));
  TRY(read_limits(container, settings, container_options));
  container_options.user = container.user.value_or("");
  container_options.read_only_root = container.readonly_root_filesystem.value_or(false);
  if (container.log_configuration)
    TRY(read_log(*container.log_configuration, region, container_options));
  return group;
}

Outcome<int64_t> volume_gib_of(const batch::ContainerProperties& container) {
  const int64_t gib = container.ephemeral_storage ? *container.ephemeral_storage->size_in_gi_b
                                                  : sagemaker::kVolumeGibDefault;
  if (gib < 1 || gib > kVolumeGibMax)
    return client_exception("ephemeralStorage.sizeInGiB must be between 1 and " +
                            std::to_string(kVolumeGibMax));
  return gib;
}

Outcome<Json> json_of(const batch::ContainerProperties& container) {
  const auto& members = batch::RegisterJobDefinition::shape().input->members;
  std::string text;
  write_json(*std::ranges::find(members, "containerProperties", &shapes::Member::name)->shape,
             &container, text);
  return TRY(parse_json(text));
}

}  // namespace trainyard::api::batch_api
