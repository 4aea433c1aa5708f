#include "config/kubernetes.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace trainyard::config {
namespace {

constexpr int64_t kMarginMinutesMax = 7 * 24 * 60;  // a week: a larger number is a mistake
constexpr size_t kNameBytesMax = 253;
constexpr size_t kImageBytesMax = 1024;
constexpr size_t kTolerationsMax = 100;
constexpr size_t kPathBytesMax = 4096;

bool is_plain(std::string_view text, size_t bytes_max) {
  return text.size() <= bytes_max &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

// Reads the name of an object, which becomes a part of paths.
Result<void> read_name(Table& table, const char* key, std::string& into) {
  TRY(table.read(key, into));
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool valid = into.size() <= kNameBytesMax && std::ranges::all_of(into, [&](char c) {
                       return alphanumeric(c) || c == '-' || c == '.';
                     });
  // Names like ".." would be another path.
  if (!valid || (!into.empty() && !(alphanumeric(into.front()) && alphanumeric(into.back()))))
    return table.refused(key, "the name of an object of Kubernetes: a-z, 0-9, - and .");
  return {};
}

Result<void> read_plain(Table& table, const char* key, std::string& into) {
  TRY(table.read(key, into));
  if (!is_plain(into, kImageBytesMax))
    return table.refused(
        key, "a text without blanks, of at most " + std::to_string(kImageBytesMax) + " bytes");
  return {};
}

// Parses "dedicated=training:NoSchedule", as in `kubectl taint`; without "=value": any value.
Result<launch::KubernetesToleration> parse_toleration(std::string_view text) {
  constexpr std::array kEffects = {"", "NoSchedule", "PreferNoSchedule", "NoExecute"};
  launch::KubernetesToleration toleration;
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) toleration.effect = text.substr(colon + 1);
  const auto rest = text.substr(0, colon);
  const size_t equals = rest.find('=');
  toleration.key = rest.substr(0, equals);
  if (equals != std::string_view::npos) toleration.value = rest.substr(equals + 1);
  if (toleration.key.empty() || !is_plain(text, 2 * kNameBytesMax) ||
      std::ranges::find(kEffects, toleration.effect) == kEffects.end())
    return invalid(format_text(text) + " must be a toleration, like dedicated=training:NoSchedule");
  return toleration;
}

Result<void> read_placement(Table& table, launch::KubernetesPlacement& placement) {
  TRY(table.read("node_selector", placement.node_selector));
  for (const auto& [name, value] : placement.node_selector)
    if (name.empty() || !is_plain(name, 2 * kNameBytesMax) || !is_plain(value, kNameBytesMax))
      return table.refused("node_selector",
                           "a table of labels of nodes and their values, without blanks");
  std::vector<std::string> tolerations;
  TRY(table.read("tolerations", tolerations));
  if (tolerations.size() > kTolerationsMax)
    return table.refused("tolerations",
                         "a list of at most " + std::to_string(kTolerationsMax) + " tolerations");
  for (const auto& text : tolerations)
    placement.tolerations.push_back(TRY(parse_toleration(text).in(table.name("tolerations"))));
  TRY(read_name(table, "priority_class", placement.priority_class));
  TRY(read_name(table, "service_account", placement.service_account));
  TRY(read_name(table, "runtime_class", placement.runtime_class));
  return read_name(table, "local_queue", placement.local_queue);
}

Result<void> read_directory(Table& table, const char* key, std::string& into) {
  TRY(table.read(key, into));
  if (!into.starts_with('/') || into.size() == 1)
    return table.refused(key, "an absolute path in the pods, and not /");
  return {};
}

Result<void> read_addresses(Table& table, Kubernetes& kubernetes) {
  TRY(read_plain(table, "server_address", kubernetes.server_address));
  TRY(read_plain(table, "agents_listen", kubernetes.agents_listen));
  if (kubernetes.agents_listen.rfind(':') == std::string::npos ||
      kubernetes.agents_listen.ends_with(":0"))
    return table.refused("agents_listen",
                         "HOST:PORT, with a fixed port, where agents in pods find the server");
  return {};
}

bool is_plain_path(std::string_view path) {
  return path.starts_with('/') && path.size() > 1 && !path.ends_with('/') &&
         path.find("//") == path.npos && (std::string(path) + "/").find("/../") == path.npos &&
         is_plain(path, kPathBytesMax);
}

// True if one of two paths contains the other, or both are the same.
bool overlap(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '/');
}

