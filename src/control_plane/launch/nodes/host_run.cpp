#include "launch/nodes/host_run.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "client/curl.hpp"
#include "containers/rootless_sandbox.hpp"
#include "launch/local/known.hpp"
#include "launch/local/local.hpp"
#include "launch/local/orphans.hpp"
#include "launch/slurm/answers.hpp"
#include "networks/overlay.hpp"
#include "os/accounts.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "preflight/preflight.hpp"

namespace trainyard::launch {
namespace {

constexpr const char* kRunnerFile = "runner";
constexpr const char* kLockFile = "lock";
// The file in which the agent leaves the order of the next host (agent/linked_offer.hpp).
constexpr const char* kNextHostFile = "next-host.json";
// The longest wait for a lock. Making and removing networks takes far less.
constexpr Duration kLockMax = 60s;
// Slurm's own limit ends it before.
constexpr Duration kAgentMax = 24h * 366;
constexpr Duration kLookupInterval = 1s;
constexpr uint32_t kOverlayIdMax = (1 << 24) - 1;

// "tx3fa91c0010" for the bridge "ty3fa91c0010".
std::string overlay_name(const std::string& bridge) {
  return std::string(networks::kOverlayPrefix) +
         bridge.substr(std::min(bridge.size(), networks::kBridgePrefix.size()));
}

// NodeAttempts manages the attempts on this node. Requires: its lock is held while an attempt
// without a runner, or files of an attempt, are removed.
class NodeAttempts {
 public:
  NodeAttempts(std::string data, const LocalParts& parts) : data_(std::move(data)), parts_(parts) {}

  std::string directory() const { return data_ + "/attempts"; }
  Result<os::FileLock> lock() const {
    return os::FileLock::take_within(data_ + "/" + kLockFile, kLockMax);
  }

  // Removes what killed runners left.
  void sweep() const {
    const auto names = parts_.files.list_directory(directory());
    if (!names) return;
    for (const auto& name : *names) {
      const std::string attempt = directory() + "/" + name;
      if (!domain::parse_attempt_id(name) || has_runner(attempt)) continue;
      log(Level::warning, "launch", "removing what a killed step of Slurm left",
          {{"attempt", name}});
      if (remove_from_node(attempt)) remove_files(attempt);
    }
  }

  bool has_runner(const std::string& attempt) const {
    const auto hosts = parts_.files.list_directory(attempt);
    return hosts && std::ranges::any_of(*hosts, [&](const std::string& host) {
             const std::string file = attempt + "/" + host + "/" + kRunnerFile;
             return parts_.files.exists(file) && os::FileLock::held(file);
           });
  }

  // Removes everything outside of its directory. `in_order`: its agents have left only the network.
  bool remove_from_node(const std::string& attempt, bool in_order = false) const {
    if (!in_order && !report(remove_from_machine(parts_, attempt, nullptr), attempt)) return false;
    const auto record = read_record(attempt);
    if (!record) return true;
    if (!record->network.bridge.empty())
      networks::remove_overlay(overlay_name(record->network.bridge));
    return report(parts_.system.remove_networks({record->network}), attempt);
  }
  void remove_files(const std::string& attempt) const {
    (void)report(parts_.files.remove_all(attempt), attempt);
  }

 private:
  static bool report(const Result<void>& done, const std::string& attempt) {
    if (!done)
      log(Level::error, "launch", "removing an attempt: " + done.error().message,
          {{"path", attempt}});
    return bool(done);
  }

  std::optional<Record> read_record(const std::string& attempt) const {
    const auto text = parts_.files.read(attempt + "/" + kRecordFile, kHostOrderBytesMax);
    if (!text) return {};
    const auto json = parse_json(*text);
    if (!json) return {};
    auto record = record_from_json(*json);
    if (!record) return {};
    return *std::move(record);
  }

  const std::string data_;
  const LocalParts& parts_;
};

// One host of a gang on this node. Its objects exist until remove(), or until the next host takes
// them over.
class HostOnNode {
 public:
  HostOnNode(HostOrder order, NodeFacts node, const LocalParts& parts)
      : order_(std::move(order)),
        node_(std::move(node)),
        parts_(parts),
        data_(order_.node_directory + "/" + node_.name),
        attempts_(data_, parts),
        attempt_(attempts_.directory() + "/" + order_.record.attempt.text()),
        host_(attempt_ + "/" + std::to_string(order_.host)),
        run_directory_(containers::run_directory()),
        namespaces_(run_directory_ + "/" + order_.mark) {}

