// Builds the SQL of queries for jobs and definitions, in the dialect of a database, and pages from
// their rows. Private to this module.
//
// Threads: pure functions. Errors: invalid (a token that no list returned).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "ledger/ledger.hpp"

namespace trainyard::ledger {

enum class Dialect { sqlite, postgres };

inline constexpr std::string_view kJobColumns = "SELECT spec, progress, parent FROM jobs ";
inline constexpr std::string_view kResourceColumns =
    "SELECT kind, region, name, revision, active, body FROM nouns ";

// SQL with its parameters, in the order of their question marks in the text.
struct SqlQuery {
  std::string sql;
  std::vector<std::variant<int64_t, std::string>> parameters;

  void add(std::string_view condition, std::variant<int64_t, std::string> parameter) {
    sql += condition;
    parameters.push_back(std::move(parameter));
  }
};

Result<SqlQuery> build_sql(const JobQuery& query, Dialect dialect);
SqlQuery build_sql(const ChildQuery& query);
SqlQuery build_sql(const DefinitionQuery& query);

// Makes a page of the found jobs, which are one more than requested if there is a next page.
JobPage page_of(const JobQuery& query, std::vector<domain::Job> jobs);

// Returns the rank by which jobs are sorted by status.
int64_t status_order(domain::JobState state);

}  // namespace trainyard::ledger
