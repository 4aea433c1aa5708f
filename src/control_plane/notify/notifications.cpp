#include "notify/notifications.hpp"

#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace trainyard::notify {
namespace {

constexpr size_t kTokenBytes = 64;

bool may_be_confirmed(const Subscription& each, Instant now) {
  return each.created + kConfirmationLifetime > now;
}

// Removes subscriptions that were not confirmed in time.
void remove_expired(Catalogue& all, const std::string& topic, Instant now, StoreChange& change) {
  for (const auto& each : all.of_topic(topic))
    if (!each->confirmed && !may_be_confirmed(*each, now))
      change.documents.push_back(all.remove("subscription", each->arn));
}

size_t policy_bytes(const Subscription& each) {
  return each.filter_policy.size() + each.delivery_policy.size();
}

// Checks the limits on policies for a new or changed subscription. Policies that become shorter are
// always accepted. Errors: exhausted.
Result<void> check_policies(const Catalogue& all, const Subscription& wanted) {
  const KnownSubscription* present = all.subscription(wanted.arn);
  const size_t bytes = policy_bytes(wanted);
  if (bytes <= (present ? policy_bytes(*present) : 0)) return {};
  size_t of_all = bytes, of_creator = bytes;
  for (const auto& [arn, each] : all.subscriptions) {
    if (arn == wanted.arn) continue;
    of_all += policy_bytes(*each);
    if (each->creator == wanted.creator) of_creator += policy_bytes(*each);
  }
  if (of_all <= kPoliciesBytesMax && of_creator <= kPoliciesOfCreatorBytesMax) return {};
  return exhausted("Subscription limit exceeded: filter and delivery policies may have at most " +
                       std::to_string(kPoliciesOfCreatorBytesMax >> 20) + " MiB of a principal, " +
                       std::to_string(kPoliciesBytesMax >> 20) + " MiB in all",
                   NotifyFault::subscription_limit);
}

}  // namespace

std::string event_target(const std::string& rule_arn, const std::string& target_id) {
  return rule_arn + " " + target_id;
}

Result<std::unique_ptr<Notifications>> Notifications::open(NotifySettings settings,
                                                           std::unique_ptr<MessageSigner> signer,
                                                           Clock& clock, Random& random) {
  auto store = TRY(DeliveryStore::open(settings.path, settings.faults));
  Catalogue catalogue = build_catalogue(TRY(store->documents().in(settings.path)));
  auto pending = TRY(store->deliveries());
  std::unique_ptr<Notifications> made(new Notifications(std::move(settings), std::move(signer),
                                                        std::move(store), std::move(catalogue),
                                                        clock, random));
  made->deliverer_.add(std::move(pending));
  return made;
}

Notifications::Notifications(NotifySettings settings, std::unique_ptr<MessageSigner> signer,
                             std::unique_ptr<DeliveryStore> store, Catalogue catalogue,
                             Clock& clock, Random& random)
    : settings_(std::move(settings)),
      signer_(std::move(signer)),
      clock_(clock),
      random_(random),
      store_(std::move(store)),
      catalogue_(std::make_shared<const Catalogue>(std::move(catalogue))),
      deliverer_({*store_, clock, random, settings_.limits,
                  [this](const std::string& target) { return describe_target(target); },
                  [this](const std::string& target, const Message& message) {
                    return send(target, message);
                  }}) {}

Notifications::~Notifications() = default;

void Notifications::start() { deliverer_.start(); }

std::shared_ptr<const Catalogue> Notifications::catalogue() const {
  const MutexLock lock(mutex_);
  return catalogue_;
}

std::string Notifications::new_uuid() {
  std::string hex = random_.hex(16);
  hex[12] = '4';
  hex[16] = "89ab"[size_t(hex[16]) % 4];
  for (const size_t at : {8, 13, 18, 23}) hex.insert(at, "-");
  return hex;
}

// -- changes

Result<void> Notifications::change(const Work& work) {
  const MutexLock alone(changing_);
  Catalogue next = *catalogue();
  const StoreChange change = TRY(work(next));
  auto made = TRY(store_->write(change, clock_.now()));
  {
    const MutexLock lock(mutex_);
    catalogue_ = std::make_shared<const Catalogue>(std::move(next));
  }
  deliverer_.add(std::move(made));
  return {};
}

Result<void> Notifications::store(const StoreChange& change) {
  if (change.documents.empty() && change.messages.empty()) return {};
  deliverer_.add(TRY(store_->write(change, clock_.now())));
  return {};
}