  Result<os::Command> only_prepare() {
    TRY(parts_.files.make_directories(host_, 0700));
    TRY(prepare());
    return agent_command();
  }

  // Makes network and files. After an error nothing of them is left.
  Result<void> make() {
    TRY(parts_.files.make_directories(attempts_.directory(), 0700));
    std::optional<os::FileLock> lock = TRY(attempts_.lock());
    attempts_.sweep();
    TRY(begin());
    if (is_alone()) lock.reset();
    auto made = prepare();
    lock.reset();
    if (!made) remove();
    return made;
  }

  // Returns true if the host can use the network of `former`, whose agent has left nothing else.
  bool may_take_over(const HostOnNode& former) const {
    return former.left_ && has_same_network(former.order_, order_);
  }

  // Makes the host with the network of `former`, of which nothing else is left, also after an
  // error. The network exists throughout, so that no other program can take its addresses.
  Result<void> take_over(HostOnNode& former) {
    const auto taken = [&]() -> Result<void> {
      {
        const auto lock = TRY(attempts_.lock());
        TRY(begin());
      }
      network_ = network_on_node();
      network_.egress = former.network_.egress;
      TRY(write_network_record());
      TRY(parts_.system.replace_hosts(former.network_, network_));
      TRY(write_files());
      // A record without a runner would cause the removal of the network.
      return former.forget();
    }();
    if (taken) return {};
    remove();
    former.remove();
    return taken;
  }

  // Runs the agent. `next` gets the order of the next host of the allocation, if there is one.
  Result<int> run(std::optional<std::string>& next) {
    auto code = node_.is_ending() ? Result<int>(unavailable("Slurm has signalled the job's end"))
                                  : run_agent();
    if (!code || *code != 0) return code;  // a failed agent may have left an outdated order
    left_ = parts_.files.exists(host_ + "/" + kLeftFile);
    const std::string next_file = host_ + "/" + kNextHostFile;
    if (parts_.files.exists(next_file))
      if (auto text = parts_.files.read(next_file, kHostOrderBytesMax)) next = *std::move(text);
    return code;
  }

  void remove() {
    if (!alive_) return;
    if (is_alone() && !attempts_.remove_from_node(attempt_, left_)) return alive_.reset();
    if (!is_alone()) alive_.reset();
    remove_the_rest();
    alive_.reset();
  }

 private:
  // Returns true if no other host of the gang is on this node. Its locked runner file protects its
  // objects, so that hosts of several gangs do not wait for each other.
  bool is_alone() const { return order_.record.network.hosts.size() == 1; }

  // Requires: the node's lock is held; otherwise another runner could take it for a killed one.
  Result<void> begin() {
    TRY(parts_.files.make_directories(host_, 0700));
    alive_ = TRY(os::FileLock::take(host_ + "/" + kRunnerFile));
    return {};
  }

  void remove_the_rest() {
    const auto lock = attempts_.lock();
    if (!lock) return;  // the next runner removes it
    if (is_alone()) return attempts_.remove_files(attempt_);
    if (!attempts_.has_runner(attempt_)) {
      if (attempts_.remove_from_node(attempt_)) attempts_.remove_files(attempt_);
      return;
    }
    // Other hosts of the gang are still on this node.
    const auto removed = [&]() -> Result<void> {
      TRY(parts_.system.remove_containers_in(host_));
      TRY(parts_.system.unmount_below(host_));
      return parts_.files.remove_all(host_);
    }();
    if (!removed)
      log(Level::error, "launch", "removing a host: " + removed.error().message, {{"path", host_}});
  }

  // Removes the files of a host whose network another host uses.
  Result<void> forget() {
    const auto lock = TRY(attempts_.lock());
    TRY(parts_.files.remove_all(attempt_));
    alive_.reset();
    return {};
  }

  // Makes the host's files, and the network unless another host of the gang has made it.
  Result<void> prepare() {
    if (!parts_.files.exists(attempt_ + "/" + kRecordFile)) TRY(make_network());
    return write_files();
  }
  Result<void> write_files() {
    TRY(parts_.files.write(host_ + "/order.json", order_.order, 0600));
    return parts_.files.write(host_ + "/hosts", order_.host_table, 0644);
  }

  networks::PrivateNetwork network_on_node() const {
    networks::PrivateNetwork network = order_.record.network;
    for (auto& host : network.hosts) host.namespace_file.insert(0, namespaces_ + "/");
    return network;
  }
  Result<void> write_network_record() const {
    Record record = order_.record;
    record.network = network_;
    return write_record(parts_, attempt_, record);
  }

