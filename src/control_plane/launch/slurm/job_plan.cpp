#include "launch/slurm/job_plan.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "launch/local/local.hpp"
#include "launch/slurm/allocations.hpp"
#include "launch/slurm/components.hpp"

namespace trainyard::launch {
namespace {

// The memory that an agent needs. The container has its own limit.
constexpr int64_t kMemoryMibMin = 64;
constexpr Duration kMinute = 60s;
// The script tries this often, each 5 s, to write an ended host into the comment: slurmctld may be
// down for minutes.
constexpr int kCommentTries = 60;

// The hosts of a gang on one node.
struct NodePart {
  const SlurmNode* node = nullptr;
  std::vector<domain::HostIndex> hosts;
};

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// Returns whether a name can be used in a script and in a list without quotes.
bool is_plain_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

Result<std::vector<NodePart>> parts_of(const Gang& gang, const std::vector<SlurmNode>& nodes) {
  std::vector<NodePart> parts;
  for (domain::HostIndex host = 0; host < gang.members.size(); ++host) {
    const std::string& name = gang.members[host].machine;
    auto part = std::ranges::find(parts, name, [](const auto& each) { return each.node->name; });
    if (part == parts.end()) {
      const auto node = std::ranges::find(nodes, name, &SlurmNode::name);
      if (node == nodes.end() || !is_plain_name(name))
        return unavailable("Slurm does not list the node '" + shorten(name, 80) + "'");
      for (const auto& other : parts)
        if (other.node->address == node->address)
          return denied("the nodes " + other.node->name + " and " + name +
                        " have the same address " + node->address +
                        ": a gang on several nodes needs nodes with addresses of their own");
      part = parts.insert(parts.end(), {&*node, {}});
    }
    part->hosts.push_back(host);
  }
  return parts;
}

int64_t memory_mib_of(const Member& member) {
  // Rounded down: hosts that share a node's memory may not need more than it has.
  return std::max(kMemoryMibMin, member.share.memory_bytes >> 20);
}

void override_by(SlurmPlacement& placement, const SlurmPlacement& other) {
  for (auto member : {&SlurmPlacement::partition, &SlurmPlacement::account, &SlurmPlacement::qos,
                      &SlurmPlacement::constraint, &SlurmPlacement::reservation,
                      &SlurmPlacement::licenses, &SlurmPlacement::gpu_type})
    if (!(other.*member).empty()) placement.*member = other.*member;
  placement.exclusive |= other.exclusive;
}

// Returns the sizes of the hosts on the node. Slurm allocates whole processors: shares are rounded
// up, or down where the node has fewer.
std::vector<NodeAmounts> sizes_on(const Gang& gang, const NodePart& part) {
  int64_t cpus = 0;
  for (const auto host : part.hosts) cpus += int64_t(std::ceil(gang.members[host].share.cpus));
  std::vector<NodeAmounts> sizes;
  for (const auto host : part.hosts) {
    const domain::Share& share = gang.members[host].share;
    const double whole = cpus <= part.node->cpus ? std::ceil(share.cpus) : std::floor(share.cpus);
    sizes.push_back(
        {std::max<int64_t>(1, int64_t(whole)), memory_mib_of(gang.members[host]), share.gpus});
  }
  return sizes;
}

NodeAmounts size_on(const Gang& gang, const NodePart& part) {
  NodeAmounts sum;
  for (const NodeAmounts& size : sizes_on(gang, part)) sum.add(size);
  return sum;
}

// A node on which steps run.
struct StepNode {
  std::string node;
  std::optional<size_t> component;  // set in heterogeneous jobs
};

// A step of one task on the node, with the program of hosts.
std::string srun_text(const SlurmJobSettings& settings, const StepNode& on,
                      const NodeAmounts& size) {
  return "srun --export=ALL --kill-on-bad-exit=0 --exact" +
         (on.component ? " --het-group=" + std::to_string(*on.component) : std::string()) +
         " --nodes=1 --ntasks=1 --nodelist=" + shell_quoted(on.node) +
         " --cpus-per-task=" + std::to_string(size.cpus) +
         " --mem=" + std::to_string(size.memory_mib) +
         " --gres=" + (size.gpus > 0 ? "gpu:" + std::to_string(size.gpus) : std::string("none")) +
         " " + shell_quoted(settings.program_directory + "/trainyard-slurm-host");
}

// Runs one host, and prints its number, its exit code and its first message: the program's own, or
// else srun's, which may come before it.
std::string step_of_host(const SlurmJobSettings& settings, const NodeAmounts& size,
                         const HostOrder& order, const StepNode& on) {
  return "(\n  why=$(" + srun_text(settings, on, size) + " 2>&1 <<'ORDER'\n" + to_text(order) +
         "\nORDER\n  )\n  code=$?\n"
         "  own=$(printf '%s\\n' \"$why\" | grep -v '^srun: ' | head -n 1)\n"
         "  echo \"" +
         std::to_string(order.host) +
         " $code ${own:-$(printf '%s\\n' \"$why\" | head -n 1)}\"\n) &\n";
}

// Runs all hosts of the node. The program prints the same line of each host that ends; what srun
// prints itself is the message of those that have not when the step ends.
std::string step_of_node(const SlurmJobSettings& settings, const Gang& gang, const NodePart& part,
                         const std::vector<HostOrder>& orders, const StepNode& on) {
  std::string texts, hosts;
  for (const auto host : part.hosts) {
    texts += to_text(orders[host]) + "\n";
    hosts += " " + std::to_string(host);
  }
  return "(\n  " + srun_text(settings, on, size_on(gang, part)) + " --hosts 2>&1 <<'ORDERS'\n" +
         texts + "ORDERS\n  code=$?\n  for host in" + hosts +
         "; do echo \"$host $code\"; done\n) &\n";
}

int64_t time_limit_minutes_of(const SlurmJobSettings& settings, const Gang& gang) {
  if (gang.run_time_max <= Duration()) return 0;
  return (gang.run_time_max + settings.time_margin + kMinute - 1ms) / kMinute;
}

NodeAmounts largest_of(const std::vector<NodeAmounts>& sizes) {
  NodeAmounts largest;
  for (const NodeAmounts& size : sizes) {
    largest.cpus = std::max(largest.cpus, size.cpus);
    largest.memory_mib = std::max(largest.memory_mib, size.memory_mib);
    largest.gpus = std::max(largest.gpus, size.gpus);
  }
  return largest;
}

// Returns true if the job can request as much from the node as from its fullest one: it needs as
// many GPUs there, and the rest is free.
bool may_request(const SlurmNode& node, const NodeAmounts& size, const NodeAmounts& largest) {
  return size == largest ||
         (size.gpus == largest.gpus && node.cpus - node.cpus_allocated >= largest.cpus &&
          node.memory_mib - node.memory_allocated_mib >= largest.memory_mib);
}

// A component requests the same from each of its nodes, and has one task on each, whose processors
// the steps of hosts share. If each node can spare what the fullest one needs, the job has one
// component: heterogeneous jobs wait for Slurm's backfill scheduler.
void add_components(const Gang& gang, const std::vector<NodePart>& parts,
                    SlurmJobRequest& request) {
  std::vector<NodeAmounts> sizes;
  for (const NodePart& part : parts) sizes.push_back(size_on(gang, part));
  const NodeAmounts largest = largest_of(sizes);
  bool equal = true;
  for (size_t i = 0; i < parts.size(); ++i) equal &= may_request(*parts[i].node, sizes[i], largest);
  std::vector<SlurmComponent> components;
  for (size_t i = 0; i < parts.size(); ++i) {
    const NodeAmounts& size = equal ? largest : sizes[i];
    auto found = std::ranges::find(components, size, &SlurmComponent::per_node);
    if (found == components.end()) found = components.insert(found, {{}, size});
    found->nodes.push_back(parts[i].node->name);
  }
  static_cast<SlurmComponent&>(request) = std::move(components.front());
  request.others.assign(std::make_move_iterator(components.begin() + 1),
                        std::make_move_iterator(components.end()));
}

// Fails where Slurm would reject the job, or never start it.
Result<void> check_sizes(const Gang& gang, const std::vector<NodePart>& parts,
                         const SlurmJobRequest& request) {
  if (request.others.size() >= kSlurmComponentsMax)
    return invalid("the gang's nodes need " + std::to_string(request.others.size() + 1) +
                   " different amounts of resources, and a Slurm job has at most " +
                   std::to_string(kSlurmComponentsMax) + " components: use more equal hosts");
  for (const NodePart& part : parts) {
    const NodeAmounts size = size_on(gang, part);
    const auto check = [&](const char* what, int64_t has, int64_t requested) -> Result<void> {
      if (has >= requested) return {};
      return unavailable("the node " + part.node->name + " has " + std::to_string(has) + " " +
                         what + ", but its hosts need " + std::to_string(requested));
    };
    TRY(check("processors", part.node->cpus, size.cpus));
    TRY(check("MiB of memory", part.node->memory_mib, size.memory_mib));
    TRY(check("GPUs", part.node->gpus, size.gpus));
  }
  return {};
}

// Returns the component of a heterogeneous job that has the node.
StepNode step_node_of(const SlurmJobRequest& request, const std::string& node) {
  if (request.others.empty()) return {node, {}};
  const auto components = components_of(request);
  for (size_t index = 0; index < components.size(); ++index)
    if (std::ranges::find(components[index]->nodes, node) != components[index]->nodes.end())
      return {node, index};
  return {node, {}};
}

// A port for each host, different ones for all gangs of this server while their subnets have fewer
// addresses together than there are ports.
std::vector<uint16_t> ports_of(const SlurmJobSettings& settings, const Gang& gang,
                               const networks::Subnet& subnet) {
  const uint32_t ports = uint32_t(settings.last_port) - settings.first_port + 1;
  std::vector<uint16_t> each;
  for (size_t host = 0; host < gang.members.size(); ++host)
    each.push_back(
        uint16_t(settings.first_port + (subnet.base - settings.pool.base + host) % ports));
  return each;
}

// An order for a host that runs without root's rights.
void become_users(const SlurmJobSettings& settings, const UnixUser& user, HostOrder& order) {
  order.user = user.name;
  order.user_id = user.user_id;
  order.node_directory = settings.user_directory + "-" + std::to_string(user.user_id);
  order.environment.erase(kImageSourcesVariable);  // a file of the server's, with others' secrets
}

std::vector<HostOrder> orders_of(const SlurmJobSettings& settings, const Gang& gang,
                                 const UnixUser& user, const std::vector<NodePart>& parts,
                                 const networks::Subnet& subnet) {
  std::vector<NodeHosts> nodes;
  for (const auto& part : parts) nodes.push_back({part.node->address, part.hosts});
  std::vector<uint16_t> ports;
  if (!user.name.empty() && nodes.size() > 1) ports = ports_of(settings, gang, subnet);
  auto orders =
      plan_host_orders(settings, gang, job_name(settings.mark, gang.attempt), nodes, subnet, ports);
  for (HostOrder& order : orders)
    if (!user.name.empty()) become_users(settings, user, order);
  if (may_serve_others(settings, gang)) {
    orders.front().idle_max = settings.idle_max;
    orders.front().time_limit = time_limit_minutes_of(settings, gang) * kMinute;
  }
  return orders;
}

std::string script_of(const SlurmJobSettings& settings, const Gang& gang,
                      const std::vector<NodePart>& parts, const networks::Subnet& subnet,
                      const SlurmJobRequest& request) {
  const auto orders = orders_of(settings, gang, request.user, parts, subnet);
  std::string script =
      "#!/bin/sh\n"
      "# One agent for each host of a gang of Trainyard's. Holds secrets.\n"
      "# The server decides about another attempt.\n"
      "[ -z \"$SLURM_RESTART_COUNT\" ] || exit 1\n"
      "export PATH=\"$PATH:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n{\n";
  for (const auto& part : parts) {
    const StepNode on = step_node_of(request, part.node->name);
    if (!request.user.name.empty()) {
      script += step_of_node(settings, gang, part, orders, on);
      continue;
    }
    const auto sizes = sizes_on(gang, part);
    for (size_t i = 0; i < sizes.size(); ++i)
      script += step_of_host(settings, sizes[i], orders[part.hosts[i]], on);
  }
  return script +
         "wait\n} | {\n"
         "ended= seen=, own= srun=\nwhile read -r host code why; do\n"
         "  case $host:$code in\n"
         "  srun:*) srun=${srun:-\"$host $code $why\"}; continue ;;\n"
         "  *[!0-9:]*|:*|*:) own=${own:-\"$host $code $why\"}; continue ;;\n"
         "  esac\n"
         "  case $seen in *,$host,*) continue ;; esac\n"
         "  seen=$seen$host,\n"
         "  [ \"$code\" = 0 ] && continue\n"
         "  ended=\"$ended${ended:+,}$host:$code\"\n"
         "  why=$(printf %s \"${why:-${own:-$srun}}\" | head -c 200 | tr -cd 'A-Za-z0-9 ./:_()-')\n"
         "  left=" +
         std::to_string(kCommentTries) +
         "\n"
         "  until scontrol update jobid=\"$SLURM_JOB_ID\" comment=" +
         shell_quoted(request.comment) +
         "\" ended=$ended why=$why\"; do\n"
         "    left=$((left - 1))\n"
         "    [ $left -gt 0 ] || break\n"
         "    sleep 5\n"
         "  done\n"
         "done\n[ -z \"$ended\" ]\n}\n";
}

}  // namespace

std::vector<std::string> partitions_of(const SlurmJobSettings& settings) {
  std::set<std::string> names;
  const auto add = [&](const SlurmPlacement& placement) {
    if (!placement.partition.empty()) names.insert(placement.partition);
  };
  add(settings.placement);
  for (const auto& [queue, placement] : settings.of_queues) add(placement);
  for (const auto& [type, placement] : settings.of_instance_types) add(placement);
  return {names.begin(), names.end()};
}

Result<SlurmPlacement> placement_of(const SlurmJobSettings& settings, const Gang& gang) {
  SlurmPlacement placement = settings.placement;
  if (const auto found = settings.of_queues.find(gang.queue); found != settings.of_queues.end())
    override_by(placement, found->second);
  if (const auto found = settings.of_instance_types.find(gang.instance_type);
      found != settings.of_instance_types.end())
    override_by(placement, found->second);
  auto user = settings.of_users.find(gang.submitter);
  if (user == settings.of_users.end()) user = settings.of_users.find("*");
  if (user != settings.of_users.end())
    override_by(placement, user->second);
  else if (settings.require_user)
    return invalid("the user or role '" + gang.submitter +
                   "' is not in the config's [slurm.users], and slurm.require_user is set");
  return placement;
}

Result<UnixUser> unix_user_of(const SlurmJobSettings& settings, const Gang& gang) {
  if (settings.unix_users.empty()) return UnixUser{};
  auto found = settings.unix_users.find(gang.submitter);
  if (found == settings.unix_users.end()) found = settings.unix_users.find("*");
  if (found == settings.unix_users.end())
    return invalid("the user or role '" + gang.submitter +
                   "' has no unix_user in the config's [slurm.users], by which jobs run for the "
                   "Unix accounts of their creators");
  if (!found->second.name.empty() && submitter_in_comment(gang.submitter).empty())
    return invalid("the name of the user or role '" + shorten(gang.submitter, 80) +
                   "' has characters that IAM does not allow: its jobs cannot run for a Unix "
                   "account");
  return found->second;
}

std::string job_name(const std::string& mark, const domain::AttemptId& attempt) {
  return "trainyard-" + mark + "-" + attempt.text();
}

bool may_serve_others(const SlurmJobSettings& settings, const Gang& gang) {
  return gang.of_array && gang.members.size() == 1 && settings.idle_max > Duration() &&
         gang.run_time_max > Duration();
}

Duration time_needed(const SlurmJobSettings& settings, const Gang& gang) {
  return gang.run_time_max + settings.time_margin / 2;
}

Result<std::string> plan_next_host(const SlurmJobSettings& settings, const Gang& gang,
                                   const std::vector<SlurmNode>& nodes,
                                   const NextInAllocation& next) {
  const auto parts = TRY(parts_of(gang, nodes));
  const UnixUser user = TRY(unix_user_of(settings, gang));
  HostOrder order = orders_of(settings, gang, user, parts, next.subnet).front();
  order.served = next.served;
  return to_text(order);
}

Result<std::string> kind_of(const SlurmJobSettings& settings, const Gang& gang,
                            const std::vector<SlurmNode>& nodes) {
  const auto parts = TRY(parts_of(gang, nodes));
  SlurmJobRequest request;
  request.placement = TRY(placement_of(settings, gang));
  request.user = TRY(unix_user_of(settings, gang));
  add_components(gang, parts, request);
  return allocation_kind(request, gang.submitter);
}

Result<networks::Subnet> choose_gang_subnet(const SlurmJobSettings& settings, const Gang& gang,
                                            const std::vector<networks::Subnet>& taken,
                                            networks::Address start) {
  std::set<std::string> nodes;
  for (const auto& member : gang.members) nodes.insert(member.machine);
  const bool by_ports = !TRY(unix_user_of(settings, gang)).name.empty() && nodes.size() > 1;
  // Nodes that are joined have a gateway each.
  const size_t gateways = by_ports || nodes.empty() ? 0 : nodes.size() - 1;
  return choose_subnet(settings.pool, gang.members.size() + gateways, taken, start,
                       by_ports || is_encrypted(gang));
}

Result<SlurmJobRequest> plan_job(const SlurmJobSettings& settings, const Gang& gang,
                                 const std::vector<SlurmNode>& nodes,
                                 const networks::Subnet& subnet, const SealToken& seal) {
  if (gang.members.empty()) return invalid("a gang without members");
  const auto parts = TRY(parts_of(gang, nodes));
  SlurmJobRequest request;
  request.name = job_name(settings.mark, gang.attempt);
  request.placement = TRY(placement_of(settings, gang));
  request.user = TRY(unix_user_of(settings, gang));
  add_components(gang, parts, request);
  TRY(check_sizes(gang, parts, request));
  request.time_limit_minutes = time_limit_minutes_of(settings, gang);
  JobComment comment{settings.mark, gang.attempt, uint32_t(gang.members.size()), subnet, {}, ""};
  for (const SlurmComponent* component : components_of(request))
    comment.amounts.push_back(component->per_node);
  if (may_serve_others(settings, gang)) comment.kind = allocation_kind(request, gang.submitter);
  comment.submitter = gang.submitter;
  comment.seal = seal(seal_context(comment, request.user.name));
  request.comment = to_text(comment);
  if (request.comment.size() > kSlurmCommentBytesMax)
    return invalid("the comment of the Slurm job would have " +
                   std::to_string(request.comment.size()) + " bytes, at most " +
                   std::to_string(kSlurmCommentBytesMax) + " are allowed");
  request.script = script_of(settings, gang, parts, subnet, request);
  return request;
}

}  // namespace trainyard::launch
