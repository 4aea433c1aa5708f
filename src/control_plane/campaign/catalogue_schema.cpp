#include "campaign/catalogue_schema.hpp"

#include "base/text.hpp"
#include "campaign/catalogue.hpp"

namespace trainyard::campaign {

const char* const kCatalogueSchema =
    "CREATE TABLE IF NOT EXISTS datasets (name TEXT PRIMARY KEY, region TEXT, uri TEXT, bytes "
    "BIGINT, created TEXT);CREATE TABLE IF NOT EXISTS reservations (region TEXT, instance_type "
    "TEXT, hosts BIGINT, until "
    "TEXT);CREATE TABLE IF NOT EXISTS transfer_prices (from_region TEXT, to_region TEXT, per_gib "
    "DOUBLE PRECISION, PRIMARY KEY (from_region, to_region))";

bool mentions(std::string_view sql, std::string_view name) {
  return to_lower(sql).find(name) != std::string::npos;
}

Result<void> check_size(const std::string& sql) {
  if (sql.size() > kStatementBytesMax)
    return exhausted("the statement has more than " + human_bytes(kStatementBytesMax));
  return {};
}

Result<void> check_answer(size_t rows, size_t bytes) {
  if (rows > kAnswerRowsMax)
    return exhausted("the query has more than " + std::to_string(kAnswerRowsMax) + " rows");
  if (bytes > kAnswerBytesMax)
    return exhausted("the query's answer has more than " + human_bytes(kAnswerBytesMax));
  return {};
}

}  // namespace trainyard::campaign