  Result<void> make_network() {
    TRY(parts_.files.make_directories(run_directory_, 0755));
    const auto lock = TRY(parts_.system.lock_networks(run_directory_));
    TRY(parts_.files.make_directories(namespaces_, 0700));
    TRY(parts_.files.write(namespaces_ + "/" + kOwnerFile, data_, 0600));
    networks::PrivateNetwork network = network_on_node();
    const auto in_use = TRY(parts_.system.networks_in_use());
    for (const auto& used : in_use)
      if (used.overlaps(network.subnet))
        return conflict("the node's network " + used.text() + " overlaps the gang's " +
                        network.subnet.text() +
                        ": choose another network.pool in the server's config");
    network.egress = order_.egress;
    if (order_.names_by_machine)
      for (const auto& server : parts_.system.name_servers())
        network.egress.services.push_back(server);
    network.egress = with_own_networks(network.egress, in_use, network.pool);
    network_ = network;
    TRY(write_network_record());
    if (order_.served == 0 && parts_.system.has_firewall())
      if (const auto opened = networks::let_through_foreign_forwarding(); !opened)
        log(Level::warning, "launch",
            "jobs may be unable to reach the outside: " + opened.error().message);
    TRY(parts_.system.make_network(network));
    if (order_.peers.empty()) return {};
    return join_other_nodes(network).in("joining the gang's other nodes");
  }

  Result<void> join_other_nodes(const networks::PrivateNetwork& network) {
    networks::Overlay overlay;
    overlay.name = overlay_name(network.bridge);
    overlay.bridge = network.bridge;
    if (network.encrypted) overlay.interface = networks::kUnderlay;
    const auto job = parse_int(node_.job_number);
    if (!job || *job <= 0) return invalid("the number of the job is '" + node_.job_number + "'");
    overlay.id = uint32_t(*job) & kOverlayIdMax;
    overlay.own_address = TRY(look_up(order_.own_address));
    for (const std::string& peer : order_.peers) overlay.peers.push_back(TRY(look_up(peer)));
    for (const auto& host : network.hosts) {
      overlay.links.push_back(host.link);
      overlay.namespace_files.push_back(host.namespace_file);
    }
    return networks::make_overlay(overlay);
  }

  // Nodes that start later have no addresses yet.
  Result<networks::Address> look_up(const std::string& name) {
    for (;;) {
      auto address = networks::resolve_address(name);
      if (address || address.error().kind != Kind::not_found) return address;
      if (++lookups_ >= node_.lookups_max) return address;
      client::pause_for(kLookupInterval);
    }
  }

  // Returns the endpoints with addresses in place of names.
  Result<std::string> resolve_endpoints() {
    std::string text;
    for (const std::string& endpoint : order_.endpoints) {
      const size_t colon = std::min(endpoint.rfind(':'), endpoint.size());
      const auto address = TRY(look_up(endpoint.substr(0, colon)));
      text += (text.empty() ? "" : ",") + networks::to_text(address) + endpoint.substr(colon);
    }
    return text;
  }

  Result<int> run_agent() {
    const auto ended = TRY(os::run(TRY(agent_command())).in("running the agent"));
    if (ended.code != 0)
      log(Level::error, "launch", "the agent failed: " + slurm_message(ended.errors));
    return ended.code;
  }

  Result<os::Command> agent_command() {
    const auto& host = order_.record.network.hosts[order_.member];
    os::Command command;
    command.arguments = {node_.program_directory + "/trainyard-agent",
                         "--order",
                         host_ + "/order.json",
                         "--directory",
                         host_,
                         "--network-namespace",
                         namespaces_ + "/" + host.namespace_file,
                         "--address",
                         networks::to_text(host.address),
                         "--host-table",
                         host_ + "/hosts"};
    if (order_.record.network.encrypted)
      command.arguments.insert(command.arguments.end(),
                               {"--underlay", underlay_text(order_.record.network)});
    if (!order_.endpoints.empty()) {
      const auto endpoints = TRY(resolve_endpoints());
      command.arguments.insert(command.arguments.end(), {"--endpoints", endpoints});
    }
    if (order_.gpus > 0) {
      auto files = TRY(gpu_device_files(node_.gpus));
      // All pods of a gang have as many GPUs as the host that needs most.
      if (files.size() > size_t(order_.gpus)) files.resize(size_t(order_.gpus));
      std::string devices = join(files, ",");
      for (const auto& device : preflight::gpu_devices())
        if (const auto cards = preflight::gpu_cards();
            std::ranges::find(cards, device) == cards.end())
          devices += "," + device;
      command.arguments.insert(command.arguments.end(), {"--devices", devices});
    }
    const Duration left = order_.time_limit - node_.passed;
    if (const auto job = parse_int(node_.job_number);
        job && order_.idle_max > Duration{} && left > Duration{})
      command.arguments.insert(
          command.arguments.end(),
          {"--allocation", node_.job_number, "--served", std::to_string(order_.served),
           "--idle-seconds", std::to_string(std::max<int64_t>(1, order_.idle_max / Duration(1s))),
           "--seconds-left", std::to_string(left / Duration(1s))});
    command.environment = order_.environment;
    command.environment[kAttemptVariable] = attempt_;
    command.environment[kHostVariable] = host_;
    command.environment[kImagesVariable] = data_ + "/images";
    command.at_most = kAgentMax;
    // Without root there is no cgroup by which its processes could be found.
    command.own_pid_namespace = parts_.system.in_rootless_sandbox();
    return command;
  }