Result<void> read_mount(const std::string& path, Table table, Kubernetes& kubernetes) {
  launch::KubernetesMount mount;
  TRY(read_name(table, "claim", mount.claim));
  TRY(table.read("directory", mount.directory));
  TRY(table.nothing_else());
  if (!mount.claim.empty() && !mount.directory.empty())
    return table.refused("directory", "no directory in addition to a claim, which has its own");
  if (mount.claim.empty() && mount.directory.empty()) mount.directory = path;
  if (!is_plain_path(path) || (mount.claim.empty() && !is_plain_path(mount.directory)))
    return invalid("kubernetes.mounts." + format_text(path) +
                   ": name and directory must be absolute paths without .. and blanks");
  for (const std::string_view own :
       {std::string_view(kubernetes.node_directory), std::string_view(kubernetes.program_directory),
        std::string_view("/dev"), std::string_view("/etc"), std::string_view("/proc"),
        std::string_view("/run"), std::string_view("/sys"), std::string_view("/usr")})
    if (overlap(path, own))
      return invalid("kubernetes.mounts." + format_text(path) + " would hide " + std::string(own) +
                     " of the pods: use another path, such as /srv/shared");
  kubernetes.mounts[path] = mount;
  return {};
}

// Jobs can mount only what their pods have.
Result<void> check_shared(const char* table, const domain::FileSystems& shared,
                          const Kubernetes& kubernetes) {
  for (const auto& [name, each] : shared) {
    const std::string& directory = each.directory;
    const auto contains = [&](const auto& mount) {
      return directory == mount.first || directory.starts_with(mount.first + "/");
    };
    if (!directory.empty() && std::ranges::none_of(kubernetes.mounts, contains))
      return invalid(std::string(table) + "." + format_text(name) +
                     ".directory = " + format_text(directory) +
                     " is not in the pods of jobs: add a table [kubernetes.mounts." +
                     format_text(directory) + "]");
  }
  return {};
}

Result<void> read_one(Table table, Config& config) {
  Kubernetes& kubernetes = config.kubernetes.emplace();
  TRY(table.read("kubeconfig", kubernetes.kubeconfig));
  TRY(table.read("context", kubernetes.context));
  TRY(read_name(table, "namespace", kubernetes.name_space));
  TRY(read_plain(table, "image", kubernetes.image));
  if (kubernetes.image.empty())
    return table.refused("image", "the image with Trainyard's programs, as nodes pull it");
  TRY(read_placement(table, kubernetes.placement));
  TRY(read_addresses(table, kubernetes));
  TRY(read_directory(table, "node_directory", kubernetes.node_directory));
  TRY(read_directory(table, "program_directory", kubernetes.program_directory));
  TRY(table.read_duration("time_margin_minutes", kubernetes.time_margin, 1min,
                          {0, kMarginMinutesMax}));
  TRY(table.each_named("mounts", [&](const std::string& path, Table mount) {
    return read_mount(path, std::move(mount), kubernetes);
  }));
  for (auto [key, placements] : {std::pair("queues", &kubernetes.of_queues),
                                 std::pair("instance_types", &kubernetes.of_instance_types)})
    TRY(table.each_named(
        key, [&, placements = placements](const std::string& name, Table of) -> Result<void> {
          TRY(read_placement(of, (*placements)[name]));
          return of.nothing_else();
        }));
  return table.nothing_else();
}

}  // namespace

Result<void> read_kubernetes(Table& root, Config& config) {
  size_t tables = 0;
  TRY(root.each("kubernetes", [&](Table table) -> Result<void> {
    if (++tables > 1)
      return invalid("kubernetes must be one table, not several: a server uses one cluster");
    return read_one(std::move(table), config);
  }));
  if (!config.kubernetes) return {};
  if (!config.machines.empty())
    return invalid(
        "machine: the machines of a server with [kubernetes] are Kubernetes' nodes: remove "
        "[[machine]]");
  TRY(check_shared("volumes", config.volumes, *config.kubernetes));
  TRY(check_shared("file_systems", config.file_systems, *config.kubernetes));
  if (config.slurm)
    return invalid("kubernetes: a server uses one cluster: remove [kubernetes] or [slurm]");
  return {};
}

}  // namespace trainyard::config
