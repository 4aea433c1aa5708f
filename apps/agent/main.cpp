// trainyard-agent runs one host of one attempt (agent/agent.hpp). The launcher starts it. This file
// only wires modules.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <future>
#include <iterator>
#include <map>
#include <string>
#include <thread>

#include "agent/agent.hpp"
#include "agent/endpoints.hpp"
#include "agent/init_container.hpp"
#include "agent/linked_offer.hpp"
#include "agent/next_order.hpp"
#include "agent/report/spool.hpp"
#include "agent/report/uplink.hpp"
#include "agent/reused_container.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "cache/block_cache.hpp"
#include "containers/container.hpp"
#include "containers/exec.hpp"
#include "containers/gpu/gpu_memory.hpp"
#include "containers/gpu/gpu_monitor.hpp"
#include "containers/gpu/gpu_usage.hpp"
#include "containers/image.hpp"
#include "containers/rootless_sandbox.hpp"
#include "domain/image_sources.hpp"
#include "net/link.hpp"
#include "networks/tunnel.hpp"
#include "objects/s3_client.hpp"
#include "os/environment.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/machine_files.hpp"
#include "os/mounts.hpp"
#include "os/packet_socket.hpp"
#include "os/process.hpp"
#include "os/volume.hpp"
#include "wire/codec.hpp"

namespace trainyard {
namespace {

constexpr const char* kUsage =
    "usage: trainyard-agent --order FILE --directory DIR --network-namespace PATH --address "
    "ADDRESS --host-table FILE [--devices FILE,..] [--underlay GATEWAY/PREFIX [--endpoints "
    "ADDRESS:PORT,..]]\n"
    "  [--allocation NUMBER --served N --idle-seconds N --seconds-left N]\n";
// The longest wait for acknowledgements at the end: after the last fact, whose acknowledgement
// implies the log's unless the server cannot store it, and after a run that ends without one.
constexpr Duration kLastDataMax = 5s;
// The time for which a reusable host waits for another job. If a job is pending, the server usually
// decides within milliseconds, and on a busy machine within seconds. A host that ends too early
// must be created again.
constexpr Duration kIdleMax = 5s;

struct Options {
  std::string order;
  agent::HostLayout layout;
  agent::AgentAllocation allocation;
};

// Reads the options of an agent in an allocation that can run another attempt.
Result<agent::AgentAllocation> read_allocation(const std::string& number, const std::string& served,
                                               const std::string& idle, const std::string& left) {
  agent::AgentAllocation allocation;
  if (number.empty()) return allocation;
  const auto job = parse_int(number), before = parse_int(served), idle_seconds = parse_int(idle),
             seconds_left = parse_int(left);
  if (!job || !before || !idle_seconds || !seconds_left || *job <= 0)
    return invalid("--allocation, --served, --idle-seconds and --seconds-left must be numbers");
  allocation.number = uint64_t(*job);
  allocation.served = uint32_t(*before);
  allocation.idle_max = std::chrono::seconds(*idle_seconds);
  allocation.time_left = std::chrono::seconds(*seconds_left);
  return allocation;
}

Result<Options> read_options(int argc, char** argv) {
  Options options;
  std::string devices, allocation, served, idle_seconds, seconds_left;
  const std::map<std::string, std::string*> known = {
      {"--order", &options.order},
      {"--directory", &options.layout.directory},
      {"--network-namespace", &options.layout.network_namespace},
      {"--address", &options.layout.address},
      {"--host-table", &options.layout.host_table},
      {"--devices", &devices},
      {"--underlay", &options.layout.underlay},
      {"--endpoints", &options.layout.endpoints},
      {"--allocation", &allocation},
      {"--served", &served},
      {"--idle-seconds", &idle_seconds},
      {"--seconds-left", &seconds_left}};
  for (int i = 1; i < argc; i += 2) {
    const auto option = known.find(argv[i]);
    if (option == known.end()) return invalid(std::string("unknown option ") + argv[i]);
    if (i + 1 >= argc) return invalid(std::string(argv[i]) + " needs a value");
    *option->second = argv[i + 1];
  }
  for (const auto device : split(devices, ','))
    if (!device.empty()) options.layout.devices.emplace_back(device);
  options.allocation = TRY(read_allocation(allocation, served, idle_seconds, seconds_left));
  if (options.order.empty() || options.layout.directory.empty())
    return invalid("--order and --directory must be given");
  return options;
}

// On SIGTERM the agent stops the job's processes, saves their checkpoints, cleans up and exits; on
// SIGINT it kills them at once. One thread waits for the signals; they are blocked in all others.
class SignalWatch {
 public:
  enum class Stop { no, with_grace, at_once };
  SignalWatch() {
    ::signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals_);
    for (const int number : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals_, number);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  void start() {
    thread_ = std::thread([this] {
      int number = 0;
      while (sigwait(&signals_, &number) == 0 && number != SIGUSR1) {
        const MutexLock lock(mutex_);
        if (requested_ != Stop::at_once)
          requested_ = number == SIGINT ? Stop::at_once : Stop::with_grace;
        if (stop_) stop_(requested_);
      }
    });
  }
  // Sets the function to call on each signal; empty: none. After a signal it is called now.
  void set_stop(std::function<void(Stop)> stop) {
    const MutexLock lock(mutex_);
    stop_ = std::move(stop);
    if (stop_ && requested_ != Stop::no) stop_(requested_);
  }
  bool stop_requested() {
    const MutexLock lock(mutex_);
    return requested_ != Stop::no;
  }
  ~SignalWatch() {
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), SIGUSR1);  // makes the thread return
    thread_.join();
  }

