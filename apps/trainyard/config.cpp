#include "trainyard/config.hpp"

#include <algorithm>
#include <sstream>
#include <toml.hpp>

#include "domain/instance_type.hpp"
#include "os/files.hpp"
#include "policy/policy.hpp"
#include "trainyard/config_capacity.hpp"
#include "trainyard/config_images.hpp"
#include "trainyard/config_peers.hpp"
#include "trainyard/config_table.hpp"
#include "trainyard/storage_quotas.hpp"

namespace trainyard::apps {
namespace {

constexpr int64_t kImagesGibMax = 1 << 20;               // a pebibyte: more is a mistake in writing
constexpr int64_t kLogDaysMax = 36'525;                  // a century, likewise
constexpr double kRatePerSecondMax = 1e6;                // requests: far above what the server answers
constexpr double kBurstSecondsMax = 3600;                // of the rate: more would be no limit at all
constexpr std::string_view kNvidiaCard = "/dev/nvidia";  // and its number
constexpr int64_t kConnectionsPerJobMax = 1 << 20;       // more than a machine's table of connections holds
constexpr int64_t kReserveMibMax = 1 << 30;              // a pebibyte, likewise
constexpr int64_t kUploadDaysMax = 3'650;                // ten years, likewise
constexpr int64_t kAuditDaysMax = 36'500;                // a century: not for ever, so that sums stay small
constexpr int64_t kAuditGibMax = 1 << 20;                // a pebibyte
constexpr double kInterruptionsPerHourMax = 3600;        // one a second

// As IAM allows names.
bool is_user(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+=,.@_-") ==
             std::string::npos;
}

// The lists of who may name a shared directory.
Result<void> read_lists(Table& table, domain::FileSystem& file_system) {
  TRY(table.read("users", file_system.users));
  TRY(table.read("roles", file_system.roles));
  for (const auto& user : file_system.users)
    if (!is_user(user)) return invalid(table.name("users") + ": \"" + user + "\" cannot be a user's name");
  for (const auto& role : file_system.roles)
    if (role.empty()) return invalid(table.name("roles") + " must be names or ARNs of roles");
  return {};
}

// [posix_users]: NAME = "UID:GID".
Result<void> read_posix_users(const std::map<std::string, std::string>& texts, domain::PosixUsers& users) {
  for (const auto& [name, text] : texts) {
    if (name != "*" && !is_user(name))
      return invalid("posix_users.\"" + name + "\" must be named as a user, or \"*\" for all others");
    users[name] = TRY(domain::parse_posix_user(text).in("posix_users.\"" + name + "\""));
  }
  return {};
}

// [ulimits]: the highest hard limit that a Batch container may ask for; -1 is any.
Result<void> read_limits(Table table, std::map<std::string, uint64_t>& limits_max) {
  for (auto& [name, most] : limits_max) {
    int64_t value = int64_t(most);
    TRY(table.read(name.c_str(), value));
    if (value < -1) return invalid(table.name(name) + " must be 0 or more, or -1 for no limit");
    most = uint64_t(value);
  }
  return table.nothing_else();
}

// Lists of networks, `deny` before `allow`: of two equal ones the first is asked.
Result<void> read_egress(Table& table, std::vector<networks::EgressRule>& rules) {
  for (const bool allowed : {false, true}) {
    const char* key = allowed ? "allow" : "deny";
    std::vector<std::string> texts;
    TRY(table.read(key, texts));
    for (const auto& text : texts)
      rules.push_back({TRY(networks::parse_subnet_or_address(text).in(table.name(key))), allowed});
  }
  return {};
}

// A device file that jobs may name is everyone's; a GPU is one job's.
Result<void> check_devices(const Config& config) {
  for (const auto& device : config.devices) {
    const bool of_machine =
        std::any_of(config.machines.begin(), config.machines.end(), [&](const auto& each) {
          return std::count(each.gpu_devices.begin(), each.gpu_devices.end(), device) > 0;
        });
    const std::string_view card =
        std::string_view(device).substr(std::min(device.size(), kNvidiaCard.size()));
    const bool is_card = device.starts_with(kNvidiaCard) && !card.empty() &&
                         card.find_first_not_of("0123456789") == std::string_view::npos;
    if (of_machine || is_card)
      return invalid(
          "jobs.devices: \"" + device +
          "\" is a GPU, which is handed out whole to one job: jobs ask for it by their instance type "
          "or the resource requirement GPU");
  }
  return {};
}

// The services of the config that all jobs reach, where they are named by their addresses.
std::vector<networks::EgressService> services_of(const Config& config) {
  std::string resolvers;
  for (const auto& server : config.outward.name_servers) resolvers += "nameserver " + server + "\n";
  auto services = networks::name_servers_of(resolvers);
  std::vector<std::string> urls = {config.outward.http_proxy, config.outward.https_proxy,
                                   config.outward.package_index};
  if (config.objects) urls.push_back(config.objects->endpoint);
  for (const auto& url : urls)
    if (const auto service = networks::service_of_url(url)) services.push_back(*service);
  return services;
}

Result<void> read_isolation(Table& root, bool& best_effort) {
  std::string isolation = "strict";
  TRY(root.read("isolation", isolation));
  if (isolation != "strict" && isolation != "best-effort")
    return invalid("isolation must be \"strict\" or \"best-effort\", not \"" + isolation + "\"");
  best_effort = isolation == "best-effort";
  return {};
}

Result<void> read_file_system(const std::string& id, Table table, domain::FileSystems& file_systems) {
  domain::FileSystem file_system;
  TRY(table.read("directory", file_system.directory));
  TRY(table.read("type", file_system.type));
  TRY(table.read("mount_name", file_system.mount_name));
  TRY(table.read("read_only", file_system.read_only));
  TRY(read_lists(table, file_system));
  TRY(table.nothing_else());
  if (!file_system.directory.starts_with('/') || file_system.directory == "/")
    return invalid(table.name("directory") +
                   " must be an absolute path, and not /: what jobs see of this machine");
  if (!file_system.type.empty() && file_system.type != "EFS" && file_system.type != "FSxLustre")
    return invalid(table.name("type") + " must be \"EFS\" or \"FSxLustre\", or be left out");
  file_systems[id] = file_system;
  return {};
}

// [regions.NAME]: a partition of this server, or, with an endpoint, another server.
Result<void> read_region(const std::string& name, Table table, Config& config) {
  client::Remote remote;
  TRY(table.read("endpoint", remote.endpoint));
  TRY(table.read("access_key_id", remote.keys.access_key_id));
  TRY(table.read("secret_access_key", remote.keys.secret_access_key));
  TRY(table.read("ca_bundle", remote.ca_bundle));
  TRY(table.nothing_else());
  if (remote.endpoint.empty()) {
    config.regions.push_back(name);
    return {};
  }
  if (!remote.endpoint.starts_with("http://") && !remote.endpoint.starts_with("https://"))
    return invalid(table.name("endpoint") + " must be a URL, http:// or https://");
  if (remote.keys.access_key_id.empty() || remote.keys.secret_access_key.empty())
    return invalid(table.name("access_key_id") + " and secret_access_key must be given: requests for " +
                   name + " are signed with them");
  config.remote_regions[name] = remote;
  return {};
}

// A directory of the machines that jobs of Batch may mount; without one, each host of a job gets an empty one of its own.
Result<void> read_volume(const std::string& path, Table table, domain::FileSystems& volumes) {
  domain::FileSystem volume;
  TRY(table.read("directory", volume.directory));
  TRY(table.read("read_only", volume.read_only));
  TRY(read_lists(table, volume));
  TRY(table.nothing_else());
  if (!path.starts_with('/') || path.ends_with('/') || path.find("/..") != std::string::npos)
    return invalid("volumes.\"" + path +
                   "\" must be named by an absolute path, as jobs name it: [volumes.\"/fsx\"]");
  if (!volume.directory.empty() && (!volume.directory.starts_with('/') || volume.directory == "/"))
    return invalid(table.name("directory") +
                   " must be an absolute path, and not /: what jobs see of this machine");
  if (volume.directory.empty() && volume.read_only)
    return invalid(table.name("read_only") +
                   " makes no sense without a directory: each host's own would be empty for ever");
  volumes[path] = volume;
  return {};
}

// [storage]: what the disk of the data directory holds.
Result<void> read_storage(Table table, Config& config) {
  int64_t reserve_mib = 0;
  TRY(table.read("disk_reserve_mib", reserve_mib));
  if (reserve_mib < 0 || reserve_mib > kReserveMibMax)
    return invalid(table.name("disk_reserve_mib") + " must be between 0 (none) and " +
                   std::to_string(kReserveMibMax));
  if (table.has("disk_reserve_mib")) config.disk_reserve_bytes = uint64_t(reserve_mib) << 20;
  int64_t upload_days = config.upload_lifetime / 24h;
  TRY(table.read("upload_expiry_days", upload_days));
  if (upload_days < 1 || upload_days > kUploadDaysMax)
    return invalid(table.name("upload_expiry_days") + " must be between 1 and " +
                   std::to_string(kUploadDaysMax));
  config.upload_lifetime = upload_days * 24h;
  return table.nothing_else();
}

Result<void> read_audit(Table table, observe::AuditLimits& limits) {
  int64_t days = limits.retention / 24h;
  int64_t gib = int64_t(limits.total_bytes_max >> 30);
  TRY(table.read("retention_days", days));
  TRY(table.read("disk_gib", gib));
  TRY(table.nothing_else());
  if (days < 1 || days > kAuditDaysMax)
    return invalid(table.name("retention_days") + " must be between 1 and " + std::to_string(kAuditDaysMax));
  if (gib < 1 || gib > kAuditGibMax)
    return invalid(table.name("disk_gib") + " must be between 1 and " + std::to_string(kAuditGibMax));
  limits.retention = days * 24h;
  limits.total_bytes_max = uint64_t(gib) << 30;
  return {};
}

// Of each principal: a user, or a role.
Result<void> read_rate_limits(Table table, api::RateLimits& limits) {
  TRY(table.read("reads_per_second", limits.reads_per_second));
  TRY(table.read("changes_per_second", limits.changes_per_second));
  TRY(table.read("objects_per_second", limits.objects_per_second));
  TRY(table.read("burst_seconds", limits.burst_seconds));
  TRY(table.nothing_else());
  for (const double rate : {limits.reads_per_second, limits.changes_per_second, limits.objects_per_second})
    if (!(rate >= 0 && rate <= kRatePerSecondMax))
      return invalid(table.name("reads_per_second") +
                     ", changes_per_second and objects_per_second must be between 0.0 (no limit) and " +
                     std::to_string(int64_t(kRatePerSecondMax)));
  if (!(limits.burst_seconds > 0 && limits.burst_seconds <= kBurstSecondsMax))
    return invalid(table.name("burst_seconds") + " must be greater than 0.0, and at most " +
                   std::to_string(int64_t(kBurstSecondsMax)));
  return {};
}

// A policy document: text in `key`, or the name of a file in KEY_file, next to the config. "" when neither is given.
Result<std::string> read_document(Table& table, const std::string& key, const std::string& directory) {
  const std::string file_key = key + "_file";
  std::string text, file;
  TRY(table.read(key.c_str(), text));
  TRY(table.read(file_key.c_str(), file));
  if (!text.empty() && !file.empty())
    return invalid(table.name(key) + " and " + file_key + " exclude each other");
  if (file.empty()) return text;
  if (!file.starts_with('/')) file.insert(0, directory);
  return os::read_file(file, policy::kDocumentBytesMax).in("reading " + table.name(file_key));
}

// What users, groups and roles have in common.
Result<policy::SeedEntity> read_entity(Table& table, const std::string& directory) {
  policy::SeedEntity entity;
  TRY(table.read("name", entity.name));
  TRY(table.read("policies", entity.policies));
  std::string document = TRY(read_document(table, "policy", directory));
  if (!document.empty()) entity.inline_.emplace_back("config", std::move(document));
  if (!is_user(entity.name))
    return invalid(table.name("name") + " must be 1 to 64 letters, digits or any of +=,.@_-");
  return entity;
}

Result<void> read_identities(Table& root, const std::string& directory, policy::IdentitySeed& seed) {
  TRY(root.each("user", [&](Table table) -> Result<void> {
    policy::SeedEntity user = TRY(read_entity(table, directory));
    TRY(table.read("groups", user.groups));
    TRY(table.read("boundary", user.boundary));
    seed.users.push_back(std::move(user));
    return table.nothing_else();
  }));
  TRY(root.each("group", [&](Table table) -> Result<void> {
    seed.groups.push_back(TRY(read_entity(table, directory)));
    return table.nothing_else();
  }));
  TRY(root.each("role", [&](Table table) -> Result<void> {
    policy::SeedEntity role = TRY(read_entity(table, directory));
    TRY(table.read("description", role.description));
    TRY(table.read("max_session_seconds", role.max_session_seconds));
    TRY(table.read("boundary", role.boundary));
    role.trust = TRY(read_document(table, "trust", directory));
    seed.roles.push_back(std::move(role));
    return table.nothing_else();
  }));
  return root.each("policy", [&](Table table) -> Result<void> {
    policy::SeedPolicy policy;
    TRY(table.read("name", policy.name));
    policy.document = TRY(read_document(table, "document", directory));
    if (policy.document.empty()) return invalid(table.name("document") + " or document_file must be given");
    seed.policies.push_back(std::move(policy));
    return table.nothing_else();
  });
}

Result<Config> from_value(const toml::value& file, const std::string& directory) {
  Config config;
  Table root(file, "");
  TRY(root.read("account_id", config.account_id));
  TRY(root.read("region", config.region));
  std::string roles = "closed";
  TRY(root.read("roles", roles));
  if (roles != "open" && roles != "closed")
    return invalid(root.name("roles") +
                   " must be \"closed\" (a role that is not defined may do what its job needs) or \"open\" "
                   "(everything)");
  config.open_roles = roles == "open";
  TRY(read_isolation(root, config.best_effort_isolation));
  std::map<std::string, std::string> posix_users;
  TRY(root.read("posix_users", posix_users));
  TRY(read_posix_users(posix_users, config.posix_users));
  TRY(root.each("ulimits", [&](Table table) { return read_limits(table, config.limits_max); }));
  TRY(root.each("access_key", [&](Table table) -> Result<void> {
    api::LastingKey key;
    TRY(table.read("id", key.id));
    TRY(table.read("secret", key.secret));
    TRY(table.read("user", key.user));
    TRY(table.nothing_else());
    if (!is_user(key.user))
      return invalid(table.name("user") + " must be 1 to 64 letters, digits or any of +=,.@_-");
    if (key.id.empty() || key.secret.empty())
      return invalid(table.name("id") + " and secret must both be given");
    config.access_keys.push_back(key);
    return {};
  }));
  TRY(read_identities(root, directory, config.identities));
  TRY(root.each("server", [&](Table table) -> Result<void> {
    TRY(table.read("listen", config.listen));
    TRY(table.read("allow_plain_http_from_other_machines", config.allow_plain_http_from_other_machines));
    TRY(table.read("certificate_names", config.certificate_names));
    TRY(table.read("metrics_listen", config.metrics_listen));
    return table.nothing_else();
  }));
  TRY(root.each("audit", [&](Table table) { return read_audit(table, config.audit); }));
  TRY(root.each("rate_limits", [&](Table table) { return read_rate_limits(table, config.rate_limits); }));
  TRY(root.each("objects", [&](Table table) -> Result<void> {
    ExternalObjects objects;
    TRY(table.read("endpoint", objects.endpoint));
    TRY(table.read("region", objects.region));
    TRY(table.read("access_key_id", objects.access_key_id));
    TRY(table.read("secret_access_key", objects.secret_access_key));
    TRY(table.read("ca_bundle", objects.ca_bundle));
    TRY(table.nothing_else());
    if (!objects.endpoint.starts_with("http://") && !objects.endpoint.starts_with("https://"))
      return invalid(table.name("endpoint") + " must be a URL, http:// or https://");
    config.objects = objects;
    return {};
  }));
  TRY(root.each("storage_quota",
                [&](Table table) { return read_storage_quota(table, config.storage_quotas); }));
  TRY(root.each("quota", [&](Table table) { return read_quota(table, config.quotas); }));
  TRY(root.each("machine", [&](Table table) { return read_machine(table, config.machines); }));
  TRY(root.each_named("images", [&](const std::string& name, Table table) {
    return read_image(name, table, config.images);
  }));
  TRY(root.each_named("file_systems", [&](const std::string& id, Table table) {
    return read_file_system(id, table, config.file_systems);
  }));
  TRY(root.each_named("volumes", [&](const std::string& path, Table table) {
    return read_volume(path, table, config.volumes);
  }));
  TRY(root.each("jobs", [&](Table table) -> Result<void> {
    TRY(table.read("devices", config.devices));
    for (const auto& device : config.devices)
      if (!device.starts_with("/dev/"))
        return invalid(table.name("devices") + ": \"" + device + "\" must be a device file below /dev");
    std::string gpu_memory = "clear";
    TRY(table.read("gpu_memory", gpu_memory));
    if (gpu_memory != "clear" && gpu_memory != "keep")
      return invalid(table.name("gpu_memory") +
                     " must be \"clear\" (overwritten before another job gets the GPU) or \"keep\"");
    config.clear_gpus = gpu_memory == "clear";
    int64_t stop_grace_seconds = config.stop_grace / 1s;
    TRY(table.read("stop_grace_seconds", stop_grace_seconds));
    if (stop_grace_seconds < 0 || stop_grace_seconds > 3600)
      return invalid(table.name("stop_grace_seconds") + " must be between 0 and 3600");
    config.stop_grace = std::chrono::seconds(stop_grace_seconds);
    int64_t stalled_after_seconds = config.stalled_after / 1s;
    TRY(table.read("stalled_after_seconds", stalled_after_seconds));
    if (stalled_after_seconds < 0 || stalled_after_seconds > 86400 * 28)
      return invalid(table.name("stalled_after_seconds") + " must be between 0 (never) and 28 days");
    config.stalled_after = std::chrono::seconds(stalled_after_seconds);
    int64_t images_gib_max = int64_t(config.images_bytes_max >> 30);
    TRY(table.read("images_gib_max", images_gib_max));
    if (images_gib_max < 0 || images_gib_max > kImagesGibMax)
      return invalid(table.name("images_gib_max") + " must be between 0 and " +
                     std::to_string(kImagesGibMax));
    config.images_bytes_max = uint64_t(images_gib_max) << 30;
    return table.nothing_else();
  }));
  TRY(root.each("logs", [&](Table table) -> Result<void> {
    int64_t retention_days = 0;
    TRY(table.read("retention_days", retention_days));
    if (retention_days < 0 || retention_days > kLogDaysMax)
      return invalid(table.name("retention_days") + " must be between 0 (for ever) and " +
                     std::to_string(kLogDaysMax));
    if (retention_days > 0) config.log_retention = retention_days * 24h;
    return table.nothing_else();
  }));
  TRY(root.each("image_policy", [&](Table table) { return read_image_policy(table, config.image_policy); }));
  TRY(root.each("registry",
                [&](Table table) { return read_registry(table, directory, config.registry_logins); }));
  TRY(root.each("storage", [&](Table table) { return read_storage(table, config); }));
  TRY(root.each("spot", [&](Table table) -> Result<void> {
    int64_t notice_seconds = config.spot_notice / 1s;
    TRY(table.read("notice_seconds", notice_seconds));
    TRY(table.read("interruptions_per_host_hour", config.spot_interruptions_per_host_hour));
    TRY(table.read("seed", config.spot_seed));
    TRY(table.read("trace", config.spot_trace_file));
    if (notice_seconds < 0 || notice_seconds > 3600)
      return invalid(table.name("notice_seconds") + " must be between 0 and 3600");
    if (!(config.spot_interruptions_per_host_hour >= 0 &&
          config.spot_interruptions_per_host_hour <= kInterruptionsPerHourMax))
      return invalid(table.name("interruptions_per_host_hour") + " must be between 0 and " +
                     std::to_string(int64_t(kInterruptionsPerHourMax)));
    config.spot_notice = std::chrono::seconds(notice_seconds);
    return table.nothing_else();
  }));
  TRY(root.each("network", [&](Table table) -> Result<void> {
    TRY(table.read("pool", config.network_pool));
    TRY(table.read("name_servers", config.outward.name_servers));
    TRY(table.read("http_proxy", config.outward.http_proxy));
    TRY(table.read("https_proxy", config.outward.https_proxy));
    TRY(table.read("no_proxy", config.outward.no_proxy));
    TRY(table.read("ca_bundle", config.outward.ca_bundle));
    TRY(table.read("package_index", config.outward.package_index));
    TRY(read_egress(table, config.egress.rules));
    int64_t connections_max = config.egress.connections_max;
    TRY(table.read("connections_per_job_max", connections_max));
    if (connections_max < 1 || connections_max > kConnectionsPerJobMax)
      return invalid(table.name("connections_per_job_max") + " must be between 1 and " +
                     std::to_string(kConnectionsPerJobMax));
    config.egress.connections_max = uint32_t(connections_max);
    TRY(table.each_named("roles", [&](const std::string& role, Table of_role) -> Result<void> {
      TRY(read_egress(of_role, config.egress_of_roles[role]));
      return of_role.nothing_else();
    }));
    return table.nothing_else();
  }));
  TRY(root.each_named(
      "regions", [&](const std::string& name, Table table) { return read_region(name, table, config); }));
  TRY(read_peers(root, config.peers));
  TRY(root.each("catalogue", [&](Table table) -> Result<void> {
    TRY(table.read("url", config.catalogue_url));
    TRY(table.read("query_url", config.catalogue_query_url));
    return table.nothing_else();
  }));
  TRY(root.each("prices", [&](Table table) { return read_prices(table, config.prices); }));
  TRY(root.nothing_else());
  TRY(check_devices(config));
  config.egress.services = services_of(config);

  if (config.remote_regions.count(config.region))
    return invalid("regions.\"" + config.region +
                   "\" is this server's own region: it cannot be another server");
  const bool twelve_digits =
      config.account_id.size() == 12 && std::all_of(config.account_id.begin(), config.account_id.end(),
                                                    [](char c) { return c >= '0' && c <= '9'; });
  if (!config.account_id.empty() && !twelve_digits)
    return invalid("account_id must be twelve digits, not '" + config.account_id + "'");
  return config;
}

}  // namespace

Result<Config> parse_config(const std::string& text, const std::string& path) {
  std::istringstream stream(text);
  const auto slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  try {
    return from_value(toml::parse(stream, path), directory).in("reading the config " + path);
  } catch (const std::exception& fault) {
    return invalid("reading the config " + path + ": " + fault.what());
  }
}

Result<Config> read_config(const std::string& path) {
  return parse_config(TRY(os::read_file(path, 1 << 20).in("reading the config")), path);
}

}  // namespace trainyard::apps
