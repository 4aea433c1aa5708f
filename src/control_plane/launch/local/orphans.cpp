#include "launch/local/orphans.hpp"

#include <algorithm>
#include <iterator>

#include "launch/local/known.hpp"
#include "launch/local/plan.hpp"
#include "launch/local/stepped_launcher.hpp"

namespace trainyard::launch {
namespace {

bool is_mark(std::string_view text) {
  return text.size() == 6 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Returns the marks of all servers that have left objects on this machine.
Result<std::set<std::string>> marks_in_sight(const LocalParts& parts,
                                             const std::string& run_directory) {
  std::set<std::string> marks;
  if (const auto names = parts.files.list_directory(run_directory))
    for (const auto& name : *names)
      if (is_mark(name)) marks.insert(name);
  for (const auto prefix :
       {networks::kLinkPrefix, networks::kBridgePrefix, networks::kDirectPrefix})
    for (const auto& name : parts.system.links_named(prefix))
      if (name.size() > prefix.size() + 6 &&
          is_mark(std::string_view(name).substr(prefix.size(), 6)))
        marks.insert(name.substr(prefix.size(), 6));
  if (parts.system.has_firewall())
    for (const auto& name : TRY(parts.system.firewall_tables_named(networks::kTablePrefix))) {
      const auto rest = std::string_view(name).substr(networks::kTablePrefix.size());
      if (rest.size() > 7 && rest[6] == '_' && is_mark(rest.substr(0, 6)))
        marks.insert(std::string(rest.substr(0, 6)));
    }
  return marks;
}

void append(std::vector<std::string>& all, std::vector<std::string> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

void InUse::add(const networks::PrivateNetwork& network, const networks::DirectFirewall& firewall) {
  links.insert(network.bridge);
  tables.insert(network.direct() ? firewall.table : network.table);
  for (const auto& host : network.hosts) {
    links.insert(host.link);
    namespace_files.insert(host.namespace_file);
  }
}

Result<std::vector<std::string>> remove_unused(const LocalParts& parts,
                                               const std::string& run_directory,
                                               const std::string& mark, const InUse& used) {
  std::vector<std::string> removed;
  const std::string folder = run_directory + "/" + mark;
  if (const auto names = parts.files.list_directory(folder))
    for (const auto& name : *names) {
      const std::string path = folder + "/" + name;
      if (name == kOwnerFile || used.namespace_files.contains(path)) continue;
      TRY(parts.system.remove_namespace_file(path));
      removed.push_back("network namespace " + path);
    }
  std::vector<std::string> links;
  for (const auto prefix :
       {networks::kLinkPrefix, networks::kBridgePrefix, networks::kDirectPrefix})
    for (const auto& name : parts.system.links_named(std::string(prefix) + mark))
      if (!used.links.contains(name)) links.push_back(name);
  TRY(parts.system.remove_links(links));
  for (const auto& name : links) removed.push_back("interface " + name);
  if (!parts.system.has_firewall()) return removed;
  std::vector<std::string> tables;
  for (const auto& name :
       TRY(parts.system.firewall_tables_named(std::string(networks::kTablePrefix) + mark + "_")))
    if (!used.tables.contains(name)) tables.push_back(name);
  TRY(parts.system.remove_firewall_tables(tables));
  for (const auto& name : tables) removed.push_back("firewall table " + name);
  return removed;
}

namespace {

// Removes orphans of the server of that data directory. Requires: it does not run.
Result<std::vector<std::string>> sweep_own(const LocalPaths& paths, const LocalParts& parts) {
  InUse used;
  const auto names = parts.files.list_directory(paths.attempts());
  std::vector<networks::Subnet> subnets;  // the subnets of running gangs
  std::vector<networks::PrivateNetwork> ended;
  bool all_known = true;
  for (const auto& name : names ? *names : std::vector<std::string>()) {
    const std::string directory = paths.attempts() + "/" + name;
    if (!domain::parse_attempt_id(name)) continue;
    auto known = load_attempt(parts, directory);
    const bool lives =
        known && std::any_of(known->agents.begin(), known->agents.end(), [&](const auto& agent) {
          return agent.started && parts.processes.is_alive(agent.identity);
        });
    if (lives) {
      used.add(known->record.network, direct_firewall(paths.mark, known->record.network.pool));
      subnets.push_back(known->record.network.subnet);
      continue;
    }
    // Its agents are kept, and so is everything that may belong to them.
    if (!known && known.error().kind == Kind::unavailable &&
        !running_hosts(parts, directory).empty()) {
      all_known = false;
      continue;
    }
    TRY(remove_from_machine(parts, directory, known ? &*known : nullptr));
    if (known) ended.push_back(known->record.network);
  }
  if (!all_known) return std::vector<std::string>();
  // A stale record may name objects that belong to a running gang by now.
  std::erase_if(ended, [&](const auto& network) {
    return std::ranges::any_of(subnets,
                               [&](const auto& used) { return used.overlaps(network.subnet); });
  });
  if (!ended.empty()) TRY(parts.system.remove_networks(ended));
  return remove_unused(parts, paths.run_directory, paths.mark, used);
}

}  // namespace

Result<std::vector<std::string>> sweep_over(const std::string& data_directory,
                                            const std::string& run_directory,
                                            const LocalParts& parts) {
  std::vector<std::string> removed;
  std::string own_mark;
  // One server sweeps at a time, and no other server makes a gang meanwhile.
  std::shared_ptr<void> lock;
  if (parts.files.exists(run_directory)) {
    auto taken = parts.system.lock_networks(run_directory);
    if (!taken && taken.error().kind != Kind::denied) return std::move(taken).error();
    if (taken) lock = std::move(*taken);  // else the directory belongs to another user
  }
  if (!data_directory.empty() && parts.files.exists(data_directory)) {
    const LocalPaths paths = TRY(paths_of(data_directory, run_directory, parts));
    own_mark = paths.mark;
    append(removed, TRY(sweep_own(paths, parts)));
  }
  // Agents without a directory are killed first; then their containers are orphans.
  for (const auto& [identity, value] : parts.processes.find_marked(kAttemptVariable)) {
    if (parts.files.exists(value)) continue;
    TRY(parts.processes.kill_and_wait(identity, kKillMax));
    removed.push_back("process " + std::to_string(identity.process) + " of " + value);
  }
  for (const auto& name : TRY(parts.system.sweep_containers()))
    removed.push_back("container " + name);
  for (const auto& mark : TRY(marks_in_sight(parts, run_directory))) {
    if (mark == own_mark) continue;
    const auto owner = parts.files.read(run_directory + "/" + mark + "/" + kOwnerFile, 64 << 10);
    if (owner && parts.files.exists(*owner)) continue;
    if (!owner && owner.error().kind != Kind::not_found) continue;  // the server may exist
    append(removed, TRY(remove_unused(parts, run_directory, mark, InUse())));
    TRY(parts.files.remove_all(run_directory + "/" + mark));
  }
  // The next server that needs these rules adds them again.
  if (parts.system.has_firewall() && parts.system.links_named(networks::kBridgePrefix).empty())
    TRY(parts.system.stop_foreign_forwarding());
  return removed;
}

}  // namespace trainyard::launch