 private:
  sigset_t signals_{};
  Mutex mutex_;
  std::function<void(Stop)> stop_ GUARDED_BY(mutex_);
  Stop requested_ GUARDED_BY(mutex_) = Stop::no;
  std::thread thread_;
};

// Forwards an agent's facts. Calls `before_last` before the last fact, so that the receiver may
// rely on the cleanup.
class LastFactHook final : public agent::Facts {
 public:
  LastFactHook(agent::Facts& facts, std::function<void(const wire::StateFact&)> before_last)
      : facts_(facts), before_last_(std::move(before_last)) {}
  void state(wire::StateFact fact) override {
    if (domain::is_final(fact.state)) before_last_(fact);
    facts_.state(std::move(fact));
  }
  void lines(std::vector<wire::LogLine> lines) override { facts_.lines(std::move(lines)); }
  void points(std::vector<wire::MetricPoint> points) override { facts_.points(std::move(points)); }
  void say(const std::string& text) override { facts_.say(text); }

 private:
  agent::Facts& facts_;
  const std::function<void(const wire::StateFact&)> before_last_;
};

constexpr const char* kReportGpus = "--report-gpus";
constexpr size_t kSourcesBytesMax = 4 << 20;  // the logins of thousands of registries

// Reads the login and the directories for the job's image from a file of the server, if it exists.
Result<containers::ImageRights> image_rights(const domain::Image& image,
                                             const domain::JobSpec& spec) {
  containers::ImageRights rights;
  const std::string path = os::environment_variable("TRAINYARD_IMAGE_SOURCES");
  if (path.empty() || !os::exists(path)) return rights;
  const auto sources = TRY(
      domain::image_sources_from_json(TRY(parse_json(TRY(os::read_file(path, kSourcesBytesMax)))))
          .in(path));
  if (const auto* login = TRY(domain::find_login(sources, image, spec.principal, spec.role_arn)))
    rights.login = {login->host, login->username, login->password};
  rights.oci_directories = sources.oci_directories;
  return rights;
}

