#include "train/job.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "contract/contract.hpp"
#include "os/files.hpp"
#include "train/trainer.hpp"

namespace trainyard::train {
namespace {

// Twice this, what a leader waits for other regions at most, is less than its region's other ranks wait for it
// (TcpOptions::silence_max).
constexpr Duration region_timeout = 4min;
constexpr size_t config_bytes_max = 1 << 20;  // AWS allows 100 hyperparameters of 2,500 characters

using Print = std::function<void(std::string_view line)>;

struct Orders {
  Settings settings;
  contract::Resources resources;
  int rank = 0;                     // of all hosts
  std::vector<std::string> region;  // the hosts that step with us: all of them, or those of our region
  int rank_in_region = 0;
};

Result<Orders> read_orders(const std::string& base) {
  const std::string config = base + "/input/config/";
  const auto resources =
      TRY(contract::read_resources(TRY(os::read_file(config + "resourceconfig.json", config_bytes_max))));
  const auto hyperparameters = TRY(
      contract::read_hyperparameters(TRY(os::read_file(config + "hyperparameters.json", config_bytes_max))));
  const auto place = std::find(resources.hosts.begin(), resources.hosts.end(), resources.current_host);
  Orders orders;
  orders.settings = TRY(parse_settings(hyperparameters));
  orders.resources = resources;
  orders.rank = int(place - resources.hosts.begin());
  RegionSettings& regions = orders.settings.regions;
  const auto hosts = int64_t(resources.hosts.size());
  if (hosts % regions.count != 0) {
    return invalid("hyperparameter regions: " + std::to_string(hosts) + " hosts are not cut into " +
                   std::to_string(regions.count) + " equal regions");
  }
  const int64_t hosts_of_region = hosts / regions.count;
  if (regions.leaders.empty()) regions.own = orders.rank / hosts_of_region;
  orders.rank_in_region = int(orders.rank % hosts_of_region);
  const auto first = resources.hosts.begin() + (orders.rank - orders.rank_in_region);
  orders.region.assign(first, first + hosts_of_region);
  return orders;
}

// How the first rank of a region meets those of the others.
std::optional<local_sgd::RegionOptions> region_options(const JobOptions& options, const Orders& orders,
                                                       const std::atomic<bool>& stop) {
  const RegionSettings& regions = orders.settings.regions;
  if (!regions.any()) return std::nullopt;
  local_sgd::RegionOptions region;
  region.leaders = regions.leaders;
  region.region = int(regions.own);
  region.shared_value = regions.leaders.empty() ? options.shared_value : regions.secret;
  region.shared_value.resize(
      std::min(region.shared_value.size(), collectives::TcpOptions::shared_value_bytes_max));
  if (region.leaders.empty()) {
    for (size_t host = 0; host < orders.resources.hosts.size(); host += orders.region.size())
      region.leaders.push_back({orders.resources.hosts[host], uint16_t(regions.port)});
  }
  region.encrypt = regions.encrypt;
  region.round_timeout = region_timeout;
  region.cancelled = [&stop] { return stop.load(); };
  return region;
}

Result<Rows> read_rows(const std::string& base, const Orders& orders, collectives::Group& group,
                       const Print& print) {
  auto shards = TRY(
      read_shards(base + "/input/data/" + orders.settings.channel).in("channel " + orders.settings.channel));
  Rows rows = TRY(Rows::agree(std::move(shards), group));
  print("host=" + orders.resources.current_host + " rank=" + std::to_string(orders.rank) +
        " ranks=" + std::to_string(group.size()) + " shards=" + std::to_string(rows.own_shards()) + " of " +
        std::to_string(rows.shards_of_all()) + " rows=" + std::to_string(rows.own()) + " of " +
        std::to_string(rows.all()));
  return rows;
}

Result<void> train(const JobOptions& options, const Orders& orders, collectives::Group& group, Clock& clock,
                   const std::atomic<bool>& stop, const Print& print) {
  auto rows = read_rows(options.base, orders, group, print);
  if (!rows) {
    group.abandon(rows.error().message);  // the others need not wait for us, and can say what is wrong
    return std::move(rows).error();
  }
  auto made = Trainer::make(orders.settings, *std::move(rows), group, clock, print,
                            region_options(options, orders, stop));
  if (!made && stop) {
    print("stopped before the first step");
    return ok();
  }
  Trainer trainer = TRY(std::move(made));
  const auto finished = trainer.run(stop);
  if (!finished && !stop) return finished.error();
  if (!finished) print("stopped without the other hosts: " + finished.error().message);

  if (orders.rank == 0 && trainer.steps_done() > 0) {
    const std::string folder = options.base + "/model";
    TRY(save_model(trainer.model(), folder).in("saving the model"));
    print("saved the model in " + folder);
  }
  return ok();
}

Result<void> join_and_train(const JobOptions& options, Clock& clock, const std::atomic<bool>& stop,
                            const Print& print) {
  const Orders orders = TRY(read_orders(options.base));
  collectives::TcpOptions meeting;
  for (const std::string& host : orders.region)
    meeting.endpoints.push_back({host, uint16_t(orders.settings.port)});
  meeting.rank = orders.rank_in_region;
  meeting.shared_value = options.shared_value.substr(0, collectives::TcpOptions::shared_value_bytes_max);
  // While the hosts gather, a stop counts at once. Later all of them stop after the same step, by agreement;
  // only when that does not come about does this host give up waiting.
  bool gathering = true;
  std::optional<std::chrono::nanoseconds> stop_seen_at;
  meeting.cancelled = [&] {
    if (!stop) return false;
    if (!stop_seen_at) stop_seen_at = clock.monotonic();
    return gathering || clock.monotonic() - *stop_seen_at > stop_timeout;
  };
  auto group = collectives::join_over_tcp(std::move(meeting));
  gathering = false;
  if (!group && stop) {
    print("stopped before the first step");
    return ok();
  }
  if (!group) return std::move(group).error();
  return train(options, orders, **group, clock, stop, print);
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
