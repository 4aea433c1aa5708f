// MemoryMachine simulates the networks and processes of a machine, so that tests and sim/ can fail,
// stop or check each step of the local launcher.
//
// Links and tables have the comment of the network for which they were made. Files that keep a
// namespace are in `files`.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "launch/local/local_system.hpp"

namespace trainyard::launch {

class MemoryMachine final : public LocalSystem, public os::Processes {
 public:
  explicit MemoryMachine(Files& files) : files_(files) {}

  struct Process {
    os::DetachedProgram program;
    std::function<bool()> is_alive;
  };
  // Adds a process that the launcher did not start, such as a child of an agent.
  os::ProcessIdentity add(os::DetachedProgram program, std::function<bool()> is_alive) {
    ++last_;
    const os::ProcessIdentity identity{pid_t(last_), last_};
    processes_[last_] = {std::move(program), std::move(is_alive)};
    return identity;
  }

  // Called before and after each change. If `before` returns an error, the change fails with it;
  // both may throw.
  std::function<Result<void>(const std::string& step)> before = [](const std::string&) {
    return ok();
  };
  std::function<void(const std::string& step)> after = [](const std::string&) {};
  // Called when a program is started; returns a function that tells whether it still runs.
  std::function<std::function<bool()>(const os::DetachedProgram&)> started;
  std::function<void(const Process&)> killed = [](const Process&) {};
  // Called when a link, table or namespace file is removed.
  std::function<void(const std::string& name, const std::string& comment)> removed =
      [](const std::string&, const std::string&) {};

  // Called when the containers of a host are removed.
  std::function<void(const std::string& directory)> containers_removed = [](const std::string&) {};

  // -- the state of the machine
  const std::map<std::string, std::string>& links() const { return links_; }  // names to comments
  const std::map<std::string, std::string>& tables() const { return tables_; }
  size_t running() const {
    return size_t(
        std::ranges::count_if(processes_, [](const auto& each) { return each.second.is_alive(); }));
  }
  // Simulates the end of the machine, after which nothing runs.
  void lose_power() {
    processes_.clear();
    links_.clear();
    tables_.clear();
    subnets_.clear();
  }

  // -- LocalSystem
  Result<std::string> resolve(const std::string& path) override { return path; }
  Result<std::shared_ptr<void>> lock_networks(const std::string&) override {
    return std::shared_ptr<void>();
  }
  Result<std::vector<networks::Subnet>> networks_in_use() override {
    std::vector<networks::Subnet> used;
    for (const auto& [link, subnet] : subnets_) used.push_back(subnet);
    return used;
  }
  Result<std::vector<os::File>> make_network(const networks::PrivateNetwork& network) override {
    TRY(before("make network"));
    std::vector<os::File> namespaces(network.hosts.size());
    for (const auto& host : network.hosts)
      if (!host.namespace_file.empty())
        if (auto written = files_.write(host.namespace_file, "", 0600); !written)
          return std::move(written).error();
    if (!network.direct()) {
      links_[network.bridge] = network.comment;
      tables_[network.table] = network.comment;
    }
    for (const auto& host : network.hosts) links_[host.link] = network.comment;
    subnets_[network.direct() ? network.hosts[0].link : network.bridge] = network.subnet;
    after("make network");
    return namespaces;
  }
  Result<std::vector<os::File>> replace_hosts(const networks::PrivateNetwork& former,
                                              const networks::PrivateNetwork& next) override {
    TRY(before("replace hosts"));
    for (const auto& host : former.hosts) {
      remove_link(host.link);
      if (!host.namespace_file.empty()) TRY(remove_namespace_file(host.namespace_file));
    }
    return make_network(next);
  }
  Result<void> remove_networks(const std::vector<networks::PrivateNetwork>& networks) override {
    TRY(before("remove networks"));
    for (const auto& network : networks) {
      for (const auto& host : network.hosts) {
        remove_link(host.link);
        if (!host.namespace_file.empty()) TRY(remove_namespace_file(host.namespace_file));
      }
      remove_link(network.bridge);
      remove_table(network.table);
    }
    after("remove networks");
    return ok();
  }
  std::vector<std::string> links_named(std::string_view prefix) override {
    return named(links_, prefix);
  }
  Result<void> remove_links(const std::vector<std::string>& names) override {
    TRY(before("remove links"));
    for (const auto& name : names) remove_link(name);
    return ok();
  }
  Result<void> remove_namespace_file(const std::string& path) override {
    removed(path, path);
    return files_.remove(path);
  }
  bool has_firewall() override { return true; }
  Result<void> make_firewall(const networks::DirectFirewall& firewall) override {
    TRY(before("make firewall"));
    tables_[firewall.table] = firewall.comment;
    return ok();
  }
  bool has_firewall_table(const std::string& name) override { return tables_.contains(name); }
  Result<std::vector<std::string>> firewall_tables_named(std::string_view prefix) override {
    return named(tables_, prefix);
  }
  Result<void> remove_firewall_tables(const std::vector<std::string>& names) override {
    TRY(before("remove tables"));
    for (const auto& name : names) remove_table(name);
    return ok();
  }
  Result<void> stop_foreign_forwarding() override { return ok(); }
  std::vector<networks::EgressService> name_servers() override { return {}; }
  bool in_rootless_sandbox() override { return false; }
  Result<void> remove_containers_in(const std::string& directory) override {
    containers_removed(directory);
    return ok();
  }
  Result<std::vector<std::string>> sweep_containers() override {
    return std::vector<std::string>();
  }
  Result<void> unmount_below(const std::string&) override { return ok(); }

