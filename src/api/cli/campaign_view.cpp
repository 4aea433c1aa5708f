#include "cli/campaign_view.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/table.hpp"
#include "domain/price.hpp"

namespace trainyard::cli {
namespace {

constexpr int kBarWidth = 20;
constexpr int kWhyWidthMin = 12;
constexpr int kNoteWidthMin = 20;
constexpr size_t kRowsShownMax = 200;  // on a terminal; --json prints all
constexpr double kGibibyte = double(1 << 30);

int64_t count_in(const Json& json, const char* name) { return int64_t(double_or(json, name)); }

bool flag_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

const Json& list_in(const Json& json, const char* name) {
  static const Json kNone = Json::array();
  const auto found = json.find(name);
  return found != json.end() && found->is_array() ? *found : kNone;
}

std::string count_text(int64_t count) { return count == 0 ? "" : std::to_string(count); }

std::string amount_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, std::abs(value) >= 1000 ? "%.0f" : "%.5g", value);
  return text;
}

std::string money(double amount) {
  return domain::money_text(int64_t(std::llround(amount * double(domain::kMillionths))));
}

std::string hosts_text(const Json& row) {
  const std::string type = string_or(row, "InstanceType");
  const auto count = count_in(row, "InstanceCount");
  if (type.empty()) return count > 1 ? counted(uint64_t(count), "host") : "";
  return std::to_string(count) + " x " + type;
}

// Returns the columns of the query that do not locate data, and in which the rows differ.
std::vector<std::string> telling_columns(const Json& rows) {
  static const std::set<std::string> kOfRegions = {"name",  "region", "data",
                                                   "bytes", "hours",  "uri"};
  std::vector<std::string> order;
  std::map<std::string, std::set<std::string>> values;
  for (const Json& row : rows)
    for (const Json& column : list_in(row, "Columns")) {
      const std::string name = string_or(column, "Name");
      if (kOfRegions.count(name)) continue;
      if (!values.count(name)) order.push_back(name);
      values[name].insert(string_or(column, "Value"));
    }
  std::erase_if(order, [&](const std::string& name) { return values[name].size() < 2; });
  return order;
}

std::string column_of(const Json& row, const std::string& name) {
  for (const Json& column : list_in(row, "Columns"))
    if (string_or(column, "Name") == name) return string_or(column, "Value");
  return "";
}

std::string comparison_text(const OutputStyle& style, const Json& campaign) {
  constexpr int kLabelColumns = 17;
  std::string text;
  if (const Json& same = list_in(campaign, "Same"); !same.empty()) {
    std::string values;
    for (const Json& one : same)
      values +=
          (values.empty() ? "" : " ") + string_or(one, "Name") + "=" + string_or(one, "Value");
    text += paragraph(style, values, Paint::none, "the same in all", kLabelColumns);
  }
  for (const Json& one : list_in(campaign, "Different")) {
    std::string values;
    for (const Json& value : list_in(one, "Values"))
      values += (values.empty() ? "" : ", ") + (value.is_string() ? value.get<std::string>() : "");
    text += paragraph(style, string_or(one, "Path") + ": " + values, Paint::none, "differs",
                      kLabelColumns);
  }
  return text.empty() ? text : "\n" + text;
}

Paint paint_of_state(const std::string& state) {
  if (state == "completed") return Paint::green;
  if (state == "failed") return Paint::red;
  if (state == "running") return Paint::cyan;
  if (state == "stopped") return Paint::yellow;
  return Paint::none;
}

int64_t rows_of(const Json& region) {
  int64_t rows = 0;
  for (const char* state : {"Waiting", "Copying", "Running", "Completed", "Failed", "Stopped"})
    rows += count_in(region, state);
  return rows;
}

int64_t over_of(const Json& region) {
  return count_in(region, "Completed") + count_in(region, "Failed") + count_in(region, "Stopped");
}

std::optional<Instant> instant_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return {};
  return from_milliseconds(int64_t(found->get<double>() * 1000));
}

std::string time_of(const Json& json, const char* from, const char* to, Instant now) {
  const auto start = instant_in(json, from);
  if (!start) return "";
  return duration_text(std::max(Duration(0), instant_in(json, to).value_or(now) - *start));
}

std::string copied_text(const Json& json) {
  const auto total = count_in(json, "BytesTotal"), copied = count_in(json, "BytesCopied");
  if (total <= 0) return "";
  if (copied >= total) return human_bytes(uint64_t(copied));
  return human_bytes(uint64_t(std::max<int64_t>(0, copied))) + " of " +
         human_bytes(uint64_t(total));
}

