#include "config/slurm.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "launch/slurm/rest_submission.hpp"

namespace trainyard::config {
namespace {

constexpr int64_t kMarginMinutesMax = 7 * 24 * 60;      // a week: a larger number is a mistake
constexpr int64_t kNodeIdleSecondsMax = 7 * 24 * 3600;  // as long
constexpr size_t kValueBytesMax = 256;

// Values become options of sbatch, and a part of nothing else.
Result<void> read_value(Table& table, const char* key, std::string& into) {
  TRY(table.read(key, into));
  const bool plain = std::ranges::all_of(into, [](char c) { return c > ' ' && c != 127; });
  if (!plain || into.size() > kValueBytesMax || into.starts_with('-'))
    return table.refused(key, "a value of sbatch's option, without blanks, of at most " +
                                  std::to_string(kValueBytesMax) +
                                  " bytes, which does not begin with '-'");
  return {};
}

Result<void> read_placement(Table& table, launch::SlurmPlacement& placement) {
  TRY(read_value(table, "partition", placement.partition));
  TRY(read_value(table, "account", placement.account));
  TRY(read_value(table, "qos", placement.qos));
  TRY(read_value(table, "constraint", placement.constraint));
  TRY(read_value(table, "reservation", placement.reservation));
  TRY(read_value(table, "licenses", placement.licenses));
  TRY(read_value(table, "gpu_type", placement.gpu_type));
  return table.read("exclusive", placement.exclusive);
}

Result<void> read_directory(Table& table, const char* key, std::string& into) {
  TRY(table.read(key, into));
  if (!into.empty() && !into.starts_with('/'))
    return table.refused(key, "an absolute path on the nodes");
  return {};
}

Result<void> read_rest(Table& table, Slurm& slurm) {
  TRY(read_value(table, "rest_url", slurm.rest_url));
  TRY(read_value(table, "rest_version", slurm.rest_version));
  TRY(read_value(table, "rest_user", slurm.rest_user));
  TRY(table.read("rest_token_file", slurm.rest_token_file));
  TRY(table.read("rest_ca_bundle", slurm.rest_ca_bundle));
  if (slurm.rest_url.empty()) return {};
  if (!slurm.rest_url.starts_with("http://") && !slurm.rest_url.starts_with("https://"))
    return table.refused("rest_url", "a URL, http:// or https://");
  if (slurm.rest_token_file.empty())
    return table.refused("rest_token_file", "the file with the JWT for slurmrestd");
  return {};
}

// Reads "20000-29999".
Result<void> read_ports(Table& table, Slurm& slurm) {
  std::string text = std::to_string(slurm.first_port) + "-" + std::to_string(slurm.last_port);
  TRY(table.read("user_ports", text));
  const size_t dash = std::min(text.find('-'), text.size());
  const auto first = parse_int(std::string_view(text).substr(0, dash));
  const auto last = parse_int(std::string_view(text).substr(std::min(dash + 1, text.size())));
  constexpr int64_t kFirstMin = 1024;  // others need root
  if (!first || !last || *first < kFirstMin || *last < *first || *last > UINT16_MAX)
    return table.refused("user_ports", "FIRST-LAST, like 20000-29999, ports from " +
                                           std::to_string(kFirstMin) + " to " +
                                           std::to_string(UINT16_MAX));
  slurm.first_port = uint16_t(*first);
  slurm.last_port = uint16_t(*last);
  return {};
}

Result<void> read_system_accounts(Table& table, Slurm& slurm) {
  std::vector<std::string> names;
  TRY(table.read("system_accounts", names));
  for (auto& name : names) {
    if (!launch::is_unix_name(name))
      return table.refused_element("system_accounts", name, "the name of a Unix account");
    slurm.unix_users.system_accounts.insert(std::move(name));
  }
  return {};
}

// Some jobs for accounts of their own and others for the server's, which usually is root, would be
// one forgotten line away from a user's jobs as root.
Result<void> check_unix_users(const Table& table, const Slurm& slurm) {
  if (slurm.unix_users.names.empty()) return {};
  for (const auto& [name, placement] : slurm.of_users)
    if (!slurm.unix_users.names.contains(name))
      return invalid(table.name("users") + "." + format_text(name) +
                     " has no unix_user, but others have: jobs run for the Unix accounts of all "
                     "users or of none");
  if (slurm.agents_listen.empty())
    return invalid(
        table.name("agents_listen") +
        " is missing: the agents of users with a unix_user cannot open the socket in the "
        "server's data directory, and need HOST:PORT");
  return {};
}

// Reads [slurm.node_kinds."c5.4xlarge"].
Result<void> read_node_kinds(Table& table, Slurm& slurm) {
  TRY(table.each_named("node_kinds", [&](const std::string& name, Table of) -> Result<void> {
    launch::SlurmNodeKind kind{name, name};
    int64_t nodes_max = 0;
    TRY(read_value(of, "feature", kind.feature));
    TRY(of.read("nodes_max", nodes_max, {0, int64_t(launch::kSlurmNodesMax)}));
    if (kind.feature.empty()) return of.refused("feature", "a feature of nodes in slurm.conf");
    kind.nodes_max = uint32_t(nodes_max);
    slurm.node_kinds.push_back(std::move(kind));
    return of.nothing_else();
  }));
  std::ranges::sort(slurm.node_kinds, {}, &launch::SlurmNodeKind::name);
  TRY(table.read_duration("node_idle_seconds", slurm.node_idle_max, 1s, {1, kNodeIdleSecondsMax}));
  const auto* version = launch::find_rest_version(slurm.rest_version);
  if (!slurm.node_kinds.empty() && !slurm.rest_url.empty() && version && !version->changes_nodes)
    return invalid(table.name("node_kinds") + ": slurmrestd's API " + slurm.rest_version +
                   " cannot power nodes up and down: remove rest_url, so that scontrol is used, or "
                   "set a newer rest_version");
  return {};
}

// A job that waits keeps its processors from others.
constexpr int64_t kIdleSecondsMax = 3600;

Result<void> read_one(Table table, Config& config) {
  Slurm& slurm = config.slurm.emplace();
  TRY(read_placement(table, slurm.placement));
  TRY(read_value(table, "server_address", slurm.server_address));
  TRY(read_value(table, "agents_listen", slurm.agents_listen));
  TRY(table.read("config_file", slurm.config_file));
  TRY(read_directory(table, "node_directory", slurm.node_directory));
  TRY(read_directory(table, "program_directory", slurm.program_directory));
  TRY(read_rest(table, slurm));
  TRY(table.read_duration("time_margin_minutes", slurm.time_margin, 1min, {0, kMarginMinutesMax}));
  TRY(table.read_duration("idle_seconds", slurm.idle_max, 1s, {0, kIdleSecondsMax}));
  for (auto [key, placements] : {std::pair("queues", &slurm.of_queues),
                                 std::pair("instance_types", &slurm.of_instance_types)})
    TRY(table.each_named(
        key, [&, placements = placements](const std::string& name, Table of) -> Result<void> {
          TRY(read_placement(of, (*placements)[name]));
          return of.nothing_else();
        }));
  TRY(table.each_named("users", [&](const std::string& name, Table of) -> Result<void> {
    launch::SlurmPlacement& placement = slurm.of_users[name];
    TRY(read_value(of, "account", placement.account));
    TRY(read_value(of, "qos", placement.qos));
    TRY(read_value(of, "reservation", placement.reservation));
    std::string unix_user;
    TRY(read_value(of, "unix_user", unix_user));
    if (!unix_user.empty()) slurm.unix_users.names[name] = std::move(unix_user);
    return of.nothing_else();
  }));
  TRY(table.read("require_user", slurm.require_user));
  TRY(read_directory(table, "user_directory", slurm.user_directory));
  TRY(read_ports(table, slurm));
  TRY(read_system_accounts(table, slurm));
  TRY(read_node_kinds(table, slurm));
  TRY(check_unix_users(table, slurm));
  TRY(table.nothing_else());
  if (slurm.node_directory.empty())
    return table.refused("node_directory", "an absolute path on the nodes, or left out");
  if (!slurm.agents_listen.empty() &&
      (slurm.agents_listen.rfind(':') == std::string::npos || slurm.agents_listen.ends_with(":0")))
    return table.refused("agents_listen",
                         "HOST:PORT, with a fixed port, where agents find the server again");
  return {};
}

}  // namespace

Result<void> read_slurm(Table& root, Config& config) {
  size_t tables = 0;
  TRY(root.each("slurm", [&](Table table) -> Result<void> {
    if (++tables > 1)
      return invalid("slurm must be one table, not several: a server uses one cluster");
    return read_one(std::move(table), config);
  }));
  if (config.slurm && !config.machines.empty())
    return invalid(
        "machine: the machines of a server with [slurm] are Slurm's nodes: remove [[machine]]");
  return {};
}

}  // namespace trainyard::config
