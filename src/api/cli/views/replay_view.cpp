#include "cli/views/replay_view.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

#include "base/plural.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

constexpr int kReplayLabelWidth = 10;
constexpr int kReplayNameWidthMin = 8;
constexpr int kReplayPlotWidthMax = 120;
constexpr int kReplayPlotWidthMin = 20;
constexpr int kReplayDropFirst = 20;      // columns of later variants are left out first
constexpr size_t kReplayGroupsShown = 5;  // of each kind

std::string wait_text(double milliseconds) {
  if (milliseconds >= 10'000 || milliseconds == 0)
    return duration_text(Duration(int64_t(milliseconds)));
  char text[32];
  std::snprintf(text, sizeof text, "%.1fs", milliseconds / 1000);
  return text;
}

std::string percent_text(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", part * 100);
  return text;
}

std::string whole_text(double count) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", count);
  return text;
}

// One row of the table: a number of each outcome.
struct ReplayRow {
  std::string title;
  std::function<std::optional<double>(const Json& outcome)> number;
  std::function<std::string(double)> text;
  bool least_is_best = true;
};

std::function<std::optional<double>(const Json&)> outcome_number(const char* name) {
  return [name](const Json& outcome) -> std::optional<double> {
    const auto found = outcome.find(name);
    if (found == outcome.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
}

std::function<std::optional<double>(const Json&)> wait_number(const char* name) {
  return [name](const Json& outcome) -> std::optional<double> {
    const auto waits = outcome.find("Waits");
    return waits == outcome.end() ? std::nullopt : outcome_number(name)(*waits);
  };
}

std::function<std::optional<double>(const Json&)> group_mean(const std::string& by,
                                                             const std::string& key) {
  return [by, key](const Json& outcome) -> std::optional<double> {
    for (const Json& group : outcome.value("Groups", Json::array()))
      if (group.value("By", "") == by && group.value("Key", "") == key)
        return wait_number("MeanMilliseconds")(group);
    return std::nullopt;
  };
}

std::vector<ReplayRow> replay_rows(const Json& outcomes) {
  std::vector<ReplayRow> rows{
      {"wait, mean", wait_number("MeanMilliseconds"), wait_text},
      {"wait, median", wait_number("MedianMilliseconds"), wait_text},
      {"wait, p95", wait_number("P95Milliseconds"), wait_text},
      {"wait, longest", wait_number("LongestMilliseconds"), wait_text},
      {"not started", wait_number("NotStarted"), whole_text},
      {"unfinished", outcome_number("UnfinishedJobs"), whole_text},
      {"last end after", outcome_number("MakespanMilliseconds"), wait_text},
      {"vCPU in use", outcome_number("CpuUtilization"), percent_text, false},
  };
  const bool has_gpus = std::ranges::any_of(
      outcomes, [](const Json& outcome) { return double_or(outcome, "Gpus") > 0; });
  if (has_gpus)
    rows.push_back({"GPUs in use", outcome_number("GpuUtilization"), percent_text, false});
  const bool preempts = std::ranges::any_of(
      outcomes, [](const Json& outcome) { return double_or(outcome, "Preemptions") > 0; });
  if (preempts) {
    rows.push_back({"preemptions", outcome_number("Preemptions"), whole_text});
    rows.push_back({"lost vCPU time", outcome_number("LostCpuSeconds"),
                    [](double seconds) { return wait_text(seconds * 1000); }});
  }
  // Means by group, where there are several of a kind.
  for (const char* by : {"queue", "share", "instance-type"}) {
    std::vector<std::string> keys;
    for (const Json& group : outcomes[0].value("Groups", Json::array()))
      if (group.value("By", "") == by) keys.push_back(group.value("Key", ""));
    if (keys.size() < 2) continue;
    if (keys.size() > kReplayGroupsShown) keys.resize(kReplayGroupsShown);
    for (const std::string& key : keys)
      rows.push_back({"  mean of " + (key.empty() ? "(none)" : plain_text(key)),
                      group_mean(by, key), wait_text});
  }
  return rows;
}

// The best number of a row, if they differ; the recorded one competes with none.
std::optional<double> best_of(const std::vector<std::optional<double>>& numbers, bool least) {
  std::optional<double> best, worst;
  for (size_t i = 1; i < numbers.size(); ++i) {
    if (!numbers[i]) continue;
    best =
        best ? (least ? std::min(*best, *numbers[i]) : std::max(*best, *numbers[i])) : numbers[i];
    worst = worst ? (least ? std::max(*worst, *numbers[i]) : std::min(*worst, *numbers[i]))
                  : numbers[i];
  }
  return best == worst ? std::nullopt : best;
}

std::vector<Column> outcome_columns(const std::string& first, const Json& outcomes) {
  std::vector<Column> columns{
      {.title = first, .width_min = kReplayLabelWidth, .overflow = Overflow::middle}};
  for (size_t i = 0; i < outcomes.size(); ++i)
    columns.push_back({.title = plain_text(outcomes[i].value("Name", "")),
                       .right = true,
                       .width_min = kReplayNameWidthMin,
                       .drop = i < 3 ? 0 : kReplayDropFirst + int(i)});
  return columns;
}

std::string outcome_table(const OutputStyle& style, const Json& outcomes) {
  std::vector<std::vector<Cell>> cells;
  for (const ReplayRow& row : replay_rows(outcomes)) {
    std::vector<std::optional<double>> numbers;
    for (const Json& outcome : outcomes) numbers.push_back(row.number(outcome));
    const auto best = best_of(numbers, row.least_is_best);
    std::vector<Cell>& line = cells.emplace_back();
    line.push_back({row.title});
    for (size_t i = 0; i < numbers.size(); ++i)
      line.push_back({numbers[i] ? row.text(*numbers[i]) : "",
                      i > 0 && best && numbers[i] == best ? Paint::green : Paint::none});
  }
  return table(style, outcome_columns("", outcomes), cells);
}

// Joins neighbours, so that the plot has the width of the terminal.
std::vector<double> resampled(const std::vector<double>& values, size_t width) {
  if (values.empty() || width >= values.size()) return values;
  std::vector<double> out(width);
  for (size_t i = 0; i < width; ++i) {
    const size_t begin = i * values.size() / width, end = (i + 1) * values.size() / width;
    for (size_t j = begin; j < end; ++j) out[i] += values[j] / double(end - begin);
  }
  return out;
}

// Without Unicode: a digit for each tenth.
std::string tenth_digits(const std::vector<double>& values, double top) {
  std::string out;
  for (const double value : values)
    out += top > 0 ? char('0' + std::clamp(int(value / top * 9.999), 0, 9)) : '0';
  return out;
}

std::string plots(const OutputStyle& style, const Json& outcomes, const char* used, const char* all,
                  const char* title) {
  double top = 0;
  int widest = 0;
  for (const Json& outcome : outcomes) {
    top = std::max(top, double_or(outcome, all));
    widest = std::max(widest, width_of(plain_text(outcome.value("Name", ""))));
  }
  if (top <= 0) return "";
  const int columns = style.columns > 0 ? style.columns : kReplayPlotWidthMax;
  widest = std::min(widest, std::max(kReplayNameWidthMin, columns / 4));
  const int width = std::clamp(columns - widest - 2, kReplayPlotWidthMin, kReplayPlotWidthMax);
  std::string out =
      paragraph(style, std::string(title) + " in use over time, of " + whole_text(top) +
                           (style.unicode ? "" : " (9: all of them)"));
  for (const Json& outcome : outcomes) {
    std::vector<double> values;
    for (const Json& value : outcome.value(used, Json::array()))
      values.push_back(value.is_number() ? value.get<double>() : 0);
    values = resampled(values, size_t(width));
    const std::string line =
        style.unicode ? sparkline(style, values, top) : tenth_digits(values, top);
    out += pad(style, plain_text(outcome.value("Name", "")), widest) + "  " +
           paint(style, Paint::cyan, line) + "\n";
  }
  return out;
}

std::string affected_table(const OutputStyle& style, const Json& answer, const Json& outcomes) {
  const Json jobs = answer.value("MostAffected", Json::array());
  if (jobs.empty()) return "";
  std::vector<std::vector<Cell>> rows;
  for (const Json& job : jobs) {
    std::vector<Cell>& row = rows.emplace_back();
    row.push_back({plain_text(job.value("JobName", ""))});
    for (const Json& wait : job.value("Waits", Json::array()))
      row.push_back({wait.contains("Milliseconds") ? wait_text(double_or(wait, "Milliseconds"))
                                                   : "not started"});
    row.resize(outcomes.size() + 1);
  }
  return "\n" + table(style, outcome_columns("waits of jobs", outcomes), rows);
}

std::string headline(const OutputStyle& style, const Json& answer) {
  const auto time = [&](const char* name) {
    return time_text(from_milliseconds(int64_t(double_or(answer, name) * 1000)));
  };
  std::string out = paragraph(style, time("PeriodStart") + " to " + time("PeriodEnd"), {}, "period",
                              kReplayLabelWidth);
  std::string jobs = counted(uint64_t(double_or(answer, "Jobs")), "job");
  if (const double before = double_or(answer, "JobsBefore"); before > 0)
    jobs += ", and " + whole_text(before) + " from before it that are not counted";
  return out + paragraph(style, jobs, {}, "jobs", kReplayLabelWidth);
}

std::string remarks(const OutputStyle& style, const Json& answer, const Json& outcomes) {
  std::string out;
  const auto say = [&](const std::string& text) { out += paragraph(style, text, Paint::yellow); };
  const auto jobs = [&](const char* name) { return uint64_t(double_or(answer, name)); };
  for (const Json& outcome : outcomes) {
    if (!outcome.value("Complete", true))
      say(plain_text(outcome.value("Name", "")) + ": the limit of plans was reached at " +
          time_text(from_milliseconds(int64_t(double_or(outcome, "ReachedTime") * 1000))) +
          "; choose a shorter period.");
    if (outcome.contains("StartErrorMedianMilliseconds"))
      out += paragraph(style,
                       "Starts of the replay as it is differ from the recorded ones by " +
                           wait_text(double_or(outcome, "StartErrorMedianMilliseconds")) +
                           " (median) and " +
                           wait_text(double_or(outcome, "StartErrorP95Milliseconds")) + " (p95).",
                       Paint::dim);
  }
  if (jobs("EstimatedJobs") > 0)
    say(counted(jobs("EstimatedJobs"), "job") +
        " not started yet: taken to last as long as the median of the queue.");
  if (jobs("RunningJobs") > 0)
    say(counted(jobs("RunningJobs"), "job") + " still running: without an end in the replay.");
  if (jobs("CancelledJobs") > 0)
    say(counted(jobs("CancelledJobs"), "job") + " stopped before the start: left out.");
  if (jobs("UnplaceableJobs") > 0)
    say(counted(jobs("UnplaceableJobs"), "job") +
        " of queues or environments that no longer exist: left out.");
  return out;
}

}  // namespace

std::string replay_page(const OutputStyle& style, const Json& answer) {
  const Json outcomes = answer.value("Outcomes", Json::array());
  if (outcomes.empty()) return "no replay\n";
  std::string page = headline(style, answer);
  if (double_or(answer, "Jobs") == 0) return page + "\nno jobs were created in this period\n";
  page += "\n" + outcome_table(style, outcomes);
  page += "\n" + plots(style, outcomes, "CpusUsed", "Cpus", "vCPU");
  if (const std::string gpus = plots(style, outcomes, "GpusUsed", "Gpus", "GPUs"); !gpus.empty())
    page += "\n" + gpus;
  page += affected_table(style, answer, outcomes);
  if (const std::string some = remarks(style, answer, outcomes); !some.empty()) page += "\n" + some;
  return page;
}

}  // namespace trainyard::cli