// A column of texts that are shown below their rows where the terminal is narrow.
Column note_column(const std::string& title, int drop) {
  return {.title = title,
          .width_min = kNoteWidthMin,
          .drop = drop,
          .overflow = Overflow::wrap,
          .below = true};
}

Column label_column() {
  return {.title = "NAME", .width_min = kWhyWidthMin, .overflow = Overflow::middle};
}

std::string region_table(const OutputStyle& style, const Json& campaign, Instant now,
                         bool running) {
  std::vector<std::vector<Cell>> rows;
  for (const Json& region : list_in(campaign, "Regions")) {
    const int64_t all = rows_of(region), over = over_of(region);
    const bool answers = flag_in(region, "Answers");
    std::string lost;
    if (!answers) {
      const auto since = instant_in(region, "Since");
      lost = "no answer for " +
             duration_text(since ? std::max(Duration(0), now - *since) : Duration(0));
    }
    const double rate = double_or(region, "SamplesPerSecond");
    const Paint of_bar = !answers                         ? Paint::yellow
                         : count_in(region, "Failed") > 0 ? Paint::red
                                                          : Paint::green;
    rows.push_back(
        {{string_or(region, "Region"), answers ? Paint::none : Paint::yellow},
         {running ? bar(style, all > 0 ? double(over) / double(all) : 0, kBarWidth) : "", of_bar},
         {std::to_string(over) + "/" + std::to_string(all)},
         {count_text(count_in(region, "Running"))},
         {count_text(count_in(region, "Copying"))},
         {count_text(count_in(region, "Failed")), Paint::red},
         {count_text(count_in(region, "TriedAgain")), Paint::yellow},
         {count_text(count_in(region, "Hosts"))},
         {count_text(count_in(region, "Gpus"))},
         {rate > 0 ? amount_text(rate) : ""},
         {copied_text(region)},
         {money(double_or(region, "Cost") + double_or(region, "CopyCost"))},
         {lost, Paint::yellow}});
  }
  return table(style,
               {{.title = "REGION"},
                {.title = "", .drop = 8},
                {.title = "DONE", .right = true},
                {.title = "RUNNING", .right = true},
                {.title = "COPYING", .right = true, .drop = 4},
                {.title = "FAILED", .right = true},
                {.title = "RETRIES", .right = true, .drop = 5},
                {.title = "HOSTS", .right = true, .drop = 3},
                {.title = "GPUS", .right = true, .drop = 2},
                {.title = "SAMPLES/S", .right = true, .drop = 6},
                {.title = "COPIED", .right = true, .drop = 7},
                {.title = string_or(campaign, "Currency"), .right = true, .drop = 1},
                note_column("", 9)},
               rows);
}

}  // namespace

std::string plan_page(const OutputStyle& style, const Json& campaign) {
  const Json& all = list_in(campaign, "Rows");
  const auto telling = telling_columns(all);
  const std::string currency = string_or(campaign, "Currency");
  std::vector<Column> columns{{"ROW", true}, label_column()};
  for (const auto& name : telling) columns.push_back({.title = name, .right = true, .drop = 7});
  for (const Column& column : {Column{.title = "DATA IN", .drop = 3}, Column{.title = "RUNS IN"},
                               note_column("BECAUSE", 8), Column{.title = "HOSTS", .drop = 4},
                               Column{.title = currency + "/H", .right = true, .drop = 2},
                               Column{.title = "COPY", .right = true, .drop = 6},
                               Column{.title = "COPY " + currency, .right = true, .drop = 5}})
    columns.push_back(column);
  std::vector<std::vector<Cell>> rows;
  std::map<std::string, int64_t> jobs;
  double per_hour = 0, copying = 0;
  int64_t bytes = 0;
  std::set<std::tuple<std::string, std::string, std::string>> copies;
  for (const Json& row : all) {
    const std::string region = string_or(row, "Region");
    ++jobs[region];
    const double price = double_or(row, "PricePerHour", -1);
    const std::string target = string_or(row, "CopyTo");
    // Rows with the same data share its copy, which the first of them starts.
    const bool brings =
        !target.empty() && copies.emplace(region, string_or(row, "Data"), target).second;
    const auto to_copy = brings ? count_in(row, "BytesTotal") : 0;
    const double of_copy = double(to_copy) / kGibibyte * double_or(row, "CopyPricePerGib");
    per_hour += std::max(0.0, price);
    copying += of_copy;
    bytes += to_copy;
    if (rows.size() >= kRowsShownMax) continue;
    std::vector<Cell> cells{{std::to_string(count_in(row, "Number"))}, {string_or(row, "Label")}};
    for (const auto& name : telling) cells.push_back({column_of(row, name)});
    const bool moved = region != string_or(row, "DataRegion");
    cells.push_back({string_or(row, "DataRegion")});
    cells.push_back({region, moved ? Paint::yellow : Paint::none});
    cells.push_back({string_or(row, "Why"), Paint::dim});
    cells.push_back({hosts_text(row)});
    cells.push_back({price < 0 ? "" : money(price)});
    cells.push_back({target.empty() ? ""
                     : !brings      ? "as above"
                     : to_copy > 0  ? human_bytes(uint64_t(to_copy))
                                    : "yes"});
    cells.push_back({of_copy > 0 ? money(of_copy) : ""});
    rows.push_back(std::move(cells));
  }
  std::string text = table(style, columns, rows);
  if (all.size() > rows.size())
    text += "and " + counted(all.size() - rows.size(), "more row") + "\n";
  std::string sum = counted(all.size(), "job") + " in " + counted(jobs.size(), "region") + ":";
  for (const auto& [region, count] : jobs) sum += " " + region + " " + std::to_string(count);
  sum += "; " + money(per_hour) + " " + currency + " an hour while all run";
  if (bytes > 0)
    sum += "; " + human_bytes(uint64_t(bytes)) + " to copy, " + money(copying) + " " + currency;
  return text + "\n" + paragraph(style, sum, Paint::bold) + comparison_text(style, campaign);
}

