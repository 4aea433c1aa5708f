#include "cli/views/explain_view.hpp"

#include <cmath>
#include <optional>
#include <vector>

#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

constexpr int kExplainLabelWidth = 9;
constexpr int kChangeWidthMin = 24;

std::optional<Instant> start_time_of(const Json& json) {
  const auto found = json.find("StartTime");
  if (found == json.end() || !found->is_number()) return {};
  return from_milliseconds(std::llround(found->get<double>() * 1000));
}

std::string in_text(Instant starts, Instant now) {
  return starts > now ? "in " + duration_text(starts - now) : "now";
}

std::string expected_text(const Json& answer, Instant now) {
  const auto starts = start_time_of(answer);
  if (!starts) return "unknown, if nothing changes";
  return in_text(*starts, now) + ", by " + time_text(*starts) + ", if nothing changes";
}

std::string changes_table(const OutputStyle& style, const Json& changes, Instant now) {
  std::vector<std::vector<Cell>> rows;
  for (const Json& change : changes) {
    if (!change.is_object()) continue;
    const bool at_once = change.value("Now", false);
    const auto starts = start_time_of(change);
    rows.push_back({{at_once  ? "now"
                     : starts ? in_text(*starts, now)
                              : "",
                     at_once ? Paint::green : Paint::none},
                    {at_once || !starts ? "" : time_text(*starts), Paint::dim},
                    {change.value("Description", "")}});
  }
  return table(style,
               {{.title = "starts"},
                {.title = "by", .drop = 1},
                {.title = "if you", .width_min = kChangeWidthMin, .overflow = Overflow::wrap}},
               rows);
}

std::string changes_text(const OutputStyle& style, const Json& answer, Instant now) {
  const Json changes = answer.value("Changes", Json::array());
  std::string text =
      "\n" + (changes.empty()
                  ? paragraph(style, "No single change that was tried would make it start sooner.")
                  : changes_table(style, changes, now));
  if (!answer.value("Complete", true))
    text += paragraph(style, "Not every change was tried: there are too many jobs and machines.",
                      Paint::yellow);
  return text;
}

// "0.115", of "0.115000": at least two decimals.
std::string short_amount(std::string decimal) {
  const size_t point = decimal.find('.');
  while (point != std::string::npos && decimal.ends_with('0') && decimal.size() > point + 3)
    decimal.pop_back();
  return decimal;
}

// "" if the answer has no costs.
std::string preview_cost(const Json& answer) {
  const auto of = [&](const char* member) {
    const Json cost = answer.value(member, Json::object());
    const std::string amount = short_amount(cost.value("Amount", ""));
    return amount.empty() ? "" : amount + " " + cost.value("Currency", "");
  };
  const std::string hour = of("CostPerHour"), most = of("CostAtMaxRuntime");
  if (hour.empty() || most.empty()) return "";
  const bool whole = !answer["CostPerHour"].contains("Unpriced");
  return hour + " an hour, " + most + " at its time limit" +
         (whole ? "" : ", and an unknown price");
}

}  // namespace

std::string explain_page(const OutputStyle& style, const std::string& label, const Json& answer,
                         Instant now) {
  if (!answer.value("Waiting", false))
    return paragraph(style, label + " does not wait; `trainyard describe` shows its state");
  std::string page = paragraph(style, label, Paint::bold, "job", kExplainLabelWidth);
  const std::string reason = answer.value("WaitReason", "");
  page += paragraph(style, reason.empty() ? "it starts now" : reason, Paint::none, "reason",
                    kExplainLabelWidth);
  if (reason.empty()) return page;
  page += paragraph(style, expected_text(answer, now), Paint::none, "starts", kExplainLabelWidth);
  return page + changes_text(style, answer, now);
}

std::string preview_page(const OutputStyle& style, const std::string& name, const Json& answer,
                         Instant now) {
  const auto line = [&](const std::string& label, const std::string& text) {
    return text.empty() ? "" : paragraph(style, text, Paint::none, label, kExplainLabelWidth);
  };
  const bool starts_now = answer.value("StartsNow", false);
  std::string page = paragraph(style, name, Paint::bold, "job", kExplainLabelWidth);
  page += line("starts", starts_now ? "now" : expected_text(answer, now));
  page += line("reason", answer.value("WaitReason", ""));
  page += line("cost", preview_cost(answer));
  for (const Json& note : answer.value("Notes", Json::array()))
    if (note.is_string()) page += line("note", note.get<std::string>());
  return starts_now ? page : page + changes_text(style, answer, now);
}

}  // namespace trainyard::cli