// Unpacks the image into a directory that the hosts of a launcher share, if it names one.
Result<agent::ReadyImage> unpack_image(
    const domain::Image& image, const domain::JobSpec& spec, const std::string& own_directory,
    const std::function<bool(const std::string& text)>& progress) {
  const std::string shared = os::environment_variable("TRAINYARD_IMAGES_DIRECTORY");
  auto unpacked = TRY(containers::unpack_image(
      domain::transport_of(image), shared.empty() ? own_directory : shared,
      [&](const containers::PullProgress& how_far) {
        return progress(containers::format_progress(how_far));
      },
      TRY(image_rights(image, spec))));
  TRY(containers::check_ids(unpacked.user_id, unpacked.group_id));
  // Locks that mark images as in use until this process ends.
  static std::map<std::string, os::FileLock> used;  // by root
  if (unpacked.use) used.try_emplace(unpacked.root, *std::move(unpacked.use));
  agent::ReadyImage ready;
  ready.root = std::move(unpacked.root);
  ready.entrypoint = std::move(unpacked.config.entrypoint);
  ready.command = std::move(unpacked.config.command);
  ready.environment = std::move(unpacked.config.environment);
  ready.working_directory = std::move(unpacked.config.working_directory);
  ready.user_id = unpacked.user_id;
  ready.group_id = unpacked.group_id;
  return ready;
}

// Returns the entry program, which is installed next to this program; "" if it is not.
std::string entry_program() {
  const std::string path = os::program_directory() + "/trainyard-entry";
  return os::exists(path) ? path : "";
}

// True if a host's job can fill the machine's disk: in /opt/ml, in the layer over an image, or in
// directories of its own. Otherwise it writes to memory only.
bool writes_to_disk(const wire::Order& order) {
  // A reused container has the /opt/ml of the order that created it, which therefore cannot be a
  // disk per order.
  if (order.spec.contract == domain::Contract::training) return !order.reuse_host;
  if (order.image.kind != domain::Image::Kind::machine) return true;
  const auto& volumes = order.spec.group(order.host).container_options.volumes;
  return std::any_of(volumes.begin(), volumes.end(),
                     [](const auto& volume) { return volume.kind == domain::VolumeKind::own; });
}

// Starts to create the volume, in parallel with the handshake, which takes as long. The template
// for volumes of a size is stored next to the images; if those are not shared, it is in the host's
// directory and removed after use.
std::shared_future<Result<void>> begin_volume(const wire::Order& order,
                                              const std::string& directory) {
  const std::string images = os::environment_variable("TRAINYARD_IMAGES_DIRECTORY");
  const bool shared = !images.empty();
  const std::string templates = shared ? images + ".volumes" : directory + "/templates";
  const auto bytes = static_cast<uint64_t>(order.spec.volume_gib) << 30;
  const bool under_contract = order.spec.contract == domain::Contract::training;
  return std::async(std::launch::async,
                    [=]() -> Result<void> {
                      const std::string disk = directory + "/" + agent::kDisk;
                      auto made = os::make_volume(disk, directory + "/" + agent::kVolumeFile, bytes,
                                                  templates);
                      if (made && under_contract) made = os::make_directories(disk + "/ml");
                      if (made && under_contract)
                        made = os::bind_beneath(disk, "ml", directory + "/ml");
                      if (!shared) TRY(os::remove_all(templates));
                      return made;
                    })
      .share();
}

// Clears GPUs between jobs if the launcher names a directory for their state.
std::optional<containers::GpuMarks> gpu_marks() {
  const std::string directory = os::environment_variable("TRAINYARD_GPUS_DIRECTORY");
  if (directory.empty()) return {};
  return containers::GpuMarks(directory, [](const std::string& device) {
    return containers::clear_gpu_by(os::program_directory() + "/trainyard-agent", device);
  });
}

// The program that reports the usage of a host's GPUs; empty if it has none.
std::vector<std::string> gpu_report_command(const std::vector<std::string>& devices) {
  std::vector<std::string> command = {os::program_directory() + "/trainyard-agent", kReportGpus};
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(command), containers::is_gpu);
  return command.size() > 2 ? command : std::vector<std::string>();
}

