// Defines what operations are given: the settings of the API, and the parts of the server that they call.
//
// Threads: constant once the handler is made; the functions in them are called from many threads at once.
// Lifetime: both outlive every operation.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk_reserve.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "campaign/campaigns.hpp"
#include "campaign/capacity.hpp"
#include "client/forward.hpp"
#include "control/control.hpp"
#include "domain/container_limits.hpp"
#include "domain/file_system.hpp"
#include "domain/image.hpp"
#include "domain/instance_quota.hpp"
#include "domain/price.hpp"
#include "gateway/progress.hpp"
#include "gateway/shells.hpp"
#include "net/http_server.hpp"
#include "objects/objects.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"
#include "operations/rate_limiter.hpp"
#include "operations/request_statistics.hpp"
#include "policy/identities.hpp"
#include "policy/principal_settings.hpp"

namespace trainyard::api {

class IdentityStore;  // api/identity_store.hpp

// The tag with the creator of a job, which the server sets: costs are reported by it, and clients are not shown it.
inline constexpr std::string_view kCreatedByTag = "aws:createdBy";

using FindImage = std::function<Result<domain::Image>(const std::string& name)>;

struct Settings {
  std::string account;                      // twelve digits
  std::vector<policy::ConfiguredKey> keys;  // the owner's
  std::string
      temporary_key_secret;  // 32 random bytes of this data directory: signs the session tokens of roles
  // Users, roles, policies and access keys as they are now; never answers nullptr. Unset: there are the keys above alone.
  std::function<std::shared_ptr<const policy::Identities>()> identities = nullptr;
  // Told of each access key that a request was signed with.
  std::function<void(std::string_view key, Instant at, std::string_view region, std::string_view service)>
      key_used = nullptr;
  size_t body_bytes_max = 4 << 20;  // of control-plane requests
  FindImage find_image;
  domain::FileSystems file_systems;  // that channels and Batch's volumes may name
  domain::FileSystems
      volumes;  // directories of machines that Batch's volumes may name, by path; without a directory,
                // each host gets an empty one of its own
  std::vector<std::string> devices;  // device files of machines that Batch's containers may name
  // The highest hard limit that a Batch container may set, by name; other names have no limit.
  std::map<std::string, uint64_t> limits_max = domain::kContainerLimitsMax;
  // Of instances that training jobs use at once, as they are now.
  std::function<std::vector<domain::InstanceQuota>()> quotas = [] {
    return std::vector<domain::InstanceQuota>();
  };
  domain::PriceTable prices = domain::list_prices_of_2023();
  std::map<std::string, client::Remote> remote_regions;  // other servers'; requests for them are passed on
  std::vector<std::string> regions;                      // that are this server's own
  // As they are now.
  std::function<std::vector<policy::Peer>()> peers = [] { return std::vector<policy::Peer>(); };
  CheckRoom check_room = no_reserve();                    // asked before a training job is created
  std::function<std::vector<campaign::Room>()> machines;  // of this server; none: jobs are made to fit
  // How many requests each principal may make, as it is now.
  std::function<policy::RateLimits()> rate_limits = [] { return policy::RateLimits(); };
  // How long a slow request of S3 waits before it, and between, what shows that it goes on.
  Duration blank_interval = 5s;
  bool open_roles = false;  // a role that is not defined may do everything, as before there were policies
};

struct Services {
  control::Control& control;
  observe::Logs& logs;
  observe::Metrics& metrics;
  objects::Objects& objects;
  Clock& clock;
  Random& random;
  gateway::Shells* shells = nullptr;  // nullptr: shells are refused
  gateway::FindProgress progress = nullptr;
  campaign::Campaigns* campaigns = nullptr;  // nullptr: campaigns are refused
  RequestStatistics* statistics = nullptr;   // nullptr: requests are not counted
  IdentityStore* identities = nullptr;       // of IAM's operations; required by them
};

}  // namespace trainyard::api
