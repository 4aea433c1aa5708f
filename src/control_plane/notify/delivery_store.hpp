// DeliveryStore keeps topics, subscriptions, rules, messages and their pending deliveries in a
// SQLite file. Format: docs/formats/notifications.md.
//
// A change is one transaction: a message is stored with all of its deliveries or not at all, and is
// durable when write() returns.
//
// Threads: callable from anywhere; concurrent changes share a commit. Errors: those of
// sqlite/connection.hpp: exhausted (disk full), unavailable, corrupt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "notify/record.hpp"
#include "observe/database.hpp"

namespace trainyard::notify {

struct Delivery {
  int64_t id = 0;
  int64_t message = 0;  // MessageRow's number
  std::string target;   // ARN of a subscription, or of a rule with " " and the id of its target
  Instant due;
  uint32_t attempts = 0;  // that failed
};

// A topic, a subscription, or a rule, by ARN; a mark of a source of events.
struct Document {
  std::string kind;  // "topic", "subscription", "rule", "mark"
  std::string id;
  std::optional<Json> body;  // unset: removed
};

struct NewMessage {
  Message message;
  std::vector<std::string> targets;
};

struct StoreChange {
  std::vector<Document> documents = {};
  std::vector<NewMessage> messages = {};
};

class DeliveryStore {
 public:
  // `files` is the name of a sqlite::FileWatch; "": the operating system's files.
  static Result<std::unique_ptr<DeliveryStore>> open(const std::string& path,
                                                     const std::string& files = "");

  // Returns the new deliveries, due at `now`.
  Result<std::vector<Delivery>> write(const StoreChange& change, Instant now);
  Result<std::vector<Document>> documents();
  // All pending ones, in the order of their creation.
  Result<std::vector<Delivery>> deliveries();
  // Errors: not_found.
  Result<Message> message(int64_t number);
  // Removes a delivery, and its message after the last one.
  Result<void> finish(const Delivery& delivery);
  // Stores the attempts and the next due time of a delivery.
  Result<void> postpone(const Delivery& delivery);

 private:
  explicit DeliveryStore(std::unique_ptr<observe::Database> database)
      : database_(std::move(database)) {}
  const std::unique_ptr<observe::Database> database_;
};

}  // namespace trainyard::notify