// The objects that successive orders of a host share.
struct Tools {
  const Options& options;
  Files& files;
  Clock& clock;
  Random& random;
  SignalWatch& signals;
  agent::ReusedContainer& kept;
  const agent::NextOrder& next;
  const containers::GpuMarks* gpu_marks;
  containers::GpuMonitor& gpus;
  cache::BlockCache* cache;
  agent::AgentAllocation allocation;  // for the current order
  // The disk of the reused container, for successive orders; unset until an order needs it.
  std::shared_future<Result<void>> kept_volume = {};
};

Result<std::unique_ptr<objects::Objects>> open_objects(const wire::Order& order,
                                                       const std::string& directory,
                                                       agent::JobKeys& keys, Clock& clock) {
  objects::S3Settings settings;
  settings.endpoint = order.objects_endpoint;
  settings.region = order.job.region;
  settings.ca_bundle = order.egress_settings.ca_bundle;
  if (order.objects_endpoint == "https://" + order.api_address) {
    settings.ca_bundle = directory + "/server-ca.pem";
    TRY(os::write_file(settings.ca_bundle, order.authority, 0600));
  }
  settings.keys = [&keys] {
    const auto present = keys.get();
    return present ? signing::Keys{present->access_key_id, present->secret_access_key,
                                   present->session_token}
                   : signing::Keys{};
  };
  return objects::open_s3(std::move(settings), clock);
}

std::optional<net::TlsIdentity> identity_of(const wire::Order& order) {
  if (!order.identity) return {};
  return net::TlsIdentity{order.authority, order.identity->certificate, order.identity->key};
}

// Adds an init to the container; a reused container has one in any case.
Result<std::unique_ptr<containers::Container>> start_container(
    const wire::Order& order, const containers::ContainerSpec& spec, int output,
    agent::ReusedContainer& kept) {
  if (order.reuse_host) return kept.start(spec, output);
  const bool init = order.spec.group(order.host).container_options.init.value_or(true);
  return init && !agent::is_init(spec.arguments[0])
             ? agent::start_with_init(containers::start_container, spec, output, entry_program())
             : containers::start_container(spec, output);
}

// Opens the cache of objects' blocks, which all jobs of a server share, next to the images. Without
// the cache, each job fetches its blocks.
std::unique_ptr<cache::BlockCache> open_cache() {
  const std::string images = os::environment_variable("TRAINYARD_IMAGES_DIRECTORY");
  if (images.empty()) return nullptr;
  auto opened = cache::BlockCache::open(cache::tenth_of_disk(images + ".blocks"));
  if (opened) return *std::move(opened);
  log(Level::warning, "agent", "cannot open the block cache", {{"why", opened.error().message}});
  return nullptr;
}

// The parts of an agent for one order. Lifetime: they outlive its dependencies.
struct AgentParts {
  const wire::Order& order;
  Tools& tools;
  objects::Objects& objects;
  agent::JobKeys& keys;
  agent::Uplink& uplink;
  agent::Facts& facts;
  std::shared_future<Result<void>> volume;  // not valid if the order needs none
};

agent::Dependencies dependencies_of(const AgentParts& parts) {
  const wire::Order& order = parts.order;
  Tools& tools = parts.tools;
  const agent::HostLayout& layout = tools.options.layout;
  const auto volume = parts.volume;
  return {
      parts.objects,
      [&order, &tools](const containers::ContainerSpec& spec, int output) {
        return start_container(order, spec, output, tools.kept);
      },
      [&order](const std::string& id, const std::string& directory) -> Result<void> {
        // A reused container is removed when the agent ends.
        return order.reuse_host ? ok() : containers::remove_container(id, directory);
      },
      [&order](const domain::Image& image, const std::string& own_directory, const auto& progress) {
        return unpack_image(image, order.spec, own_directory, progress);
      },
      [&order, &layout, &keys = parts.keys, &tools] {
        return agent::open_endpoints(order, layout.network_namespace, keys, tools.random);
      },
      parts.facts,
      tools.clock,
      tools.random,
      [&uplink = parts.uplink](const wire::Message& message) { uplink.send_now(message); },
      [&order, &tools](containers::ExecSpec spec) {
        if (order.reuse_host && tools.kept.spec()) spec.id = tools.kept.spec()->id;
        return containers::start_exec(spec);
      },
      [&tools] { return tools.gpus.latest(); },
      entry_program(),
      volume.valid() ? [volume] { return volume.get(); } : std::function<Result<void>()>(),
      {containers::why_no_egress(), containers::rootless_sandbox_name_server()},
      networks::open_tunnel,
      order.reuse_host&& volume.valid(),
      tools.gpu_marks,
      tools.cache};
}

