// DeliveryStore keeps topics, subscriptions, rules, messages and their pending deliveries in a
// SQLite file. Format: docs/formats/notifications.md.
//
// A change is one transaction: a message is stored with all of its deliveries or not at all, and is
// durable when write() returns.
//
// After a failed sync all changes are refused until the file is opened again: the kernel may have
// dropped what earlier changes wrote, and then a later sync that succeeds proves nothing.
//
// Threads: callable from anywhere; concurrent changes share a commit. Errors: those of
// sqlite/connection.hpp: exhausted (disk full), unavailable (also after a failed sync), corrupt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_faults.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "notify/record.hpp"
#include "observe/database.hpp"
#include "sqlite/file_watch.hpp"

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

// Logs that a document is left as it is, and not used: one bad record must not prevent the start.
void log_set_aside(const std::string& kind, const std::string& id, const Error& error);

class DeliveryStore {
 public:
  // Lifetime: `faults` outlives the store; nullptr: no step fails on purpose.
  static Result<std::unique_ptr<DeliveryStore>> open(const std::string& path,
                                                     FileFaults* faults = nullptr);
  ~DeliveryStore();

  // Returns the new deliveries, due at `now`.
  Result<std::vector<Delivery>> write(const StoreChange& change, Instant now);
  // Without those that are not JSON, which are logged.
  Result<std::vector<Document>> documents();
  // All pending ones, in the order of their creation.
  Result<std::vector<Delivery>> deliveries();
  // Errors: not_found.
  Result<Message> message(int64_t number);
  // Removes a delivery, and its message after the last one.
  Result<void> finish(const Delivery& delivery);
  // Stores the attempts and the next due time of a delivery.
  Result<void> postpone(const Delivery& delivery);
  // Returns why all changes are refused; "": they are not.
  std::string failure() const;

 private:
  explicit DeliveryStore(FileFaults* faults) : watch_(faults) {}
  // Database::write(), unless a sync has failed.
  Result<void> commit(observe::Database::Work work);

  sqlite::FileWatch watch_;  // before the database, which uses it
  std::unique_ptr<observe::Database> database_;
};

}  // namespace trainyard::notify
