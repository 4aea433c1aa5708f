#include "trainyard/monitoring/served_notifications.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "client/client.hpp"
#include "notify/command_sender.hpp"
#include "notify/event_targets.hpp"
#include "notify/http_sender.hpp"
#include "notify/mail_sender.hpp"
#include "sns/pages.hpp"

namespace trainyard::apps {
namespace {

constexpr size_t kSubjectMax = 99;  // SNS allows fewer than 100 characters
constexpr Duration kApiConnectLimit = 3s;
constexpr Duration kApiAnswerLimit = 15s;

notify::HttpSenderSettings http_settings_of(const config::NotificationSettings& settings) {
  return {settings.allow_networks, settings.ca_bundle};
}

std::map<std::string, notify::CommandLine> commands_of(
    const config::NotificationSettings& settings) {
  std::map<std::string, notify::CommandLine> commands;
  for (const auto& [name, each] : settings.commands)
    commands[name] = {each.arguments, each.topics, each.at_most};
  return commands;
}

void add_mail(const config::MailServer& mail, Clock& clock, Random& random,
              std::map<notify::Protocol, notify::Transport>& transports) {
  const auto sender = std::make_shared<const notify::MailSender>(
      notify::MailSettings{mail.url, mail.from, mail.user, mail.password, mail.ca_bundle,
                           mail.require_tls},
      clock, random);
  const notify::Transport send = [sender](const notify::Outgoing& out) {
    return sender->send(out);
  };
  transports[notify::Protocol::email] = transports[notify::Protocol::email_json] = send;
}

notify::NotifySettings notify_settings_of(const NotificationParts& parts) {
  const config::NotificationSettings& configured = parts.config.notifications;
  notify::NotifySettings settings;
  settings.path = parts.data.file("notifications.db");
  settings.urls.base = parts.own_endpoint + std::string(api::sns::kPagesPath);
  const auto http = std::make_shared<const notify::HttpSender>(http_settings_of(configured));
  const notify::Transport send = [http](const notify::Outgoing& out) { return http->send(out); };
  settings.transports = {{notify::Protocol::http, send}, {notify::Protocol::https, send}};
  if (configured.mail) add_mail(*configured.mail, parts.clock, parts.random, settings.transports);
  if (configured.commands.empty()) return settings;
  const auto commands = std::make_shared<const notify::CommandSender>(commands_of(configured));
  settings.transports[notify::Protocol::command] = [commands](const notify::Outgoing& out) {
    return commands->send(out);
  };
  settings.check_endpoint = [commands](const notify::Subscription& each) {
    return each.protocol == notify::Protocol::command ? commands->check(each) : ok();
  };
  return settings;
}

// Submits jobs through this server's own API, which authorises and records them like any request.
notify::SubmitJob submit_by(const NotificationParts& parts) {
  client::Settings own;
  own.endpoint = parts.own_endpoint;
  own.ca_bundle = parts.data.file("tls/ca.pem");
  own.attempts_max = 1;  // deliveries are retried in any case
  own.connect_limit = kApiConnectLimit;
  own.answer_limit = kApiAnswerLimit;
  return [own, &access = parts.access, &clock = parts.clock](
             const std::string& region, const Json& creator, const Json& request) -> Result<void> {
    auto mine = own;
    mine.region = region;
    mine.keys = access.keys_for({creator.value("arn", ""), creator.value("record", "")});
    const auto client = TRY(client::open_client(std::move(mine), clock));
    TRY(client->call(client::Service::batch, "SubmitJob", request));
    return {};
  };
}

std::vector<std::string> regions_of(const config::Config& config) {
  std::vector<std::string> regions = config.regions;
  regions.push_back(config.region);
  std::ranges::sort(regions);
  regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
  return regions;
}

}  // namespace

ServedNotifications::ServedNotifications(std::unique_ptr<notify::Notifications> notifications,
                                         const NotificationParts& parts)
    : agents_(parts.agents),
      notifications_(std::move(notifications)),
      bus_(*notifications_, parts.account, parts.clock),
      job_events_(bus_, parts.control, regions_of(parts.config), parts.clock) {}

ServedNotifications::~ServedNotifications() { agents_.report_faults({}); }

Result<std::unique_ptr<ServedNotifications>> ServedNotifications::open(
    const NotificationParts& parts) {
  auto signer = TRY(notify::MessageSigner::open(parts.data.file("notify"), parts.clock.now())
                        .in("opening the key of notifications"));
  auto notifications = TRY(notify::Notifications::open(notify_settings_of(parts), std::move(signer),
                                                       parts.clock, parts.random)
                               .in("opening the notifications"));
  notifications->deliver_events(notify::send_to_targets(parts.logs, parts.clock, submit_by(parts)));
  std::unique_ptr<ServedNotifications> made(
      new ServedNotifications(std::move(notifications), parts));
  TRY(made->job_events_.open().in("reading the announced states of jobs"));
  parts.control.watch(
      {[events = &made->job_events_](const auto& job) { events->add_change(job); }, [] {}});
  parts.agents.report_faults(
      [events = &made->job_events_](const domain::JobKey& job, const diagnosis::FaultNews& news) {
        events->add_fault(job, news);
      });
  return made;
}

void ServedNotifications::offer(api::Services& services) {
  services.notifications = notifications_.get();
  services.events = &bus_;
}

Result<void> ServedNotifications::put_event(const alarms::PendingAction& action) {
  const std::string& region = action.alarm.region;
  if (!bus_.wanted(region)) return ok();
  const Json message = TRY(parse_json(action.message).in("reading the event of an alarm"));
  notify::Event event{region, "aws.cloudwatch", "CloudWatch Alarm State Change", action.created};
  for (const Json& each : message.value("resources", Json::array()))
    if (each.is_string()) event.resources.push_back(each);
  event.detail = message.value("detail", Json::object());
  TRY(bus_.put({std::move(event)}));
  return ok();
}

Result<void> ServedNotifications::publish(const alarms::PendingAction& action) {
  if (action.target == alarms::kEventBus) return put_event(action);
  const auto message = parse_json(action.message);
  const std::string state = message ? message->value("NewStateValue", "") : "";
  const std::string subject = state + ": \"" + action.alarm.name + "\" in " + action.alarm.region;
  TRY(notifications_->publish_to_topic(action.target, shorten(subject, kSubjectMax),
                                       action.message));
  return ok();
}

void ServedNotifications::start() {
  notifications_->start();
  job_events_.start();
}

net::Handler& ServedNotifications::pages(net::Handler& next) {
  pages_ = api::sns::make_pages(*notifications_, next);
  return *pages_;
}

}  // namespace trainyard::apps