struct CarriedOut {
  bool acknowledged = false;            // the server has the last fact
  std::optional<wire::NextOrder> next;  // from the server, for the allocation
};

Result<CarriedOut> carry_out(const wire::Order& order, Tools& tools) {
  const agent::HostLayout& layout = tools.options.layout;
  std::shared_future<Result<void>> volume = tools.kept_volume;
  if (!volume.valid() && writes_to_disk(order)) volume = begin_volume(order, layout.directory);
  if (order.reuse_host) tools.kept_volume = volume;

  agent::Presence presence;
  const std::string spool_directory = layout.directory + "/spool";
  const auto spool = TRY(agent::open_spool(tools.files, spool_directory, tools.clock, presence));
  agent::JobKeys keys;
  const auto objects = TRY(open_objects(order, layout.directory, keys, tools.clock));
  agent::Agent* receiver = nullptr;  // set before the uplink starts
  agent::LinkedOffer offer(tools.allocation, tools.clock);
  wire::Hello hello = wire::hello_of(order);
  hello.allocation = tools.allocation.number;
  hello.served = tools.allocation.served;
  agent::Uplink uplink(
      hello, *spool, presence,
      [&](net::LinkEvents events) {
        return net::connect_link(order.wire_address, std::move(events), {}, identity_of(order));
      },
      tools.clock, tools.random,
      [&](const wire::Message& message) {
        offer.deliver(message);
        receiver->deliver(message);
      },
      order.issued);
  bool offered = false;
  LastFactHook facts(uplink, [&](const wire::StateFact& last) {
    const bool keeps_host = order.reuse_host && tools.kept.usable();
    offered = offer.may_follow(last);
    if (offered)
      uplink.offer([&offer, keeps_host] { return offer.message(keeps_host); });
    else if (keeps_host && tools.allocation.number == 0)
      tools.next.offer();
  });
  agent::Dependencies dependencies =
      dependencies_of({order, tools, *objects, keys, uplink, facts, volume});
  agent::Agent agent(order, layout, dependencies, keys, spool->found_facts());
  receiver = &agent;
  std::atomic<bool> reclaimed = false;
  tools.signals.set_stop([&](SignalWatch::Stop how) {
    offer.cancel();
    reclaimed = how != SignalWatch::Stop::at_once;
    if (reclaimed)
      agent.reclaim();
    else
      agent.fence();
  });
  uplink.start();
  CarriedOut carried;
  carried.acknowledged = agent.run();
  if (carried.acknowledged || reclaimed) uplink.wait_acknowledged(kLastDataMax);
  if (carried.acknowledged && offered) carried.next = offer.take();
  tools.signals.set_stop({});
  uplink.stop();
  TRY(os::remove_all(spool_directory));
  return carried;
}

// Returns the next order if it is for this host. An order for another host is left to the program
// that started this one.
Result<std::optional<wire::Order>> following(const wire::Order& order, const CarriedOut& carried,
                                             Tools& tools) {
  if (!carried.acknowledged || tools.signals.stop_requested()) return std::optional<wire::Order>();
  if (carried.next && !carried.next->same_host) {
    TRY(os::write_file(tools.options.layout.directory + "/" + agent::kNextHostFile,
                       carried.next->order, 0600));
    return std::optional<wire::Order>();
  }
  std::optional<std::string> text;
  if (carried.next)
    text = carried.next->order;
  else if (order.reuse_host && tools.allocation.number == 0)
    text = TRY(tools.next.take(kIdleMax));
  if (!text) return std::optional<wire::Order>();
  return std::optional(TRY(wire::decode_order(*text).in("the next order")));
}

