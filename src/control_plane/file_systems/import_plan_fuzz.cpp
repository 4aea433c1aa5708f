// Plans imports of hostile object keys, which writers of a linked bucket choose. Paths must stay
// below their directory, and no file may be the directory of another one.
//
// decoder: src/control_plane/file_systems/import_plan.cpp
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "file_systems/import_plan.hpp"

namespace {

bool is_below(std::string_view path, std::string_view directory) {
  if (path.find('\0') != path.npos || !path.starts_with(directory)) return false;
  path.remove_prefix(directory.size());
  if (!directory.empty() && !path.starts_with('/')) return false;
  if (!directory.empty()) path.remove_prefix(1);
  for (const auto part : trainyard::split(path, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

}  // namespace

// The keys are the lines of the input; the first is the prefix.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::file_systems;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = trainyard::split(text, '\n');
  std::vector<trainyard::objects::ObjectInfo> listed;
  for (const auto line : lines) {
    listed.emplace_back();
    listed.back().key = std::string(lines.front()) + std::string(line);
  }
  for (const std::string directory : {"", "ns/one"}) {
    const auto plan = plan_import(listed, lines.front(), directory, {}, {}, ImportMode::all);
    if (plan.fetches.size() + plan.failures.size() > listed.size()) __builtin_trap();
    std::set<std::string> files;
    for (const auto& each : plan.fetches) {
      if (!is_below(each.path, directory)) __builtin_trap();
      if (!each.directory && !files.insert(each.path).second) __builtin_trap();
    }
    for (const auto& each : plan.fetches)
      for (size_t end = each.path.find('/'); end != std::string::npos;
           end = each.path.find('/', end + 1))
        if (files.contains(each.path.substr(0, end))) __builtin_trap();
    // Existing files are not fetched again.
    Files present;
    for (const auto& each : plan.fetches)
      if (!each.directory) present[each.path] = {each.bytes, each.modified};
    for (const auto mode : {ImportMode::all, ImportMode::added, ImportMode::added_changed}) {
      const auto again = plan_import(listed, lines.front(), directory, {}, present, mode);
      for (const auto& each : again.fetches)
        if (!each.directory) __builtin_trap();
    }
    if (summary_of(plan.failures).empty() != plan.failures.empty()) __builtin_trap();
    for (const auto& failure : plan.failures) {
      const std::string line = report_line(failure);
      if (line.find('\n') != line.size() - 1) __builtin_trap();
    }
  }
  return 0;
}