Result<Topic> Notifications::create_topic(Topic wanted) {
  Topic found;
  TRY(change([&](Catalogue& next) -> Result<StoreChange> {
    if (const Topic* present = next.topic(wanted.arn)) {
      for (const auto& [name, value] : wanted.attributes) {
        const auto same = present->attributes.find(name);
        if (same == present->attributes.end() || same->second != value)
          return conflict("Topic already exists with different attributes",
                          NotifyFault::topic_differs);
      }
      if (!wanted.tags.empty() && wanted.tags != present->tags)
        return conflict("Topic already exists with different tags", NotifyFault::topic_differs);
      found = *present;
      return StoreChange{};
    }
    if (next.topics.size() >= kTopicsMax)
      return exhausted("This server already has " + std::to_string(kTopicsMax) + " topics",
                       NotifyFault::topic_limit);
    found = wanted;
    found.created = clock_.now();
    return StoreChange{{next.put(found)}};
  }));
  return found;
}

Result<void> Notifications::delete_topic(const std::string& arn) {
  return change([&](Catalogue& next) -> Result<StoreChange> {
    StoreChange change;
    if (!next.topic(arn)) return change;
    for (const auto& each : next.of_topic(arn))
      change.documents.push_back(next.remove("subscription", each->arn));
    change.documents.push_back(next.remove("topic", arn));
    return change;
  });
}

Result<void> Notifications::change_topic(const std::string& arn,
                                         const std::function<void(Topic&)>& edit) {
  return change([&](Catalogue& next) -> Result<StoreChange> {
    const Topic* present = next.topic(arn);
    if (!present) return not_found("Topic does not exist", NotifyFault::no_topic);
    Topic changed = *present;
    edit(changed);
    return StoreChange{{next.put(std::move(changed))}};
  });
}

Message Notifications::confirmation_of(const Subscription& subscription) {
  return {.kind = MessageKind::confirmation,
          .id = new_uuid(),
          .topic = subscription.topic,
          .at = clock_.now()};
}

// Returns whether a confirmation may be sent now, and records the time. The rate is limited since
// the mail or request may go to an address that does not belong to the caller.
bool Notifications::begin_confirmation(const std::string& arn) {
  const auto now = clock_.monotonic();
  const MutexLock lock(mutex_);
  std::erase_if(confirmations_,
                [&](const auto& each) { return now - each.second >= kConfirmationInterval; });
  return confirmations_.emplace(arn, now).second;
}

Result<Subscription> Notifications::subscribe(Subscription wanted) {
  TRY(settings_.check_endpoint(wanted));
  Subscription found;
  TRY(change([&](Catalogue& next) -> Result<StoreChange> {
    StoreChange change;
    if (!next.topic(wanted.topic)) return not_found("Topic does not exist", NotifyFault::no_topic);
    const Instant now = clock_.now();
    remove_expired(next, wanted.topic, now, change);
    const auto present = next.of_topic(wanted.topic);
    for (const auto& each : present)
      if (each->protocol == wanted.protocol && each->endpoint == wanted.endpoint) found = *each;
    if (found.confirmed) return change;
    if (found.arn.empty()) {
      if (present.size() >= kTopicSubscriptionsMax ||
          next.subscriptions.size() >= kSubscriptionsMax)
        return exhausted("Subscription limit exceeded: " + std::to_string(kTopicSubscriptionsMax) +
                             " of a topic, " + std::to_string(kSubscriptionsMax) + " in all",
                         NotifyFault::subscription_limit);
      found = wanted;
      found.arn = wanted.topic + ":" + new_uuid();
      found.token = random_.hex(kTokenBytes);
      found.unsubscribe_token = random_.hex(kTokenBytes);
      found.created = now;
      // A command of the config needs no confirmation.
      found.confirmed = wanted.protocol == Protocol::command;
      TRY(check_policies(next, found));
    }
    change.documents.push_back(TRY(next.put(found)));
    if (!found.confirmed && has_capacity(found.arn) && begin_confirmation(found.arn))
      change.messages.push_back({confirmation_of(found), {found.arn}});
    return change;
  }));
  return found;
}

Result<Subscription> Notifications::confirm(const std::string& topic, const std::string& token,
                                            bool authenticate_on_unsubscribe) {
  Subscription found;
  TRY(change([&](Catalogue& next) -> Result<StoreChange> {
    if (!next.topic(topic)) return not_found("Topic does not exist", NotifyFault::no_topic);
    for (const auto& each : next.of_topic(topic))
      if (equal_in_constant_time(each->token, token)) found = *each;
    if (found.arn.empty() || (!found.confirmed && !may_be_confirmed(found, clock_.now())))
      return invalid("Invalid token", NotifyFault::token);
    if (found.confirmed) return StoreChange{};
    found.confirmed = true;
    found.authenticate_on_unsubscribe = authenticate_on_unsubscribe;
    return StoreChange{{TRY(next.put(found))}};
  }));
  return found;
}

