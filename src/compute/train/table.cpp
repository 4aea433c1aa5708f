#include "train/table.hpp"

#include <charconv>
#include <cmath>
#include <string>

#include "base/text.hpp"

namespace trainyard::train {
namespace {

Error at(size_t line, size_t column, std::string_view cell, std::string_view why) {
  return invalid("line " + std::to_string(line) + ", column " + std::to_string(column) + ": '" +
                 shorten(cell, 40) + "' " + std::string(why));
}

}  // namespace

Result<Table> parse_csv(std::string_view text) {
  Table table;
  std::vector<float> numbers;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (rest.ends_with('\r')) rest.remove_suffix(1);
    if (rest.empty()) continue;

    numbers.clear();
    for (bool more = true; more;) {
      const size_t comma = rest.find(',');
      more = comma != std::string_view::npos;
      const std::string_view cell = trim(rest.substr(0, comma));
      rest.remove_prefix(more ? comma + 1 : rest.size());
      if (numbers.size() > kCsvColumnsMax)
        return at(line, numbers.size(), cell, "exceeds the maximum number of columns");
      float number = 0;
      const auto [after, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
      if (fault != std::errc{} || after != cell.data() + cell.size() || !std::isfinite(number)) {
        return at(line, numbers.size() + 1, cell, "is not a number");
      }
      numbers.push_back(number);
    }

    const float label = numbers.back();
    numbers.pop_back();
    if (numbers.empty())
      return invalid("line " + std::to_string(line) + ": the row has a label, but no features");
    if (label < 0 || label > float(kLabelMax) || label != std::floor(label)) {
      return invalid("line " + std::to_string(line) +
                     ": the last column is the label, an integer from 0 to " +
                     std::to_string(kLabelMax));
    }
    if (table.columns == 0) table.columns = numbers.size();
    if (numbers.size() != table.columns) {
      return invalid("line " + std::to_string(line) + ": " + std::to_string(numbers.size() + 1) +
                     " columns, but earlier lines have " + std::to_string(table.columns + 1));
    }
    table.features.insert(table.features.end(), numbers.begin(), numbers.end());
    table.labels.push_back(int32_t(label));
  }
  return table;
}

}  // namespace trainyard::train
