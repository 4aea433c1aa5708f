#include "campaign/campaigns.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "base/log.hpp"
#include "base/text.hpp"
#include "campaign/campaign_table.hpp"
#include "campaign/catalogue_schema.hpp"
#include "campaign/followers.hpp"
#include "campaign/region.hpp"

namespace trainyard::campaign {
namespace {

constexpr const char* kThreadsWaiter = "threads";
constexpr const char* kWatcherWaiter = "watcher";
constexpr Duration kThreadsInterval = 1h;  // the starter is woken earlier when a region is added
constexpr size_t kRegionsMax = 64;         // each has two threads
constexpr size_t kRowsProvidedMax = 100'000;
constexpr size_t kIdBytes = 16;  // of a campaign's id, which is unique over all servers

std::string region_waiter(const std::string& region) { return "region " + region; }
std::string copy_waiter(const std::string& region) { return "copy " + region; }

class FollowedCampaigns final : public Campaigns {
 public:
  FollowedCampaigns(Settings settings, std::unique_ptr<CampaignStore> store,
                    std::unique_ptr<Catalogue> catalogue, Clock& clock, Random& random)
      : settings_(std::move(settings)),
        store_(std::move(store)),
        catalogue_(std::move(catalogue)),
        clock_(clock),
        random_(random),
        table_(*store_) {}

  ~FollowedCampaigns() override {
    table_.end();
    for (std::thread* thread : {&starter_, &watcher_})
      if (thread->joinable()) thread->join();
    for (auto& thread : followers_) thread.join();  // the starter, which adds to them, has ended
  }

  Result<void> start() {
    TRY(table_.load());
    starter_ = std::thread([this] {
      do {
        start_followers();
      } while (table_.wait(kThreadsWaiter, kThreadsInterval));
    });
    watcher_ = std::thread([this] {
      Watcher watcher(
          settings_, table_, *catalogue_, clock_,
          [this](const Definition& definition, const Principal& by) {
            return answer(definition, by);
          },
          [this](const Definition& definition, const Principal& by) {
            return plan_inputs(definition, by);
          });
      Duration rest{};
      do {
        rest = watcher.iterate();
      } while (table_.wait(kWatcherWaiter, rest));
    });
    return {};
  }

  Result<Plan> plan(const Definition& definition, const Principal& by) override {
    TRY(check(definition));
    TRY(check_regions(definition));
    const QueryResult query_result = TRY(answer(definition, by));
    return make_plan(definition, query_result, plan_inputs(definition, by));
  }

  Result<Described> create(const Definition& definition, const Principal& by) override {
    auto planned = TRY(plan(definition, by));
    if (planned.rows.empty() && !definition.standing)
      return invalid(
          "the query has no rows: correct it, or set standing = true to wait for its first row");
    Campaign campaign{definition, clock_.now(), {}, std::move(planned.rows), random_.hex(kIdBytes),
                      by};
    TRY(check_regions(campaign.rows));
    TRY(table_.add(std::move(campaign), settings_.live_campaigns_max));
    table_.wake(kThreadsWaiter);
    table_.wake(kWatcherWaiter);
    wake_regions();
    return describe(definition.name);
  }

  Result<Described> describe(const std::string& name) override {
    return described(TRY(table_.find(name)));
  }

  std::vector<Described> list() override {
    std::vector<Described> all;
    for (auto& campaign : table_.list()) all.push_back(described(std::move(campaign)));
    return all;
  }

  Result<Described> stop(const std::string& name) override {
    TRY(table_.stop(name, clock_.now(), ""));
    wake_regions();
    return describe(name);
  }

  Result<QueryResult> query(const std::string& sql, const Principal& by) override {
    const std::vector<std::string> regions = mentions(sql, "prices") || mentions(sql, "capacity")
                                                 ? settings_.regions
                                                 : std::vector<std::string>();
    return catalogue_->query(sql, provided(sql, inputs_of_regions(regions, by), by));
  }

  Result<int64_t> change(const std::string& sql) override {
    const int64_t changed = TRY(catalogue_->change(sql));
    table_.wake(kWatcherWaiter);
    return changed;
  }

