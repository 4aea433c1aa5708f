// Notifications stores topics, subscriptions and published messages, and delivers the messages.
//
// A message and its pending deliveries are stored in one transaction before publish() returns.
// After that, each delivery is attempted until it succeeds, is refused permanently, or has failed
// kAttemptsMax times. It is attempted at least once, even if the server is killed meanwhile. The
// order of messages is not preserved.
//
// Other modules publish with publish_to_topic(), and send events with EventBus (event_bus.hpp).
//
// Threads:  callable from anywhere; changes wait for the disk. start() starts the deliveries.
// Errors:   not_found (topic, subscription), invalid, conflict, exhausted (limits, full disk), and
//           those of the store. After an error nothing has changed.
// Lifetime: what the settings refer to outlives it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_faults.hpp"
#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "notify/catalogue.hpp"
#include "notify/deliverer.hpp"
#include "notify/envelope.hpp"
#include "notify/message_signer.hpp"

namespace trainyard::notify {

inline constexpr size_t kTopicsMax = 10'000;
inline constexpr size_t kSubscriptionsMax = 20'000;      // of all topics
inline constexpr size_t kTopicSubscriptionsMax = 1'000;  // the most deliveries of a message
inline constexpr size_t kMessageBytesMax = 256 << 10;    // as on AWS, including attributes
inline constexpr Duration kConfirmationLifetime = 48h;   // of a token
inline constexpr Duration kConfirmationInterval = 60s;   // between confirmations of a subscription
// The limits on the texts of filter and delivery policies. All are in memory, filter policies
// twice.
inline constexpr size_t kPoliciesBytesMax = 64 << 20;
inline constexpr size_t kPoliciesOfCreatorBytesMax = 16 << 20;  // for each principal

enum class NotifyFault {
  no_topic,
  no_subscription,
  token,
  topic_differs,
  topic_limit,
  subscription_limit,
  rule_limit,  // of rules, or of a rule's targets
  filter_policy,
};

using Transport = std::function<Sent(const Outgoing&)>;

struct NotifySettings {
  std::string path;              // the SQLite file
  FileFaults* faults = nullptr;  // for tests: makes operations on the file fail
  NotificationUrls urls;
  std::map<Protocol, Transport> transports;  // other protocols are rejected
  DeliveryLimits limits = {};
  // Checks the endpoint of a new subscription. Errors: invalid, denied.
  std::function<Result<void>(const Subscription&)> check_endpoint = [](const Subscription&) {
    return ok();
  };
};

class Notifications {
 public:
  static Result<std::unique_ptr<Notifications>> open(NotifySettings settings,
                                                     std::unique_ptr<MessageSigner> signer,
                                                     Clock& clock, Random& random);
  ~Notifications();

  // Sets the function that sends messages of rules to their targets. Call it before start().
  using SendEvent =
      std::function<Sent(const KnownRule& rule, const Target& target, const Message& message)>;
  void deliver_events(SendEvent send) { send_event_ = std::move(send); }
  void start();

  std::shared_ptr<const Catalogue> catalogue() const;
  const MessageSigner& signer() const { return *signer_; }
  const NotificationUrls& urls() const { return settings_.urls; }
  bool offers(Protocol protocol) const { return settings_.transports.contains(protocol); }

  // Creates a topic, or returns the existing one. Errors: conflict, if that has other attributes or
  // tags.
  Result<Topic> create_topic(Topic wanted);
  // Removes a topic and its subscriptions; does nothing if it does not exist.
  Result<void> delete_topic(const std::string& arn);
  Result<void> change_topic(const std::string& arn, const std::function<void(Topic&)>& change);

  // Adds a subscription, and makes its ARN and tokens. If the topic has a subscription with the
  // same protocol and endpoint, returns that. If that was not confirmed, its confirmation is sent
  // again, but at most once in kConfirmationInterval.
  Result<Subscription> subscribe(Subscription wanted);
  Result<Subscription> confirm(const std::string& topic, const std::string& token,
                               bool authenticate_on_unsubscribe);
  // Removes a subscription; does nothing if it does not exist.
  Result<void> unsubscribe(const std::string& arn);
  // Removes a subscription by the link in a notification. Errors: denied, if the link is not
  // allowed or its token is wrong.
  Result<void> unsubscribe_by_token(const std::string& arn, const std::string& token);
  Result<void> change_subscription(const std::string& arn,
                                   const std::function<Result<void>(Subscription&)>& change);

  // Stores the messages for the subscriptions that receive them. Sets their ids and times, and
  // returns the ids in the same order.
  Result<std::vector<std::string>> publish(const std::string& topic, std::vector<Message> messages);
  // Publishes one message, for other modules such as alarms. Returns its id.
  Result<std::string> publish_to_topic(const std::string& topic_arn, const std::string& subject,
                                       const std::string& body);

  // -- for EventBus: changes of the catalogue and messages in one transaction
  using Work = std::function<Result<StoreChange>(Catalogue& next)>;
  Result<void> change(const Work& work);
  // Adds a message for the subscriptions of the topic to `change`. Errors: those of publish().
  Result<void> add_deliveries(const std::string& topic, Message message, StoreChange& change) const;
  Result<void> store(const StoreChange& change);
  Result<std::vector<Document>> documents() { return store_->documents(); }
  bool has_capacity(const std::string& target) const;
  std::string new_uuid();

  Deliverer::Counts counts() const { return deliverer_.counts(); }
  Deliverer& deliverer() { return deliverer_; }

 private:
  Notifications(NotifySettings settings, std::unique_ptr<MessageSigner> signer,
                std::unique_ptr<DeliveryStore> store, Catalogue catalogue, Clock& clock,
                Random& random);

  TargetInfo describe_target(const std::string& target) const;
  Sent send(const std::string& target, const Message& message) const;
  Message confirmation_of(const Subscription& subscription);
  bool begin_confirmation(const std::string& arn);

  const NotifySettings settings_;
  const std::unique_ptr<MessageSigner> signer_;
  Clock& clock_;
  Random& random_;
  SendEvent send_event_;
  const std::unique_ptr<DeliveryStore> store_;
  Mutex changing_;  // held by one change() at a time
  mutable Mutex mutex_;
  std::shared_ptr<const Catalogue> catalogue_ GUARDED_BY(mutex_);
  // The times of the last confirmations within kConfirmationInterval, by subscription.
  std::map<std::string, std::chrono::nanoseconds> confirmations_ GUARDED_BY(mutex_);
  Deliverer deliverer_;
};

// Returns Delivery::target for the target of a rule: the ARN of the rule, " " and the target's id.
std::string event_target(const std::string& rule_arn, const std::string& target_id);

}  // namespace trainyard::notify
