#include "entry/process_tree.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::entry {
namespace {

constexpr size_t kStatBytesMax = 4096;          // of /proc/PID/stat and status
constexpr size_t kArgumentsBytesMax = 2 << 20;  // the kernel's limit with the usual stack of 8 MiB
constexpr int kWrappersMax = 64;                // processes on one path down the tree

std::string file_of(pid_t process, const char* name, size_t bytes_max) {
  auto text = os::read_file("/proc/" + std::to_string(process) + "/" + name, bytes_max);
  return text ? *std::move(text) : "";
}

// Returns the parent's process ID, or 0 if the process has ended.
pid_t parent_of(pid_t process) {
  // "17 (a name) S 1 ..": names may have brackets and spaces.
  const std::string stat = file_of(process, "stat", kStatBytesMax);
  const size_t end = stat.rfind(") ");
  if (end == stat.npos) return 0;
  const auto words = split(std::string_view(stat).substr(end + 2), ' ');
  const auto parent = words.size() < 2 ? Result<int64_t>(0) : parse_int(words[1]);
  return parent ? static_cast<pid_t>(*parent) : 0;
}

// Returns true if the process has a handler for the signal (SigCgt in its status).
bool handles(pid_t process, int signal) {
  const std::string status = file_of(process, "status", kStatBytesMax);
  constexpr std::string_view kCaught = "\nSigCgt:\t";
  const size_t at = status.find(kCaught);
  if (at == status.npos) return false;
  uint64_t mask = 0;  // in hexadecimal
  for (size_t i = at + kCaught.size(); i < status.size() && status[i] != '\n'; ++i) {
    const char digit = status[i];
    mask = mask << 4 | uint64_t(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }
  return (mask >> (signal - 1) & 1) != 0;
}

std::string arguments_of(pid_t process) { return file_of(process, "cmdline", kArgumentsBytesMax); }

}  // namespace

ProcessTree ProcessTree::read() {
  ProcessTree tree;
  const auto names = os::list_directory("/proc");
  if (!names) return tree;
  for (const std::string& name : *names)
    if (const auto process = parse_int(name))
      if (const pid_t parent = parent_of(static_cast<pid_t>(*process)); parent > 0)
        tree.children_.emplace(parent, static_cast<pid_t>(*process));
  return tree;
}

std::vector<pid_t> ProcessTree::children_of(pid_t process) const {
  std::vector<pid_t> out;
  const auto [begin, end] = children_.equal_range(process);
  for (auto each = begin; each != end; ++each) out.push_back(each->second);
  return out;
}

void ProcessTree::add_handlers(pid_t root, int signal, std::set<pid_t>& handlers) const {
  std::vector<pid_t> level{root};
  for (int depth = 0; depth < kWrappersMax && !level.empty(); ++depth) {
    std::vector<pid_t> below;
    for (const pid_t process : level) {
      if (handles(process, signal)) {
        handlers.insert(process);
        continue;
      }
      const std::string own = arguments_of(process);
      const auto children = children_of(process);
      const bool has_workers = std::ranges::any_of(children, [&](pid_t child) {
        const std::string arguments = arguments_of(child);
        return arguments == own || arguments.find("multiprocessing") != arguments.npos;
      });
      if (!has_workers) below.insert(below.end(), children.begin(), children.end());
    }
    level = std::move(below);
  }
}

}  // namespace trainyard::entry
