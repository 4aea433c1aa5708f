// Starts and ends the user's process, in its container.
#include <algorithm>
#include <cmath>

#include "agent/image_failure.hpp"
#include "agent/job_config.hpp"
#include "agent/steps.hpp"
#include "base/text.hpp"
#include "containers/oci_image.hpp"
#include "contract/clients.hpp"
#include "contract/entry.hpp"
#include "contract/plain_container.hpp"
#include "os/ownership.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kCaInside = "/etc/trainyard-ca.pem";
// The limit of processes and threads, by the size of the instance: loaders and BLAS start some
// dozen per CPU, and a fork bomb stops far below the machine's own limit (32,768 or more).
constexpr double kProcessesPerCpu = 1024;
constexpr long long kProcessesLeast = 4096, kProcessesMost = 65536;
// The time limit for reading the pipe after the end of the last process: then it contains at most
// its capacity.
constexpr Duration kDrainLogMax = 10s;

containers::Mount bound(std::string source, std::string destination, bool read_only) {
  containers::Mount mount;
  mount.source = std::move(source);
  mount.destination = std::move(destination);
  mount.read_only = read_only;
  return mount;
}

// The request's command replaces the image's own command; the image's entry point stays.
std::vector<std::string> plain_command(const StepContext& context) {
  std::vector<std::string> words = context.image.entrypoint;
  const auto& rest =
      context.order.spec.arguments.empty() ? context.image.command : context.order.spec.arguments;
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

// Further options of the request.
void fit(const StepContext& context, containers::ContainerSpec& spec) {
  const domain::ContainerOptions& container_options = context.container_options();
  for (const auto& limit : container_options.limits)
    spec.limits.push_back({limit.name, limit.soft, limit.hard});
  for (const auto& device : container_options.devices)
    if (std::ranges::find(spec.devices, device) == spec.devices.end())
      spec.devices.push_back(device);
  if (container_options.shared_memory_bytes)
    spec.shared_memory_bytes = uint64_t(*container_options.shared_memory_bytes);
  spec.read_only_root = container_options.read_only_root;
}

containers::ContainerSpec container_spec(StepContext& context) {
  const auto& order = context.order;
  auto endpoint = context.endpoints->config();
  containers::ContainerSpec spec;
  spec.id = context.container_id();
  spec.directory = context.path("bundle");
  spec.image_root = context.image.root;
  if (context.volume_limited) spec.layer_directory = context.path(kLayer);
  spec.mounts = context.image.mounts;
  if (order.spec.contract == domain::Contract::training)
    spec.mounts.push_back(bound(context.ml(), std::string(contract::kBase), false));
  spec.mounts.insert(spec.mounts.end(), context.mounts.begin(), context.mounts.end());
  // Writable, since some MPI images add hosts, unless the file is on the machine's own disk.
  for (const std::string name : {"etc/hosts", "etc/resolv.conf"})
    spec.mounts.push_back(
        bound(context.writable_path(name), "/" + name, context.writes_to_memory_only()));
  // The file, not its directory: a reused container keeps it when the host's files are removed.
  spec.mounts.push_back(
      bound(context.path(kEndpointsFile), std::string(contract::kEndpointsInside), true));
  endpoint.data_path = contract::kClientsInside;
  if (!order.egress_settings.ca_bundle.empty()) {
    spec.mounts.push_back(bound(order.egress_settings.ca_bundle, kCaInside, true));
    endpoint.ca_bundle = kCaInside;
  }
  spec.arguments = order.spec.contract == domain::Contract::plain
                       ? plain_command(context)
                       : containers::command_line(context.image.entrypoint, order.spec.entrypoint,
                                                  order.spec.arguments);
  if (context.runs_script) {
    // Entry runs in place of the program `train`, which the image lacks.
    spec.arguments = containers::command_line(context.image.entrypoint, {},
                                              {std::string(contract::kEntryInside)});
    spec.mounts.push_back(
        bound(context.world.entry_program, std::string(contract::kEntryInside), true));
    spec.mounts.push_back(
        bound(context.writable_path("entry"), std::string(contract::kEntryFolder), false));
  }
  spec.environment =
      container_environment(order, endpoint, context.image.environment, context.variables);
  spec.working_directory = context.image.working_directory;
  spec.hostname = context.host_name();
  spec.network_namespace = context.place.network_namespace;
  spec.cpus = order.share.cpus;
  spec.memory_bytes = order.share.memory_bytes;
  spec.pids_max = std::clamp(std::llround(order.share.cpus * kProcessesPerCpu), kProcessesLeast,
                             kProcessesMost);
  // /dev/shm has half of the memory, as on machines by default: in the 64 MiB of container engines
  // PyTorch's data loaders end with bus errors.
  if (order.share.memory_bytes > 0)
    spec.shared_memory_bytes = static_cast<uint64_t>(order.share.memory_bytes) / 2;
  // A plain job's ephemeralStorage; other jobs have a volume at /opt/ml instead.
  if (order.spec.contract == domain::Contract::plain)
    spec.scratch_bytes_max = uint64_t(std::max<int64_t>(order.spec.volume_gib, 0)) << 30;
  spec.user_id = context.image.user_id;
  spec.group_id = context.image.group_id;
  spec.devices = context.place.devices;
  spec.best_effort_isolation = order.best_effort_isolation;
  fit(context, spec);
  return spec;
}

// Logs the settings that have no effect, once for each attempt: on the main host, or the first one.
void say_notes(StepContext& context) {
  const domain::JobSpec& spec = context.order.spec;
  if (context.order.host != spec.main_host().value_or(0)) return;
  for (const std::string& note : spec.notes) context.world.facts.say(note);
}

// Reports the requested properties that this machine does not enforce, in the job's log and status.
void say_what_is_withheld(StepContext& context) {
  if (context.world.await_volume && !context.volume_limited)
    context.done.notice = std::string(size_member(context)) + " is not enforced";
  auto texts = context.container->withheld();
  if (const auto& why = context.world.egress.missing;
      !why.empty() && !context.order.spec.network_isolation)
    texts.push_back("this job reaches its own hosts and the API, and nothing outside: " + why);
  for (const auto& text : texts) {
    context.world.facts.say(text);
    context.done.notice += (context.done.notice.empty() ? "" : "; ") + text;
  }
}

}  // namespace