Result<void> Notifications::unsubscribe(const std::string& arn) {
  return change([&](Catalogue& next) -> Result<StoreChange> {
    StoreChange change;
    if (next.subscription(arn)) change.documents.push_back(next.remove("subscription", arn));
    return change;
  });
}

Result<void> Notifications::unsubscribe_by_token(const std::string& arn, const std::string& token) {
  const auto all = catalogue();
  const KnownSubscription* found = all->subscription(arn);
  if (!found || found->authenticate_on_unsubscribe ||
      !equal_in_constant_time(found->unsubscribe_token, token))
    return denied("the subscription does not exist, or its links may not remove it");
  return unsubscribe(arn);
}

Result<void> Notifications::change_subscription(
    const std::string& arn, const std::function<Result<void>(Subscription&)>& edit) {
  return change([&](Catalogue& next) -> Result<StoreChange> {
    const KnownSubscription* present = next.subscription(arn);
    if (!present) return not_found("Subscription does not exist", NotifyFault::no_subscription);
    Subscription changed = *present;
    TRY(edit(changed));
    TRY(check_policies(next, changed));
    return StoreChange{{TRY(next.put(std::move(changed)))}};
  });
}

// -- messages

bool Notifications::has_capacity(const std::string& target) const {
  return deliverer_.has_capacity(target);
}

Result<void> Notifications::add_deliveries(const std::string& topic, Message message,
                                           StoreChange& change) const {
  const auto all = catalogue();
  if (!all->topic(topic)) return not_found("Topic does not exist", NotifyFault::no_topic);
  NewMessage made;
  FilteredMessage filtered(message);
  for (const auto& each : all->of_topic(topic)) {
    const auto wanted = filtered.is_for(*each);
    if (!wanted)
      log(Level::warning, "notify",
          "dropped a message, since its filter policy cannot be evaluated",
          {{"subscription", each->arn}, {"why", wanted.error().message}});
    if (!wanted || !*wanted) continue;
    if (has_capacity(each->arn))
      made.targets.push_back(each->arn);
    else
      log(Level::warning, "notify",
          "dropped a message, since too many are pending for the subscription",
          {{"subscription", each->arn}, {"message", message.id}});
  }
  made.message = std::move(message);
  if (!made.targets.empty()) change.messages.push_back(std::move(made));
  return {};
}

Result<std::vector<std::string>> Notifications::publish(const std::string& topic,
                                                        std::vector<Message> messages) {
  StoreChange change;
  std::vector<std::string> ids;
  for (Message& each : messages) {
    each.id = new_uuid();
    each.topic = topic;
    each.at = clock_.now();
    ids.push_back(each.id);
    TRY(add_deliveries(topic, std::move(each), change));
  }
  TRY(store(change));
  return ids;
}

Result<std::string> Notifications::publish_to_topic(const std::string& topic_arn,
                                                    const std::string& subject,
                                                    const std::string& body) {
  Message message;
  message.subject = subject;
  message.body = body;
  const auto ids = TRY(publish(topic_arn, {std::move(message)}));
  return ids.front();
}

// -- deliveries

TargetInfo Notifications::describe_target(const std::string& target) const {
  const auto all = catalogue();
  if (const auto* subscription = all->subscription(target)) {
    const bool web =
        subscription->protocol == Protocol::http || subscription->protocol == Protocol::https;
    return {true, subscription->confirmed,
            web ? host_of(subscription->endpoint)
                : std::string(kProtocols.text(subscription->protocol))};
  }
  const auto blank = target.find(' ');
  const auto* rule = blank == target.npos ? nullptr : all->rule(target.substr(0, blank));
  const bool exists = rule && std::ranges::any_of(rule->targets, [&](const Target& each) {
                        return each.id == std::string_view(target).substr(blank + 1);
                      });
  return {exists, true, ""};
}

Sent Notifications::send(const std::string& target, const Message& message) const {
  const auto all = catalogue();
  if (const auto* subscription = all->subscription(target)) {
    if (message.kind == MessageKind::confirmation && subscription->confirmed) return {};
    const auto transport = settings_.transports.find(subscription->protocol);
    if (transport == settings_.transports.end())
      return {SendResult::refused, "the protocol is not configured"};
    return transport->second(outgoing_of(message, *subscription, settings_.urls, *signer_));
  }
  const auto blank = target.find(' ');
  const auto* rule = blank == target.npos ? nullptr : all->rule(target.substr(0, blank));
  if (rule && send_event_)
    for (const Target& each : rule->targets)
      if (each.id == std::string_view(target).substr(blank + 1))
        return send_event_(*rule, each, message);
  return {SendResult::refused, "the subscription or the target was removed"};
}

}  // namespace trainyard::notify