Result<void> run(const Options& options, Clock& clock) {
  os::MachineFiles files;
  os::MachineRandom random;
  SignalWatch signals;  // blocks the signals before other threads start and inherit the mask
  TRY(os::make_directories(options.layout.directory, 0700));
  const auto alive = TRY(os::FileLock::take(options.layout.directory + "/alive"));
  auto order = TRY(wire::decode_order(TRY(os::read_file(options.order))).in(options.order));
  signals.start();
  agent::ReusedContainer kept(containers::start_container, entry_program());
  const agent::NextOrder next(options.layout.directory);
  const auto marks = gpu_marks();
  containers::GpuMonitor gpus(gpu_report_command(options.layout.devices), clock);
  const bool may_mount = std::any_of(
      order.spec.channels.begin(), order.spec.channels.end(),
      [](const auto& channel) { return channel.input_mode != domain::InputMode::pipe; });
  const auto cache = may_mount ? open_cache() : nullptr;
  const auto began = clock.monotonic();
  Tools tools{options,
              files,
              clock,
              random,
              signals,
              kept,
              next,
              marks ? &*marks : nullptr,
              gpus,
              cache.get(),
              options.allocation};
  for (;;) {
    const CarriedOut carried = TRY(carry_out(order, tools));
    auto another = TRY(following(order, carried, tools));
    if (!another) break;
    order = *std::move(another);
    ++tools.allocation.served;
    tools.allocation.time_left =
        std::max(Duration{}, options.allocation.time_left -
                                 std::chrono::duration_cast<Duration>(clock.monotonic() - began));
  }
  next.cancel();
  if (kept.spec()) {
    const std::string id = kept.spec()->id;
    kept.end();
    TRY(containers::remove_container(id, options.layout.directory + "/bundle"));
    TRY(os::unmount(options.layout.directory + "/" + agent::kActivity));
  }
  if (tools.kept_volume.valid()) {
    (void)tools.kept_volume.get();
    TRY(os::remove_volume(options.layout.directory + "/" + agent::kDisk,
                          options.layout.directory + "/" + agent::kVolumeFile));
  }
  // No process of this host runs, and nothing is mounted, so the launcher only has to
  // remove the directory.
  return os::write_file(options.layout.directory + "/left", "", 0600);
}

// Implements `--report-gpus DEVICE..`, which GpuMonitor starts with a socket as standard input.
int report_gpus(const std::vector<std::string>& devices) {
  containers::report_gpus(containers::kNvmlLibrary, devices, os::PacketSocket(os::File(0)));
  return 0;
}

// Implements `--clear-gpu DEVICE`. GpuMarks runs it as a separate process, since a driver may hang.
int clear_gpu(const char* device) {
  const auto cleared = containers::clear_gpu(device);
  if (!cleared) std::fprintf(stderr, "%s\n", cleared.error().message.c_str());
  return cleared ? 0 : 1;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  using namespace trainyard;
  if (argc == 3 && std::string_view(argv[1]) == "--clear-gpu") return clear_gpu(argv[2]);
  if (argc > 2 && std::string_view(argv[1]) == kReportGpus)
    return report_gpus({argv + 2, argv + argc});
  const auto options = read_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "trainyard-agent: %s\n%s", options.error().message.c_str(), kUsage);
    return 2;
  }
  // Limits malloc's arenas: one per thread would be used rarely, and its setup takes longer than
  // all allocations of a short job.
  ::mallopt(M_ARENA_MAX, 1);
  os::MachineClock clock;
  // The mounts of this host end with this process, however it ends.
  (void)os::enter_mount_namespace();
  if (const auto settled = containers::settle_in_rootless_sandbox(); !settled) {
    std::fprintf(stderr, "trainyard-agent: %s\n", settled.error().message.c_str());
    return 1;
  }
  set_log(
      [](Level, std::string_view line) {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
      },
      clock, Level::info);
  if (const auto done = run(*options, clock); !done) {
    std::fprintf(stderr, "trainyard-agent: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