  void object_created(const std::string& bucket, const std::string& key) override {
    if (table_.watches(bucket, key)) table_.wake(kWatcherWaiter);
  }

 private:
  void wake_regions() {
    for (const auto& region : table_.busy_regions()) {
      table_.wake(region_waiter(region));
      table_.wake(copy_waiter(region));
    }
  }

  Described described(Campaign campaign) {
    Described out;
    out.comparison = compare(campaign.definition.request_kind, campaign.rows);
    const auto states = table_.regions();
    for (const Row& row : campaign.rows)
      if (const auto found = states.find(row.region); found != states.end())
        out.regions[row.region] = found->second;
    out.last_error = table_.last_error(campaign.definition.name);
    out.campaign = std::move(campaign);
    return out;
  }

  // Each followed region has threads until the server ends, so only configured regions are
  // accepted.
  Result<void> check_regions(const Definition& definition) const {
    for (const auto& region : definition.placement.regions) TRY(check_region(region));
    for (const Watch& watch : definition.watches)
      if (!watch.region.empty()) TRY(check_region(watch.region));
    return {};
  }
  Result<void> check_region(const std::string& region) const {
    if (std::count(settings_.regions.begin(), settings_.regions.end(), region)) return {};
    const std::string known = join(settings_.regions, ", ");
    return invalid("unknown region '" + shorten(region, 60) + "': this server's regions are " +
                   known);
  }

  Result<void> check_regions(const std::vector<Row>& rows) const {
    std::set<std::string> regions = table_.busy_regions();
    for (const Row& row : rows) {
      TRY(check_region(row.region));
      regions.insert(row.region);
    }
    if (regions.size() > kRegionsMax)
      return exhausted("campaigns follow at most " + std::to_string(kRegionsMax) +
                       " regions at a time");
    return {};
  }

  // -- the input of plans

  std::vector<std::string> regions_of(const Definition& definition) const {
    auto regions = settings_.regions;
    for (const auto& region : definition.placement.regions)
      if (!std::count(regions.begin(), regions.end(), region)) regions.push_back(region);
    return regions;
  }

  // Queries all regions in parallel, since a request to an unreachable region takes seconds to
  // fail.
  PlanInputs inputs_of_regions(const std::vector<std::string>& regions, const Principal& by) {
    PlanInputs inputs;
    inputs.home = settings_.home;
    std::vector<RegionOffers> answers(regions.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < regions.size() && i < kRegionsMax; ++i)
      threads.emplace_back([&, i] {
        auto client = settings_.open_client(regions[i], by);
        auto answer = client ? offers_of(**client) : Result<RegionOffers>(client.error());
        if (answer)
          answers[i] = std::move(*answer);
        else
          log(Level::warning, "campaign", "cannot read the prices and the capacity of a region",
              {{"region", regions[i]}, {"why", answer.error().message}});
      });
    for (auto& thread : threads) thread.join();
    for (size_t i = 0; i < regions.size(); ++i) inputs.regions[regions[i]] = std::move(answers[i]);
    return inputs;
  }

  PlanInputs plan_inputs(const Definition& definition, const Principal& by) {
    PlanInputs inputs = inputs_of_regions(regions_of(definition), by);
    // Users fill these tables of the catalogue. While they are empty, nothing is reserved and
    // copies cost nothing.
    const auto now = to_iso8601(clock_.now(), false);
    if (const auto rows =
            catalogue_->query("SELECT region, instance_type, hosts, until FROM reservations", {}))
      for (const auto& row : rows->rows)
        if (row[0].is_string() && row[1].is_string() && row[2].is_number() &&
            (!row[3].is_string() || row[3].get<std::string>() > now))
          inputs.regions[row[0].get<std::string>()]
              .offers[row[1].get<std::string>()]
              .hosts_reserved += row[2].get<int64_t>();
    if (const auto rows =
            catalogue_->query("SELECT from_region, to_region, per_gib FROM transfer_prices", {}))
      for (const auto& row : rows->rows)
        if (row[0].is_string() && row[1].is_string() && row[2].is_number())
          inputs.copy_price_per_gib[{row[0].get<std::string>(), row[1].get<std::string>()}] =
              row[2].get<double>();
    return inputs;
  }

