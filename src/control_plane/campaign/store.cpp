#include "campaign/store.hpp"

#include <algorithm>
#include <map>

#include "base/thread_safety.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::campaign {
namespace {

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS campaigns (name TEXT PRIMARY KEY, definition TEXT NOT NULL, "
    "created INTEGER NOT NULL,"
    " stopped INTEGER);"
    "CREATE TABLE IF NOT EXISTS rows (campaign TEXT NOT NULL, number INTEGER NOT NULL, record TEXT "
    "NOT NULL, PRIMARY KEY (campaign, number)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS ids (campaign TEXT PRIMARY KEY, id TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS principals (campaign TEXT PRIMARY KEY, arn TEXT NOT NULL, record "
    "TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS stop_reasons (campaign TEXT PRIMARY KEY, reason TEXT NOT NULL) "
    "WITHOUT ROWID";

Result<void> write_rows(sqlite::Connection& connection, const std::string& campaign,
                        const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    auto put = TRY(connection.prepare("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)"));
    TRY(put.bind(campaign).bind(row.number).bind(dump(to_json(row))).run());
  }
  return {};
}

template <class Work>
Result<void> in_transaction(sqlite::Connection& connection, const Work& work) {
  TRY(connection.run("BEGIN IMMEDIATE"));
  if (auto done = work(); !done) {
    (void)connection.run("ROLLBACK");
    return done;
  }
  return connection.run("COMMIT");
}

}  // namespace

bool Campaign::over() const {
  return (stopped || !definition.standing) &&
         std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.over(); });
}

CampaignStore::CampaignStore() = default;
CampaignStore::~CampaignStore() = default;

Result<std::unique_ptr<CampaignStore>> CampaignStore::open(const std::string& path) {
  std::unique_ptr<CampaignStore> store(new CampaignStore);
  auto connection = TRY(sqlite::Connection::open(path));
  TRY(connection->run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL").in(path));
  TRY(connection->run(kSchema).in(path));
  const MutexLock lock(store->mutex_);
  store->connection_ = std::move(connection);
  return store;
}

Result<void> CampaignStore::create(const Campaign& campaign) {
  const MutexLock lock(mutex_);
  sqlite::Connection& connection = *connection_;
  const std::string& name = campaign.definition.name;
  auto made = in_transaction(connection, [&]() -> Result<void> {
    auto put = TRY(connection.prepare("INSERT INTO campaigns VALUES (?, ?, ?, NULL)"));
    TRY(put.bind(name)
            .bind(dump(to_json(campaign.definition)))
            .bind(to_milliseconds(campaign.created))
            .run());
    auto put_id = TRY(connection.prepare("INSERT INTO ids VALUES (?, ?)"));
    TRY(put_id.bind(name).bind(campaign.id).run());
    auto put_principal = TRY(connection.prepare("INSERT INTO principals VALUES (?, ?, ?)"));
    TRY(put_principal.bind(name)
            .bind(campaign.started_by.arn)
            .bind(campaign.started_by.record)
            .run());
    return write_rows(connection, name, campaign.rows);
  });
  if (!made && made.error().kind == Kind::conflict)
    return conflict("campaign '" + name + "' already exists");
  return made;
}

Result<void> CampaignStore::put_rows(const std::string& campaign, const std::vector<Row>& rows) {
  const MutexLock lock(mutex_);
  sqlite::Connection& connection = *connection_;
  return in_transaction(connection, [&] { return write_rows(connection, campaign, rows); });
}

Result<void> CampaignStore::put_stopped(const std::string& campaign, Instant at,
                                        const std::string& reason) {
  const MutexLock lock(mutex_);
  sqlite::Connection& connection = *connection_;
  return in_transaction(connection, [&]() -> Result<void> {
    auto put = TRY(connection.prepare("UPDATE campaigns SET stopped = ? WHERE name = ?"));
    TRY(put.bind(to_milliseconds(at)).bind(campaign).run());
    if (reason.empty()) return {};
    auto put_reason = TRY(connection.prepare("INSERT OR REPLACE INTO stop_reasons VALUES (?, ?)"));
    return put_reason.bind(campaign).bind(reason).run();
  });
}

Result<std::vector<Campaign>> CampaignStore::load() {
  const MutexLock lock(mutex_);
  std::vector<Campaign> campaigns;
  std::map<std::string, size_t> by_name;
  auto all = TRY(connection_->prepare(
      "SELECT name, definition, created, stopped, id, arn, principals.record, reason FROM campaigns"
      " LEFT JOIN ids ON ids.campaign = name LEFT JOIN principals ON principals.campaign = name"
      " LEFT JOIN stop_reasons ON stop_reasons.campaign = name ORDER BY created, name"));
  while (TRY(all.step())) {
    Campaign campaign;
    campaign.definition = TRY(read_definition(all.text(1)).in("the campaign " + all.text(0)));
    campaign.created = from_milliseconds(all.integer(2));
    if (!all.empty(3)) campaign.stopped = from_milliseconds(all.integer(3));
    campaign.id = all.text(4);
    campaign.started_by = {all.text(5), all.text(6)};
    campaign.stop_reason = all.text(7);
    by_name[all.text(0)] = campaigns.size();
    campaigns.push_back(std::move(campaign));
  }
  auto rows =
      TRY(connection_->prepare("SELECT campaign, record FROM rows ORDER BY campaign, number"));
  while (TRY(rows.step())) {
    const auto found = by_name.find(rows.text(0));
    if (found == by_name.end()) continue;
    const Json record = TRY(parse_json(rows.text(1)));
    campaigns[found->second].rows.push_back(
        TRY(row_from_json(record).in("the campaign " + rows.text(0))));
  }
  return campaigns;
}

}  // namespace trainyard::campaign
