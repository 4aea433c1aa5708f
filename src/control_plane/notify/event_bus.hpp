// EventBus stores the rules of the default event bus of each region, and sends events to the
// targets of the rules that match.
//
// put() matches events and stores what targets will receive in one transaction. After it has
// returned, each delivery is attempted at least once, even if the server is killed
// (notifications.hpp). The subscribers of a topic are determined during put().
//
// Threads:  callable from anywhere; changes and put() wait for the disk.
// Errors:   not_found (rule), invalid, exhausted (limits), and those of the store. After an error
//           nothing has changed, and no target receives anything.
// Lifetime: notifications and the clock outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "notify/event.hpp"
#include "notify/event_feed.hpp"
#include "notify/notifications.hpp"

namespace trainyard::notify {

inline constexpr size_t kRulesMax = 300;      // AWS's limit for a region
inline constexpr size_t kRuleTargetsMax = 5;  // as on AWS

class EventBus {
 public:
  EventBus(Notifications& notifications, std::string account, Clock& clock)
      : notifications_(notifications), account_(std::move(account)), clock_(clock) {}

  std::string rule_arn(const std::string& region, const std::string& name) const;
  const std::string& account() const { return account_; }

  // Creates or replaces a rule. A replaced rule keeps its targets, and its tags if `wanted` has
  // none.
  Result<void> put_rule(Rule wanted);
  // Deletes a rule; does nothing if it does not exist. Errors: conflict, if it has targets.
  Result<void> delete_rule(const std::string& arn);
  // Errors: not_found.
  Result<void> change_rule(const std::string& arn, const std::function<Result<void>(Rule&)>& edit);

  // Puts events, and returns their ids in the same order. `documents` are stored in the same
  // transaction.
  Result<std::vector<std::string>> put(std::vector<Event> events,
                                       std::vector<Document> documents = {});
  // Puts one event, for modules that report a change. An error is logged.
  void publish_event(Event event);

  // Returns events of the feed after the position. The caller counts as a reader for a minute.
  EventFeed::Events follow(uint64_t position, const std::string& region, size_t events_max);
  uint64_t position() const { return feed_.position(); }
  // Returns whether events of the region are needed: an enabled rule has targets, or a client has
  // called follow() within the last minute.
  bool wanted(const std::string& region) const;
  Notifications& notifications() { return notifications_; }

 private:
  Result<void> add_targets(const KnownRule& rule, const Json& event, Instant now,
                           StoreChange& change);

  Notifications& notifications_;
  const std::string account_;
  Clock& clock_;
  EventFeed feed_;
  std::atomic<std::chrono::nanoseconds> followed_{std::chrono::nanoseconds::min()};
};

}  // namespace trainyard::notify
