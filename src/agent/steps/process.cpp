// The user's process, in its container.
#include <algorithm>
#include <cmath>

#include "agent/job_config.hpp"
#include "agent/steps.hpp"
#include "base/text.hpp"
#include "contract/entry.hpp"
#include "host/oci_image.hpp"
#include "host/ownership.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kCaInside = "/etc/trainyard-ca.pem";
// Processes and threads, by the size of the instance: loaders and BLAS start some dozen per cpu; a fork bomb is held
// before the machine's own limit (32,768 or more) is near.
constexpr double kProcessesPerCpu = 1024;
constexpr long long kProcessesLeast = 4096, kProcessesMost = 65536;
// After the last process has gone the pipe has at most what it holds; reading that takes no longer.
constexpr Duration kDrainLogMax = 10s;

host::Mount bound(std::string source, std::string destination, bool read_only) {
  host::Mount mount;
  mount.source = std::move(source);
  mount.destination = std::move(destination);
  mount.read_only = read_only;
  return mount;
}

// What the job asks for takes the place of the image's own command; its entry point stays.
std::vector<std::string> batch_command(const Site& site) {
  std::vector<std::string> words = site.image.entrypoint;
  const auto& rest = site.order.spec.arguments.empty() ? site.image.command : site.order.spec.arguments;
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

// What the job asked for beside.
void fit(const Site& site, host::ContainerSpec& spec) {
  const domain::Fittings& fittings = site.fittings();
  for (const auto& limit : fittings.limits) spec.limits.push_back({limit.name, limit.soft, limit.hard});
  for (const auto& device : fittings.devices)
    if (std::ranges::find(spec.devices, device) == spec.devices.end()) spec.devices.push_back(device);
  if (fittings.shared_memory_bytes) spec.shared_memory_bytes = uint64_t(*fittings.shared_memory_bytes);
  spec.read_only_root = fittings.read_only_root;
  if (!fittings.init) return;
  spec.arguments.insert(spec.arguments.begin(),
                        {std::string(contract::kEntryInside), std::string(contract::kEntryInit)});
  spec.mounts.push_back(bound(site.world.entry_program, std::string(contract::kEntryInside), true));
}

host::ContainerSpec container_spec(Site& site) {
  const auto& order = site.order;
  auto endpoint = site.endpoints->config();
  host::ContainerSpec spec;
  spec.id = site.container_id();
  spec.directory = site.path("bundle");
  spec.image_root = site.image.root;
  if (site.volume_limited) spec.layer_directory = site.path(kLayer);
  spec.mounts = site.image.mounts;
  if (!order.spec.plain()) spec.mounts.push_back(bound(site.ml(), std::string(contract::kBase), false));
  spec.mounts.insert(spec.mounts.end(), site.mounts.begin(), site.mounts.end());
  spec.mounts.push_back(bound(site.path("etc/hosts"), "/etc/hosts", false));
  spec.mounts.push_back(bound(site.path("etc/resolv.conf"), "/etc/resolv.conf", false));
  if (!order.outward.ca_bundle.empty()) {
    spec.mounts.push_back(bound(order.outward.ca_bundle, kCaInside, true));
    endpoint.ca_bundle = kCaInside;
  }
  spec.arguments = order.spec.plain() ? batch_command(site)
                                      : host::command_line(site.image.entrypoint, order.spec.entrypoint,
                                                           order.spec.arguments);
  if (site.runs_script) {
    // In the place of the image's `train`, which it lacks.
    spec.arguments = host::command_line(site.image.entrypoint, {}, {std::string(contract::kEntryInside)});
    spec.mounts.push_back(bound(site.world.entry_program, std::string(contract::kEntryInside), true));
    spec.mounts.push_back(bound(site.path("entry"), std::string(contract::kEntryFolder), false));
  }
  spec.environment = container_environment(order, endpoint, site.image.environment, site.variables);
  spec.working_directory = site.image.working_directory;
  spec.hostname = site.host_name();
  spec.network_namespace = site.place.network_namespace;
  spec.cpus = order.share.cpus;
  spec.memory_bytes = order.share.memory_bytes;
  spec.pids_max =
      std::clamp(std::llround(order.share.cpus * kProcessesPerCpu), kProcessesLeast, kProcessesMost);
  // Half of its memory, as much as machines give: PyTorch's loaders die of bus errors in the usual 64 MiB.
  if (order.share.memory_bytes > 0)
    spec.shared_memory_bytes = static_cast<uint64_t>(order.share.memory_bytes) / 2;
  // Its ephemeralStorage; other jobs' volume is /opt/ml.
  if (order.spec.plain())
    spec.scratch_bytes_max = uint64_t(std::max<int64_t>(order.spec.volume_gib, 0)) << 30;
  spec.user_id = site.image.user_id;
  spec.group_id = site.image.group_id;
  spec.devices = site.place.devices;
  spec.best_effort_isolation = order.best_effort_isolation;
  fit(site, spec);
  return spec;
}

// What was asked for and this machine does not do is in the job's log, and in its status.
void say_what_is_withheld(Site& site) {
  if (site.world.await_volume && !site.volume_limited)
    site.done.notice = std::string(size_member(site)) + " is not enforced";
  auto sentences = site.container->withheld();
  if (const auto& why = site.world.way_out.missing; !why.empty() && !site.order.spec.network_isolation)
    sentences.push_back("this job reaches its own hosts and the API, and nothing outside: " + why);
  for (const auto& sentence : sentences) {
    site.world.facts.say(sentence);
    site.done.notice += (site.done.notice.empty() ? "" : "; ") + sentence;
  }
}

}  // namespace

std::optional<Failure> start_process(Site& site) {
  auto metrics = make_metric_matcher(site.order.spec.metrics);
  if (!metrics) return failure_of(metrics.error(), "The metric definitions cannot be used");
  site.metrics = std::move(*metrics);
  auto pipe = make_pipe();
  if (!pipe) return failure_of(pipe.error(), "starting the process");
  site.pump =
      std::make_unique<LogPump>(std::move(pipe->read_end), *site.metrics, site.world.facts, site.world.clock);
  if (site.fittings().init && site.world.entry_program.empty())
    return Failure{domain::Fault::internal, "this agent has no trainyard-entry beside it"};
  const auto spec = container_spec(site);
  if (spec.arguments.empty() || (site.fittings().init && spec.arguments.size() == 2))
    return named(site, domain::kCannotStart,
                 {domain::Fault::client,
                  "The container cannot be started: neither the job nor its image names a command"});
  // An image's own user finds /opt/ml his, as far as it is this host's own copy.
  if (!site.order.spec.plain() && (spec.user_id != 0 || spec.group_id != 0))
    if (auto given = host::give_tree(site.ml(), spec.user_id, spec.group_id); !given)
      return failure_of(given.error(), "giving /opt/ml to the image's user");
  auto container = site.world.start_container(spec, pipe->write_end.release());
  if (!container) {
    const bool clients = container.error().kind == Kind::not_found;
    return named(site, domain::kCannotStart,
                 {clients ? domain::Fault::client : domain::Fault::internal,
                  "The container cannot be started: " + container.error().message});
  }
  site.container = std::move(*container);
  say_what_is_withheld(site);
  return {};
}

std::optional<Failure> drain_log(Site& site) {
  site.container
      .reset();  // ends what the first process left behind, and with it the last writers of the pipe
  site.pump->finish(kDrainLogMax);
  return {};
}

void end_process(Site& site) {
  site.container.reset();
  site.pump.reset();
}

}  // namespace trainyard::agent
