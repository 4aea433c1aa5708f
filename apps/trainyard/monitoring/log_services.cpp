#include "trainyard/monitoring/log_services.hpp"

#include "client/curl.hpp"

namespace trainyard::apps {
namespace {

constexpr Duration kWebhookConnectLimit = 5s;
constexpr Duration kWebhookAnswerLimit = 10s;

// libcurl follows no redirects here, so a request goes where the configuration says, or nowhere.
Result<int> post(const log_routing::Webhook& webhook, const std::string& body) {
  client::Curl curl({.ca_bundle = webhook.ca_bundle,
                     .connect_limit = kWebhookConnectLimit,
                     .answer_limit = kWebhookAnswerLimit});
  std::vector<std::pair<std::string, std::string>> headers{{"Content-Type", "application/json"}};
  if (!webhook.authorization.empty()) headers.emplace_back("Authorization", webhook.authorization);
  return TRY(curl.post(webhook.url, headers, body)).status;
}

}  // namespace

// Stops the router before the services are destroyed: each may append events that others process.
LogServices::~LogServices() {
  if (router_) router_->stop();
}

observe::EventsAppended LogServices::appended() {
  return [this](const observe::StreamKey& key, const std::vector<observe::LogEvent>& events) {
    if (router_) router_->enqueue(key, events);
    if (deliveries_) deliveries_->notify(key);
  };
}

Result<void> LogServices::start(observe::Logs& logs, observe::Metrics& metrics,
                                objects::Objects& objects, const std::string& account,
                                const config::Config& config, Clock& clock, Random& random) {
  log_routing::RouterSettings settings{.account = account};
  for (const config::LogWebhook& each : config.log_webhooks)
    settings.webhooks.push_back(
        {each.name, each.url, each.authorization, each.ca_bundle, each.stands_for});
  router_ = TRY(log_routing::LogRouter::start(logs, metrics, clock, post, std::move(settings))
                    .in("reading the filters of log groups"));
  std::vector<log_routing::ExternalSource> external;
  for (const config::LogSource& each : config.log_sources)
    external.push_back({each.arn, each.log_type, each.log_group});
  deliveries_ = TRY(log_routing::Deliveries::start(
                        logs, objects, router_->targets(), std::move(external), post, clock, random,
                        {.object_interval = config.log_delivery_interval})
                        .in("reading the deliveries of logs"));
  queries_.emplace(logs, clock, random);
  exports_.emplace(logs, objects, clock, random);
  return {};
}

void LogServices::offer(api::Services& services) {
  services.log_router = router_.get();
  services.queries = &*queries_;
  services.log_exports = &*exports_;
  router_->set_deliveries(deliveries_.get());
}

}  // namespace trainyard::apps
