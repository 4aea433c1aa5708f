#include "trainyard/serve.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "audit/audit.hpp"
#include "auth/delegated_access.hpp"
#include "auth/temporary_keys.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "config/config.hpp"
#include "containers/image.hpp"
#include "containers/rootless_sandbox.hpp"
#include "control/control.hpp"
#include "control/loops.hpp"
#include "dispatch/api.hpp"
#include "gateway/agents.hpp"
#include "launch/local/local.hpp"
#include "ledger/ledger.hpp"
#include "net/certificates.hpp"
#include "net/http_server.hpp"
#include "net/link.hpp"
#include "networks/tunnel.hpp"
#include "objects/directory.hpp"
#include "objects/s3_client.hpp"
#include "observe/audit.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"
#include "operations/identity_store.hpp"
#include "operations/services.hpp"
#include "os/disk.hpp"
#include "os/machine_clock.hpp"
#include "os/process.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard/campaigns.hpp"
#include "trainyard/clock_file.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/environment.hpp"
#include "trainyard/identities.hpp"
#include "trainyard/images.hpp"
#include "trainyard/late_handler.hpp"
#include "trainyard/metrics_endpoint.hpp"
#include "trainyard/terminal.hpp"

namespace trainyard::apps {
namespace {

constexpr uint64_t kDiskReserveBytes = uint64_t{256} << 20;  // the ledger of some hundred thousand jobs
constexpr Duration kStopGrace = 5s;                          // requests under way may finish
constexpr timespec kUsesInterval{300, 0};                    // between writes of when keys were last used
constexpr int kUpkeepTurns = 12;                             // logs and metrics age by days, images by hours
constexpr Duration kCredentialsLifetime = 1h;                // as roles' sessions on AWS
constexpr rlim_t kOpenFilesWanted =
    65536;  // connections and agents' links; less where the machine allows less

constexpr size_t kMetricsConnectionsMax = 64;  // Prometheus, and probes

// A part of the config that SIGHUP may change while the server runs.
template <class Part>
class Changing {
 public:
  explicit Changing(Part part) : part_(std::move(part)) {}
  Part operator()() const {
    const std::lock_guard lock(mutex_);
    return part_;
  }
  void take(Part part) {
    const std::lock_guard lock(mutex_);
    part_ = std::move(part);
  }

