// Implements the operations on campaigns and their catalogue, and on the instance types of a
// region.
#include "campaign/campaigns.hpp"

#include <set>

#include "auth/delegated_access.hpp"
#include "base/text.hpp"
#include "campaign/capacity.hpp"
#include "campaign/template.hpp"
#include "domain/instance_type.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;
using campaign::RowState;

constexpr size_t kJobsCountedMax = 100'000;  // running jobs of one region

// Converts an error: an invalid campaign makes an invalid request.
Failure failure_of_campaign(const Error& error) {
  if (error.kind == Kind::invalid || error.kind == Kind::exhausted)
    return validation_exception(error.message);
  if (error.kind == Kind::not_found) return resource_not_found(error.message);
  if (error.kind == Kind::conflict) return resource_in_use(error.message);
  return failure_of(own::kService, error);
}

own::CampaignRow to_shape(const campaign::Definition& definition, const campaign::Row& row,
                          bool with_request) {
  own::CampaignRow out;
  out.number = row.number;
  out.label = row.label;
  out.columns.emplace();
  for (const auto& [name, value] : row.columns)
    out.columns->push_back({name, campaign::text_of(value)});
  out.data_region = row.data_region;
  out.region = row.region;
  set_unless_empty(out.why, row.why);
  set_unless_empty(out.data, row.data);
  set_unless_empty(out.copy_to, row.copy_to);
  set_unless_empty(out.instance_type, row.instance_type);
  out.instance_count = row.hosts;
  if (row.gpus > 0) out.gpus = row.gpus;
  if (row.price_per_hour >= 0) out.price_per_hour = row.price_per_hour;
  if (row.copy_price_per_gib > 0) out.copy_price_per_gib = row.copy_price_per_gib;
  out.state = std::string(campaign::to_string(row.state));
  if (row.attempt > 0)
    out.job = row.job_id.empty() ? campaign::job_name(definition.name, row) : row.job_id;
  set_unless_empty(out.status, row.status);
  set_unless_empty(out.reason, row.reason);
  out.attempts = row.attempt;
  out.start_time = row.started;
  out.end_time = row.ended;
  if (!row.metrics.empty()) {
    out.metrics.emplace();
    for (const auto& [name, value] : row.metrics) out.metrics->push_back({name, value});
  }
  out.cost = row.cost;
  if (row.bytes_total > 0) {
    out.bytes_total = row.bytes_total;
    out.bytes_copied = row.bytes_copied;
  }
  if (with_request) out.request = dump(row.request);
  return out;
}

own::CampaignRegion to_shape(const std::string& region, const campaign::RegionSum& sum,
                             const campaign::RegionState& state) {
  const auto rows = [&](std::initializer_list<RowState> states) {
    int64_t count = 0;
    for (const RowState one : states)
      if (const auto found = sum.rows.find(one); found != sum.rows.end()) count += found->second;
    return count;
  };
  own::CampaignRegion out;
  out.region = region;
  out.answers = state.answers;
  set_unless_empty(out.why_not, state.why_not);
  out.since = state.since;
  out.waiting = rows({RowState::waiting, RowState::ready, RowState::submitting});
  out.copying = rows({RowState::copying});
  out.running = rows({RowState::running});
  out.completed = rows({RowState::completed});
  out.failed = rows({RowState::failed});
  out.stopped = rows({RowState::stopped});
  out.tried_again = sum.tried_again;
  out.hosts = sum.hosts;
  out.gpus = sum.gpus;
  if (sum.rate > 0) out.samples_per_second = sum.rate;
  out.cost = sum.cost;
  out.copy_cost = sum.copy_cost;
  out.bytes_total = sum.bytes_total;
  out.bytes_copied = sum.bytes_copied;
  return out;
}

std::string status_of(const campaign::Campaign& campaign) {
  if (!campaign.over()) return campaign.stopped ? "Stopping" : "InProgress";
  if (campaign.stopped) return "Stopped";
  for (const auto& row : campaign.rows)
    if (row.state != RowState::completed) return "Failed";
  return "Completed";
}

