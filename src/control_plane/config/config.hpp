// Config is the operator's configuration: the TOML file of `trainyard serve --config FILE`. Every
// member has a default, so an empty file is valid. An unknown key is an error that lists the known
// keys.
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
#include "config/notifications.hpp"
#include "config/prometheus.hpp"
#include "domain/container_limits.hpp"
#include "domain/file_system.hpp"
#include "domain/image.hpp"
#include "domain/image_policy.hpp"
#include "domain/image_sources.hpp"
#include "domain/instance_quota.hpp"
#include "domain/price.hpp"
#include "launch/kubernetes/gang_objects.hpp"
#include "launch/launcher.hpp"
#include "launch/slurm/node_kinds.hpp"
#include "launch/slurm/slurm.hpp"
#include "networks/egress.hpp"
#include "objects/storage_use.hpp"
#include "observe/audit.hpp"
#include "observe/metrics.hpp"
#include "os/log_file.hpp"
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

// A ledger in a PostgreSQL database, for several servers of which one writes.
struct LedgerDatabase {
  std::string url;       // "postgresql://ledger@db.lan/ledger"
  std::string password;  // "": taken from the URL, PGPASSWORD or libpq's password file
  Duration lease = 3s;   // a standby takes over if the writer does not renew it within this time
};

// A destination of subscription filters and deliveries of log groups.
struct LogWebhook {
  std::string name;
  std::string url;
  std::string authorization;  // the value of the header Authorization; "": none
  std::string ca_bundle;      // PEM file; "": the system's
  // ARNs of streams and functions. Requests with one of them use this webhook.
  std::vector<std::string> stands_for;
};

// A delivery source: a resource outside of this server, whose logs clients put into a log group.
struct LogSource {
  std::string arn;
  std::string log_type;
  std::string log_group;
};

// The settings of a server whose jobs run on the nodes of a Slurm cluster.
struct Slurm {
  launch::SlurmPlacement placement;
  // By job queue, by instance type ("ml.g5.xlarge"), and by user.
  std::map<std::string, launch::SlurmPlacement> of_queues, of_instance_types, of_users;
  bool require_user = false;
  // The Unix accounts as which jobs run, by user or role; empty: all run as the server's account.
  launch::UnixUserRules unix_users;
  // The directory of an account on nodes, without its suffix "-UID".
  std::string user_directory = "/var/tmp/trainyard-node";
  uint16_t first_port = 20'000, last_port = 29'999;  // UDP, between hosts on several nodes
  std::string config_file;                           // slurm.conf; "": Slurm's default
  std::string rest_url;                              // slurmrestd's; "": Slurm's programs are used
  std::string rest_version = "v0.0.38";
  std::string rest_user = "root";  // the user of the token
  std::string rest_token_file;     // a JWT, read again for each request
  std::string rest_ca_bundle;      // PEM file; "": the system's
  std::string server_address;      // where nodes reach this server; "": the host of `listen`
  std::string agents_listen;       // HOST:PORT for agents; "": a socket in the data directory
  std::string node_directory = "/var/lib/trainyard-node";
  std::string program_directory;  // of Trainyard's programs on nodes; "": as on this machine
  Duration time_margin = 30min;   // added to a job's run time limit
  Duration idle_max = 5s;         // the time that a child's Slurm job waits for another child
  // The nodes that are powered up and down on demand; empty: none are.
  std::vector<launch::SlurmNodeKind> node_kinds;
  Duration node_idle_max = 60s;  // an idle node of these kinds is powered down after this time
};

// The settings of a server whose jobs run in pods of a Kubernetes cluster.
struct Kubernetes {
  launch::KubernetesPlacement placement;
  // By job queue, and by instance type ("ml.g5.xlarge").
  std::map<std::string, launch::KubernetesPlacement> of_queues, of_instance_types;
  std::string kubeconfig;      // a file, as JSON; "": the service account of this server's pod
  std::string context;         // in the kubeconfig; "": its current one
  std::string name_space;      // where pods run; "": the context's, or the one of this server's pod
  std::string image;           // the image with Trainyard's programs, as nodes pull it
  std::string server_address;  // where pods reach this server; "": the host of `listen`
  std::string agents_listen;   // HOST:PORT for agents
  std::string node_directory = "/var/lib/trainyard-node";  // in the pods
  std::string program_directory = "/opt/trainyard/bin";    // in the image
  Duration time_margin = 30min;                            // added to a job's run time limit
  std::map<std::string, launch::KubernetesMount> mounts;   // by path in the pods
};

