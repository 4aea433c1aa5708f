#include "trainyard/campaigns.hpp"

#include "objects/s3_client.hpp"

namespace trainyard::apps {
namespace {

constexpr Duration kConnectLimit = 3s;
constexpr Duration kAnswerLimit = 10s;  // a region without a response by then is unreachable
// The limits of retries of API calls and copies: short, since the next iteration retries.
constexpr int kAttemptsOfApi = 1;
constexpr int kAttemptsOfObjects = 3;

}  // namespace

std::vector<campaign::MachineCapacity> capacities_of(const std::vector<launch::Machine>& machines) {
  std::vector<campaign::MachineCapacity> capacities;
  for (const auto& machine : machines)
    capacities.push_back({machine.name, machine.cpus, machine.memory_bytes, machine.gpus});
  return capacities;
}

Result<std::unique_ptr<campaign::Campaigns>> open_campaigns(const config::Config& config,
                                                            const DataDirectory& data,
                                                            const std::string& own_endpoint,
                                                            const api::DelegatedAccess& access,
                                                            Clock& clock, Random& random) {
  campaign::Settings settings;
  settings.home = config.region;
  settings.regions = config.regions;
  settings.regions.push_back(config.region);
  for (const auto& [region, remote] : config.remote_regions) settings.regions.push_back(region);
  client::Settings own;
  own.endpoint = own_endpoint;
  own.ca_bundle = data.file("tls/ca.pem");
  own.attempts_max = kAttemptsOfApi;
  own.connect_limit = kConnectLimit;
  own.answer_limit = kAnswerLimit;
  // Every request of a campaign goes to this server's own API, also for regions on other servers.
  // The API authorises and records it like any other request.
  settings.open_client = [own, &access, &clock](const std::string& region,
                                                const campaign::Principal& principal) {
    auto mine = own;
    mine.region = region;
    mine.keys = access.keys_for(principal);
    return client::open_client(std::move(mine), clock);
  };
  settings.open_objects = [own, &access, &clock](const std::string& region,
                                                 const campaign::Principal& principal) {
    objects::S3Settings s3;
    s3.endpoint = own.endpoint;
    s3.region = region;
    s3.ca_bundle = own.ca_bundle;
    s3.keys = [&access, principal] { return access.keys_for(principal); };
    s3.connect_limit = kConnectLimit;
    s3.attempts_max = kAttemptsOfObjects;
    return objects::open_s3(std::move(s3), clock);
  };
  settings.authorise = [&access, home = config.region](const campaign::Principal& principal,
                                                       std::string_view action,
                                                       const std::string& resource) {
    return access.authorise(principal, action, resource, home);
  };
  auto catalogue =
      config.catalogue_url.empty()
          ? TRY(campaign::open_sqlite_catalogue(data.file("catalogue.db"), clock))
          : campaign::open_postgres_catalogue(config.catalogue_url, config.catalogue_query_url);
  auto store =
      TRY(campaign::CampaignStore::open(data.file("campaigns.db")).in("opening the campaigns"));
  return campaign::make_campaigns(std::move(settings), std::move(store), std::move(catalogue),
                                  clock, random);
}

}  // namespace trainyard::apps
