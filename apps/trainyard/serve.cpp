#include "trainyard/serve.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "audit/audit.hpp"
#include "auth/delegated_access.hpp"
#include "auth/temporary_keys.hpp"
#include "base/log.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "config/config.hpp"
#include "config/network.hpp"
#include "containers/image.hpp"
#include "containers/rootless_sandbox.hpp"
#include "control/control.hpp"
#include "control/loops.hpp"
#include "control/resource_records.hpp"
#include "dispatch/api.hpp"
#include "file_systems/file_systems.hpp"
#include "file_systems/loop.hpp"
#include "gateway/agents.hpp"
#include "launch/local/local.hpp"
#include "ledger/ledger.hpp"
#include "net/certificates.hpp"
#include "net/http_server.hpp"
#include "net/link.hpp"
#include "objects/directory.hpp"
#include "objects/s3_client.hpp"
#include "observe/audit.hpp"
#include "observe/followed_metrics.hpp"
#include "observe/logs.hpp"
#include "operations/identity_store.hpp"
#include "operations/services.hpp"
#include "os/disk.hpp"
#include "os/machine_clock.hpp"
#include "os/process.hpp"
#include "os/start_memory.hpp"
#include "s3/lifecycle_loop.hpp"
#include "trainyard/agent_listener.hpp"
#include "trainyard/allocation_links.hpp"
#include "trainyard/announcement.hpp"
#include "trainyard/campaigns.hpp"
#include "trainyard/client_files.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/fenced_launcher.hpp"
#include "trainyard/identities.hpp"
#include "trainyard/images.hpp"
#include "trainyard/internal_shutdown.hpp"
#include "trainyard/late_handler.hpp"
#include "trainyard/ledger_role.hpp"
#include "trainyard/monitoring/alarm_parts.hpp"
#include "trainyard/monitoring/log_services.hpp"
#include "trainyard/monitoring/served_notifications.hpp"
#include "trainyard/monitoring/served_prometheus.hpp"
#include "trainyard/serve_settings.hpp"
#include "trainyard/served_console.hpp"
#include "trainyard/server_log.hpp"
#include "trainyard/server_status.hpp"