struct Config {
  std::string account_id;                          // "": generated at the first start
  std::vector<policy::ConfiguredKey> access_keys;  // empty: one is generated at the first start
  // Users, groups, roles and policies; their keys are in `access_keys`.
  policy::IdentitySeed identities;
  bool open_roles = false;           // undefined roles may do everything
  std::string region = "us-east-1";  // the default region that `env` sets
  std::vector<std::string> regions;  // further regions of this server, for campaigns
  std::map<std::string, client::Remote> remote_regions;  // regions on other servers
  std::vector<policy::Peer> peers;       // servers that act on behalf of principals of this one
  std::optional<LedgerDatabase> ledger;  // unset: a file of the data directory
  std::string catalogue_url;             // PostgreSQL; "": the embedded catalogue
  std::string catalogue_query_url;       // with a read-only role; "": catalogue_url
  std::string listen = "127.0.0.1:4566";
  bool allow_plain_http_from_other_machines = false;
  os::LogFileSettings log;         // of the server; without a path: standard error
  std::string metrics_listen;      // for Prometheus, without signatures; "": not exported
  PrometheusSettings prometheus;   // scrapes of the API's port, and remote write
  policy::RateLimits rate_limits;  // of each principal's requests; 0: no limit
  // In addition to 127.0.0.1, localhost, this machine's name and the listen address.
  std::vector<std::string> certificate_names;
  std::optional<ExternalObjects> objects;     // unset: the embedded directory
  std::vector<launch::Machine> machines;      // empty: development mode, all of this machine
  std::optional<Slurm> slurm;                 // unset: jobs run on this machine
  std::optional<Kubernetes> kubernetes;       // unset: jobs run on this machine
  std::vector<domain::InstanceQuota> quotas;  // limits of instances that training jobs use at once
  std::map<std::string, domain::Image> images;
  domain::ImagePolicy image_policy;  // for images that are not in `images`
  std::vector<domain::RegistryLogin> registry_logins;
  // The space of unpacked images; beyond it unused ones are removed.
  uint64_t images_bytes_max = uint64_t{100} << 30;
  domain::EgressSettings egress_settings;
  domain::FileSystems file_systems;
  // The directory of file systems that requests create; "": in the data directory.
  std::string fsx_directory;
  NotificationSettings notifications;  // endpoints, mail and commands of SNS
  domain::FileSystems volumes;         // by the path in requests for Batch's jobs
  std::vector<std::string> devices;    // device files that jobs may use
  bool copy_channels = false;          // true: channels in File mode are copied, not mounted
  bool clear_gpus = true;              // true: the memory of GPUs is overwritten between jobs
  domain::PosixUsers posix_users;      // the users with which jobs access file_systems and volumes
  // Containers that cannot have a user namespace run without one; otherwise their jobs fail.
  bool best_effort_isolation = false;
  // The highest hard limits that containers may set.
  std::map<std::string, uint64_t> limits_max = domain::kContainerLimitsMax;
  Duration stop_grace = 120s;   // between SIGTERM and SIGKILL, as on SageMaker
  Duration spot_notice = 120s;  // the same, when spot capacity is reclaimed
  double spot_interruptions_per_host_hour = 0;
  int64_t spot_seed = 0;        // for the random interruptions
  std::string spot_trace_file;  // CSV (reconcile/spot.hpp); "": none
  // A host without output and load for this time is reported as hanging; 0: never.
  Duration stalled_after = 30min;
  std::optional<Duration> log_retention;  // older events are removed; unset: never, as on AWS
  std::vector<LogWebhook> log_webhooks;   // where subscription filters may send log events
  std::vector<LogSource> log_sources;
  Duration log_delivery_interval = 5min;  // between two objects of a delivery
  // Free space of the data directory's disk that is kept for the ledger: with less, jobs, objects
  // and logs are rejected. Unset: kDiskReserveBytes, or a twentieth of the disk if that is less.
  std::optional<uint64_t> disk_reserve_bytes;
  observe::MetricSettings metrics;        // retention, and the metrics of one job
  observe::AuditLimits audit;             // retention and space of the audit log
  objects::StorageQuotas storage_quotas;  // limits for the embedded object store
  Duration upload_lifetime = 7 * 24h;     // of incomplete multipart uploads
  domain::PriceTable prices = domain::list_prices_of_2023();
  std::string network_pool = "10.201.0.0/16";
  networks::Egress egress;  // networks that jobs may reach, and services that other members name
  std::map<std::string, std::vector<networks::EgressRule>> egress_of_roles;  // by name or ARN
};

Result<Config> read_config(const std::string& path);
// Parses a config from text; `path` is for error messages and relative paths.
Result<Config> parse_config(const std::string& text, const std::string& path);

}  // namespace trainyard::config
