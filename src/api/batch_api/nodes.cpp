#include "batch_api/nodes.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/plural.hpp"
#include "batch/multinode.hpp"
#include "batch/status.hpp"
#include "batch_api/container.hpp"
#include "batch_api/conversions.hpp"
#include "batch_api/network_interfaces.hpp"
#include "control/control.hpp"
#include "operations/listed_failure.hpp"
#include "reconcile/state.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
using trainyard::batch::NodeRange;

Outcome<NodeRange> range_of(const std::optional<std::string>& target_nodes) {
  auto range = catalog::parse_node_range(target_nodes.value_or(""));
  if (!range) return client_exception(range.error().message);
  return *range;
}

Outcome<std::vector<NodeRange>> ranges_of(const batch::NodeProperties& properties) {
  std::vector<NodeRange> ranges;
  for (const auto& each : *properties.node_range_properties)
    ranges.push_back(TRY(range_of(each.target_nodes)));
  return ranges;
}

Outcome<std::vector<size_t>> by_node(const std::vector<NodeRange>& ranges, uint32_t nodes) {
  auto found = catalog::nodes_by_range(ranges, nodes);
  if (!found) return client_exception(found.error().message);
  return *std::move(found);
}

Outcome<batch::ContainerProperties> container_of(const batch::NodeRangeProperty& range) {
  if (range.eks_properties) return cannot_run("eksProperties", "use container");
  if (range.consumable_resource_properties)
    return cannot_run("consumableResourceProperties of a range of nodes", "leave it out");
  if (range.container) return *range.container;
  if (range.ecs_properties) return TRY(container_of_task(*range.ecs_properties));
  return client_exception("nodeRangeProperties of targetNodes '" + range.target_nodes.value_or("") +
                          "' needs a container");
}

// A request's overrides for a range of nodes.
struct Override {
  NodeRange nodes;
  batch::ContainerOverrides of_container;
};
Outcome<std::vector<Override>> overrides_of(const batch::NodeOverrides& request, uint32_t nodes) {
  std::vector<Override> overrides;
  for (const auto& each :
       request.node_property_overrides.value_or(std::vector<batch::NodePropertyOverride>())) {
    Override one;
    one.nodes = TRY(range_of(each.target_nodes));
    if (one.nodes.first >= nodes || one.nodes.last.value_or(0) >= nodes)
      return client_exception("nodeOverrides: targetNodes '" + *each.target_nodes +
                              "' goes beyond the last of " + counted(nodes, "node") +
                              ", which is " + std::to_string(nodes - 1));
    if (each.eks_properties_override)
      return cannot_run("eksPropertiesOverride", "use containerOverrides");
    if (each.consumable_resource_properties_override)
      return cannot_run("consumableResourcePropertiesOverride of nodes", "leave it out");
    if (each.container_overrides) one.of_container = *each.container_overrides;
    if (each.ecs_properties_override)
      one.of_container = TRY(overrides_of_task(*each.ecs_properties_override));
    overrides.push_back(std::move(one));
  }
  return overrides;
}

Outcome<uint32_t> count_of(const batch::NodeProperties& properties,
                           const std::optional<batch::NodeOverrides>& overrides,
                           const std::vector<NodeRange>& ranges) {
  int64_t count = *properties.num_nodes;
  if (overrides && overrides->num_nodes) {
    if (*overrides->num_nodes != count && std::ranges::none_of(ranges, &NodeRange::open))
      return client_exception(
          "nodeOverrides.numNodes needs a definition with a range of targetNodes that has no end, "
          "like 1:");
    count = *overrides->num_nodes;
  }
  if (count < 1 || count > int64_t(catalog::kNodesMax))
    return client_exception("numNodes must be between 1 and " + std::to_string(catalog::kNodesMax));
  return uint32_t(count);
}

// The description of nodes with the same container. They are a range of the definition, or, if
// overrides make its nodes differ, a part of it.
batch::NodeRangeProperty described(const batch::NodeRangeProperty& range, std::string target_nodes,
                                   const batch::ContainerProperties& container) {
  batch::NodeRangeProperty description = range;
  description.target_nodes = std::move(target_nodes);
  if (description.ecs_properties)
    put_container(*description.ecs_properties, container);
  else
    description.container = container;
  return description;
}