  // -- Processes
  Result<os::ProcessIdentity> start(const os::DetachedProgram& program) override {
    TRY(before("start an agent"));
    const auto identity = add(
        program, started ? started(program) : [] { return true; });
    after("start an agent");
    return identity;
  }
  bool is_alive(const os::ProcessIdentity& identity) override {
    const auto found = processes_.find(identity.started);
    return found != processes_.end() && found->second.is_alive();
  }
  bool leads_session(const os::ProcessIdentity& identity) override {
    const auto found = processes_.find(identity.started);
    return found != processes_.end() && found->second.is_alive() &&
           !found->second.program.arguments.empty();
  }
  std::function<bool()> watch(const os::ProcessIdentity& identity) override {
    return [this, identity] { return is_alive(identity); };
  }
  Result<void> kill_and_wait(const os::ProcessIdentity& identity, Duration) override {
    if (!is_alive(identity)) return ok();
    TRY(before("kill"));
    const Process process = processes_.at(identity.started);
    processes_.erase(identity.started);
    killed(process);
    after("kill");
    return ok();
  }
  std::vector<os::MarkedProcess> find_marked(const std::string& variable) override {
    std::vector<os::MarkedProcess> found;
    for (const auto& [number, process] : processes_)
      if (const auto value = process.program.environment.find(variable);
          value != process.program.environment.end() && process.is_alive())
        found.push_back({{pid_t(number), number}, value->second});
    return found;
  }

 private:
  static std::vector<std::string> named(const std::map<std::string, std::string>& all,
                                        std::string_view prefix) {
    std::vector<std::string> names;
    for (const auto& [name, comment] : all)
      if (name.starts_with(prefix)) names.push_back(name);
    return names;
  }
  void remove_link(const std::string& name) {
    const auto found = links_.find(name);
    if (found == links_.end()) return;
    removed(name, found->second);
    subnets_.erase(name);
    links_.erase(found);
  }
  void remove_table(const std::string& name) {
    const auto found = tables_.find(name);
    if (found == tables_.end()) return;
    removed(name, found->second);
    tables_.erase(found);
  }

  Files& files_;
  std::map<std::string, std::string> links_, tables_;
  std::map<std::string, networks::Subnet> subnets_;  // by the link that has the address
  std::map<uint64_t, Process> processes_;            // by start
  uint64_t last_ = 0;
};

}  // namespace trainyard::launch
