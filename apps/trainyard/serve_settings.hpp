// Makes the settings of the server's parts from the configuration.
//
// Threads: ReloadableSettings is callable from anywhere; the functions are pure, except those that
// read files.
// Lifetime: the arguments outlive the settings, which refer to them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/disk_reserve.hpp"
#include "base/thread_safety.hpp"
#include "config/config.hpp"
#include "control/control.hpp"
#include "file_systems/file_systems.hpp"
#include "launch/kubernetes/kubernetes_launcher.hpp"
#include "launch/local/local.hpp"
#include "launch/slurm/slurm_launcher.hpp"
#include "net/http_server.hpp"
#include "objects/storage_use.hpp"
#include "operations/services.hpp"
#include "trainyard/data_directory.hpp"

namespace trainyard::apps {

// A part of the configuration that SIGHUP may replace while the server runs.
template <class Part>
class Reloadable {
 public:
  explicit Reloadable(Part part) : part_(std::move(part)) {}
  Part operator()() const {
    const MutexLock lock(mutex_);
    return part_;
  }
  void take(Part part) {
    const MutexLock lock(mutex_);
    part_ = std::move(part);
  }

 private:
  mutable Mutex mutex_;
  Part part_ GUARDED_BY(mutex_);
};

struct ReloadableSettings {
  explicit ReloadableSettings(const config::Config& config);
  void take(const config::Config& config);

  Reloadable<std::vector<launch::Machine>> machines;
  Reloadable<std::vector<domain::InstanceQuota>> quotas;
  Reloadable<policy::RateLimits> rate_limits;
  Reloadable<std::shared_ptr<const objects::StorageQuotas>> storage_quotas;
  Reloadable<std::vector<policy::Peer>> peers;
  Reloadable<std::shared_ptr<const config::Config>> all;  // all of it, for warnings; not nullptr
};

// Returns this machine's host name.
std::string machine_name();

// The addresses of the server, derived from the setting `listen`.
struct Listening {
  std::string host;
  bool all_addresses;              // of this machine: 0.0.0.0
  bool plain_http;                 // for clients on other machines too
  std::vector<std::string> names;  // subject names of the certificate
};
Listening listening_of(const config::Config& config);

// Returns the bytes that jobs, objects and logs must leave free for the ledger. On a small disk, as
// in tests and appliances, the reserve is smaller, so that most of the space is for users.
uint64_t reserve_of(const config::Config& config, const std::string& directory);

launch::LocalSettings local_settings_of(const config::Config& config, const DataDirectory& data,
                                        const ReloadableSettings& reloadable);

// Requires: config.slurm. Errors: those of the network pool.
Result<launch::SlurmSettings> slurm_settings_of(const config::Config& config,
                                                const DataDirectory& data,
                                                const std::string& sealing_key, Random& random);
// Returns the Unix accounts as which jobs run, by user or role; without a name: the server's
// account in Slurm. Errors: invalid, not_found, denied, with the key of the config.
Result<std::map<std::string, launch::UnixUser>> unix_users_of(const config::Slurm& slurm);

// Opens Slurm through its commands, or through slurmrestd if the config names one. `random`
// outlives the result. Errors: invalid.
Result<std::unique_ptr<launch::Slurm>> open_slurm(const config::Slurm& slurm, Clock& clock,
                                                  Random& random);
// Requires: config.kubernetes. Errors: those of the network pool and of the kubeconfig.
Result<launch::KubernetesSettings> kubernetes_settings_of(const config::Config& config,
                                                          const std::string& sealing_key,
                                                          Random& random);
// Opens Kubernetes through its REST API. `clock` outlives the result. Errors: those of the
// kubeconfig or service account.
Result<std::unique_ptr<launch::Kubernetes>> open_kubernetes(
    const config::Kubernetes& kubernetes, const launch::KubernetesJobSettings& jobs, Clock& clock);
// Returns the address by which agents on a cluster's nodes, or in its pods, reach this server.
std::string server_address_of(const config::Config& config, const Listening& listening);
// Returns where the server listens for agents: "unix:PATH" or "tcp:HOST:PORT".
std::string agents_listen_of(const config::Config& config, const DataDirectory& data);
// Returns where agents find the server that listens at `listen`. A server that listens at all
// addresses, 0.0.0.0, is found at `server_address`.
std::string agents_address_of(const std::string& listen, const std::string& server_address);

using Images = std::map<std::string, domain::Image>;

// Makes the settings of control, without the addresses of the API and of the object store, which
// are known only after the server listens. Errors: those of the network pool, and of the file with
// spot interruptions.
Result<control::Settings> control_settings_of(const config::Config& config,
                                              const DataDirectory& data, const std::string& account,
                                              const Images& images,
                                              const ReloadableSettings& reloadable,
                                              const CheckDiskSpace& check_disk_space, Instant now);

// Makes the settings of the API, without the identities, which are in control's records. Lifetime:
// `control` outlives the settings.
api::Settings api_settings_of(const config::Config& config, const Identity& identity,
                              control::Control& control, const ReloadableSettings& reloadable,
                              const CheckDiskSpace& check_disk_space);

// Makes the settings of file systems, without why_not.
file_systems::Settings file_system_settings_of(const config::Config& config,
                                               const DataDirectory& data,
                                               const CheckDiskSpace& check_disk_space);

// Writes the registries and directories of images, which agents read. Errors: those of the file.
Result<void> write_image_sources(const config::Config& config, const DataDirectory& data);

net::HttpSettings http_settings_of(const config::Config& config, const Listening& listening);

}  // namespace trainyard::apps
