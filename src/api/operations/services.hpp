// Settings and Services are the dependencies of operations: the settings of the API, and the parts
// of the server that they call.
//
// Threads: constant once the handler is made; their functions are called from many threads at once.
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
#include "operations/console_token.hpp"
#include "operations/context.hpp"
#include "operations/rate_limiter.hpp"
#include "operations/request_statistics.hpp"
#include "operations/server_status.hpp"
#include "policy/identities.hpp"
#include "policy/principal_settings.hpp"

namespace trainyard::file_systems {
class FileSystems;  // file_systems/file_systems.hpp
}
namespace trainyard::alarms {
class AlarmStore;  // alarms/store.hpp
class Dashboards;  // alarms/dashboards.hpp
}  // namespace trainyard::alarms

namespace trainyard::notify {
class EventBus;       // notify/event_bus.hpp
class Notifications;  // notify/notifications.hpp
}  // namespace trainyard::notify
namespace trainyard::insights {
class Queries;  // insights/queries.hpp
}

namespace trainyard::log_routing {
class Exports;    // log_routing/exports.hpp
class LogRouter;  // log_routing/router.hpp
}  // namespace trainyard::log_routing

namespace trainyard::api {

class IdentityStore;  // operations/identity_store.hpp

// The tag with the creator of a job. The server sets it, reports costs by it, and hides it from
// clients.
inline constexpr std::string_view kCreatedByTag = "aws:createdBy";

using FindImage = std::function<Result<domain::Image>(const std::string& name)>;

struct Settings {
  std::string account;                      // twelve digits
  std::vector<policy::ConfiguredKey> keys;  // the owner's
  // 32 random bytes of the data directory, which seal session tokens.
  std::string temporary_key_secret;
  // Returns the current users, roles, policies and access keys; never nullptr. Unset: only the keys
  // above exist.
  std::function<std::shared_ptr<const policy::Identities>()> identities = nullptr;
  // Called with the access key of each request that has a valid signature.
  std::function<void(std::string_view key, Instant at, std::string_view region,
                     std::string_view service)>
      key_used = nullptr;
  size_t body_bytes_max = 4 << 20;  // of a request's body, unless it is an object
  FindImage find_image;
  domain::FileSystems file_systems;  // of the config: for channels and for Batch's volumes
  // Directories of machines for Batch's volumes, by path. Without a directory, each host gets its
  // own empty one.
  domain::FileSystems volumes;
  std::vector<std::string> devices;  // device files of machines for Batch's containers
  // The maximum of each hard limit that a Batch container may set, by name. Others have no maximum.
  std::map<std::string, uint64_t> limits_max = domain::kContainerLimitsMax;
  // Returns the current quotas on instances that training jobs use at once.
  std::function<std::vector<domain::InstanceQuota>()> quotas = [] {
    return std::vector<domain::InstanceQuota>();
  };
  domain::PriceTable prices = domain::list_prices_of_2023();
  // Regions of other servers. Requests for these regions are forwarded.
  std::map<std::string, client::Remote> remote_regions;
  std::vector<std::string> regions;  // of this server
  // Returns the current peers.
  std::function<std::vector<policy::Peer>()> peers = [] { return std::vector<policy::Peer>(); };
  CheckDiskSpace check_disk_space = no_reserve();  // called before a training job is created
  // Returns the capacity of this server's machines. Unset: campaigns assume that any number of
  // hosts fits.
  std::function<std::vector<campaign::MachineCapacity>()> machines;
  // Returns the current limits on each principal's requests.
  std::function<policy::RateLimits()> rate_limits = [] { return policy::RateLimits(); };
  // The time between the blanks that keep a client connected during a slow S3 request, and before
  // the first one.
  Duration blank_interval = 5s;
  bool open_roles = false;  // undefined roles may do everything
};

struct Services {
  control::Control& control;
  observe::Logs& logs;
  observe::Metrics& metrics;
  objects::Objects& objects;
  Clock& clock;
  Random& random;
  gateway::Shells* shells = nullptr;  // nullptr: shells are rejected
  gateway::FindProgress progress = nullptr;
  gateway::FindActivity activity = nullptr;
  campaign::Campaigns* campaigns = nullptr;  // nullptr: campaigns are rejected
  RequestStatistics* statistics = nullptr;   // nullptr: requests are not counted
  IdentityStore* identities = nullptr;       // required by IAM's operations
  // May read the disk; called from many threads. Unset: DescribeServer is rejected.
  std::function<ServerStatus()> server_status = nullptr;
  // Makes a token that opens a session of the console for the principal. Unset:
  // CreateConsoleSession is rejected.
  std::function<ConsoleToken(const Context&)> issue_console_token = nullptr;
  // Returns the machines on which hosts can be placed now. Unset: the machines are unknown, and
  // ListMachines shows those on which jobs have hosts.
  std::function<std::vector<ServerMachine>()> machines = nullptr;
  file_systems::FileSystems* file_systems = nullptr;  // nullptr: FSx is rejected
  notify::Notifications* notifications = nullptr;     // nullptr: SNS is rejected
  notify::EventBus* events = nullptr;                 // nullptr: EventBridge is rejected
  insights::Queries* queries = nullptr;               // nullptr: StartQuery is rejected
  log_routing::LogRouter* log_router = nullptr;       // nullptr: filters of logs are rejected
  log_routing::Exports* log_exports = nullptr;        // nullptr: exports of logs are rejected
  alarms::AlarmStore* alarms = nullptr;               // nullptr: alarms are rejected
  alarms::Dashboards* dashboards = nullptr;           // nullptr: dashboards are rejected
};

}  // namespace trainyard::api
