// From the rows of a query to the jobs of a campaign: which region each runs in, what is copied there first, what is
// asked of the region.
//
// Pure: rows, prices, capacity and reservations in; a plan out. Rows are planned in their order, and each takes the
// room that it will use from those behind it, so that `capacity` fills a region before it goes to the next.
//
// Threads: pure functions. Errors: invalid, naming the row and what is wrong with it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "campaign/definition.hpp"
#include "campaign/row.hpp"

namespace trainyard::campaign {

inline constexpr size_t kRowsMax = 10'000;  // of a campaign, as an array of Batch
inline constexpr size_t kColumnsMax = 200;

// A query's answer.
struct Answered {
  std::vector<std::string> columns;
  std::vector<std::vector<Json>> rows;  // strings, numbers, nothing
};

// One instance type in one region.
struct Offer {
  std::optional<double> on_demand, spot;  // of an instance and hour
  std::optional<int64_t> hosts_total;     // nothing: jobs are made to fit
  std::optional<int64_t> hosts_free;
  int64_t hosts_reserved = 0;  // for us, whether free or not
};

struct RegionFacts {
  bool known = false;  // it has told us; else it does not answer just now, and its offers are empty
  std::map<std::string, Offer> offers;  // by instance type
};

struct Facts {
  std::string home;  // the server's own region: of rows that say none
  std::map<std::string, RegionFacts> regions;
  std::map<std::pair<std::string, std::string>, double> copy_price_per_gib;  // from, to
};

// What of the jobs is the same in all regions, and what is not.
struct Comparison {
  std::map<std::string, std::string> same;  // hyperparameter (of Batch: parameter, variable) -> value
  std::map<std::string, std::vector<std::string>> different;  // path in the request -> values, each once
};

struct Plan {
  std::vector<Row> rows;
  Comparison comparison;
};

// `number_from`: of the first row; a standing campaign goes on counting.
Result<Plan> make_plan(const Definition& definition, const Answered& answered, const Facts& facts,
                       int64_t number_from = 1);

Comparison compare(Face face, const std::vector<Row>& rows);

}  // namespace trainyard::campaign
