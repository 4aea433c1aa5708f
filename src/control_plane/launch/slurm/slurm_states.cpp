#include "launch/slurm/slurm_states.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"
#include "launch/slurm/answers.hpp"

namespace trainyard::launch {
namespace {

std::vector<const SlurmNode*> unusable_nodes_of(const SlurmJob& job,
                                                const std::vector<SlurmNode>& nodes) {
  std::vector<const SlurmNode*> unusable;
  const auto names = expand_host_list(job.nodes);
  for (const SlurmNode& node : nodes)
    if (names && std::ranges::find(*names, node.name) != names->end() && !is_usable(node))
      unusable.push_back(&node);
  return unusable;
}

}  // namespace

bool has_ended(const SlurmJob& job) {
  constexpr std::string_view kEnded =
      "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY "
      "PREEMPTED REVOKED TIMEOUT";
  const auto states = split(kEnded, ' ');
  return std::ranges::find(states, job.state) != states.end();
}

bool is_completing(const SlurmJob& job) { return job.state == "COMPLETING"; }
bool is_uncancelled(const SlurmJob& job) { return !has_ended(job) && !is_completing(job); }
bool may_run(const SlurmJob& job) { return is_uncancelled(job) && !job.requeued; }
bool has_lost_a_node(const SlurmJob& job) { return job.state == "NODE_FAIL" || job.requeued; }

bool waits_for_nodes(const SlurmJob& job) {
  constexpr std::array kOther = {"", "None", "Dependency", "BeginTime", "JobHeldUser"};
  return job.state == "PENDING" && std::ranges::find(kOther, job.reason) == kOther.end();
}

bool is_usable(const SlurmNode& node) {
  constexpr std::array kUnusable = {
      "DOWN",        "DRAIN",    "DRAINED",      "DRAINING",      "FAIL",
      "FAILING",     "ERROR",    "FUTURE",       "UNKNOWN",       "INVAL",
      "MAINT",       "REBOOT",   "POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN",
      "POWERING_UP", "POWER_UP", "POWER_DRAIN",  "REBOOT_ISSUED", "REBOOT_REQUESTED"};
  return node.responds && std::ranges::none_of(node.states, [&](const std::string& state) {
           return std::ranges::find(kUnusable, state) != kUnusable.end();
         });
}

bool is_in(const std::vector<std::string>& partitions, const SlurmNode& node) {
  return partitions.empty() || std::ranges::any_of(partitions, [&](const std::string& partition) {
           return std::ranges::find(node.partitions, partition) != node.partitions.end();
         });
}

std::string describe(const SlurmJob& job) {
  std::string text = "Slurm job " + std::to_string(job.id) + " is " + job.state;
  if (!job.reason.empty() && job.reason != "None") text += " (" + job.reason + ")";
  if (job.requeued) return text + " after it was requeued";
  if (job.preempted && job.state != "PREEMPTED")
    return text + (is_uncancelled(job) ? " and is being preempted" : " after it was preempted");
  const bool start_known = !job.expected_start.empty() && job.expected_start != "N/A";
  if (job.state == "PENDING" && start_known) text += ", expected to start at " + job.expected_start;
  return text;
}

std::string state_note(const SlurmJob& job, const std::vector<SlurmNode>& nodes) {
  std::string text = describe(job);
  if (!has_lost_a_node(job)) return text;
  for (const SlurmNode* node : unusable_nodes_of(job, nodes))
    text += "; node " + node->name + ": " + (node->reason.empty() ? "down" : node->reason);
  return text;
}

std::string unknown_note(const SlurmJob& job, Instant sent, const std::string& why) {
  return "Slurm job " + std::to_string(job.id) + " was " + job.state +
         " when Slurm answered last, at " + to_iso8601(sent, false) + ": " + why;
}

bool is_preempted(const SlurmJob& job, const std::vector<SlurmNode>& nodes) {
  return job.preempted || job.state == "PREEMPTED" ||
         (job.requeued && unusable_nodes_of(job, nodes).empty());
}

Result<void> check_partitions(const std::vector<std::string>& partitions,
                              const std::vector<SlurmNode>& nodes) {
  for (const std::string& partition : partitions)
    if (std::ranges::none_of(nodes, [&](const SlurmNode& node) {
          return std::ranges::find(node.partitions, partition) != node.partitions.end();
        }))
      return invalid("Slurm has no node in the partition '" + partition +
                     "', which the config's [slurm] names: `sinfo` lists the partitions");
  return {};
}

Result<void> check_users(Slurm& slurm, const std::map<std::string, UnixUser>& users) {
  for (const auto& [principal, user] : users)
    if (!user.name.empty())
      TRY(slurm.check_user(user).in("slurm.users.\"" + principal + "\".unix_user"));
  return {};
}

std::vector<Machine> machines_of(const std::vector<SlurmNode>& nodes,
                                 const std::vector<std::string>& partitions,
                                 const std::map<std::string, NodeAmounts>& own) {
  std::vector<Machine> machines;
  for (const SlurmNode& node : nodes) {
    if (!is_usable(node) || !is_in(partitions, node)) continue;
    const auto found = own.find(node.name);
    const NodeAmounts ours = found == own.end() ? NodeAmounts{} : found->second;
    // The part of other jobs is not offered.
    const auto offered = [](int64_t all, int64_t allocated, int64_t by_us) {
      return std::max<int64_t>(0, all - std::max<int64_t>(0, allocated - by_us));
    };
    const int64_t cpus = offered(node.cpus, node.cpus_allocated, ours.cpus);
    const int64_t memory_mib = offered(node.memory_mib, node.memory_allocated_mib, ours.memory_mib);
    if (cpus == 0 || memory_mib == 0) continue;
    machines.push_back({node.name, double(cpus), memory_mib << 20,
                        offered(node.gpus, node.gpus_allocated, ours.gpus)});
  }
  return machines;
}

}  // namespace trainyard::launch