// Makes the entry of a campaign in ListCampaigns, without values of its jobs, since the caller may
// lack the permission to describe it.
own::Campaign summary_of(const Settings& settings, const campaign::Described& described) {
  const campaign::Campaign& campaign = described.campaign;
  const auto& metrics = campaign.definition.result_metrics;
  own::Campaign out;
  out.campaign_name = campaign.definition.name;
  out.status = status_of(campaign);
  out.standing = campaign.definition.standing;
  out.creation_time = campaign.created;
  if (campaign.over())
    for (const auto& row : campaign.rows)
      if (row.ended && (!out.end_time || *out.end_time < *row.ended)) out.end_time = row.ended;
  set_unless_empty(out.trouble, described.last_error);
  out.currency = settings.prices.currency;
  set_unless_empty(out.best_metric, metrics.best);
  out.best_is_highest = metrics.highest;
  if (const auto* best = campaign::best_row(metrics, campaign.rows)) out.best_row = best->number;
  out.regions.emplace();
  for (const auto& [region, sum] : campaign::sum_by_region(metrics, campaign.rows)) {
    const auto state = described.regions.find(region);
    out.regions->push_back(to_shape(
        region, sum, state == described.regions.end() ? campaign::RegionState() : state->second));
  }
  return out;
}

own::Campaign to_shape(const Settings& settings, const campaign::Described& described,
                       bool with_rows, bool with_requests = false) {
  const campaign::Campaign& campaign = described.campaign;
  own::Campaign out = summary_of(settings, described);
  set_unless_empty(out.started_by, campaign.started_by.arn);
  set_unless_empty(out.stop_reason, campaign.stop_reason);
  out.same.emplace();
  for (const auto& [name, value] : described.comparison.same) out.same->push_back({name, value});
  out.different.emplace();
  for (const auto& [path, values] : described.comparison.different)
    out.different->push_back({path, values});
  if (!with_rows) return out;
  out.rows.emplace();
  for (const auto& row : campaign.rows)
    out.rows->push_back(to_shape(campaign.definition, row, with_requests));
  return out;
}

Outcome<own::Campaign> create(const Settings& settings, const Services& services,
                              const Context& context, const own::CreateCampaignRequest& request) {
  const auto definition = campaign::read_definition(*request.definition);
  if (!definition) return failure_of_campaign(definition.error());
  const auto by =
      TRY(record_of(context, "arn:aws:trainyard:" + context.region + ":" +
                                 context.principal.account + ":campaign/" + definition->name));
  if (!request.dry_run.value_or(false)) {
    const auto made = services.campaigns->create(*definition, by);
    if (!made) return failure_of_campaign(made.error());
    return to_shape(settings, *made, true);
  }
  auto plan = services.campaigns->plan(*definition, by);
  if (!plan) return failure_of_campaign(plan.error());
  campaign::Described planned;
  planned.campaign = {*definition, context.now, {}, std::move(plan->rows)};
  planned.comparison = std::move(plan->comparison);
  auto out = to_shape(settings, planned, true, true);
  out.status = "Planned";
  return out;
}

Outcome<own::QueryCatalogueResponse> query(const Services& services, const Context& context,
                                           const own::QueryCatalogueRequest& request) {
  const auto answered = services.campaigns->query(*request.statement, TRY(record_of(context, "")));
  if (!answered) return failure_of_campaign(answered.error());
  own::QueryCatalogueResponse out;
  out.columns = answered->columns;
  out.rows.emplace();
  for (const auto& row : answered->rows) {
    own::CatalogueRow values;
    values.values.emplace();
    for (const Json& value : row) values.values->push_back(campaign::text_of(value));
    out.rows->push_back(std::move(values));
  }
  return out;
}

