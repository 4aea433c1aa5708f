// Catalogue contains what requests have created: topics, subscriptions with their compiled filters,
// and rules with their compiled patterns.
//
// Threads: a snapshot is immutable. Errors: put() returns those of Pattern.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "notify/delivery_store.hpp"
#include "notify/pattern.hpp"
#include "notify/record.hpp"

namespace trainyard::notify {

inline constexpr size_t kFilterPolicyBytesMax = 256 << 10;  // as on AWS
inline constexpr size_t kEventPatternBytesMax = 4096;       // as on AWS

struct KnownSubscription : Subscription {
  std::optional<Pattern> filter = {};
};
struct KnownRule : Rule {
  std::optional<Pattern> compiled = {};  // nullopt: the rule has only a schedule
};

struct Catalogue {
  std::map<std::string, std::shared_ptr<const Topic>> topics;  // each map is by ARN
  std::map<std::string, std::shared_ptr<const KnownSubscription>> subscriptions;
  std::map<std::string, std::shared_ptr<const KnownRule>> rules;

  const Topic* topic(const std::string& arn) const;
  const KnownSubscription* subscription(const std::string& arn) const;
  const KnownRule* rule(const std::string& arn) const;
  // Returns the subscriptions of a topic, sorted by ARN.
  std::vector<std::shared_ptr<const KnownSubscription>> of_topic(const std::string& arn) const;

  // Add or replace a record, and return the document to store.
  Document put(Topic topic);
  Result<Document> put(Subscription subscription);
  Result<Document> put(Rule rule);
  // Removes a document of any kind.
  Document remove(const std::string& kind, const std::string& arn);
};

// Builds the catalogue of stored documents. A document that cannot be read is logged and ignored.
Catalogue build_catalogue(const std::vector<Document>& documents);

// A FilteredMessage is a message with the values that filters compare. They are computed once for
// all filters. Threads: confined to one thread. Lifetime: the message outlives it.
class FilteredMessage {
 public:
  explicit FilteredMessage(const Message& message) : message_(message) {}

  // Returns whether the subscription receives the message: it is confirmed, and its filter matches
  // the attributes or the body. A body that is not a JSON object does not match, as on AWS.
  // Errors: exhausted, if comparing takes too long.
  Result<bool> is_for(const KnownSubscription& subscription);

 private:
  const Json* body_for(Protocol protocol);  // returns nullptr for a body that is not a JSON object

  const Message& message_;
  std::optional<Json> attributes_;
  // by protocol, or "" for all others; null: the body is not a JSON object
  std::map<std::string, Json> bodies_;
};

}  // namespace trainyard::notify
