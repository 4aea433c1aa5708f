#include "train/job.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "collectives/stop_limit.hpp"
#include "contract/contract.hpp"
#include "os/files.hpp"
#include "train/trainer.hpp"

namespace trainyard::train {
namespace {

// A leader waits at most twice this time for other regions. The other ranks of its region wait
// longer for the leader (TcpOptions::peer_timeout).
constexpr Duration kRegionTimeout = 4min;
constexpr size_t kConfigBytesMax = 1 << 20;  // AWS allows 100 hyperparameters of 2,500 characters

using Print = std::function<void(std::string_view line)>;

struct JobConfig {
  Settings settings;
  contract::Resources resources;
  int rank = 0;                     // rank among all hosts
  std::vector<std::string> region;  // the hosts of the group: all, or those of this host's region
  int rank_in_region = 0;
};

Result<JobConfig> read_config(const std::string& base) {
  const std::string folder = base + "/input/config/";
  const auto resources = TRY(contract::read_resources(
      TRY(os::read_file(folder + "resourceconfig.json", kConfigBytesMax))));
  const auto hyperparameters = TRY(contract::read_hyperparameters(
      TRY(os::read_file(folder + "hyperparameters.json", kConfigBytesMax))));
  const auto own =
      std::find(resources.hosts.begin(), resources.hosts.end(), resources.current_host);
  JobConfig config;
  config.settings = TRY(parse_settings(hyperparameters));
  config.resources = resources;
  config.rank = int(own - resources.hosts.begin());
  LocalSgdSettings& regions = config.settings.regions;
  const auto hosts = int64_t(resources.hosts.size());
  if (hosts % regions.count != 0) {
    return invalid("hyperparameter regions: " + std::to_string(hosts) +
                   " hosts cannot be split into " + std::to_string(regions.count) +
                   " equal regions");
  }
  const int64_t hosts_of_region = hosts / regions.count;
  if (regions.leaders.empty()) regions.own = config.rank / hosts_of_region;
  config.rank_in_region = int(config.rank % hosts_of_region);
  const auto first = resources.hosts.begin() + (config.rank - config.rank_in_region);
  config.region.assign(first, first + hosts_of_region);
  return config;
}

// Returns the options with which the first rank of a region connects to the other regions.
std::optional<local_sgd::LocalSgdOptions> local_sgd_options(const JobOptions& options,
                                                            const JobConfig& config,
                                                            const std::atomic<bool>& stop) {
  const LocalSgdSettings& regions = config.settings.regions;
  if (!regions.any()) return std::nullopt;
  local_sgd::LocalSgdOptions region;
  region.leaders = regions.leaders;
  region.region = int(regions.own);
  region.shared_value = regions.leaders.empty() ? options.shared_value : regions.secret;
  region.shared_value.resize(
      std::min(region.shared_value.size(), collectives::TcpOptions::kSharedValueBytesMax));
  if (region.leaders.empty()) {
    for (size_t host = 0; host < config.resources.hosts.size(); host += config.region.size())
      region.leaders.push_back({config.resources.hosts[host], uint16_t(regions.port)});
  }
  region.encrypt = regions.encrypt;
  region.round_timeout = kRegionTimeout;
  region.cancelled = [&stop] { return stop.load(); };
  return region;
}

Result<Rows> read_rows(const std::string& base, const JobConfig& config, collectives::Group& group,
                       const Print& print) {
  auto shards = TRY(read_shards(base + "/input/data/" + config.settings.channel)
                        .in("channel " + config.settings.channel));
  Rows rows = TRY(Rows::agree(std::move(shards), group));
  print("host=" + config.resources.current_host + " rank=" + std::to_string(config.rank) +
        " ranks=" + std::to_string(group.size()) + " shards=" + std::to_string(rows.own_shards()) +
        " of " + std::to_string(rows.shards_of_all()) + " rows=" + std::to_string(rows.own_rows()) +
        " of " + std::to_string(rows.all()));
  return rows;
}

Result<void> train(const JobOptions& options, const JobConfig& config, collectives::Group& group,
                   Clock& clock, const std::atomic<bool>& stop, const Print& print) {
  auto rows = read_rows(options.base, config, group, print);
  if (!rows) {
    group.abandon(rows.error().message);  // the other ranks fail at once, with the same message
    return std::move(rows).error();
  }
  auto made = Trainer::make(config.settings, *std::move(rows), group, clock, print,
                            local_sgd_options(options, config, stop));
  if (!made && stop) {
    print("stopped before the first step");
    return ok();
  }
  Trainer trainer = TRY(std::move(made));
  const auto finished = trainer.run(stop);
  if (!finished && !stop) return finished.error();
  if (!finished) print("stopped without the other hosts: " + finished.error().message);

  if (config.rank == 0 && trainer.steps_done() > 0) {
    const std::string folder = options.base + "/model";
    TRY(save_model(trainer.model(), folder).in("saving the model"));
    print("saved the model in " + folder);
  }
  return ok();
}

Result<void> write_timeline(const JobOptions& options, const JobConfig& config,
                            const collectives::Group& group) {
  TRY(os::make_directories(options.timelines));
  return os::write_file(options.timelines + "/" + config.resources.current_host + ".json",
                        group.timeline());
}

Result<void> join_and_train(const JobOptions& options, Clock& clock, const std::atomic<bool>& stop,
                            const Print& print) {
  const JobConfig config = TRY(read_config(options.base));
  collectives::TcpOptions tcp;
  for (const std::string& host : config.region)
    tcp.endpoints.push_back({host, uint16_t(config.settings.port)});
  tcp.rank = config.rank_in_region;
  tcp.group.activity = {options.activity, config.rank};
  tcp.group.timeline = !options.timelines.empty();
  tcp.shared_value = options.shared_value.substr(0, collectives::TcpOptions::kSharedValueBytesMax);
  collectives::StopLimit limit(stop, clock, kStopTimeout);
  tcp.cancelled = [&] { return limit.is_exceeded(); };
  auto group = collectives::join_over_tcp(std::move(tcp));
  limit.joined();
  if (!group && stop) {
    print("stopped before the first step");
    return ok();
  }
  if (!group) return std::move(group).error();
  auto done = train(options, config, **group, clock, stop, print);
  if (!options.timelines.empty())
    if (const auto written = write_timeline(options, config, **group); !written)
      print("writing the timeline: " + written.error().message);
  return done;
}

}  // namespace

Result<void> run_job(const JobOptions& options, Clock& clock, const std::atomic<bool>& stop,
                     const Print& print) {
  auto done = join_and_train(options, clock, stop, print);
  if (!done) {
    const std::string output = options.base + "/output";
    const std::string why = shorten(done.error().message, contract::kFailureCharactersMax);
    auto written = os::make_directories(output);
    if (written) written = os::write_file(output + "/failure", why);
    if (!written) print("writing the failure file: " + written.error().message);
  }
  return done;
}

}  // namespace trainyard::train
