#include "cli/views/query_view.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {

std::string query_table(const OutputStyle& style, const Json& answer) {
  std::vector<Column> columns;
  std::map<std::string, size_t> index;
  const Json results = answer.value("results", Json::array());
  for (const Json& row : results)
    for (const Json& field : row) {
      const std::string name = field.value("field", "");
      if (name != "@ptr" && index.emplace(name, columns.size()).second)
        columns.push_back({.title = plain_text(name), .width_min = 8, .overflow = Overflow::wrap});
    }
  if (columns.empty()) return "";
  std::vector<std::vector<Cell>> rows;
  for (const Json& row : results) {
    auto& cells = rows.emplace_back(columns.size());
    for (const Json& field : row)
      if (const auto found = index.find(field.value("field", "")); found != index.end())
        cells[found->second].text = plain_text(field.value("value", ""));
  }
  return table(style, columns, rows);
}

std::string query_statistics(const Json& answer) {
  const Json statistics = answer.value("statistics", Json::object());
  const auto number = [&](const char* name) {
    return uint64_t(std::max(0.0, statistics.value(name, 0.0)));
  };
  std::string text = std::to_string(number("recordsMatched")) + " of " +
                     std::to_string(number("recordsScanned")) + " events match, " +
                     human_bytes(number("bytesScanned")) + " read";
  if (const uint64_t skipped = number("estimatedRecordsSkipped"); skipped > 0)
    text += ", " + std::to_string(skipped) + " skipped: too many groups";
  return text;
}

}  // namespace trainyard::cli
