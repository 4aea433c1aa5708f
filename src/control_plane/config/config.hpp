// Config is the operator's configuration: the TOML file of `trainyard serve --config FILE`. Every member has
// a default, so an empty file is a config. An unknown key is an error that names the known ones.
//
// Threads: plain values. Errors: invalid, with file, key and the expected value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "client/forward.hpp"
#include "domain/container_limits.hpp"
#include "domain/file_system.hpp"
#include "domain/image.hpp"
#include "domain/image_policy.hpp"
#include "domain/image_sources.hpp"
#include "domain/instance_quota.hpp"
#include "domain/price.hpp"
#include "launch/launcher.hpp"
#include "networks/egress.hpp"
#include "objects/storage_use.hpp"
#include "observe/audit.hpp"
#include "policy/identity_seed.hpp"
#include "policy/principal_settings.hpp"

namespace trainyard::config {

struct ExternalObjects {
  std::string endpoint;  // "https://minio.lan:9000"
  std::string region = "us-east-1";
  std::string access_key_id;
  std::string secret_access_key;
  std::string ca_bundle;
};

struct Config {
  std::string account_id;                          // "" = made up at the first start
  std::vector<policy::ConfiguredKey> access_keys;  // empty = one is made up at the first start
  policy::IdentitySeed identities;   // users, groups, roles and policies; its keys are those above
  bool open_roles = false;           // roles that are not defined may do everything
  std::string region = "us-east-1";  // what `env` names as the default one
  std::vector<std::string> regions;  // further ones of this server, that campaigns may choose
  std::map<std::string, client::Remote> remote_regions;  // those that are other servers
  std::vector<policy::Peer> peers;  // servers that act on behalf of principals of this one
  std::string catalogue_url;        // PostgreSQL; "" = the embedded one
  std::string catalogue_query_url;  // the same with a role that may only read; "" = that one
  std::string listen = "127.0.0.1:4566";
  bool allow_plain_http_from_other_machines = false;
  std::string metrics_listen;      // for Prometheus, without signatures; "" = nowhere
  policy::RateLimits rate_limits;  // of each principal's requests; 0 = none
  std::vector<std::string>
      certificate_names;  // besides 127.0.0.1, localhost, this machine's name and the listen address
  std::optional<ExternalObjects> objects;     // unset: the embedded directory
  std::vector<launch::Machine> machines;      // empty: dev mode, this machine as it is
  std::vector<domain::InstanceQuota> quotas;  // of instances that training jobs use at once
  std::map<std::string, domain::Image> images;
  domain::ImagePolicy image_policy;  // for images that `images` does not have
  std::vector<domain::RegistryLogin> registry_logins;
  uint64_t images_bytes_max = uint64_t{100} << 30;  // unpacked; more is removed when no job uses it
  domain::Outward outward;
  domain::FileSystems file_systems;
  domain::FileSystems volumes;       // by the path that Batch's jobs name
  std::vector<std::string> devices;  // that jobs may name
  bool clear_gpus = true;            // overwrites the memory of GPUs between jobs
  domain::PosixUsers posix_users;    // the users with which jobs access file_systems and volumes
  // Containers that cannot have a user namespace run without one; otherwise their jobs fail.
  bool best_effort_isolation = false;
  std::map<std::string, uint64_t> limits_max =
      domain::kContainerLimitsMax;  // hard limits that containers may set
  Duration stop_grace = 120s;       // between SIGTERM and SIGKILL, as on SageMaker
  Duration spot_notice = 120s;      // the same, when spot capacity is reclaimed
  double spot_interruptions_per_host_hour = 0;
  int64_t spot_seed = 0;                  // of the random interruptions
  std::string spot_trace_file;            // CSV, reconcile/spot.hpp; "" = none
  Duration stalled_after = 30min;         // without output and work, a host is reported as hanging; 0: never
  std::optional<Duration> log_retention;  // older events are removed; unset: never, as on AWS
  // On the disk of the data directory: with less free, jobs, objects and logs are refused, so that the ledger
  // goes on. Unset: kDiskReserveBytes, or a twentieth of the disk if that is less.
  std::optional<uint64_t> disk_reserve_bytes;
  observe::AuditLimits audit;             // how long its files stay, and how much space they take
  objects::StorageQuotas storage_quotas;  // limits for the embedded object store
  Duration upload_lifetime = 7 * 24h;     // incomplete multipart uploads are dropped after it
  domain::PriceTable prices = domain::list_prices_of_2023();
  std::string network_pool = "10.201.0.0/16";
  networks::Egress egress;  // what jobs may reach outside; with the services of its other members
  std::map<std::string, std::vector<networks::EgressRule>> egress_of_roles;  // by name or ARN
};

Result<Config> read_config(const std::string& path);
// Parses a config from text; `path` is for error messages.
Result<Config> parse_config(const std::string& text, const std::string& path);

}  // namespace trainyard::config
