#include "notify/delivery_store.hpp"

#include "base/log.hpp"

namespace trainyard::notify {
namespace {

using observe::Connection;

constexpr int kVersion = 1;
constexpr const char* kSchema = R"(
CREATE TABLE IF NOT EXISTS documents(
  kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY(kind, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages(
  number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries(
  id INTEGER PRIMARY KEY AUTOINCREMENT, message INTEGER NOT NULL, target TEXT NOT NULL,
  due INTEGER NOT NULL, attempts INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS deliveries_by_message ON deliveries(message);
)";

Result<void> put_document(Connection& connection, const Document& each) {
  if (!each.body) {
    auto remove = TRY(connection.prepare("DELETE FROM documents WHERE kind=? AND id=?"));
    return remove.bind(each.kind).bind(each.id).run();
  }
  auto put =
      TRY(connection.prepare("INSERT OR REPLACE INTO documents(kind, id, body) VALUES(?, ?, ?)"));
  return put.bind(each.kind).bind(each.id).bind(dump(*each.body)).run();
}

Result<void> add_message(Connection& connection, const NewMessage& each, Instant now,
                         std::vector<Delivery>& made) {
  {
    auto add = TRY(connection.prepare("INSERT INTO messages(body) VALUES(?)"));
    TRY(add.bind(dump(to_json(each.message))).run());
  }
  const int64_t number = connection.last_row();
  for (const auto& target : each.targets) {
    auto add = TRY(connection.prepare(
        "INSERT INTO deliveries(message, target, due, attempts) VALUES(?, ?, ?, 0)"));
    TRY(add.bind(number).bind(target).bind(to_milliseconds(now)).run());
    made.push_back({connection.last_row(), number, target, now, 0});
  }
  return {};
}

}  // namespace

void log_ignored_record(const std::string& kind, const std::string& id, const Error& error) {
  log(Level::error, "notify",
      "ignored an invalid record; it stays in the database but has no effect until it is corrected",
      {{"kind", kind}, {"id", id}, {"why", error.message}});
}

Result<std::unique_ptr<DeliveryStore>> DeliveryStore::open(const std::string& path,
                                                           FileFaults* faults) {
  std::unique_ptr<DeliveryStore> store(new DeliveryStore(faults));
  store->database_ = TRY(observe::Database::open(path, kVersion, kSchema, store->watch_.name()));
  return store;
}

DeliveryStore::~DeliveryStore() {
  if (database_ && !failure().empty()) database_->leave_log();
}

std::string DeliveryStore::failure() const {
  const auto path = watch_.failed_sync();
  if (!path) return "";
  return "topics, rules and deliveries do not change until the server is restarted: syncing " +
         *path + " failed";
}

Result<void> DeliveryStore::commit(observe::Database::Work work) {
  if (const auto failed = failure(); !failed.empty()) return unavailable(failed);
  auto done = database_->write(std::move(work));
  // SQLite does not report a checkpoint whose sync failed.
  if (const auto failed = failure(); !failed.empty()) return unavailable(failed);
  return done;
}

Result<std::vector<Delivery>> DeliveryStore::write(const StoreChange& change, Instant now) {
  std::vector<Delivery> made;
  TRY(commit([&](Connection& connection) -> Result<void> {
    made.clear();
    for (const Document& each : change.documents) TRY(put_document(connection, each));
    for (const NewMessage& each : change.messages)
      if (!each.targets.empty()) TRY(add_message(connection, each, now, made));
    return {};
  }));
  return made;
}

Result<std::vector<Document>> DeliveryStore::documents() {
  std::vector<Document> found;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto rows = TRY(connection.prepare("SELECT kind, id, body FROM documents"));
    while (TRY(rows.step())) {
      auto body = parse_json(rows.text(2));
      if (body)
        found.push_back({rows.text(0), rows.text(1), *std::move(body)});
      else
        log_ignored_record(rows.text(0), rows.text(1), body.error());
    }
    return {};
  }));
  return found;
}

Result<std::vector<Delivery>> DeliveryStore::deliveries() {
  std::vector<Delivery> found;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto rows = TRY(connection.prepare(
        "SELECT id, message, target, due, attempts FROM deliveries ORDER BY id"));
    while (TRY(rows.step()))
      found.push_back({rows.integer(0), rows.integer(1), rows.text(2),
                       from_milliseconds(rows.integer(3)), uint32_t(rows.integer(4))});
    return {};
  }));
  return found;
}

Result<Message> DeliveryStore::message(int64_t number) {
  std::string body;
  TRY(database_->read([&](Connection& connection) -> Result<void> {
    auto row = TRY(connection.prepare("SELECT body FROM messages WHERE number=?"));
    row.bind(number);
    if (!TRY(row.step())) return not_found("message " + std::to_string(number) + " not found");
    body = row.text(0);
    return {};
  }));
  return message_from_json(TRY(parse_json(body)));
}

Result<void> DeliveryStore::finish(const Delivery& delivery) {
  return commit([&](Connection& connection) -> Result<void> {
    {
      auto remove = TRY(connection.prepare("DELETE FROM deliveries WHERE id=?"));
      TRY(remove.bind(delivery.id).run());
    }
    auto rest =
        TRY(connection.prepare("DELETE FROM messages WHERE number=?1 AND NOT EXISTS"
                               "(SELECT 1 FROM deliveries WHERE message=?1)"));
    return rest.bind(delivery.message).run();
  });
}

Result<void> DeliveryStore::postpone(const Delivery& delivery) {
  return commit([&](Connection& connection) -> Result<void> {
    auto change = TRY(connection.prepare("UPDATE deliveries SET due=?, attempts=? WHERE id=?"));
    return change.bind(to_milliseconds(delivery.due))
        .bind(int64_t(delivery.attempts))
        .bind(delivery.id)
        .run();
  });
}

}  // namespace trainyard::notify
