#include "cli/views/cluster_view.hpp"

#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

constexpr int kIndent = 2;  // for lines below a machine

bool begins_with_any(const std::string& text, const std::vector<std::string>& beginnings) {
  for (const std::string& beginning : beginnings)
    if (text.starts_with(beginning)) return true;
  return false;
}

Paint paint_of_state(const std::string& state) {
  if (state.ends_with('*') || begins_with_any(state, {"down", "fail", "inval", "unk"}) ||
      state.empty())
    return Paint::red;
  if (begins_with_any(state, {"drain", "maint", "reboot", "planned", "power"}))
    return Paint::yellow;
  return Paint::green;
}

std::string memory_text(int64_t memory_mib) {
  return memory_mib > 0 ? human_bytes(uint64_t(memory_mib) << 20) : "";
}

}  // namespace

std::string machine_size_text(int64_t cpus, int64_t memory_mib, size_t gpu_count,
                              const std::string& gpu_type) {
  std::string text = counted(uint64_t(cpus), "CPU") + ", " + memory_text(memory_mib) + " of memory";
  if (gpu_count > 0) text += ", " + counted(gpu_count, "GPU");
  if (gpu_count > 0 && !gpu_type.empty()) text += " (" + gpu_type + ")";
  return text;
}

std::string cluster_plan_page(const OutputStyle& style,
                              const std::vector<MachinePlanView>& machines) {
  std::string page;
  for (const MachinePlanView& machine : machines) {
    if (machine.steps.empty() && machine.problem.empty()) continue;
    page += paragraph(style,
                      plain_text(machine.name) +
                          (machine.about.empty() ? "" : " (" + plain_text(machine.about) + ")"),
                      Paint::bold);
    if (!machine.problem.empty())
      page += paragraph(style, "is left alone: " + plain_text(machine.problem), Paint::red, "",
                        kIndent);
    if (!machine.forgotten.empty())
      page += paragraph(style,
                        "is forgotten, nothing is undone there: " + plain_text(machine.forgotten),
                        Paint::yellow, "", kIndent);
    for (const auto& [text, reason] : machine.steps)
      page += paragraph(style, text + (reason.empty() ? "" : " (" + reason + ")"), Paint::none, "",
                        kIndent);
  }
  return page;
}

std::string cluster_status_page(const OutputStyle& style, const std::string& cluster,
                                const std::vector<ClusterNodeView>& nodes) {
  const std::vector<Column> columns = {
      {.title = "NODE", .width_min = 8, .overflow = Overflow::middle},
      {.title = "STATE"},
      {.title = "CPUS", .right = true},
      {.title = "MEMORY", .right = true},
      {.title = "GPUS", .right = true},
      {.title = "ADDRESS", .drop = 2},
      {.title = "SLURM", .drop = 3},
      {.title = "REASON", .width_min = 12, .drop = 1, .overflow = Overflow::wrap, .below = true}};
  std::vector<std::vector<Cell>> rows;
  for (const ClusterNodeView& node : nodes) {
    const bool unknown = node.runs_jobs && node.state.empty();
    rows.push_back({{node.name + (node.is_controller ? " (controller)" : "")},
                    {!node.runs_jobs ? "runs no jobs"
                     : unknown       ? "not in Slurm"
                                     : node.state,
                     node.runs_jobs ? paint_of_state(node.state) : Paint::dim},
                    {std::to_string(node.cpus)},
                    {memory_text(node.memory_mib)},
                    {node.gpus > 0 ? std::to_string(node.gpus) : ""},
                    {node.address},
                    {node.version},
                    {node.reason}});
  }
  return paragraph(style, "cluster " + cluster) + table(style, columns, rows);
}

}  // namespace trainyard::cli
