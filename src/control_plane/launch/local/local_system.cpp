#include "launch/local/local_system.hpp"

#include <filesystem>

#include "containers/container.hpp"
#include "containers/rootless_sandbox.hpp"
#include "os/machine_files.hpp"
#include "os/mounts.hpp"
#include "os/process.hpp"

namespace trainyard::launch {
namespace {

// The longest wait for the lock. Servers of one machine choose networks one after another; each
// holds the lock for some 20 ms.
constexpr Duration kLockWaitMax = 10s;
constexpr const char* kResolverFile = "/etc/resolv.conf";
constexpr size_t kResolverBytesMax = 64 << 10;  // some lines

class MachineSystem final : public LocalSystem {
 public:
  Result<std::string> resolve(const std::string& path) override {
    std::error_code error;
    const auto resolved = std::filesystem::canonical(path, error);
    if (error) return from_errno("looking at " + path, error.value());
    return resolved.string();
  }
  Result<std::shared_ptr<void>> lock_networks(const std::string& run_directory) override {
    auto lock = TRY(os::FileLock::take_within(run_directory + "/lock", kLockWaitMax));
    return std::shared_ptr<void>(std::make_shared<os::FileLock>(std::move(lock)));
  }
  Result<std::vector<networks::Subnet>> networks_in_use() override {
    return networks::networks_in_use();
  }
  Result<std::vector<os::File>> make_network(const networks::PrivateNetwork& network) override {
    return networks::make_network(network);
  }
  Result<std::vector<os::File>> replace_hosts(const networks::PrivateNetwork& former,
                                              const networks::PrivateNetwork& next) override {
    return networks::replace_hosts(former, next);
  }
  Result<void> remove_networks(const std::vector<networks::PrivateNetwork>& networks) override {
    return networks::remove_networks(networks);
  }
  std::vector<std::string> links_named(std::string_view prefix) override {
    return networks::links_named(prefix);
  }
  Result<void> remove_links(const std::vector<std::string>& names) override {
    return networks::remove_links(names);
  }
  Result<void> remove_namespace_file(const std::string& path) override {
    return networks::remove_namespace_file(path);
  }

  bool has_firewall() override { return os::on_path("nft"); }
  Result<void> make_firewall(const networks::DirectFirewall& firewall) override {
    return networks::make_firewall(firewall);
  }
  bool has_firewall_table(const std::string& name) override {
    return networks::has_firewall_table(name);
  }
  Result<std::vector<std::string>> firewall_tables_named(std::string_view prefix) override {
    return networks::firewall_tables_named(prefix);
  }
  Result<void> remove_firewall_tables(const std::vector<std::string>& names) override {
    return networks::remove_firewall_tables(names);
  }
  Result<void> stop_foreign_forwarding() override { return networks::stop_foreign_forwarding(); }
  std::vector<networks::EgressService> name_servers() override {
    std::string text = "nameserver " + containers::rootless_sandbox_name_server() + "\n";
    if (const auto of_machine = os::read_file(kResolverFile, kResolverBytesMax))
      text += *of_machine;
    return networks::name_servers_of(text);
  }

  bool in_rootless_sandbox() override { return containers::in_rootless_sandbox(); }
  Result<void> remove_containers_in(const std::string& directory) override {
    return containers::remove_containers_in(directory);
  }
  Result<std::vector<std::string>> sweep_containers() override {
    return containers::sweep_containers();
  }
  Result<void> unmount_below(const std::string& directory) override {
    return os::unmount_below(directory);
  }
};

}  // namespace

LocalParts machine_parts() {
  static os::MachineFiles files;
  static os::MachineProcesses processes;
  static MachineSystem system;
  return {files, processes, system};
}

}  // namespace trainyard::launch
