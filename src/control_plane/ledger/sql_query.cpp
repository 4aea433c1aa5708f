#include "ledger/sql_query.hpp"

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::ledger {

// In the order of the names in the API: Completed, Failed, InProgress, Stopped, Stopping.
int64_t status_order(domain::JobState state) {
  switch (state) {
    case domain::JobState::completed:
      return 0;
    case domain::JobState::failed:
      return 1;
    case domain::JobState::waiting:
    case domain::JobState::active:
      return 2;
    case domain::JobState::stopped:
      return 3;
    case domain::JobState::stopping:
      return 4;
  }
  return 0;
}

namespace {

std::string token_of(const JobQuery& query, const domain::Job& last) {
  const Json sort_value = query.sort == JobQuery::Sort::created
                              ? Json(to_milliseconds(last.created))
                          : query.sort == JobQuery::Sort::state ? Json(status_order(last.state))
                                                                : Json(0);
  return to_base64(
      dump(Json::array({int(query.sort), query.descending, sort_value, last.key.name})));
}

struct Position {
  int64_t sort_value = 0;
  std::string name;
};

Result<Position> position_of(const JobQuery& query) {
  const auto invalid_token = [] {
    return invalid("invalid NextToken: it was not returned by this list");
  };
  const auto text = from_base64(query.token);
  if (!text) return invalid_token();
  const auto json = parse_json(*text);
  if (!json || !json->is_array() || json->size() != 4) return invalid_token();
  const Json& token = *json;
  if (token[0] != int(query.sort) || token[1] != query.descending ||
      !token[2].is_number_integer() || !token[3].is_string())
    return invalid_token();
  return Position{token[2].get<int64_t>(), token[3].get<std::string>()};
}

// Returns the SQL for a member of a JSON column in PostgreSQL. The spec of a child is "", which is
// not JSON. PostgreSQL evaluates conditions in any order, so only a CASE ensures that such a spec
// is not parsed.
//
// PostgreSQL cannot read a document that contains \u0000, which a tenant may write in a command or
// a variable. It is replaced by another character: the document stays valid JSON, also where the
// backslash is itself escaped, and neither character occurs in a requested name.
std::string json_member(const std::string& column, const std::string& path) {
  return "(CASE WHEN parent = 0 THEN replace(" + column +
         ", chr(92) || 'u0000', chr(92) || 'u0001')::json #>> '" + path + "' END)";
}

// Adds the conditions on the names of jobs.
void add_names(const JobQuery& query, Dialect dialect, SqlQuery& sql_query) {
  const std::string find = dialect == Dialect::sqlite ? "instr" : "strpos";
  const std::string display_name = dialect == Dialect::sqlite ? "json_extract(spec, '$.batch.name')"
                                                              : json_member("spec", "{batch,name}");
  for (size_t i = 0; i < query.names.size(); ++i)
    sql_query.add(i == 0 ? " AND name IN (?" : ", ?", query.names[i]);
  if (!query.names.empty()) sql_query.sql += ")";
  if (!query.name_contains.empty()) {
    sql_query.add(" AND (" + find + "(name, ?) > 0", query.name_contains);
    if (query.or_display_name_contains)
      sql_query.add(" OR (queue <> '' AND " + find + "(" + display_name + ", ?) > 0)",
                    query.name_contains);
    sql_query.sql += ")";
  }
  if (query.display_name.empty()) return;
  sql_query.add(" AND queue <> '' AND (" + display_name + " = ?", query.display_name);
  if (!query.id_prefix.empty()) sql_query.add(" OR " + find + "(name, ?) = 1", query.id_prefix);
  sql_query.sql += ")";
}

}  // namespace

Result<SqlQuery> build_sql(const JobQuery& query, Dialect dialect) {
  SqlQuery sql_query;
  // This condition makes SQLite use the indexes of jobs that are not children.
  sql_query.add(std::string(kJobColumns) + "WHERE parent = 0 AND region = ?", query.region);
  add_names(query, dialect, sql_query);
  if (query.created_after) sql_query.add(" AND created > ?", to_milliseconds(*query.created_after));
  if (query.created_before)
    sql_query.add(" AND created < ?", to_milliseconds(*query.created_before));
  if (query.modified_after)
    sql_query.add(" AND modified > ?", to_milliseconds(*query.modified_after));
  if (query.modified_before)
    sql_query.add(" AND modified < ?", to_milliseconds(*query.modified_before));
  for (size_t i = 0; i < query.states.size(); ++i)
    sql_query.add(i == 0 ? " AND state IN (?" : ", ?", std::string(to_string(query.states[i])));
  if (!query.states.empty()) sql_query.sql += ")";
  if (query.queue) sql_query.add(" AND queue = ?", *query.queue);
  if (query.training && dialect == Dialect::sqlite)
    sql_query.add(" AND (queue = '' OR queue GLOB ?)", std::string(domain::kTrainingQueues) + "*");
  if (query.training && dialect == Dialect::postgres)
    sql_query.add(" AND (queue = '' OR starts_with(queue, ?))",
                  std::string(domain::kTrainingQueues));
  if (query.stage) sql_query.add(" AND batch_status = ?", int64_t(*query.stage));
  if (query.warm_pool)
    sql_query.add(
        (dialect == Dialect::sqlite ? " AND json_extract(progress, '$.warm_pool.state')"
                                    : " AND " + json_member("progress", "{warm_pool,state}")) +
            " = ?",
        std::string(to_string(*query.warm_pool)));

  const std::string beyond = query.descending ? "<" : ">";
  const std::string order = query.descending ? " DESC" : "";
  const std::string column = query.sort == JobQuery::Sort::created ? "created" : "status_order";
  if (!query.token.empty()) {
    const Position position = TRY(position_of(query));
    if (query.sort == JobQuery::Sort::name) {
      sql_query.add(" AND name " + beyond + " ?", position.name);
    } else {
      sql_query.add(" AND (" + column + ", name) " + beyond + " (?", position.sort_value);
      sql_query.add(", ?)", position.name);
    }
  }
  sql_query.sql += query.sort == JobQuery::Sort::name
                       ? " ORDER BY name" + order
                       : " ORDER BY " + column + order + ", name" + order;
  // One row more than requested shows if there is a next page.
  sql_query.add(" LIMIT ?", int64_t(std::min(query.jobs_max, kPageJobsMax)) + 1);
  return sql_query;
}

SqlQuery build_sql(const ChildQuery& query) {
  SqlQuery sql_query;
  sql_query.add(std::string(kJobColumns) + "WHERE parent > 0 AND parent = ?", int64_t(query.array));
  if (query.stage) sql_query.add(" AND batch_status = ?", int64_t(*query.stage));
  sql_query.add(" AND number >= ?", int64_t(domain::child_number(query.array, query.first)));
  sql_query.add(" AND number < ?", int64_t(domain::child_number(query.array, query.end)));
  sql_query.add(" ORDER BY number LIMIT ?", int64_t(std::min(query.children_max, kPageJobsMax)));
  return sql_query;
}

SqlQuery build_sql(const DefinitionQuery& query) {
  SqlQuery sql_query;
  sql_query.add(std::string(kResourceColumns) + "WHERE kind = ?", std::string(kDefinitionKind));
  sql_query.add(" AND region = ?", query.region);
  if (!query.name.empty()) sql_query.add(" AND name = ?", query.name);
  if (query.revision) sql_query.add(" AND revision = ?", int64_t(*query.revision));
  if (query.active) sql_query.add(" AND active = ?", int64_t(*query.active));
  if (!query.after_name.empty()) {
    sql_query.add(" AND (name, -revision) > (?", query.after_name);
    sql_query.add(", ?)", -int64_t(query.after_revision));
  }
  sql_query.add(" ORDER BY name, revision DESC LIMIT ?",
                int64_t(std::min(query.definitions_max, kPageJobsMax)));
  return sql_query;
}

JobPage page_of(const JobQuery& query, std::vector<domain::Job> jobs) {
  JobPage page;
  page.jobs = std::move(jobs);
  const size_t jobs_max = std::min(query.jobs_max, kPageJobsMax);
  if (page.jobs.size() > jobs_max) {
    page.jobs.resize(jobs_max);
    page.next_token = token_of(query, page.jobs.back());
  }
  return page;
}

}  // namespace trainyard::ledger
