// Plans the jobs of a campaign from the rows of a query: the region of each row, the data to copy
// there first, and the request to the region.
//
// Pure: it reads rows, prices, capacity and reservations, and returns a plan. Rows are planned in
// their order, and each reduces the capacity for later rows, so the rule `capacity` fills a region
// before it uses the next.
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

inline constexpr size_t kRowsMax = 10'000;  // of a campaign, as in an array of Batch
inline constexpr size_t kColumnsMax = 200;

// The result of a query of the catalogue.
struct QueryResult {
  std::vector<std::string> columns;
  std::vector<std::vector<Json>> rows;  // strings, numbers, null
};

// The prices and capacity of one instance type in one region.
struct Offer {
  std::optional<double> on_demand, spot;  // the price of an instance per hour
  std::optional<int64_t> hosts_total;     // nullopt: unlimited, since gangs are scaled to fit
  std::optional<int64_t> hosts_free;
  int64_t hosts_reserved = 0;  // paid for already, whether free or not
};

struct RegionOffers {
  // False: the region does not answer, and its offers are empty.
  bool known = false;
  std::map<std::string, Offer> offers;  // by instance type
};

struct PlanInputs {
  std::string home;  // the server's own region: the default of rows
  std::map<std::string, RegionOffers> regions;
  std::map<std::pair<std::string, std::string>, double> copy_price_per_gib;  // from, to
};

// The parts of the requests that are equal in all jobs, and those that differ.
struct Comparison {
  // Hyperparameter (of Batch: parameter, variable) -> value.
  std::map<std::string, std::string> same;
  // Path in the request -> its different values.
  std::map<std::string, std::vector<std::string>> different;
};

struct Plan {
  std::vector<Row> rows;
  Comparison comparison;
};

// `number_from` is the number of the first row: a standing campaign continues its numbers.
Result<Plan> make_plan(const Definition& definition, const QueryResult& query_result,
                       const PlanInputs& inputs, int64_t number_from = 1);

Comparison compare(RequestKind request_kind, const std::vector<Row>& rows);

}  // namespace trainyard::campaign