// The narrowest range that contains the node. It has the node's container.
const batch::NodeRangeProperty* range_with(const batch::NodeProperties& properties,
                                           domain::HostIndex host) {
  const batch::NodeRangeProperty* best = nullptr;
  NodeRange of_best;
  for (const auto& each : *properties.node_range_properties) {
    const auto range = catalog::parse_node_range(each.target_nodes.value_or(""));
    if (!range || !range->has(host)) continue;
    const uint32_t last = range->last.value_or(catalog::kNodesMax),
                   of_best_last = of_best.last.value_or(catalog::kNodesMax);
    if (best && last - range->first >= of_best_last - of_best.first) continue;
    best = &each;
    of_best = *range;
  }
  return best;
}

}  // namespace

Outcome<Done> check_nodes(const batch::NodeProperties& properties) {
  const auto ranges = TRY(ranges_of(properties));
  if (ranges.empty() || ranges.size() > catalog::kNodeRangesMax)
    return client_exception("nodeRangeProperties must have one to " +
                            std::to_string(catalog::kNodeRangesMax) + " ranges");
  const uint32_t count = TRY(count_of(properties, {}, ranges));
  TRY(by_node(ranges, count));
  if (*properties.main_node < 0 || *properties.main_node >= int64_t(count))
    return client_exception("nodeProperties.mainNode must be between 0 and " +
                            std::to_string(count - 1));
  for (const auto& range : *properties.node_range_properties) {
    if (range.eks_properties) continue;  // kept, and rejected when a job is submitted
    const std::string place =
        "nodeRangeProperties.container of targetNodes '" + *range.target_nodes + "'";
    if (range.container)
      TRY(check_container(*range.container, place));
    else if (!range.ecs_properties)
      return client_exception(place + " is required");
  }
  return Done{};
}

Outcome<Nodes> nodes_of(const batch::NodeProperties& properties,
                        const std::optional<batch::NodeOverrides>& overrides,
                        const std::map<std::string, std::string>& parameters,
                        const Settings& settings, const std::string& region) {
  const auto ranges = TRY(ranges_of(properties));
  const uint32_t count = TRY(count_of(properties, overrides, ranges));
  const auto range_of_node = TRY(by_node(ranges, count));
  Nodes nodes;
  nodes.properties = properties;
  nodes.properties.num_nodes = count;
  if (*properties.main_node >= int64_t(count))
    return client_exception("nodeProperties.mainNode must be between 0 and " +
                            std::to_string(count - 1));
  nodes.main = uint32_t(*properties.main_node);
  std::vector<Override> changes;
  if (overrides) changes = TRY(overrides_of(*overrides, count));

  std::vector<batch::NodeRangeProperty> kinds;
  const auto same = [&](uint32_t a, uint32_t b) {
    return range_of_node[a] == range_of_node[b] &&
           std::ranges::all_of(changes, [&](const Override& each) {
             return each.nodes.has(a) == each.nodes.has(b);
           });
  };
  for (uint32_t first = 0, next = 0; first < count; first = next) {
    while (next < count && same(first, next)) ++next;
    const batch::NodeRangeProperty& range =
        (*properties.node_range_properties)[range_of_node[first]];
    auto container = TRY(container_of(range));
    for (const Override& each : changes)
      if (each.nodes.has(first)) TRY(override_container(container, each.of_container));
    put_parameters(container, parameters);
    auto group = TRY(group_of(container, settings, region));
    group.name = std::to_string(first) + ":" + std::to_string(next - 1);
    group.count = next - first;
    nodes.groups.push_back(std::move(group));
    nodes.volume_gib = std::max(nodes.volume_gib, TRY(volume_gib_of(container)));
    const std::string role = container.job_role_arn.value_or("");
    if (first > 0 && role != nodes.role_arn)
      return cannot_run("A job whose nodes run as several roles", "give all ranges one jobRoleArn");
    nodes.role_arn = role;
    kinds.push_back(described(range, nodes.groups.back().name, container));
  }
  if (!changes.empty()) {
    nodes.properties.node_range_properties = std::move(kinds);
    return nodes;
  }
  for (auto& range : *nodes.properties.node_range_properties) {
    auto container = TRY(container_of(range));
    put_parameters(container, parameters);
    range = described(range, *range.target_nodes, container);
  }
  return nodes;
}

