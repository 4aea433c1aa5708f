#include "config/warnings.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "policy/identity_seed.hpp"

namespace trainyard::config {
namespace {

constexpr const char* kEveryOther = "*";  // in place of a name

using Warnings = std::vector<std::string>;

// "2", "1.5"
std::string number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

struct Capacity {
  double cpus = 0;
  int64_t memory_bytes = 0, gpus = 0;
};

void compare(const std::string& key, const std::string& offer, const Capacity& offered,
             const launch::Machine& here, Warnings& warnings) {
  if (offered.memory_bytes > here.memory_bytes)
    warnings.push_back(
        key + "memory_gib: " + offer + " " + human_bytes(uint64_t(offered.memory_bytes)) +
        " of memory to jobs, but this machine has " + human_bytes(uint64_t(here.memory_bytes)) +
        ": jobs that use what they get run out of memory");
  if (offered.cpus > here.cpus)
    warnings.push_back(key + "cpus: " + offer + " " + number(offered.cpus) +
                       " to jobs, but this machine has " + number(here.cpus) +
                       ": jobs share them, and run slower");
  if (offered.gpus > here.gpus)
    warnings.push_back(key + "gpus: " + offer + " " + std::to_string(offered.gpus) +
                       " to jobs, but this machine has " + std::to_string(here.gpus) +
                       ": jobs that need more do not start");
}

// GPUs that are named by device file are not compared: the launcher names those that are missing.
void check_machines(const Config& config, const launch::Machine& here, Warnings& warnings) {
  Capacity sum;
  const size_t before = warnings.size();
  for (size_t i = 0; i < config.machines.size(); ++i) {
    const launch::Machine& machine = config.machines[i];
    const Capacity offered{machine.cpus, machine.memory_bytes,
                           machine.gpu_devices.empty() ? machine.gpus : 0};
    compare("machine[" + std::to_string(i) + "].", machine.name + " offers", offered, here,
            warnings);
    sum.cpus += offered.cpus;
    sum.memory_bytes += offered.memory_bytes;
    sum.gpus += offered.gpus;
  }
  if (warnings.size() == before)
    compare("machine.", "the machines together offer", sum, here, warnings);
}

class Names {
 public:
  explicit Names(const policy::Identities& identities) : identities_(identities) {
    for (const auto& [id, key] : identities.keys()) with_keys_.insert(key->user);
  }
  bool has_user(const std::string& name) const {
    return name == kEveryOther || identities_.find_user(name) || with_keys_.contains(name);
  }
  bool has_role(const std::string& name) const { return identities_.find_role(name) != nullptr; }

 private:
  const policy::Identities& identities_;
  std::set<std::string, std::less<>> with_keys_;
};

constexpr const char* kRemedy = "; correct the name, or make the user with `trainyard user add ";

void check_users(const std::string& key, const std::vector<std::string>& users, const Names& names,
                 Warnings& warnings) {
  for (const std::string& user : users)
    if (user.find('*') == std::string::npos && !names.has_user(user))
      warnings.push_back(key + ": user '" + user + "' not found" + kRemedy + user + "`");
}

void check_limits(const Config& config, const Names& names, Warnings& warnings) {
  for (size_t i = 0; i < config.quotas.size(); ++i) {
    const std::string& user = config.quotas[i].user;
    if (!user.empty() && !names.has_user(user) && !names.has_role(user))
      warnings.push_back("quota[" + std::to_string(i) + "].user: user or role '" + user +
                         "' not found, so the quota limits nothing" + kRemedy + user + "`");
  }
  for (const auto& [user, quota] : config.storage_quotas.users)
    if (!names.has_user(user))
      warnings.push_back("storage_quota.user: user '" + user +
                         "' not found, so the quota limits nothing" + kRemedy + user + "`");
  if (config.objects &&
      !(config.storage_quotas.users.empty() && config.storage_quotas.buckets.empty()))
    warnings.push_back(
        "storage_quota: limits nothing, since [objects] names an external object store; set the "
        "limits there");
}

}  // namespace

std::vector<std::string> warnings_of(const Config& config, const launch::Machine& here,
                                     const policy::Identities& identities) {
  Warnings warnings = policy::seed_warnings(identities);
  const Names names(identities);
  check_machines(config, here, warnings);
  check_limits(config, names, warnings);
  for (const auto& [user, ids] : config.posix_users)
    check_users("posix_users", {user}, names, warnings);
  if (config.slurm)
    for (const auto& [user, account] : config.slurm->unix_users.names)
      if (!names.has_role(user)) check_users("slurm.users", {user}, names, warnings);
  for (const auto& [id, file_system] : config.file_systems)
    check_users("file_systems." + id + ".users", file_system.users, names, warnings);
  for (const auto& [path, volume] : config.volumes)
    check_users("volumes.\"" + path + "\".users", volume.users, names, warnings);
  for (size_t i = 0; i < config.registry_logins.size(); ++i)
    check_users("registry[" + std::to_string(i) + "].users", config.registry_logins[i].users, names,
                warnings);
  for (const policy::Peer& peer : config.peers)
    if (!identities.find_key(peer.access_key_id))
      warnings.push_back("peer.access_key_id: access key " + peer.access_key_id +
                         " not found: the other server's requests are rejected");
  return warnings;
}

}  // namespace trainyard::config
