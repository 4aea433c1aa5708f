// Catalogue is a database of data sets: which data exists, where it is, and further tables of its
// users.
//
// Permanent tables (users may add others):
//
//   datasets         name, region, uri, bytes, created        one row per data set; unique names
//   reservations     region, instance_type, hosts, until      capacity that is already paid for
//   transfer_prices  from_region, to_region, per_gib
//
// Tables that the server computes for each query:
//
//   prices           region, instance_type, on_demand_per_hour, spot_per_hour
//   capacity         region, instance_type, hosts_total, hosts_free     NULL where any number fits
//   campaign_rows    campaign, number, label, region, state, cost, metrics (JSON)
//
// It is one embedded file (SQLite) or on a PostgreSQL server; queries use that database's dialect.
//
// Threads: callable from anywhere; one statement at a time. Errors: invalid (the SQL is wrong, with
// the database's message), denied, exhausted (beyond a limit below), unavailable (the server does
// not answer).
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
inline constexpr Duration kStatementTimeMax = 30s;  // half of a client's timeout

// A table that exists during one query.
struct Provided {
  std::string name;
  std::vector<std::string> columns;  // "region TEXT"
  std::vector<std::vector<Json>> rows;
};

class Catalogue {
 public:
  virtual ~Catalogue() = default;
  // Runs one reading statement. It cannot change data, and has limits of time, memory, rows and
  // bytes.
  virtual Result<QueryResult> query(const std::string& sql,
                                    const std::vector<Provided>& provided) = 0;
  // Runs one or more writing statements in one transaction. Returns the number of rows that the
  // last one changed.
  virtual Result<int64_t> change(const std::string& sql) = 0;
  // Adds a row unless one with this `name` exists. Returns true if it was added. Errors also:
  // invalid (unknown column).
  virtual Result<bool> add(const std::string& table,
                           const std::map<std::string, std::string>& row) = 0;
};

Result<std::unique_ptr<Catalogue>> open_sqlite_catalogue(const std::string& path, Clock& clock);
// Opens a catalogue on a PostgreSQL server: "postgresql://user:password@host:5432/name", or a libpq
// string "host=.. dbname=..". It connects at the first call. `query_url` has a role with fewer
// rights for queries; "": url. Calls fail with `denied` if a role is a superuser, may create roles,
// or may access files and programs of the database's machine.
std::unique_ptr<Catalogue> open_postgres_catalogue(const std::string& url,
                                                   const std::string& query_url);

}  // namespace trainyard::campaign
