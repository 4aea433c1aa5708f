#include "cli/views/time_view.hpp"

#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

#include "cli/job_view.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

constexpr int kTimeLabelWidth = 9;
constexpr int kTimeBarWidth = 24;
constexpr int kTimeKeyWidthMin = 12;

struct UseText {
  const char* name;  // as the API has it
  const char* text;
};
constexpr UseText kUses[] = {
    {"Queued", "queued"},           {"Starting", "starting"}, {"Downloading", "downloading data"},
    {"Training", "training"},       {"Lost", "lost work"},    {"Uploading", "uploading"},
    {"Interrupted", "interrupted"}, {"Stopping", "stopping"}, {"QueuedAgain", "queued again"}};

int64_t count_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number() ? found->get<int64_t>() : 0;
}

std::string ratio_text(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", found->get<double>() * 100);
  return (json.value("LostWorkIsKnown", true) ? "" : "at most ") + std::string(text);
}

std::map<std::string, int64_t> uses_of(const Json& json) {
  std::map<std::string, int64_t> uses;
  for (const Json& use : json.value("Uses", Json::array()))
    if (use.is_object()) uses[use.value("Use", "")] += count_of(use, "Milliseconds");
  return uses;
}

// "0.4s" for what takes less than ten seconds, since starts do.
std::string length_text(int64_t milliseconds) {
  if (milliseconds >= 10'000 || milliseconds == 0) return duration_text(Duration{milliseconds});
  char text[32];
  std::snprintf(text, sizeof text, "%.1fs", double(milliseconds) / 1000);
  return text;
}

std::string part_text(int64_t part, int64_t whole) {
  if (whole <= 0 || part <= 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", double(part) / double(whole) * 100);
  return text;
}

}  // namespace

std::string time_page(const OutputStyle& style, const std::string& label, const Json& answer) {
  const int64_t wall = count_of(answer, "WallMilliseconds");
  std::string page = paragraph(style, label, Paint::bold, "job", kTimeLabelWidth);
  page += paragraph(style, ratio_text(answer, "EffectiveTrainingTimeRatio") + " of its time", {},
                    "ETTR", kTimeLabelWidth);
  if (count_of(answer, "HeldMilliseconds") > 0)
    page += paragraph(style, ratio_text(answer, "Goodput") + " of the time on machines", {},
                      "goodput", kTimeLabelWidth);
  auto uses = uses_of(answer);
  std::vector<std::vector<Cell>> rows;
  for (const UseText& use : kUses)
    if (const int64_t length = uses[use.name]; length > 0)
      rows.push_back({{use.text},
                      {length_text(length)},
                      {part_text(length, wall)},
                      {bar(style, double(length) / double(wall), kTimeBarWidth), Paint::cyan}});
  rows.push_back({{"total", Paint::bold}, {length_text(wall), Paint::bold}, {""}, {""}});
  page += "\n" + table(style,
                       {{.title = "use"},
                        {.title = "time", .right = true},
                        {.title = "part", .right = true},
                        {.title = "", .drop = 1}},
                       rows);
  if (!answer.value("LostWorkIsKnown", true))
    page +=
        paragraph(style,
                  "An attempt with checkpoints was interrupted: an unknown part of its training "
                  "is lost.",
                  Paint::yellow);
  return page;
}

std::string time_table(const OutputStyle& style, const std::string& by, const Json& answer) {
  const Json groups = answer.value("Groups", Json::array());
  if (groups.empty()) return "no jobs\n";
  std::vector<std::string> keys, ids;  // a job of Batch is shown by its name, and its id
  for (const Json& group : groups) {
    const std::string name = group.value("DisplayName", "");
    keys.push_back(name.empty() ? group.value("Key", "") : name);
    ids.push_back(name.empty() ? "" : group.value("Key", ""));
  }
  if (style.columns > 0) keys = short_ids(keys), ids = short_ids(ids);
  std::vector<std::vector<Cell>> rows;
  const auto add = [&](const std::string& key, const std::string& id, const Json& group,
                       Paint how) {
    auto uses = uses_of(group);
    const int64_t wall = count_of(group, "WallMilliseconds");
    const int64_t queued = uses["Queued"] + uses["QueuedAgain"];
    rows.push_back({{key.empty() ? "(none)" : key, how},
                    {id},
                    {std::to_string(count_of(group, "Jobs")), how},
                    {length_text(wall), how},
                    {part_text(queued, wall), how},
                    {part_text(uses["Training"], wall), how},
                    {part_text(uses["Lost"], wall), how},
                    {part_text(wall - queued - uses["Training"] - uses["Lost"], wall), how},
                    {ratio_text(group, "EffectiveTrainingTimeRatio"), how},
                    {ratio_text(group, "Goodput"), how}});
  };
  for (size_t i = 0; i < keys.size(); ++i) add(keys[i], ids[i], groups[i], Paint::none);
  add("total", "", answer.value("Total", Json::object()), Paint::bold);
  return table(style,
               {{.title = by, .width_min = kTimeKeyWidthMin, .overflow = Overflow::middle},
                {.title = "id", .drop = 6},
                {.title = "jobs", .right = true, .drop = 1},
                {.title = "time", .right = true},
                {.title = "queued", .right = true, .drop = 2},
                {.title = "training", .right = true, .drop = 4},
                {.title = "lost", .right = true, .drop = 3},
                {.title = "other", .right = true, .drop = 5},
                {.title = "ETTR", .right = true},
                {.title = "goodput", .right = true}},
               rows);
}

}  // namespace trainyard::cli
