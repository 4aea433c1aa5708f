#include "trainyard/serve_settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "launch/kubernetes/exec_credentials.hpp"
#include "launch/kubernetes/rest.hpp"
#include "launch/slurm/command_line.hpp"
#include "launch/slurm/rest.hpp"
#include "networks/tunnel.hpp"
#include "os/accounts.hpp"
#include "os/environment.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "signing/sealed_text.hpp"
#include "signing/signing.hpp"
#include "trainyard/campaigns.hpp"
#include "trainyard/clock_file.hpp"

namespace trainyard::apps {
namespace {

// The reserve for the ledger, which is enough for some hundred thousand jobs.
constexpr uint64_t kDiskReserveBytes = uint64_t{256} << 20;

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "localhost" || host == "[::1]";
}

// Reads the settings of spot interruptions. The seconds of a trace count from the server's start.
Result<reconcile::Spot> read_spot(const config::Config& config, Instant start) {
  reconcile::Spot spot;
  spot.interruptions_per_host_hour = config.spot_interruptions_per_host_hour;
  spot.seed = uint64_t(config.spot_seed);
  if (config.spot_trace_file.empty()) return spot;
  const std::string text =
      TRY(os::read_file(config.spot_trace_file).in("reading spot.trace of the config"));
  spot.trace = TRY(reconcile::parse_trace(text, start).in(config.spot_trace_file));
  return spot;
}

// Returns the mark of this server's jobs in a cluster. It is derived from the data directory's key,
// since another head node of the cluster may have a data directory with the same path. Every user
// can read the mark; it reveals nothing about the key.
std::string mark_of(const std::string& sealing_key, const std::string& purpose) {
  constexpr size_t kMarkDigits = 6;  // as server_mark(): it is a part of names of interfaces
  return to_hex(signing::hmac_sha256(sealing_key, purpose)).substr(0, kMarkDigits);
}

// Returns the settings of a launcher for a cluster with agents on other machines.
Result<void> set_node_settings(const config::Config& config, const std::string& directory,
                               const std::string& mark, launch::NodeSettings& settings) {
  settings.mark = mark;
  settings.node_directory = directory;
  settings.pool = TRY(networks::parse_subnet(config.network_pool).in("network.pool"));
  settings.egress = config.egress;
  settings.names_by_machine = config.egress_settings.name_servers.empty();
  settings.egress_of_roles = config.egress_of_roles;
  return {};
}

// Sets how tokens are encrypted with the server's key for a cluster.
template <class Settings>
void set_seals(const std::string& sealing_key, const std::string& cluster, Random& random,
               Settings& settings) {
  settings.seal = [=, &random](const std::string& token, const std::string& attempt) {
    return signing::seal(sealing_key, token, cluster + " " + attempt, random);
  };
  settings.unseal = [=](const std::string& sealed, const std::string& attempt) {
    return signing::unseal(sealing_key, sealed, cluster + " " + attempt);
  };
}

constexpr const char* kServiceAccountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";

Result<std::string> read_small_file(const std::string& path) {
  return os::read_file(path, launch::kKubeconfigBytesMax);
}

Result<launch::KubernetesAccess> kubernetes_access(const config::Kubernetes& kubernetes) {
  if (kubernetes.kubeconfig.empty())
    return launch::service_account_access(
        kServiceAccountDirectory, os::environment_variable("KUBERNETES_SERVICE_HOST"),
        os::environment_variable("KUBERNETES_SERVICE_PORT"), read_small_file);
  const std::string text =
      TRY(read_small_file(kubernetes.kubeconfig).in("reading kubernetes.kubeconfig"));
  const auto directory = std::filesystem::absolute(kubernetes.kubeconfig).parent_path();
  return launch::read_kubeconfig(text, kubernetes.context, directory, read_small_file)
      .in(kubernetes.kubeconfig);
}

// Returns the account as which the server acts in Slurm.
std::string own_slurm_user(const config::Slurm& slurm) {
  if (!slurm.rest_url.empty()) return slurm.rest_user;
  const auto own = os::find_account(os::own_user_id());
  return own ? own->name : std::to_string(os::own_user_id());
}

Result<launch::UnixUser> find_unix_user(const std::string& name) {
  const os::Account account = TRY(os::find_account(name));
  return launch::UnixUser{account.name, account.user_id, account.group_id};
}

std::shared_ptr<const objects::StorageQuotas> shared(const objects::StorageQuotas& quotas) {
  return std::make_shared<const objects::StorageQuotas>(quotas);
}

// Returns the names by which agents on other machines find the server.
std::vector<std::string> names_for_agents(const config::Config& config) {
  std::string server, listen;
  if (config.slurm) {
    server = config.slurm->server_address;
    listen = config.slurm->agents_listen;
  } else if (config.kubernetes) {
    server = config.kubernetes->server_address;
    listen = config.kubernetes->agents_listen;
  }
  std::vector<std::string> names;
  if (!server.empty()) names.push_back(server);
  std::string host = listen.substr(0, listen.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (!host.empty() && host != "0.0.0.0") names.push_back(host);
  return names;
}

}  // namespace

std::string machine_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

ReloadableSettings::ReloadableSettings(const config::Config& config)
    : machines(config.machines),
      quotas(config.quotas),
      rate_limits(config.rate_limits),
      storage_quotas(shared(config.storage_quotas)),
      peers(config.peers),
      all(std::make_shared<const config::Config>(config)) {}

void ReloadableSettings::take(const config::Config& config) {
  machines.take(config.machines);
  quotas.take(config.quotas);
  rate_limits.take(config.rate_limits);
  storage_quotas.take(shared(config.storage_quotas));
  peers.take(config.peers);
  all.take(std::make_shared<const config::Config>(config));
}

Listening listening_of(const config::Config& config) {
  Listening listening;
  listening.host = config.listen.substr(0, config.listen.rfind(':'));
  listening.plain_http = is_loopback(listening.host) || config.allow_plain_http_from_other_machines;
  listening.all_addresses = listening.host == "0.0.0.0" || listening.host == "[::]";
  auto& names = listening.names = {"127.0.0.1", "169.254.170.2", "localhost", machine_name()};
  const std::string& host = listening.host;
  if (!listening.all_addresses && std::find(names.begin(), names.end(), host) == names.end())
    names.push_back(host);
  names.insert(names.end(), config.certificate_names.begin(), config.certificate_names.end());
  for (const std::string& name : names_for_agents(config))
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return listening;
}

uint64_t reserve_of(const config::Config& config, const std::string& directory) {
  if (config.disk_reserve_bytes) return *config.disk_reserve_bytes;
  std::error_code unknown;
  const auto disk = std::filesystem::space(directory, unknown);
  return unknown ? kDiskReserveBytes : std::min<uint64_t>(kDiskReserveBytes, disk.capacity / 20);
}

launch::LocalSettings local_settings_of(const config::Config& config, const DataDirectory& data,
                                        const ReloadableSettings& reloadable) {
  launch::LocalSettings settings;
  settings.data_directory = data.path();
  settings.agent_program = os::program_directory() + "/trainyard-agent";
  settings.machines = [&reloadable] { return reloadable.machines(); };
  settings.network_pool = config.network_pool;
  settings.egress = config.egress;
  settings.names_by_machine = config.egress_settings.name_servers.empty();
  settings.egress_of_roles = config.egress_of_roles;
  settings.clear_gpus = config.clear_gpus;
  return settings;
}

Result<launch::SlurmSettings> slurm_settings_of(const config::Config& config,
                                                const DataDirectory& data,
                                                const std::string& sealing_key, Random& random) {
  const config::Slurm& slurm = *config.slurm;
  launch::SlurmSettings settings;
  launch::SlurmJobSettings& jobs = settings.jobs;
  TRY(set_node_settings(config, slurm.node_directory, mark_of(sealing_key, "mark of jobs in Slurm"),
                        jobs));
  jobs.program_directory =
      slurm.program_directory.empty() ? os::program_directory() : slurm.program_directory;
  jobs.agent_environment[launch::kImageSourcesVariable] = launch::image_sources_file(data.path());
  jobs.placement = slurm.placement;
  jobs.of_queues = slurm.of_queues;
  jobs.of_instance_types = slurm.of_instance_types;
  jobs.of_users = slurm.of_users;
  jobs.require_user = slurm.require_user;
  jobs.unix_users = TRY(unix_users_of(slurm));
  jobs.user_directory = slurm.user_directory;
  jobs.first_port = slurm.first_port;
  jobs.last_port = slurm.last_port;
  jobs.time_margin = slurm.time_margin;
  jobs.idle_max = slurm.idle_max;
  settings.node_kinds = slurm.node_kinds;
  set_seals(sealing_key, "slurm", random, settings);
  return settings;
}

Result<std::map<std::string, launch::UnixUser>> unix_users_of(const config::Slurm& slurm) {
  auto users = TRY(launch::resolve_unix_users(slurm.unix_users, find_unix_user));
  for (auto& [principal, user] : users)
    if (user.name == own_slurm_user(slurm)) user = {};
  return users;
}

Result<std::unique_ptr<launch::Slurm>> open_slurm(const config::Slurm& slurm, Clock& clock,
                                                  Random& random) {
  if (slurm.rest_url.empty()) {
    launch::SlurmPrograms programs{slurm.config_file, own_slurm_user(slurm)};
    for (const auto& [principal, name] : slurm.unix_users.names) programs.users.push_back(name);
    return launch::slurm_by_programs(std::move(programs), os::run, random);
  }
  return launch::slurm_by_rest(
      {slurm.rest_url, slurm.rest_version, slurm.rest_user, slurm.rest_token_file},
      launch::send_by_curl(slurm.rest_ca_bundle), clock);
}

Result<launch::KubernetesSettings> kubernetes_settings_of(const config::Config& config,
                                                          const std::string& sealing_key,
                                                          Random& random) {
  const config::Kubernetes& kubernetes = *config.kubernetes;
  launch::KubernetesSettings settings;
  launch::KubernetesJobSettings& jobs = settings.jobs;
  TRY(set_node_settings(config, kubernetes.node_directory,
                        mark_of(sealing_key, "mark of gangs in Kubernetes"), jobs));
  jobs.name_space = kubernetes.name_space;
  if (jobs.name_space.empty()) jobs.name_space = TRY(kubernetes_access(kubernetes)).name_space;
  if (jobs.name_space.empty()) jobs.name_space = "default";
  jobs.image = kubernetes.image;
  jobs.program_directory = kubernetes.program_directory;
  jobs.mounts = kubernetes.mounts;
  jobs.placement = kubernetes.placement;
  jobs.of_queues = kubernetes.of_queues;
  jobs.of_instance_types = kubernetes.of_instance_types;
  jobs.time_margin = kubernetes.time_margin;
  jobs.stop_grace = config.stop_grace;
  set_seals(sealing_key, "kubernetes", random, settings);
  return settings;
}

Result<std::unique_ptr<launch::Kubernetes>> open_kubernetes(
    const config::Kubernetes& kubernetes, const launch::KubernetesJobSettings& jobs, Clock& clock) {
  auto access = TRY(kubernetes_access(kubernetes));
  const auto open = [](const launch::RestIdentity& identity) {
    return launch::send_by_curl(identity);
  };
  const launch::OpenSendRest open_send =
      access.plugin
          ? launch::open_with_plugin(*access.plugin, access.identity.ca, open, os::run, clock)
          : [open, identity = access.identity] { return open(identity); };
  return launch::kubernetes_by_rest(std::move(access), jobs.name_space, jobs.mark, open_send,
                                    read_small_file);
}

std::string server_address_of(const config::Config& config, const Listening& listening) {
  if (config.slurm && !config.slurm->server_address.empty()) return config.slurm->server_address;
  if (config.kubernetes && !config.kubernetes->server_address.empty())
    return config.kubernetes->server_address;
  return listening.host == "0.0.0.0" ? std::string("127.0.0.1") : listening.host;
}

std::string agents_listen_of(const config::Config& config, const DataDirectory& data) {
  const std::string listen = config.slurm        ? config.slurm->agents_listen
                             : config.kubernetes ? config.kubernetes->agents_listen
                                                 : "";
  return listen.empty() ? "unix:" + data.file("agents.sock") : "tcp:" + listen;
}

std::string agents_address_of(const std::string& listen, const std::string& server_address) {
  constexpr std::string_view kAllAddresses = "tcp:0.0.0.0:";
  if (!listen.starts_with(kAllAddresses)) return listen;
  return "tcp:" + server_address + ":" + listen.substr(kAllAddresses.size());
}

Result<control::Settings> control_settings_of(const config::Config& config,
                                              const DataDirectory& data, const std::string& account,
                                              const Images& images,
                                              const ReloadableSettings& reloadable,
                                              const CheckDiskSpace& check_disk_space, Instant now) {
  control::Settings settings;
  settings.check_disk_space = check_disk_space;
  settings.clock = clock_settings(data.file("clock.json"));
  settings.account = account;
  settings.scale_gangs = config.machines.empty() && !config.slurm && !config.kubernetes;
  settings.gang_hosts_max =
      std::min(domain::kGangHostsMax, TRY(launch::gang_hosts_max(config.network_pool, false)));
  settings.encrypted_gang_hosts_max =
      std::min(domain::kGangHostsMax, TRY(launch::gang_hosts_max(config.network_pool, true)));
  settings.quotas = [&reloadable] { return reloadable.quotas(); };
  settings.stop_grace = config.stop_grace;
  settings.stalled_after = config.stalled_after;
  settings.images = images;
  settings.image_policy = config.image_policy;
  settings.egress_settings = config.egress_settings;
  // Agents on nodes of a cluster report what is missing there.
  if (!config.slurm && !config.kubernetes) settings.no_encryption = networks::why_no_tunnel();
  settings.file_systems = config.file_systems;
  settings.volumes = config.volumes;
  settings.posix_users = config.posix_users;
  settings.best_effort_isolation = config.best_effort_isolation;
  settings.copy_channels = config.copy_channels;
  settings.spot_notice = config.spot_notice;
  if (config.slurm) settings.growth.idle_max = config.slurm->node_idle_max;
  settings.spot = TRY(read_spot(config, now));
  return settings;
}

api::Settings api_settings_of(const config::Config& config, const Identity& identity,
                              control::Control& control, const ReloadableSettings& reloadable,
                              const CheckDiskSpace& check_disk_space) {
  api::Settings settings;
  settings.account = identity.account;
  settings.keys = identity.keys;
  settings.temporary_key_secret = identity.temporary_key_secret;
  settings.find_image = [&control](const std::string& name) { return control.find_image(name); };
  settings.file_systems = config.file_systems;
  settings.volumes = config.volumes;
  settings.devices = config.devices;
  settings.open_roles = config.open_roles;
  settings.limits_max = config.limits_max;
  settings.prices = config.prices;
  settings.quotas = [&reloadable] { return reloadable.quotas(); };
  settings.rate_limits = [&reloadable] { return reloadable.rate_limits(); };
  settings.peers = [&reloadable] { return reloadable.peers(); };
  settings.check_disk_space = check_disk_space;
  settings.remote_regions = config.remote_regions;
  settings.regions = config.regions;
  settings.regions.push_back(config.region);
  settings.machines = [&reloadable] { return capacities_of(reloadable.machines()); };
  return settings;
}

file_systems::Settings file_system_settings_of(const config::Config& config,
                                               const DataDirectory& data,
                                               const CheckDiskSpace& check_disk_space) {
  file_systems::Settings settings;
  settings.root = config.fsx_directory.empty() ? data.file("file_systems") : config.fsx_directory;
  // Without it, an import that was interrupted by the end of a server fetches its files again.
  if (const auto boot = os::read_file("/proc/sys/kernel/random/boot_id", 256))
    settings.boot = *boot;
  settings.check_disk_space = check_disk_space;
  settings.posix_users = config.posix_users;
  if (config.kubernetes)
    settings.not_offered = "jobs on Kubernetes cannot mount directories of this machine";
  else if (config.slurm && config.fsx_directory.empty())
    settings.not_offered =
        "on Slurm, fsx.directory of the config must name a directory that all nodes share";
  else if (config.ledger && config.fsx_directory.empty())
    settings.not_offered =
        "with standby servers, fsx.directory of the config must name a directory that all of them "
        "share";
  return settings;
}

Result<void> write_image_sources(const config::Config& config, const DataDirectory& data) {
  const domain::ImageSources sources{
      config.registry_logins,
      config.image_policy.oci_directories.value_or(std::vector<std::string>())};
  return os::write_file_durably(launch::image_sources_file(data.path()), dump(to_json(sources)),
                                0600);
}

net::HttpSettings http_settings_of(const config::Config& config, const Listening& listening) {
  net::HttpSettings http;
  http.listen = config.listen;
  http.plain_http = listening.plain_http ? net::PlainHttp::all : net::PlainHttp::this_machine;
  return http;
}

}  // namespace trainyard::apps
