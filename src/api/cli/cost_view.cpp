#include "cli/cost_view.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "domain/price.hpp"

namespace trainyard::cli {
namespace {

Result<int64_t> millionths_at(const Json& json, const char* name) {
  const double amount = TRY(parse_double(TRY(string_at(json, name))));
  return std::llround(amount * double(domain::kMillionths));
}

Result<CostLine> line_of(const Json& json, std::string key) {
  CostLine line;
  line.key = std::move(key);
  if (json.contains("DisplayName")) line.display_name = TRY(string_at(json, "DisplayName"));
  line.jobs = TRY(int_at(json, "Jobs"));
  line.billable_seconds = TRY(int_at(json, "BillableHostSeconds"));
  line.millionths = TRY(millionths_at(json, "Amount"));
  line.on_demand_millionths = TRY(millionths_at(json, "OnDemandAmount"));
  return line;
}

}  // namespace

Result<CostView> cost_view(const Json& answer) {
  CostView view;
  view.currency = TRY(string_at(answer, "Currency"));
  for (const Json& group : answer.value("Groups", Json::array()))
    view.lines.push_back(TRY(line_of(group, TRY(string_at(group, "Key")))));
  view.total = TRY(line_of(answer.value("Total", Json::object()), "total"));
  for (const Json& type : answer.value("Unpriced", Json::array()))
    if (type.is_string()) view.unpriced.push_back(type.get<std::string>());
  return view;
}

CostView cost_view_of(const JobView& job) {
  CostView view;
  view.currency = job.currency;
  view.total.key = "total";
  view.total.jobs = job.array ? job.array->size : 1;
  view.total.billable_seconds =
      job.billable_seconds * (job.array ? 1 : std::max<int64_t>(1, job.hosts_wanted()));
  view.total.millionths = job.cost_millionths;
  view.total.on_demand_millionths = job.on_demand_millionths;
  view.lines = {view.total};
  view.lines.front().key = label_of(job);
  view.unpriced = job.unpriced;
  return view;
}

std::string cost_table(const OutputStyle& style, const std::string& by, const CostView& view) {
  if (view.lines.empty()) return "no jobs\n";
  constexpr int kKeyWidthMin = 12;
  constexpr int kBarWidth = 16;
  int64_t dearest = 1;
  std::vector<std::string> keys, ids;  // a job of Batch is shown by its name, and its id
  for (const CostLine& line : view.lines) {
    dearest = std::max(dearest, line.millionths);
    const bool named = !line.display_name.empty();
    keys.push_back(named ? line.display_name : line.key);
    ids.push_back(named ? line.key : "");
  }
  if (style.columns > 0) keys = short_ids(keys), ids = short_ids(ids);
  std::vector<std::vector<Cell>> rows;
  const auto add = [&](const std::string& key, const std::string& id, const CostLine& line,
                       bool total) {
    const Paint how = total ? Paint::bold : Paint::none;
    const int64_t saved = line.on_demand_millionths - line.millionths;
    rows.push_back({{key.empty() ? "(none)" : key, how},
                    {id},
                    {std::to_string(line.jobs), how},
                    {duration_text(std::chrono::seconds(line.billable_seconds)), how},
                    {domain::money_text(line.millionths) + " " + view.currency, how},
                    {saved > 0 ? domain::money_text(saved) : "", Paint::green},
                    {total ? "" : bar(style, double(line.millionths) / double(dearest), kBarWidth),
                     Paint::cyan}});
  };
  for (size_t i = 0; i < keys.size(); ++i) add(keys[i], ids[i], view.lines[i], false);
  add(view.total.key, "", view.total, true);
  std::string out = table(style,
                          {{.title = by, .width_min = kKeyWidthMin, .overflow = Overflow::middle},
                           {.title = "id"},
                           {.title = "jobs", .right = true, .drop = 1},
                           {.title = "host time", .right = true, .drop = 2},
                           {.title = "cost", .right = true},
                           {.title = "saved", .right = true, .drop = 3},
                           {.title = "", .drop = 4}},
                          rows);
  if (!view.unpriced.empty()) {
    const std::string names = join(view.unpriced, ", ");
    out += paragraph(style, "not included, since the price is unknown: " + names, Paint::yellow);
  }
  return out;
}

}  // namespace trainyard::cli