namespace {

// The full reason, for principals that may describe the job. Lists shorten it.
std::string whole_reason(const domain::Job& job, const domain::Attempt& attempt,
                         domain::HostIndex host) {
  if (host == job.spec.main_host())
    return attempt.ended ? catalog::end_of(job, attempt).reason : "";
  return host < attempt.hosts.size() ? attempt.hosts[host].failure : "";
}

}  // namespace

Result<batch::JobDetail> describe_node(const domain::Job& job, domain::HostIndex host) {
  CHECK(job.spec.main_host() && host < job.spec.hosts(), "the caller has checked the node");
  batch::JobDetail detail = TRY(describe(job));
  const auto properties = std::move(detail.node_properties);
  detail.node_properties.reset();
  detail.job_id = catalog::node_id(job.key.name, host);
  detail.job_arn = catalog::node_id(*detail.job_arn, host);
  detail.node_details.emplace();
  detail.node_details->node_index = host;
  detail.node_details->is_main_node = host == *job.spec.main_host();
  const auto summary = summary_of_node(job, host);
  detail.status = summary.status;
  detail.status_reason = summary.status_reason;
  detail.started_at = summary.started_at;
  detail.stopped_at = summary.stopped_at;
  if (!*detail.node_details->is_main_node) detail.attempts.emplace();
  detail.container.emplace();
  const batch::NodeRangeProperty* range = properties ? range_with(*properties, host) : nullptr;
  if (range) {
    auto container = range->container.value_or(batch::ContainerProperties());
    if (range->ecs_properties)
      if (auto of_task = container_of_task(*range->ecs_properties)) container = *std::move(of_task);
    TRY(read_container(container, *detail.container));
  }
  if (summary.container) detail.container->exit_code = summary.container->exit_code;
  detail.container->network_interfaces.emplace();
  const domain::Attempt* attempt = job.attempt();
  if (!attempt) return detail;
  detail.container->network_interfaces = network_interfaces_of(job, *attempt, host);
  if (std::string reason = whole_reason(job, *attempt, host); !reason.empty())
    detail.container->reason = std::move(reason);
  detail.container->task_arn = reconcile::task_arn(job, *attempt, host);
  detail.container->container_instance_arn = reconcile::container_instance_arn(job, *attempt, host);
  // A node that ended without an exit code, as one whose machine was lost, has its log, too.
  const bool ended = attempt->training_started && host < attempt->hosts.size() &&
                     domain::is_final(attempt->hosts[host].state);
  if (summary.started_at || ended)
    detail.container->log_stream_name = reconcile::log_stream_of(job, *attempt, host);
  return detail;
}

batch::JobSummary summary_of_node(const domain::Job& job, domain::HostIndex host) {
  const bool is_main = host == job.spec.main_host();
  batch::JobSummary summary = summary_of_batch(job);
  summary.job_id = catalog::node_id(job.key.name, host);
  summary.job_arn = catalog::node_id(*summary.job_arn, host);
  summary.status = catalog::status_name(catalog::node_status(job, host));
  const std::string reason = catalog::node_status_reason(job, host);
  summary.status_reason = reason.empty() ? std::nullopt : std::optional(reason);
  summary.node_properties.emplace();
  summary.node_properties->is_main_node = is_main;
  summary.node_properties->num_nodes = job.spec.hosts();
  summary.node_properties->node_index = host;
  const domain::Attempt* attempt = job.attempt();
  if (is_main || !attempt || host >= attempt->hosts.size()) return summary;
  const domain::Host& own = attempt->hosts[host];
  summary.container.reset();
  if (own.exit_code) summary.container.emplace().exit_code = *own.exit_code;
  const std::string own_failure =
      catalog::container_reason(own.fault.value_or(domain::Fault::algorithm), own.failure);
  if (!own_failure.empty()) {
    if (!summary.container) summary.container.emplace();
    summary.container->reason = listed_failure(own_failure);
  }
  // The times of the other nodes' processes are not stored. The job's start and the time of the
  // node's final state approximate them.
  if (!own.exit_code && own.state != domain::HostState::running) summary.started_at.reset();
  summary.stopped_at.reset();
  if (domain::is_final(own.state)) summary.stopped_at = to_milliseconds(own.state_since);
  return summary;
}

}  // namespace trainyard::api::batch_api