std::string regions_page(const OutputStyle& style, const Json& campaign, Instant now) {
  int64_t all = 0, over = 0;
  for (const Json& region : list_in(campaign, "Regions"))
    all += rows_of(region), over += over_of(region);
  std::string text = paint(style, Paint::bold, string_or(campaign, "CampaignName")) + "  " +
                     string_or(campaign, "Status") + "  " + std::to_string(over) + " of " +
                     counted(uint64_t(all), "job") + "  " +
                     time_of(campaign, "CreationTime", "EndTime", now) + "\n";
  text += region_table(style, campaign, now, true);
  for (const char* member : {"StopReason", "Trouble"})
    if (const auto why = string_or(campaign, member); !why.empty())
      text += paragraph(style, why, Paint::yellow);
  return text;
}

std::string region_line(const Json& region) {
  std::string text = string_or(region, "Region") + ": " + std::to_string(over_of(region)) + "/" +
                     std::to_string(rows_of(region)) + " done";
  for (const auto& [member, word] : {std::pair{"Running", "running"},
                                     {"Copying", "copying"},
                                     {"Failed", "failed"},
                                     {"TriedAgain", "retried"}})
    if (count_in(region, member) > 0)
      text += ", " + std::to_string(count_in(region, member)) + " " + word;
  if (!flag_in(region, "Answers")) text += ", no answer: " + string_or(region, "WhyNot");
  return plain_text(text) + "\n";
}

namespace {

// Returns the names of the metrics of all rows, the campaign's own first.
std::vector<std::string> metrics_of(const Json& campaign) {
  std::vector<std::string> metrics;
  if (const auto first = string_or(campaign, "BestMetric"); !first.empty())
    metrics.push_back(first);
  for (const Json& row : list_in(campaign, "Rows"))
    for (const Json& metric : list_in(row, "Metrics"))
      if (const auto name = string_or(metric, "Name");
          !std::count(metrics.begin(), metrics.end(), name))
        metrics.push_back(name);
  return metrics;
}

std::vector<Column> results_columns(const std::vector<std::string>& telling,
                                    const std::vector<std::string>& metrics,
                                    const std::string& currency) {
  std::vector<Column> columns{{""}, {"ROW", true}, label_column(), {.title = "REGION", .drop = 1}};
  for (const auto& name : telling) columns.push_back({.title = name, .right = true, .drop = 6});
  for (const auto& name : metrics)
    columns.push_back({.title = name, .right = true, .drop = name == metrics.front() ? 0 : 5});
  for (const Column& column :
       {Column{.title = "STATE"}, Column{.title = "TRIES", .right = true, .drop = 4},
        Column{.title = "TIME", .right = true, .drop = 2},
        Column{.title = "COPIED", .right = true, .drop = 7},
        Column{.title = currency, .right = true, .drop = 3}, note_column("", 8)})
    columns.push_back(column);
  return columns;
}

}  // namespace