  const HostOrder order_;
  const NodeFacts node_;
  const LocalParts& parts_;
  const std::string data_;
  const NodeAttempts attempts_;
  const std::string attempt_, host_, run_directory_, namespaces_;
  uint32_t lookups_ = 0;
  std::optional<os::FileLock> alive_;  // the lock of the runner file
  bool left_ = false;                  // its agent has left only the network
  networks::PrivateNetwork network_;   // as made on this node
};

// Checks that this user owns the directory: otherwise records of another user could make root
// remove any objects.
Result<void> check_owner(const std::string& directory) {
  struct stat status;
  if (::lstat(directory.c_str(), &status) != 0) return from_errno("looking at " + directory);
  if (S_ISDIR(status.st_mode) && status.st_uid == os::own_user_id()) return {};
  return denied(directory + " is not a directory of user " + std::to_string(os::own_user_id()) +
                ", which runs this program (it belongs to user " + std::to_string(status.st_uid) +
                "): remove it, or set another node_directory in the server's config");
}

}  // namespace

Result<std::vector<std::string>> gpu_device_files(std::string_view indexes) {
  std::vector<std::string> files;
  for (auto& number : TRY(expand_host_list("[" + std::string(indexes) + "]")))
    files.push_back("/dev/nvidia" + number);
  return files;
}

Result<void> clean_node(const std::string& node_directory, const std::string& node_name,
                        const LocalParts& parts) {
  const std::string data = node_directory + "/" + node_name;
  if (!parts.files.exists(data + "/attempts")) return {};
  TRY(check_owner(node_directory));
  TRY(check_owner(data));
  const NodeAttempts attempts(data, parts);
  const auto lock = TRY(attempts.lock());
  attempts.sweep();
  return {};
}

Result<os::Command> prepare_host(const HostOrder& order, const NodeFacts& node,
                                 const LocalParts& parts) {
  if (node.name.empty() || node.name.find('/') != std::string::npos)
    return invalid("the pod's name is '" + node.name + "'");
  return HostOnNode(order, node, parts).only_prepare();
}

Result<int> run_host(const HostOrder& first, const NodeFacts& node, const LocalParts& parts,
                     Clock& clock) {
  if (node.name.empty() || node.name.find('/') != std::string::npos)
    return invalid("SLURMD_NODENAME is '" + node.name + "': start this program in a step of Slurm");
  if (!first.user.empty() && !parts.system.in_rootless_sandbox())
    return denied("the host is to run as " + first.user +
                  ", without root's rights: a program outside a sandbox received its order");
  const auto began = clock.monotonic();
  auto host = std::make_unique<HostOnNode>(first, node, parts);
  TRY(host->make());
  for (;;) {
    std::optional<std::string> text;
    const auto code = host->run(text);
    if (!code || !text) {
      host->remove();
      return code;
    }
    auto order = read_host_order(*text);
    if (!order) {
      host->remove();
      return std::move(order).error().in("reading the order of the next host");
    }
    order->time_limit = first.time_limit;
    NodeFacts facts = node;
    facts.passed = std::chrono::duration_cast<Duration>(clock.monotonic() - began);
    auto next = std::make_unique<HostOnNode>(*std::move(order), std::move(facts), parts);
    if (next->may_take_over(*host)) {
      TRY(next->take_over(*host));
    } else {
      host->remove();
      TRY(next->make());
    }
    host = std::move(next);
  }
}

}  // namespace trainyard::launch