namespace trainyard::apps {
namespace {

constexpr Duration kStopGrace = 5s;  // for requests in progress
// How long a new writer tries to listen at an address that another process has, and how often.
constexpr Duration kAddressWaitMax = 30s, kAddressPause = 50ms;
constexpr timespec kUsesInterval{300, 0};  // between writes of the last uses of keys
// The interval of removals: an hour, since logs and metrics expire after days, images after hours.
constexpr int kUpkeepIntervals = 12;
constexpr Duration kCredentialsLifetime = 1h;  // as sessions of roles on AWS
// The limit of open files, for connections and agents' links; less if the machine allows less.
constexpr rlim_t kOpenFilesWanted = 65536;

// Blocks signals before any thread starts, so that no thread is interrupted. The main thread waits
// for them.
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

Result<std::unique_ptr<objects::Objects>> open_objects(
    const config::Config& config, const DataDirectory& data,
    const objects::DirectorySettings& settings_here, Clock& clock, Random& random) {
  if (!config.objects)
    return objects::open_directory(data.file("objects"), clock, random, settings_here);
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

// Removes old logs, metrics, uploads and images.
void keep_up(observe::Logs& logs, observe::Metrics& metrics, objects::Objects& objects,
             const std::string& images, const config::Config& config, Instant now) {
  const auto trimmed = containers::trim_images(images, config.images_bytes_max);
  for (const auto& [what, done] :
       {std::pair{"logs", logs.retire(now)}, std::pair{"metrics", metrics.retire(now)},
        std::pair{"objects", objects.clean_up(now, config.upload_lifetime)},
        std::pair{"images", trimmed ? ok() : Result<void>(trimmed.error())}})
    if (!done)
      log(Level::warning, "serve", "maintenance failed; it is retried later",
          {{"of", what}, {"why", done.error().message}});
}

void report_rootless() {
  if (!containers::in_rootless_sandbox()) return;
  const std::string missing = containers::why_no_egress();
  log(Level::info, "serve",
      "running rootless, in user namespaces; `trainyard doctor` reports what is limited",
      {{"egress", missing.empty() ? "slirp4netns" : "none: " + missing}});
}

void report_reload(const Result<config::Config>& fresh) {
  if (!fresh)
    return log(Level::error, "serve", "the config was not reloaded",
               {{"why", fresh.error().message}});
  log(Level::info, "serve",
      "reloaded the machines, quotas, rate limits, keys, users, roles, peers and tokens",
      {{"machines", std::to_string(fresh->machines.size())},
       {"quotas", std::to_string(fresh->quotas.size())}});
}

// Issues keys of a job's role, for one attempt.
gateway::IssueCredentials credentials_of(const Identity& identity, Random& random) {
  return [&identity, &random](const domain::Job& job, const domain::AttemptId& attempt,
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
    return wire::Credentials{keys.access_key_id, keys.secret_access_key, keys.session_token,
                             keys.expires};
  };
}

// The stored data; each member outlives the parts that write to it.
struct Storage {
  std::unique_ptr<ledger::Ledger> ledger;
  std::unique_ptr<observe::Logs> logs;
  observe::FollowedMetrics metrics;
  std::unique_ptr<observe::AuditLog> audit;
  std::unique_ptr<objects::Objects> objects;
};

Result<Storage> open_storage(const config::Config& config, const DataDirectory& data,
                             const LedgerRole& role, const ReloadableSettings& reloadable,
                             const CheckDiskSpace& check_disk_space,
                             observe::EventsAppended appended,
                             observe::PointsAppended points_appended, Clock& clock,
                             Random& random) {
  Storage storage;
  storage.ledger = TRY(role.open(control::check_resource).in("opening the ledger"));
  observe::LogSettings log_settings;
  log_settings.retention = config.log_retention;
  log_settings.check_disk_space = check_disk_space;
  log_settings.appended = std::move(appended);
  storage.logs =
      TRY(observe::open_logs(data.file("logs"), clock, log_settings).in("opening the logs"));
  const observe::MetricFollowers followers{std::move(points_appended),
                                           journal_of(config.prometheus)};
  storage.metrics = TRY(
      observe::open_followed_metrics(data.file("metrics"), metric_settings_of(config), followers)
          .in("opening the metrics"));
  storage.audit =
      TRY(observe::open_audit_log(data.file("audit"), config.audit).in("opening the audit log"));
  storage.objects = TRY(open_objects(config, data,
                                     {.check_disk_space = check_disk_space,
                                      .quotas = [&] { return reloadable.storage_quotas(); }},
                                     clock, random)
                            .in("opening the object store"));
  return storage;
}

void log_warnings(const config::Config& config, const api::IdentityStore& identities) {
  for (const std::string& warning : config_warnings(config, *identities.snapshot()))
    log(Level::warning, "config", warning);
}

// Reads the configuration again and applies those settings that may change at run time. An error
// changes nothing.
Result<config::Config> reload(const std::string& config_file, const DataDirectory& data,
                              const Identity& identity, api::IdentityStore& identity_store,
                              ReloadableSettings& reloadable, ServerRecord& record,
                              Random& random) {
  config::Config fresh = TRY(config::read_config(config_file));
  // Checks the identities before the data directory stores the keys.
  TRY(config_identities(fresh, identity.account, fresh.access_keys));
  // Keys that were removed from the configuration stop working. Without any, the generated key is
  // valid.
  const auto keys = TRY(data.identity(fresh.account_id, fresh.access_keys, random)).keys;
  identity_store.set_configured(TRY(config_identities(fresh, identity.account, keys)));
  record.key = keys.front();
  if (const auto written = write_server_record(data.path(), record); !written)
    log(Level::error, "serve", "the server's record was not written",
        {{"why", written.error().message}});
  reloadable.take(fresh);
  log_warnings(fresh, identity_store);
  return fresh;
}

std::string absolute(const std::string& path) {
  return path.empty() ? "" : std::filesystem::absolute(path).string();
}

// Returns false when a signal other than SIGHUP arrives within that time.
bool wait_for_signal(const sigset_t& signals, Duration at_most,
                     const std::function<void()>& reopen_log) {
  const timespec time{at_most / 1s, (at_most % 1s) / 1ms * 1'000'000};
  const int number = ::sigtimedwait(&signals, nullptr, &time);
  if (number == SIGHUP) reopen_log();
  return number <= 0 || number == SIGHUP;
}

// Returns when a signal other than SIGHUP arrives.
void wait_for_end(const sigset_t& signals, const std::function<void()>& store_uses,
                  const std::function<void()>& upkeep, const std::function<void()>& reload) {
  for (int interval = 1;;) {
    const int number = ::sigtimedwait(&signals, nullptr, &kUsesInterval);
    if (number < 0 && errno == EINTR) continue;
    if (number < 0 && errno == EAGAIN) {
      store_uses();
      if (interval++ % kUpkeepIntervals == 0) upkeep();
      continue;
    }
    if (number != SIGHUP) return;
    reload();
  }
}

// The parts of the server, in the order in which they are made: each may use those above it, and
// they end in the opposite order. The functions are called in their order, once each.
class Server {
 public:
  explicit Server(const ServeOptions& options) : options_(options) {
    set_log([this](Level level, std::string_view line) { log_.write(level, line); }, clock_,
            Level::info);
  }

  Result<void> open_data() {
    if (!options_.config_file.empty()) config_ = TRY(config::read_config(options_.config_file));
    if (!options_.listen.empty()) config_.listen = options_.listen;
    TRY(config::check_listen(config_.listen).in("--listen"));
    config_.log.path = absolute(options_.log_file.empty() ? config_.log.path : options_.log_file);
    if (!config_.log.path.empty()) TRY(log_.open(config_.log));
    data_ = TRY(DataDirectory::open(options_.data_directory, config_.ledger
                                                                 ? DirectoryUse::with_standbys
                                                                 : DirectoryUse::alone));
    identity_ = TRY(data_->identity(config_.account_id, config_.access_keys, random_));
    images_ = all_images(config_.images, os::program_directory());
    reserve_.emplace(reserve_of(config_, data_->path()),
                     [this] { return os::free_bytes(data_->path()); });
    reloadable_.emplace(config_);
    role_.emplace(config_, *data_, clock_);
    if (config_.ledger)
      TRY(role_->prepare(TRY(ledger_owner_of(*data_, identity_.account, random_))));
    return {};
  }

  // The port must be known before the first order is written, so the server listens before the API
  // is open.
  Result<void> listen() {
    listening_ = listening_of(config_);
    certificates_ = TRY(net::ensure_certificates(data_->file("tls"), listening_.names, clock_.now())
                            .in("making the server's certificate"));
    data_->finish_setup();
    http_settings_ = http_settings_of(config_, listening_);
    http_settings_.certificate_file = certificates_.certificate;
    http_settings_.key_file = certificates_.key;
    auto listening = open_port();
    // A standby may have the writer's address: it listens there after the writer has ended.
    if (!listening && config_.ledger && listening.error().kind == Kind::conflict) return {};
    return listening;
  }

  // Returns false if a signal ended the server while it was a standby.
  Result<bool> become_writer(const sigset_t& signals) {
    const std::string without_port = "the server for " + config_.listen;
    const std::string name = (server_ ? "the server at " + reachable_ : without_port) +
                             ", process " + std::to_string(::getpid());
    const auto pause = [this, &signals](Duration at_most) {
      return wait_for_signal(signals, at_most, [this] { log_.reopen(); });
    };
    const LedgerRole::StandbyCallbacks waiting{
        [&](const std::string& why, const std::string& writer) {
          // This server took the address between the end of the former writer and the new one.
          if (writer.starts_with(without_port + ",")) server_.reset();
          late_handler_.wait_because(why);
          log(Level::info, "serve", why, {{"listens", server_ ? reachable_ : "no"}});
        },
        pause, [this](const std::string& why) { end_because(why); }};
    if (!TRY(role_->become_writer(name, waiting).in("becoming the writer of the ledger")))
      return false;
    late_handler_.wait_because("the server is starting");
    if (server_) return true;
    // A standby at this address closes it when it sees the new writer.
    const auto until = clock_.monotonic() + kAddressWaitMax;
    auto opened = open_port();
    while (!opened && opened.error().kind == Kind::conflict && clock_.monotonic() < until) {
      if (!pause(kAddressPause)) return false;
      opened = open_port();
    }
    TRY(std::move(opened));
    return true;
  }

  Result<void> open_data_of_jobs() {
    prometheus_.prepare(config_.prometheus);
    storage_ = TRY(open_storage(config_, *data_, *role_, *reloadable_, check_disk_space_,
                                prometheus_.events(log_services_.appended()), prometheus_.points(),
                                clock_, random_));
    TRY(log_services_.start(*storage_.logs, *storage_.metrics.metrics, *storage_.objects,
                            identity_.account, config_, clock_, random_));
    TRY(alarms_.open(data_->file("alarms")));
    TRY(write_image_sources(config_, *data_));
    launcher_ =
        std::make_unique<FencedLauncher>(TRY(make_launcher()), [this] { return role_->why_not(); });
    control_settings_ = TRY(control_settings_of(config_, *data_, identity_.account, images_,
                                                *reloadable_, check_disk_space_, clock_.now()));
    control_settings_.ledger_failed = [this](const std::string& why) { end_because(why); };
    return {};
  }

  Result<void> open_control() {
    TRY(set_agent_access(config_, *data_, listening_, server_->port(), certificates_, clock_,
                         control_settings_));
    control_settings_.created_file_systems = [this](const std::string& region) {
      return file_systems_ ? file_systems_->of_region(region) : domain::FileSystems();
    };
    control_ = TRY(control::make_control(control_settings_, *storage_.ledger, *launcher_,
                                         *storage_.logs, clock_, random_)
                       .in("reading the ledger"));
    identity_store_.emplace(*control_, TRY(data_->sealing_key(random_)),
                            TRY(config_identities(config_, identity_.account, identity_.keys)),
                            random_);
    log_warnings(config_, *identity_store_);
    auto file_system_settings = file_system_settings_of(config_, *data_, check_disk_space_);
    file_system_settings.why_not = [this] { return role_->why_not(); };
    file_systems_.emplace(std::move(file_system_settings), *control_);
    agents_ = gateway::make_agents(*control_, *storage_.logs, *storage_.metrics.metrics, clock_,
                                   config_.stop_grace, credentials_of(identity_, random_), {},
                                   report_to(agent_links_));
    agent_links_.connect(send_by(*agents_));
    listener_ =
        TRY(listen_for_agents(agents_listen_of(config_, *data_), agents_->events(), certificates_));
    return {};
  }

  Result<void> open_api() {
    api_settings_ = api_settings_of(config_, identity_, *control_, *reloadable_, check_disk_space_);
    api_settings_->identities = [this] { return identity_store_->snapshot(); };
    api_settings_->key_used = [this](std::string_view key, Instant at, std::string_view region,
                                     std::string_view service) {
      identity_store_->key_used(key, at, region, service);
    };
    const std::string own_endpoint = (listening_.plain_http ? "http://" : "https://") + reachable_;
    api::Services services{*control_,         *storage_.logs, *storage_.metrics.metrics,
                           *storage_.objects, clock_,         random_};
    services.file_systems = &*file_systems_;
    alarms_.give_to(services);
    access_.emplace(*api_settings_, services);
    campaigns_ = TRY(open_campaigns(config_, *data_, own_endpoint, *access_, clock_, random_));
    services_.emplace(api::Services{
        *control_, *storage_.logs, *storage_.metrics.metrics, *storage_.objects, clock_, random_,
        &agents_->shells(), [this](domain::JobNumber job) { return agents_->progress(job); },
        [this](domain::JobNumber job) { return agents_->activity(job); }, campaigns_.get(),
        &statistics_, &*identity_store_,
        [sources = server_status_sources(own_endpoint)] { return server_status_of(sources); }});
    services_->file_systems = &*file_systems_;
    notifications_ =
        TRY(ServedNotifications::open({config_, *data_, own_endpoint, identity_.account, *access_,
                                       *storage_.logs, *control_, *agents_, clock_, random_}));
    notifications_->offer(*services_);
    log_services_.offer(*services_);
    alarms_.give_to(*services_);
    services_->machines = [this] { return server_machines_of(launcher_->last_machines()); };
    console_.prepare(*services_, *control_);
    prometheus_.follow(*control_);
    api_ = api::make_api(*api_settings_, *services_, storage_.audit.get());
    record_ = {
        own_endpoint,          reachable_, config_.region, "", absolute(options_.config_file),
        identity_.keys.front()};
    record_.agents_endpoint = control_settings_.objects_endpoint;
    return write_client_files(*data_, reachable_);
  }

  // Starts the loops and serves requests from now on.
  Result<void> start() {
    loops_.emplace(*control_, control_settings_.reconcile_interval, &clock_, &loop_statistics_);
    file_system_loop_.emplace(*file_systems_, *storage_.objects, clock_);
    lifecycle_.emplace(*storage_.objects, *control_, clock_, [this] { return role_->why_not(); });
    alarm_loop_ = alarms_.start_loop(
        *storage_.metrics.metrics, *control_, clock_, identity_.account,
        [this] { return role_->why_not(); },
        [this](const alarms::PendingAction& action) { return notifications_->publish(action); });
    metrics_server_ =
        TRY(prometheus_.listen({statistics_, loop_statistics_, *control_, *agents_, *server_,
                                *storage_.objects, *launcher_, prometheus_.ingest(), data_->path()},
                               config_.metrics_listen, record_.metrics_host_and_port));
    notifications_->start();
    auto& pages = notifications_->pages(console_.open(*api_settings_, *services_, *api_));
    remote_writers_.start(config_.prometheus, storage_.metrics.journal, *control_, reachable_,
                          clock_.now());
    late_handler_.open(
        prometheus_.pages(*api_settings_, *services_, *reloadable_, remote_writers_, pages),
        [this] { return role_->why_not(); });
    TRY(write_server_record(data_->path(), record_));
    std::fputs(announcement(record_, listening_, data_->path(), config_).c_str(), stdout);
    std::fflush(stdout);
    report_rootless();
    log(Level::info, "serve", "ready", {{"endpoint", record_.endpoint}, {"data", data_->path()}});
    return {};
  }

  // Returns when a signal other than SIGHUP arrives.
  void work(const sigset_t& signals) {
    const auto renew = [this] {
      renew_certificate(data_->file("tls"), listening_.names, clock_.now(), *server_, *listener_);
    };
    const auto upkeep = [&] {
      renew();
      keep_up(*storage_.logs, *storage_.metrics.metrics, *storage_.objects,
              images_directory(data_->path()), config_, clock_.now());
    };
    upkeep();
    os::release_start_memory();
    wait_for_end(
        signals, [this] { store_key_uses(*identity_store_); }, upkeep,
        [&] {
          log_.reopen();
          report_reload(options_.config_file.empty()
                            ? Result<config::Config>(config_)
                            : reload(options_.config_file, *data_, identity_, *identity_store_,
                                     *reloadable_, record_, random_));
          renew();
        });
  }

  // Errors: unavailable, if the server ends because its ledger failed.
  Result<void> stop() {
    log(Level::info, "serve", "stopping; jobs keep running");
    metrics_server_.reset();
    console_.stop();
    server_->stop(kStopGrace);
    remote_writers_.stop();
    if (role_->why_not().empty()) store_key_uses(*identity_store_);
    if (const auto why = internal_shutdown_.why()) return unavailable(*why);
    return {};
  }

 private:
  Result<void> open_port() {
    server_ = TRY(net::serve_http(http_settings_, late_handler_));
    // Agents are on this machine.
    reachable_ = (listening_.host == "0.0.0.0" ? std::string("127.0.0.1") : listening_.host) + ":" +
                 std::to_string(server_->port());
    return {};
  }

  void end_because(const std::string& why) {
    late_handler_.fail(why);
    internal_shutdown_.because(why);
  }

  Result<std::unique_ptr<launch::Launcher>> make_launcher() {
    if (config_.kubernetes) return make_kubernetes_launcher();
    if (!config_.slurm)
      return launch::make_local(local_settings_of(config_, *data_, *reloadable_), clock_)
          .in("preparing this machine to launch jobs");
    auto settings =
        TRY(slurm_settings_of(config_, *data_, TRY(data_->sealing_key(random_)), random_));
    settings.why_not = [this] { return role_->why_not(); };
    settings.links = &agent_links_;
    launch::SlurmClients slurm;
    for (auto* client : {&slurm.cancelling, &slurm.submitting, &slurm.reading})
      *client = TRY(open_slurm(*config_.slurm, clock_, random_));
    return launch::make_slurm(settings, std::move(slurm), clock_)
        .in("preparing to launch jobs by Slurm");
  }

  Result<std::unique_ptr<launch::Launcher>> make_kubernetes_launcher() {
    auto settings = TRY(kubernetes_settings_of(config_, TRY(data_->sealing_key(random_)), random_));
    settings.why_not = [this] { return role_->why_not(); };
    auto client = TRY(open_kubernetes(*config_.kubernetes, settings.jobs, clock_));
    return launch::make_kubernetes(settings, std::move(client), clock_, random_)
        .in("preparing to launch jobs by Kubernetes");
  }

  ServerStatusSources server_status_sources(const std::string& endpoint) {
    return {log_,
            *agents_,
            *identity_store_,
            *reloadable_,
            endpoint,
            clock_.now(),
            data_->path(),
            absolute(options_.config_file),
            config_.log.path,
            reserve_of(config_, data_->path())};
  }

  const ServeOptions options_;
  os::MachineClock clock_;
  ServerLog log_{clock_};
  os::MachineRandom random_;
  config::Config config_;
  std::optional<DataDirectory> data_;
  Identity identity_;
  Images images_;
  std::optional<DiskReserve> reserve_;
  const CheckDiskSpace check_disk_space_ = [this] { return reserve_->check(); };
  std::optional<ReloadableSettings> reloadable_;
  InternalShutdown internal_shutdown_;
  LateHandler late_handler_{random_};
  std::optional<LedgerRole> role_;  // renews the lease as long as the parts below exist
  ServedPrometheus prometheus_;
  Storage storage_;
  LogServices log_services_;  // its threads end before the storage
  AlarmParts alarms_;

  Listening listening_{};
  net::CertificatePaths certificates_;
  net::HttpSettings http_settings_;
  launch::AgentLinks agent_links_;
  std::unique_ptr<FencedLauncher> launcher_;
  control::Settings control_settings_;
  std::unique_ptr<net::HttpServer> server_;
  std::string reachable_;  // host and port
  std::unique_ptr<control::ControlPlane> control_;
  std::optional<file_systems::FileSystems> file_systems_;
  std::optional<api::IdentityStore> identity_store_;
  std::optional<api::Settings> api_settings_;
  std::unique_ptr<gateway::Agents> agents_;
  std::unique_ptr<net::LinkListener> listener_;
  std::optional<api::DelegatedAccess> access_;
  std::unique_ptr<campaign::Campaigns> campaigns_;
  std::unique_ptr<ServedNotifications> notifications_;
  api::RequestStatistics statistics_;
  std::optional<api::Services> services_;
  ServedConsole console_{clock_, random_};
  std::unique_ptr<net::Handler> api_;
  ServerRecord record_;
  control::LoopStatistics loop_statistics_;
  std::optional<control::Loops> loops_;
  std::optional<file_systems::FileSystemLoop> file_system_loop_;  // needs the loops to commit
  std::optional<api::s3::LifecycleLoop> lifecycle_;
  std::unique_ptr<alarms::AlarmLoop> alarm_loop_;  // stops jobs: needs the loops to commit
  RemoteWriters remote_writers_;
  std::unique_ptr<net::HttpServer> metrics_server_;
};

}  // namespace

Result<void> serve(const ServeOptions& options) {
  const sigset_t signals = block_signals();
  raise_open_files();
  Server server(options);
  TRY(server.open_data());
  TRY(server.listen());
  if (!TRY(server.become_writer(signals))) return {};
  TRY(server.open_data_of_jobs());
  TRY(server.open_control());
  TRY(server.open_api());
  TRY(server.start());
  server.work(signals);
  return server.stop();
}

}  // namespace trainyard::apps