std::string results_page(const OutputStyle& style, const Json& campaign, Instant now) {
  const Json& all = list_in(campaign, "Rows");
  const auto telling = telling_columns(all);
  const auto metrics = metrics_of(campaign);
  const auto columns = results_columns(telling, metrics, string_or(campaign, "Currency"));
  const int64_t best = count_in(campaign, "BestRow");
  std::vector<std::vector<Cell>> rows;
  const Json* winner = nullptr;
  for (const Json& row : all) {
    const int64_t number = count_in(row, "Number");
    if (number == best) winner = &row;
    if (rows.size() >= kRowsShownMax && number != best) continue;
    const Paint mine = number == best && best > 0 ? Paint::green : Paint::none;
    std::vector<Cell> cells{{number == best && best > 0 ? "*" : "", Paint::green},
                            {std::to_string(number), mine},
                            {string_or(row, "Label"), mine},
                            {string_or(row, "Region")}};
    for (const auto& name : telling) cells.push_back({column_of(row, name), mine});
    for (const auto& name : metrics) {
      std::string value;
      for (const Json& metric : list_in(row, "Metrics"))
        if (string_or(metric, "Name") == name) value = amount_text(double_or(metric, "Value"));
      cells.push_back({value, mine});
    }
    const std::string state = string_or(row, "State");
    const auto tries = count_in(row, "Attempts");
    cells.push_back({state, paint_of_state(state)});
    cells.push_back({tries > 1 ? std::to_string(tries) : ""});
    cells.push_back({time_of(row, "StartTime", "EndTime", now)});
    cells.push_back({copied_text(row)});
    cells.push_back({money(double_or(row, "Cost"))});
    cells.push_back({state == "completed" ? "" : string_or(row, "Reason"), Paint::dim});
    rows.push_back(std::move(cells));
  }
  std::string text = table(style, columns, rows);
  if (all.size() > rows.size())
    text += "and " + counted(all.size() - rows.size(), "more row") + "\n";
  text += "\n" + region_table(style, campaign, now, false);
  if (winner) {
    std::string line = "best: row " + std::to_string(best) + ", " + string_or(*winner, "Label");
    for (const Json& metric : list_in(*winner, "Metrics"))
      if (string_or(metric, "Name") == metrics.front())
        line += ", " + metrics.front() + " " + amount_text(double_or(metric, "Value"));
    for (const auto& name : telling) line += ", " + name + "=" + column_of(*winner, name);
    text += "\n" + paragraph(style, line, Paint::green);
  }
  return text + comparison_text(style, campaign);
}

std::string campaigns_table(const OutputStyle& style, const Json& answer, Instant now) {
  std::vector<std::vector<Cell>> rows;
  for (const Json& campaign : list_in(answer, "Campaigns")) {
    int64_t all = 0, over = 0, failed = 0;
    double cost = 0;
    std::string lost;
    for (const Json& region : list_in(campaign, "Regions")) {
      all += rows_of(region), over += over_of(region), failed += count_in(region, "Failed");
      cost += double_or(region, "Cost") + double_or(region, "CopyCost");
      if (!flag_in(region, "Answers"))
        lost += (lost.empty() ? "no answer from " : ", ") + string_or(region, "Region");
    }
    const std::string status = string_or(campaign, "Status");
    const Paint colour = status == "Completed" ? Paint::green
                         : status == "Failed"  ? Paint::red
                                               : Paint::none;
    rows.push_back({{string_or(campaign, "CampaignName")},
                    {status, colour},
                    {std::to_string(over) + "/" + std::to_string(all)},
                    {count_text(failed), Paint::red},
                    {std::to_string(list_in(campaign, "Regions").size())},
                    {time_of(campaign, "CreationTime", "EndTime", now)},
                    {money(cost)},
                    {lost.empty() ? string_or(campaign, "Trouble") : lost, Paint::yellow}});
  }
  return table(style,
               {label_column(),
                {.title = "STATUS"},
                {.title = "DONE", .right = true},
                {.title = "FAILED", .right = true},
                {.title = "REGIONS", .right = true, .drop = 3},
                {.title = "TIME", .right = true, .drop = 1},
                {.title = "COST", .right = true, .drop = 2},
                note_column("", 4)},
               rows);
}

std::string answer_table(const OutputStyle& style, const Json& answer) {
  std::vector<Column> columns;
  for (const Json& name : list_in(answer, "Columns"))
    columns.push_back({.title = name.is_string() ? name.get<std::string>() : "",
                       .width_min = kWhyWidthMin,
                       .overflow = Overflow::wrap});
  std::vector<std::vector<Cell>> rows;
  for (const Json& row : list_in(answer, "Rows")) {
    auto& cells = rows.emplace_back();
    for (const Json& value : list_in(row, "Values"))
      cells.push_back({value.is_string() ? value.get<std::string>() : ""});
    cells.resize(columns.size());
  }
  return table(style, columns, rows);
}

}  // namespace trainyard::cli