 private:
  mutable std::mutex mutex_;
  Part part_;  // guarded by mutex_
};

// Why the process must end by itself; the first reason counts. Wakes the main thread, which waits for signals.
class Ending {
 public:
  void because(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (why_) return;
    why_ = why;
    ::kill(::getpid(), SIGTERM);
  }
  std::optional<std::string> why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> why_;  // guarded by mutex_
};

std::string host_of(const std::string& listen) { return listen.substr(0, listen.rfind(':')); }

bool is_loopback(const std::string& host) {
  return host.starts_with("127.") || host == "localhost" || host == "[::1]";
}

std::string machine_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

// Signals are taken by sigwait alone: blocked before any thread starts, so that none is ever interrupted.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

void raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, kOpenFilesWanted);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::unique_ptr<objects::Objects>> open_objects(const config::Config& config,
                                                       const DataDirectory& data,
                                                       const objects::DirectorySettings& settings_here,
                                                       Clock& clock, Random& random) {
  if (!config.objects) return objects::open_directory(data.file("objects"), clock, random, settings_here);
  const config::ExternalObjects& external = *config.objects;
  objects::S3Settings settings;
  settings.endpoint = external.endpoint;
  settings.region = external.region;
  settings.ca_bundle = external.ca_bundle;
  settings.keys = [external] {
    return signing::Keys{external.access_key_id, external.secret_access_key, ""};
  };
  return objects::open_s3(std::move(settings), clock);
}

// A trace's seconds count from the server's start.
Result<reconcile::Spot> read_spot(const config::Config& config, Instant start) {
  reconcile::Spot spot;
  spot.interruptions_per_host_hour = config.spot_interruptions_per_host_hour;
  spot.seed = uint64_t(config.spot_seed);
  if (config.spot_trace_file.empty()) return spot;
  const std::string text = TRY(os::read_file(config.spot_trace_file).in("reading spot.trace of the config"));
  spot.trace = TRY(reconcile::parse_trace(text, start).in(config.spot_trace_file));
  return spot;
}

// What grows with history is thinned out.
void keep_up(observe::Logs& logs, observe::Metrics& metrics, objects::Objects& objects,
             const std::string& images, const config::Config& config, Instant now) {
  const auto trimmed = containers::trim_images(images, config.images_bytes_max);
  for (const auto& [what, done] :
       {std::pair{"logs", logs.retire(now)}, std::pair{"metrics", metrics.retire(now)},
        std::pair{"objects", objects.keep_up(now, config.upload_lifetime)},
        std::pair{"images", trimmed ? ok() : Result<void>(trimmed.error())}})
    if (!done)
      log(Level::warning, "serve", "upkeep failed, and is tried again later",
          {{"of", what}, {"why", done.error().message}});
}

// A certificate that is about to end is replaced for connections from now on. The files are read again in any case:
// another program may have renewed them.
void renew_certificate(const std::string& directory, const std::vector<std::string>& names, Instant now,
                       net::HttpServer& server) {
  auto renewed = net::ensure_certificates(directory, names, now);
  const Result<void> taken = renewed ? server.renew_certificate() : Result<void>(std::move(renewed).error());
  if (!taken)
    log(Level::error, "serve", "renewing the server's certificate failed, and is tried again later",
        {{"why", taken.error().message}});
}

Result<std::unique_ptr<net::HttpServer>> serve_metrics(const std::string& listen, net::Handler& handler) {
  net::HttpSettings settings;
  settings.listen = listen;
  settings.io_threads = 1;
  settings.stream_threads_max = settings.stream_threads_per_tenant = 1;
  settings.connections_max = settings.connections_per_peer_max = kMetricsConnectionsMax;
  return net::serve_http(settings, handler).in("listening for Prometheus on " + listen);
}

// So that clients know Trainyard's own operations: `aws trainyard interrupt-training-job`.
Result<void> write_own_model(const DataDirectory& data) {
  const std::string path = data.file("clients/" + std::string(api::shapes::trainyard::kModelPath));
  TRY(os::make_directories(path.substr(0, path.rfind('/'))));
  return os::write_file_durably(path, std::string(api::shapes::trainyard::kModel), 0644);
}

void greet(const ServerRecord& record, const DataDirectory& data, const config::Config& config) {
  std::printf("%s listens on %s\n", paint(Paint::bold, "trainyard").c_str(),
              paint(Paint::green, record.endpoint).c_str());
  std::printf("  data    %s\n", data.path().c_str());
  if (config.machines.empty()) {
    std::printf("  mode    dev: this machine as it is; gangs that ask for more are scaled\n");
  } else {
    std::printf("  mode    %zu machine%s of the config\n", config.machines.size(),
                config.machines.size() == 1 ? "" : "s");
  }
  std::printf("  clients eval \"$(trainyard env --data %s)\"\n", data.path().c_str());
  std::fflush(stdout);
}

// A small disk, as tests and appliances have, keeps most of its space for users.
uint64_t reserve_of(const config::Config& config, const std::string& directory) {
  if (config.disk_reserve_bytes) return *config.disk_reserve_bytes;
  std::error_code unknown;
  const auto disk = std::filesystem::space(directory, unknown);
  return unknown ? kDiskReserveBytes : std::min<uint64_t>(kDiskReserveBytes, disk.capacity / 20);
}

// The keys that a config stands for.
Result<std::vector<policy::ConfiguredKey>> keys_of(const DataDirectory& data, const config::Config& fresh,
                                                   const Identity& identity, Random& random) {
  return TRY(data.identity(identity.account, fresh.access_keys, random)).keys;
}

}  // namespace

