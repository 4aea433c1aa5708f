// The relational catalogue: what data there is, where it lies, and whatever else its owner wants to join with.
//
// Tables that are always there (people add others):
//
//   datasets         name, region, uri, bytes, created        one row a data set; name is unique
//   reservations     region, instance_type, hosts, until      capacity that is paid for already
//   transfer_prices  from_region, to_region, per_gib
//
// and, in each query, as the server finds them at that moment:
//
//   prices           region, instance_type, on_demand_per_hour, spot_per_hour
//   capacity         region, instance_type, hosts_total, hosts_free     NULL where any number fits
//   campaign_rows    campaign, number, label, region, state, cost, metrics (JSON)
//
// One embedded file (SQLite) or a PostgreSQL server; the dialect is that of whichever it is.
//
// Threads: callable from anywhere; one statement at a time. Errors: invalid (the SQL is wrong, in the database's own
// words), denied, exhausted (past a limit below), unavailable (the server does not answer).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "campaign/plan.hpp"

namespace trainyard::campaign {

inline constexpr size_t kAnswerRowsMax = 100'000;
inline constexpr size_t kAnswerBytesMax = 64 << 20;
inline constexpr size_t kStatementBytesMax = 1 << 20;
inline constexpr Duration kStatementTimeMax = 30s;  // half of what a client waits for

// A table that exists for one query only.
struct Provided {
  std::string name;
  std::vector<std::string> columns;  // "region TEXT"
  std::vector<std::vector<Json>> rows;
};

class Catalogue {
 public:
  virtual ~Catalogue() = default;
  // One statement that reads, with no right to change anything, by limits of time, memory, rows and bytes.
  virtual Result<Answered> query(const std::string& sql, const std::vector<Provided>& provided) = 0;
  // One or more statements that write, together or not at all. How many rows the last one changed.
  virtual Result<int64_t> change(const std::string& sql) = 0;
  // Adds a row unless one with this `name` is there. Whether it was added. Errors also: invalid (no such column).
  virtual Result<bool> add(const std::string& table, const std::map<std::string, std::string>& row) = 0;
};

Result<std::unique_ptr<Catalogue>> open_sqlite_catalogue(const std::string& path, Clock& clock);
// "postgresql://user:password@host:5432/name", or a libpq string of "host=.. dbname=..". It is asked at the first call.
// `query_url`: the same with a role for queries, which may do less; "" = url. A role that is a superuser, may make roles or
// may reach the files and programs of the database's machine is refused.
std::unique_ptr<Catalogue> open_postgres_catalogue(const std::string& url, const std::string& query_url);

}  // namespace trainyard::campaign
