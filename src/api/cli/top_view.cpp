#include "cli/top_view.hpp"

#include <algorithm>
#include <cstdio>

#include "base/plural.hpp"

namespace trainyard::cli {
namespace {

constexpr int kNameShownMin = 12;  // columns

bool runs(const HostView& host) {
  return host.state != "finished" && host.state != "failed" && host.state != "lost";
}

// "2 jobs on 5 hosts, 3 jobs waiting". An array is one job, with a host for each running child.
std::string summary_of(const std::vector<JobView>& jobs) {
  uint64_t running = 0, waiting = 0, hosts = 0;
  for (const auto& job : jobs) {
    if (job.is_child() && jobs.size() > 1) continue;  // counted with its array
    const auto of_job =
        uint64_t(job.array ? job.array->running : std::ranges::count_if(job.hosts, runs));
    ++(of_job > 0 ? running : waiting);
    hosts += of_job;
  }
  return counted(running, "job") + " on " + counted(hosts, "host") +
         (waiting > 0 ? ", " + counted(waiting, "job") + " waiting" : "");
}

double last_of(const HostView& host, const std::string& metric) {
  for (const auto& usage : host.usage)
    if (usage.metric == metric && !usage.values.empty()) return usage.values.back();
  return -1;
}

Paint paint_of_load(double percent) {
  return percent >= 90 ? Paint::red : percent >= 70 ? Paint::yellow : Paint::green;
}

// Two columns of `trainyard top`, a number and a bar: a metric of usage_meter.hpp, and how many of
// a host's units can be used at 100 % each.
struct UsageColumn {
  const char* title;
  const char* metric;
  double (*units)(const HostView&);
  int drop, drop_bar;
};
double one_unit(const HostView&) { return 1; }
double cores_of(const HostView& host) { return std::max(1.0, host.cpus); }
double gpus_of(const HostView& host) { return double(std::max<int64_t>(1, host.gpus)); }
constexpr UsageColumn kUsageColumns[] = {
    {"cpu", "CPUUtilization", cores_of, 0, 5},
    {"memory", "MemoryUtilization", one_unit, 0, 7},
    {"disk", "DiskUtilization", one_unit, 4, 9},
    {"gpu", "GPUUtilization", gpus_of, 0, 6},
    {"gpu memory", "GPUMemoryUtilization", gpus_of, 2, 8},
};

// Adds the number and the bar of a column.
void add_usage(const OutputStyle& style, const HostView& host, const UsageColumn& column,
               std::vector<Cell>& row) {
  constexpr int kBarWidth = 10;
  const double last = last_of(host, column.metric);
  if (last < 0) {
    row.resize(row.size() + 2);
    return;
  }
  const double part = last / (100 * column.units(host));
  char digits[16];
  std::snprintf(digits, sizeof digits, "%.1f%%", last);
  row.push_back({digits, paint_of_load(part * 100)});
  row.push_back({bar(style, part, kBarWidth), paint_of_load(part * 100)});
}

Cell cpu_history(const OutputStyle& style, const HostView& host) {
  constexpr size_t kSparkValues = 20;
  std::vector<double> history;
  for (const auto& usage : host.usage)
    if (usage.metric == "CPUUtilization") history = usage.values;
  if (history.size() > kSparkValues)
    history.erase(history.begin(), history.end() - ptrdiff_t(kSparkValues));
  return {sparkline(style, history, 100 * cores_of(host)), Paint::cyan};
}

}  // namespace

std::string top_page(const OutputStyle& style, const std::vector<JobView>& jobs, Instant now) {
  std::string out = paint(style, Paint::bold, "trainyard top") + "  " + summary_of(jobs);
  const std::string time = "  " + time_text(now);
  if (style.columns == 0 || width_of(out + time) <= style.columns)
    out += paint(style, Paint::dim, time);
  out += "\n\n";
  std::vector<std::vector<Cell>> rows;
  // Hosts that do not fit on the terminal are only counted.
  const size_t rows_max = style.live ? size_t(std::max(1, style.rows - 5)) : SIZE_MAX;
  size_t left_out = 0;
  for (const auto& job : jobs)
    for (const auto& host : job.hosts) {
      if (!runs(host)) continue;
      if (rows.size() >= rows_max) {
        ++left_out;
        continue;
      }
      auto& row = rows.emplace_back();
      row = {{label_of(job)}, {host.name}, {host.state, Paint::dim}};
      for (const auto& column : kUsageColumns) add_usage(style, host, column, row);
      row.push_back(cpu_history(style, host));
    }
  if (rows.empty()) return out + "no jobs are running\n";
  std::vector<Column> columns{
      {.title = "job", .width_min = kNameShownMin, .overflow = Overflow::middle},
      {.title = "host"},
      {.title = "state", .drop = 3}};
  for (const auto& column : kUsageColumns) {
    columns.push_back({.title = column.title, .right = true, .drop = column.drop});
    columns.push_back({.title = "", .drop = column.drop_bar});
  }
  columns.push_back({.title = "cpu, last minutes", .drop = 10});
  out += table(style, columns, rows);
  if (left_out > 0) out += paint(style, Paint::dim, "and " + counted(left_out, "more host")) + "\n";
  return out;
}

}  // namespace trainyard::cli