// Adds the capacity of this server's machines that the running jobs of a region use.
Result<void> add_taken(control::Control& control, const std::string& region,
                       std::vector<campaign::Taken>& all) {
  ledger::JobQuery query;
  query.region = region;
  query.states = {domain::JobState::active, domain::JobState::stopping};
  query.jobs_max = ledger::kPageJobsMax;
  size_t looked_at = 0;
  do {
    const auto page = TRY(control.list(query));
    for (const domain::Job& kept : page.jobs) {
      const auto live = control.find(kept.key);  // the ledger does not store the hosts' machines
      const domain::Job& job = live ? **live : kept;
      if (const domain::Attempt* attempt = job.attempt())
        for (const auto& host : attempt->hosts)
          all.push_back({host.machine, host.share.cpus, host.share.memory_bytes, host.share.gpus});
    }
    looked_at += page.jobs.size();
    query.token = page.next_token;
  } while (!query.token.empty() && looked_at < kJobsCountedMax);
  return {};
}

Outcome<own::DescribeRegionResponse> describe_region(const Settings& settings,
                                                     const Services& services,
                                                     const Context& context) {
  own::DescribeRegionResponse out;
  out.region = context.region;
  out.currency = settings.prices.currency;
  out.instance_types.emplace();
  const auto machines =
      settings.machines ? settings.machines() : std::vector<campaign::MachineCapacity>();
  std::vector<campaign::Taken> taken;
  std::set<std::string> regions(settings.regions.begin(), settings.regions.end());
  regions.insert(context.region);
  for (const auto& region : regions) TRY(add_taken(services.control, region, taken));
  const auto left = campaign::capacity_left(machines, taken);
  for (const auto& type : domain::instance_types()) {
    own::InstanceTypeOffer offer;
    offer.instance_type = std::string(type.name);
    offer.cpus = type.cpus;
    offer.memory_in_bytes = int64_t(type.memory_gib * double(int64_t{1} << 30));
    offer.gpus = type.gpus;
    const auto price = settings.prices.find(context.region, *offer.instance_type);
    if (price) {
      offer.on_demand_per_hour = price->on_demand;
      offer.spot_per_hour = price->spot;
    }
    if (!machines.empty()) {
      offer.hosts_total = campaign::hosts_that_fit(machines, type);
      offer.hosts_free = campaign::hosts_that_fit(left, type);
    }
    if (price || offer.hosts_total.value_or(0) > 0) out.instance_types->push_back(std::move(offer));
  }
  return out;
}

}  // namespace

void add_campaigns(OperationTable& table, const Settings& settings, const Services& services) {
  table.add<own::DescribeRegion>([&](const Context& context, const own::DescribeRegionRequest&) {
    return describe_region(settings, services, context);
  });
  if (!services.campaigns) return;
  table.add<own::CreateCampaign>(
      [&](const Context& context, const own::CreateCampaignRequest& request) {
        return create(settings, services, context, request);
      });
  table.add<own::DescribeCampaign>(
      [&](const Context&, const own::DescribeCampaignRequest& request) -> Outcome<own::Campaign> {
        const auto found = services.campaigns->describe(*request.campaign_name);
        if (!found) return failure_of_campaign(found.error());
        return to_shape(settings, *found, !request.without_rows.value_or(false));
      });
  table.add<own::ListCampaigns>([&](const Context&, const own::ListCampaignsRequest&) {
    own::ListCampaignsResponse out;
    out.campaigns.emplace();
    for (const auto& each : services.campaigns->list())
      out.campaigns->push_back(summary_of(settings, each));
    return Outcome<own::ListCampaignsResponse>(std::move(out));
  });
  table.add<own::StopCampaign>(
      [&](const Context&, const own::StopCampaignRequest& request) -> Outcome<own::Campaign> {
        const auto stopped = services.campaigns->stop(*request.campaign_name);
        if (!stopped) return failure_of_campaign(stopped.error());
        return summary_of(settings, *stopped);
      });
  table.add<own::QueryCatalogue>(
      [&](const Context& context, const own::QueryCatalogueRequest& request) {
        return query(services, context, request);
      });
  table.add<own::ChangeCatalogue>(
      [&](const Context&,
          const own::ChangeCatalogueRequest& request) -> Outcome<own::ChangeCatalogueResponse> {
        const auto changed = services.campaigns->change(*request.statement);
        if (!changed) return failure_of_campaign(changed.error());
        own::ChangeCatalogueResponse out;
        out.rows_changed = *changed;
        return out;
      });
}

}  // namespace trainyard::api::trainyard_api