Result<void> serve(const ServeOptions& options) {
  const sigset_t signals = block_signals();
  raise_open_files();
  os::MachineClock clock;
  os::MachineRandom random;
  set_log({}, clock, Level::info);

  config::Config config;
  if (!options.config_file.empty()) config = TRY(config::read_config(options.config_file));
  if (!options.listen.empty()) config.listen = options.listen;
  auto data = TRY(DataDirectory::open(options.data_directory));
  Identity identity = TRY(data.identity(config.account_id, config.access_keys, random));
  const auto images = all_images(config.images, os::program_directory());
  const DiskReserve reserve(reserve_of(config, data.path()), [&] { return os::free_bytes(data.path()); });
  const CheckRoom check_room = [&] { return reserve.check(); };
  Changing machines(config.machines);
  Changing quotas(config.quotas);
  Changing rate_limits(config.rate_limits);
  Changing storage_quotas(std::make_shared<const objects::StorageQuotas>(config.storage_quotas));
  Changing peers(config.peers);
  api::RequestStatistics statistics;
  control::LoopStatistics loop_statistics;

  // What is remembered.
  auto ledger = TRY(ledger::open_sqlite(data.file("ledger.db")).in("opening the ledger"));
  observe::LogSettings log_settings;
  log_settings.retention = config.log_retention;
  log_settings.check_room = check_room;
  auto logs = TRY(observe::open_logs(data.file("logs"), clock, log_settings).in("opening the logs"));
  auto metrics = TRY(observe::open_metrics(data.file("metrics")).in("opening the metrics"));
  auto audit = TRY(observe::open_audit_log(data.file("audit"), config.audit).in("opening the audit log"));
  auto objects =
      TRY(open_objects(config, data, {.check_room = check_room, .quotas = [&] { return storage_quotas(); }},
                       clock, random)
              .in("opening the object store"));

  // What runs. The port must be known before the first order is written, so the face listens first.
  const std::string host = host_of(config.listen);
  const bool plain_http = is_loopback(host) || config.allow_plain_http_from_other_machines;  // for everybody
  std::vector<std::string> names{"127.0.0.1", "169.254.170.2", "localhost", machine_name()};
  if (host != "0.0.0.0" && host != "[::]" && std::find(names.begin(), names.end(), host) == names.end())
    names.push_back(host);
  names.insert(names.end(), config.certificate_names.begin(), config.certificate_names.end());
  const auto certificates = TRY(
      net::ensure_certificates(data.file("tls"), names, clock.now()).in("making the server's certificate"));

  const domain::ImageSources sources{
      config.registry_logins, config.image_policy.oci_directories.value_or(std::vector<std::string>())};
  TRY(os::write_file_durably(launch::image_sources_file(data.path()), dump(to_json(sources)), 0600));
  launch::LocalSettings local;
  local.data_directory = data.path();
  local.agent_program = os::program_directory() + "/trainyard-agent";
  local.machines = [&] { return machines(); };
  local.network_pool = config.network_pool;
  local.egress = config.egress;
  local.names_by_machine = config.outward.name_servers.empty();
  local.egress_of_roles = config.egress_of_roles;
  local.clear_gpus = config.clear_gpus;
  auto launcher = TRY(launch::make_local(local, clock).in("preparing this machine to launch jobs"));

  Ending ending;
  control::Settings control_settings;
  control_settings.check_room = check_room;
  control_settings.clock = clock_settings(data.file("clock.json"));
  LateHandler face(random);
  control_settings.ledger_failed = [&](const std::string& why) {
    face.fail(why);
    ending.because(why);
  };
  control_settings.account = identity.account;
  control_settings.scale_gangs = config.machines.empty();
  control_settings.gang_hosts_max =
      std::min(domain::kGangHostsMax, TRY(launch::gang_hosts_max(config.network_pool, false)));
  control_settings.encrypted_gang_hosts_max =
      std::min(domain::kGangHostsMax, TRY(launch::gang_hosts_max(config.network_pool, true)));
  control_settings.quotas = [&] { return quotas(); };
  control_settings.stop_grace = config.stop_grace;
  control_settings.stalled_after = config.stalled_after;
  control_settings.images = images;
  control_settings.image_policy = config.image_policy;
  control_settings.outward = config.outward;
  control_settings.no_encryption = networks::why_no_tunnel();
  control_settings.file_systems = config.file_systems;
  control_settings.volumes = config.volumes;
  control_settings.posix_users = config.posix_users;
  control_settings.best_effort_isolation = config.best_effort_isolation;
  control_settings.wire_address = "unix:" + data.file("agents.sock");
  control_settings.spot_notice = config.spot_notice;
  control_settings.spot = TRY(read_spot(config, clock.now()));

  api::Settings api_settings;
  api_settings.account = identity.account;
  api_settings.keys = identity.keys;
  api_settings.temporary_key_secret = identity.temporary_key_secret;
  api_settings.find_image = [&](const std::string& name) { return domain::resolve_image(images, name); };
  api_settings.file_systems = config.file_systems;
  api_settings.volumes = config.volumes;
  api_settings.devices = config.devices;
  api_settings.open_roles = config.open_roles;
  api_settings.limits_max = config.limits_max;
  api_settings.prices = config.prices;
  api_settings.quotas = control_settings.quotas;
  api_settings.rate_limits = [&] { return rate_limits(); };
  api_settings.peers = [&] { return peers(); };
  api_settings.check_room = check_room;
  api_settings.remote_regions = config.remote_regions;
  api_settings.regions = config.regions;
  api_settings.regions.push_back(config.region);
  api_settings.machines = [&] { return rooms_of(machines()); };

  net::HttpSettings http;
  http.listen = config.listen;
  http.plain_http = plain_http ? net::PlainHttp::everybody : net::PlainHttp::this_machine;
  http.certificate_file = certificates.certificate;
  http.key_file = certificates.key;
  auto server = TRY(net::serve_http(http, face).in("listening on " + config.listen));

  const std::string reachable =
      (host == "0.0.0.0" ? std::string("127.0.0.1") : host) + ":" + std::to_string(server->port());
  control_settings.api_address = reachable;
  // Agents are on this machine.
  control_settings.objects_endpoint = "http://" + reachable;
  auto control = TRY(control::make_control(control_settings, *ledger, *launcher, *logs, clock, random)
                         .in("reading the ledger"));

  const gateway::IssueCredentials issue = [&](const domain::Job& job, const domain::AttemptId& attempt,
                                              Instant now) {
    const api::RoleSession session{.role_arn = job.spec.role_arn,
                                   .session_name = "SageMaker-" + attempt.text(),
                                   .job_region = job.key.region,
                                   .job_name = job.key.name,
                                   .job_number = attempt.job,
                                   .attempt = attempt.number,
                                   .person = job.spec.principal};
    const auto keys =
        api::issue_keys(identity.temporary_key_secret, session, now, kCredentialsLifetime, random);
    return wire::Credentials{keys.access_key_id, keys.secret_access_key, keys.session_token, keys.expires};
  };
  api::IdentityStore identity_store(*control, TRY(data.sealing_key(random)),
                                    TRY(config_identities(config, identity.account, identity.keys)), random);
  api_settings.identities = [&] { return identity_store.snapshot(); };
  api_settings.key_used = [&](std::string_view key, Instant at, std::string_view region,
                              std::string_view service) {
    identity_store.key_used(key, at, region, service);
  };
  warn_of_idle_identities(identity_store);
  auto agents = gateway::make_agents(*control, *logs, *metrics, clock, config.stop_grace, issue);
  auto listener =
      TRY(net::listen_links(control_settings.wire_address, agents->events()).in("listening for agents"));
  const std::string own_endpoint = (plain_http ? "http://" : "https://") + reachable;
  const api::DelegatedAccess access(api_settings, {*control, *logs, *metrics, *objects, clock, random});
  auto campaigns = TRY(open_campaigns(config, data, own_endpoint, access, clock, random));
  auto api = api::make_api(api_settings,
                           {*control, *logs, *metrics, *objects, clock, random, &agents->shells(),
                            [&](domain::JobNumber job) { return agents->progress(job); }, campaigns.get(),
                            &statistics, &identity_store},
                           audit.get());

  ServerRecord record{own_endpoint, reachable, config.region, "", identity.keys.front()};
  TRY(os::make_directories(data.file("clients")));
  TRY(os::write_file_durably(data.file("clients/endpoints.json"), endpoints_json(reachable), 0644));
  TRY(write_own_model(data));
  TRY(os::write_file_durably(data.file("clients/sagemaker.yaml"), sagemaker_yaml(), 0644));
  TRY(os::make_directories(data.file("clients/python")));
  TRY(os::write_file_durably(data.file(std::string("clients/python/") + kBotocorePlugin + ".py"),
                             botocore_plugin(), 0644));
  TRY(write_server_record(data.path(), record));

  control::Loops loops(*control, control_settings.reconcile_interval, &clock, &loop_statistics);
  MetricsEndpoint metrics_endpoint(
      {statistics, loop_statistics, *control, *agents, *server, *objects, data.path()});
  std::unique_ptr<net::HttpServer> metrics_server;
  if (!config.metrics_listen.empty())
    metrics_server = TRY(serve_metrics(config.metrics_listen, metrics_endpoint));
  face.open(*api);
  greet(record, data, config);
  if (containers::in_rootless_sandbox()) {
    const std::string missing = containers::why_no_way_out();
    log(Level::info, "serve",
        "works as an ordinary user, in namespaces of its own; trainyard doctor says what this withholds",
        {{"way_out", missing.empty() ? "slirp4netns" : "none: " + missing}});
  }
  log(Level::info, "serve", "ready", {{"endpoint", record.endpoint}, {"data", data.path()}});

  const auto upkeep = [&] {
    renew_certificate(data.file("tls"), names, clock.now(), *server);
    keep_up(*logs, *metrics, *objects, images_directory(data.path()), config, clock.now());
  };
  upkeep();
  for (int turn = 1;;) {
    const int number = ::sigtimedwait(&signals, nullptr, &kUsesInterval);
    if (number < 0 && errno == EINTR) continue;
    if (number < 0 && errno == EAGAIN) {
      store_key_uses(identity_store);
      if (turn++ % kUpkeepTurns == 0) upkeep();
      continue;
    }
    if (number != SIGHUP) break;
    const auto fresh = options.config_file.empty() ? Result<config::Config>(config)
                                                   : config::read_config(options.config_file);
    if (!fresh) {
      log(Level::error, "serve", "the config was not taken over", {{"why", fresh.error().message}});
      continue;
    }
    // Keys of the config come and go with it; without any, the one that was made up holds.
    const auto keys = keys_of(data, *fresh, identity, random);
    auto fresh_identities =
        keys ? config_identities(*fresh, identity.account, *keys) : Result<policy::Identities>(keys.error());
    if (!fresh_identities) {
      log(Level::error, "serve", "the config was not taken over",
          {{"why", fresh_identities.error().message}});
      continue;
    }
    identity_store.take(*std::move(fresh_identities));
    warn_of_idle_identities(identity_store);
    record.key = keys->front();
    if (const auto written = write_server_record(data.path(), record); !written)
      log(Level::error, "serve", "the server's record was not written", {{"why", written.error().message}});
    machines.take(fresh->machines);
    quotas.take(fresh->quotas);
    rate_limits.take(fresh->rate_limits);
    storage_quotas.take(std::make_shared<const objects::StorageQuotas>(fresh->storage_quotas));
    peers.take(fresh->peers);
    renew_certificate(data.file("tls"), names, clock.now(), *server);
    log(Level::info, "serve",
        "took over the machines, quotas, rate limits, keys, users, roles and peers of the config",
        {{"machines", std::to_string(fresh->machines.size())},
         {"quotas", std::to_string(fresh->quotas.size())}});
  }
  log(Level::info, "serve", "ending; jobs go on");
  metrics_server.reset();
  server->stop(kStopGrace);
  store_key_uses(identity_store);
  if (const auto why = ending.why()) return unavailable(*why);
  return {};
}

}  // namespace trainyard::apps