  // A campaign's query requires the right to QueryCatalogue.
  Result<QueryResult> answer(const Definition& definition, const Principal& by) {
    TRY(settings_.authorise(by, "trainyard:QueryCatalogue", "*"));
    const bool needs_offers =
        mentions(definition.query, "prices") || mentions(definition.query, "capacity");
    const PlanInputs inputs =
        inputs_of_regions(needs_offers ? regions_of(definition) : std::vector<std::string>(), by);
    return catalogue_->query(definition.query, provided(definition.query, inputs, by))
        .in("the query");
  }

  std::vector<Provided> provided(const std::string& sql, const PlanInputs& inputs,
                                 const Principal& by) const {
    const auto or_nothing = [](const auto& value) { return value ? Json(*value) : Json(); };
    Provided prices{"prices",
                    {"region TEXT", "instance_type TEXT", "on_demand_per_hour DOUBLE PRECISION",
                     "spot_per_hour DOUBLE PRECISION"},
                    {}};
    Provided capacity{
        "capacity",
        {"region TEXT", "instance_type TEXT", "hosts_total BIGINT", "hosts_free BIGINT"},
        {}};
    for (const auto& [region, of_region] : inputs.regions)
      for (const auto& [type, offer] : of_region.offers) {
        prices.rows.push_back({region, type, or_nothing(offer.on_demand), or_nothing(offer.spot)});
        capacity.rows.push_back(
            {region, type, or_nothing(offer.hosts_total), or_nothing(offer.hosts_free)});
      }
    Provided rows{"campaign_rows",
                  {"campaign TEXT", "number BIGINT", "label TEXT", "region TEXT", "state TEXT",
                   "cost DOUBLE PRECISION", "metrics TEXT"},
                  {}};
    if (mentions(sql, rows.name))
      for (const Campaign& campaign : may_describe(table_.list(), by))
        for (const Row& row : campaign.rows)
          if (rows.rows.size() < kRowsProvidedMax)
            rows.rows.push_back({campaign.definition.name, row.number, row.label, row.region,
                                 std::string(to_string(row.state)), row.cost,
                                 dump(Json(row.metrics))});
    return {std::move(prices), std::move(capacity), std::move(rows)};
  }

  std::vector<Campaign> may_describe(std::vector<Campaign> campaigns, const Principal& by) const {
    std::erase_if(campaigns, [&](const Campaign& campaign) {
      return !settings_.authorise(by, "trainyard:DescribeCampaign",
                                  "campaign/" + campaign.definition.name);
    });
    return campaigns;
  }

  // -- threads

  // Called on the starter's thread only.
  void start_followers() {
    for (const auto& region : table_.busy_regions()) {
      if (!followed_.insert(region).second) continue;
      followers_.emplace_back([this, region] {
        RegionFollower follower(region, settings_, table_, clock_);
        repeat(region_waiter(region), [&] { return follower.iterate(); });
      });
      followers_.emplace_back([this, region] {
        CopyFollower follower(region, settings_, table_, clock_);
        repeat(copy_waiter(region), [&] { return follower.iterate(); });
      });
    }
  }

  template <class Iterate>
  void repeat(const std::string& waiter, const Iterate& iterate) {
    while (table_.wait(waiter, iterate())) {
    }
  }

  const Settings settings_;
  const std::unique_ptr<CampaignStore> store_;
  const std::unique_ptr<Catalogue> catalogue_;
  Clock& clock_;
  Random& random_;
  CampaignTable table_;
  std::set<std::string> followed_;      // confined to the starter
  std::vector<std::thread> followers_;  // confined to the starter, until it has ended
  std::thread starter_, watcher_;
};

}  // namespace

Result<std::unique_ptr<Campaigns>> make_campaigns(Settings settings,
                                                  std::unique_ptr<CampaignStore> store,
                                                  std::unique_ptr<Catalogue> catalogue,
                                                  Clock& clock, Random& random) {
  auto campaigns = std::make_unique<FollowedCampaigns>(std::move(settings), std::move(store),
                                                       std::move(catalogue), clock, random);
  TRY(campaigns->start().in("reading the campaigns"));
  return std::unique_ptr<Campaigns>(std::move(campaigns));
}

}  // namespace trainyard::campaign
