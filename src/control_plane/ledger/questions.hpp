// Builds the SQL of queries for jobs and definitions, in the dialect of a database, and the pages
// of their answers. Private to this module.
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

// SQL that is built together with its parameters, in order; each is a question mark in the text.
struct Question {
  std::string sql;
  std::vector<std::variant<int64_t, std::string>> parameters;

  void add(std::string_view condition, std::variant<int64_t, std::string> parameter) {
    sql += condition;
    parameters.push_back(std::move(parameter));
  }
};

Result<Question> question_of(const JobQuery& query, Dialect dialect);
Question question_of(const ChildQuery& query);
Question question_of(const DefinitionQuery& query);

// Makes a page of the answer, which has one job more than requested if there is a next page.
JobPage page_of(const JobQuery& query, std::vector<domain::Job> jobs);

// The rank of the API's status of a job, for sorting.
int64_t status_order(domain::JobState state);

}  // namespace trainyard::ledger