std::optional<Failure> start_process(StepContext& context) {
  auto metrics = make_metric_matcher(context.order.spec.metrics);
  if (!metrics) return failure_of(metrics.error(), "The metric definitions cannot be used");
  context.metrics = std::move(*metrics);
  auto pipe = make_pipe();
  if (!pipe) return failure_of(pipe.error(), "starting the process");
  context.pump = std::make_unique<LogPump>(std::move(pipe->read_end), *context.metrics,
                                           context.world.facts, context.world.clock);
  const auto spec = container_spec(context);
  if (spec.arguments.empty())
    return named(
        context, contract::kCannotStart,
        {domain::Fault::client,
         "The container cannot be started: neither the job nor its image names a command: give "
         "the job one"});
  // The image's user owns those parts of /opt/ml that are this host's own copy.
  if (context.order.spec.contract == domain::Contract::training &&
      (spec.user_id != 0 || spec.group_id != 0))
    if (auto given = os::give_tree(context.ml(), spec.user_id, spec.group_id); !given)
      return failure_of(given.error(), "changing the owner of /opt/ml to the image's user");
  say_notes(context);
  auto container = context.world.start_container(spec, pipe->write_end.release());
  if (!container) {
    const bool clients = container.error().kind == Kind::not_found;
    return named(
        context, contract::kCannotStart,
        {clients ? domain::Fault::client : domain::Fault::internal,
         "The container cannot be started: " + container.error().message +
             (clients ? replaced_image_hint(context.order.image, context.order.spec.image) : "")});
  }
  context.container = std::move(*container);
  say_what_is_withheld(context);
  return {};
}

std::optional<Failure> drain_log(StepContext& context) {
  // Ends the processes that the first one left: they may still write to the pipe.
  context.container.reset();
  context.pump->finish(kDrainLogMax);
  return {};
}

void end_process(StepContext& context) {
  context.container.reset();
  context.pump.reset();
}

}  // namespace trainyard::agent
