// DeliveryStore stores topics, subscriptions, rules, messages and their pending deliveries in a
// SQLite file. Format: docs/formats/notifications.md.
//
// A change is one transaction: a message is stored with all of its deliveries or not at all, and is
// durable when write() returns.
//
// After a failed sync all changes are rejected until the file is opened again: the kernel may have
// dropped data of earlier changes, and a later sync may succeed although that data is lost.
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
  std::string target;   // ARN of a subscription, or ARN of a rule, " " and the id of its target
  Instant due;
  uint32_t attempts = 0;  // failed attempts
};

// The stored form of a topic, a subscription, a rule, or a mark of a source of events.
struct Document {
  std::string kind;          // "topic", "subscription", "rule", "mark"
  std::string id;            // an ARN, or the name of a mark
  std::optional<Json> body;  // nullopt: remove the document
};

struct NewMessage {
  Message message;
  std::vector<std::string> targets;
};

struct StoreChange {
  std::vector<Document> documents = {};
  std::vector<NewMessage> messages = {};
};

// Logs that an invalid document is ignored. It stays in the database; the server starts without it.
void log_ignored_record(const std::string& kind, const std::string& id, const Error& error);

class DeliveryStore {
 public:
  // `faults`: lets tests make operations fail; nullptr in production. Lifetime: it outlives the
  // store.
  static Result<std::unique_ptr<DeliveryStore>> open(const std::string& path,
                                                     FileFaults* faults = nullptr);
  ~DeliveryStore();

  // Stores a change, and returns its new deliveries, due at `now`.
  Result<std::vector<Delivery>> write(const StoreChange& change, Instant now);
  // Returns all documents. Those that are not JSON are logged and left out.
  Result<std::vector<Document>> documents();
  // Returns all pending deliveries in the order of their creation.
  Result<std::vector<Delivery>> deliveries();
  // Errors: not_found.
  Result<Message> message(int64_t number);
  // Removes a delivery, and its message if no other delivery needs it.
  Result<void> finish(const Delivery& delivery);
  // Stores the number of attempts and the next due time of a delivery.
  Result<void> postpone(const Delivery& delivery);
  // Returns the reason for which all changes are rejected, or "".
  std::string failure() const;

 private:
  explicit DeliveryStore(FileFaults* faults) : watch_(faults) {}
  // Calls Database::write(), unless a sync has failed.
  Result<void> commit(observe::Database::Work work);

  sqlite::FileWatch watch_;  // before the database, which uses it
  std::unique_ptr<observe::Database> database_;
};

}  // namespace trainyard::notify
