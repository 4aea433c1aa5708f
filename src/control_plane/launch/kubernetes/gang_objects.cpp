#include "launch/kubernetes/gang_objects.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "launch/kubernetes/answers.hpp"
#include "launch/local/plan.hpp"
#include "networks/overlay.hpp"

namespace trainyard::launch {
namespace {

// The memory of an agent; its container has its own limit.
constexpr int64_t kMemoryBytesMin = 64 << 20;
constexpr const char* kOrdersDirectory = "/run/trainyard-orders";

KubernetesAmounts amounts_of(const Member& member) {
  return {std::max<int64_t>(1, int64_t(std::ceil(member.share.cpus * 1000))),
          std::max(kMemoryBytesMin, member.share.memory_bytes), member.share.gpus};
}

// Returns the largest need of a host, since all pods of a Job request the same.
KubernetesAmounts largest_of(const Gang& gang) {
  KubernetesAmounts largest;
  for (const Member& member : gang.members) raise_to(largest, amounts_of(member));
  return largest;
}

// Returns the gang's hosts by the name of their machine.
std::map<std::string, int64_t> hosts_by_machine(const Gang& gang) {
  std::map<std::string, int64_t> machines;
  for (const Member& member : gang.members) ++machines[member.machine];
  return machines;
}

Result<void> check_gang(const Gang& gang, const std::vector<KubernetesNode>& nodes,
                        const KubernetesAmounts& amounts) {
  if (gang.members.empty()) return invalid("a gang without members");
  for (const auto& [name, hosts] : hosts_by_machine(gang)) {
    const auto node = std::ranges::find(nodes, name, &KubernetesNode::name);
    if (node == nodes.end())
      return unavailable("Kubernetes does not list the node '" + shorten(name, 80) + "'");
    const auto fits = [count = hosts](int64_t has, int64_t each) { return each <= has / count; };
    if (!fits(node->allocatable.cpus_milli, amounts.cpus_milli) ||
        !fits(node->allocatable.memory_bytes, amounts.memory_bytes) ||
        !fits(node->allocatable.gpus, amounts.gpus))
      return unavailable("the node " + name + " cannot have " + std::to_string(hosts) +
                         " pods, each as large as the gang's largest host needs");
  }
  return {};
}

Json labels_of(const KubernetesJobSettings& settings, const Gang& gang) {
  return {{"app.kubernetes.io/managed-by", "trainyard"},
          {kServerLabel, settings.mark},
          {kAttemptLabel, gang.attempt.text()}};
}

Json affinity_to(const Gang& gang) {
  Json terms = Json::array();
  for (const auto& [name, hosts] : hosts_by_machine(gang)) {
    const Json field = {
        {"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({name})}};
    terms.push_back(Json::object({{"matchFields", Json::array({field})}}));
  }
  return {{"nodeAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", terms}}}}}};
}

Json tolerations_of(const KubernetesPlacement& placement) {
  Json tolerations = Json::array();
  for (const auto& toleration : placement.tolerations) {
    Json each = {{"operator", toleration.value.empty() ? "Exists" : "Equal"}};
    for (const auto& [name, value] : {std::pair("key", &toleration.key),
                                      {"value", &toleration.value},
                                      {"effect", &toleration.effect}})
      if (!value->empty()) each[name] = *value;
    tolerations.push_back(std::move(each));
  }
  return tolerations;
}

Json container_of(const KubernetesJobSettings& settings, const KubernetesAmounts& amounts) {
  const auto field = [](const char* name, const char* path) -> Json {
    return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
  };
  Json resources = {{"requests",
                     {{"cpu", std::to_string(amounts.cpus_milli) + "m"},
                      {"memory", std::to_string(amounts.memory_bytes)}}}};
  // A device plugin's resource needs a limit, which is its request too.
  if (amounts.gpus > 0) resources["limits"] = {{kGpuResource, std::to_string(amounts.gpus)}};
  return {{"name", "host"},
          {"image", settings.image},
          {"command",
           Json::array({settings.program_directory + "/trainyard-pod-host", kOrdersDirectory})},
          {"env", Json::array({field("POD_NAME", "metadata.name")})},
          {"resources", resources},
          {"securityContext", {{"privileged", true}}},
          {"terminationMessagePolicy", "FallbackToLogsOnError"},
          {"volumeMounts",
           {{{"name", "orders"}, {"mountPath", kOrdersDirectory}, {"readOnly", true}},
            {{"name", "host"}, {"mountPath", settings.node_directory}}}}};
}

// Adds the mounts to a pod with one container.
void add_mounts(const KubernetesJobSettings& settings, Json& pod) {
  size_t count = 0;
  for (const auto& [path, mount] : settings.mounts) {
    const std::string name = "mount-" + std::to_string(count++);
    Json volume = {{"name", name}};
    if (mount.claim.empty())
      volume["hostPath"] = {{"path", mount.directory}, {"type", "Directory"}};
    else
      volume["persistentVolumeClaim"] = {{"claimName", mount.claim}};
    pod["volumes"].push_back(std::move(volume));
    pod["containers"][0]["volumeMounts"].push_back({{"name", name}, {"mountPath", path}});
  }
}

Json pod_of(const KubernetesJobSettings& settings, const Gang& gang, const std::string& name,
            const KubernetesAmounts& amounts) {
  const auto placement = placement_of(settings, gang.queue, gang.instance_type);
  Json spec = {
      {"restartPolicy", "Never"},
      {"subdomain", name},
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", (settings.stop_grace + kLastUploadMax) / Duration(1s)},
      {"affinity", affinity_to(gang)},
      {"tolerations", tolerations_of(placement)},
      {"containers", Json::array({container_of(settings, amounts)})},
      {"volumes",
       {{{"name", "orders"}, {"secret", {{"secretName", name}, {"defaultMode", 0400}}}},
        {{"name", "host"}, {"emptyDir", Json::object()}}}}};
  add_mounts(settings, spec);
  if (!placement.node_selector.empty()) spec["nodeSelector"] = placement.node_selector;
  for (const auto& [member, value] : {std::pair("priorityClassName", &placement.priority_class),
                                      {"serviceAccountName", &placement.service_account},
                                      {"runtimeClassName", &placement.runtime_class}})
    if (!value->empty()) spec[member] = *value;
  if (gang.run_time_max > Duration())
    spec["activeDeadlineSeconds"] =
        (gang.run_time_max + settings.time_margin + Duration(1s) - 1ms) / Duration(1s);
  return {{"metadata", {{"labels", labels_of(settings, gang)}}}, {"spec", spec}};
}

Json metadata_of(const KubernetesJobSettings& settings, const Gang& gang, const std::string& name) {
  return {
      {"name", name}, {"namespace", settings.name_space}, {"labels", labels_of(settings, gang)}};
}

Json network_policy_of(const KubernetesJobSettings& settings, const Gang& gang,
                       const Json& metadata) {
  const Json gang_pods = {{"podSelector", {{"matchLabels", labels_of(settings, gang)}}}};
  const Json overlay = {{"protocol", "UDP"}, {"port", networks::kOverlayPort}};
  Json spec = gang_pods;
  spec["policyTypes"] = Json::array({"Ingress"});
  spec["ingress"] = Json::array();
  if (gang.members.size() > 1)
    spec["ingress"].push_back(
        Json{{"from", Json::array({gang_pods})}, {"ports", Json::array({overlay})}});
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", metadata},
          {"spec", std::move(spec)}};
}

// Each pod counts as a node, whose address is its name in the Service.
Result<std::vector<HostOrder>> orders_of(const KubernetesJobSettings& settings, const Gang& gang,
                                         const std::string& name) {
  std::vector<NodeHosts> nodes;
  for (domain::HostIndex host = 0; host < gang.members.size(); ++host)
    nodes.push_back({name + "-" + std::to_string(host) + "." + name, {host}});
  // Gangs do not see each other's addresses, so they may be equal.
  const auto subnet = TRY(choose_subnet(settings.pool, 2 * gang.members.size() - 1, {},
                                        settings.pool.base, is_encrypted(gang)));
  return plan_host_orders(settings, gang, name, nodes, subnet);
}

// Returns the values of the Secret by key.
std::map<std::string, std::string> values_of(const std::vector<HostOrder>& orders) {
  std::map<std::string, std::string> values;
  size_t bytes = 0;
  for (const auto& order : orders)
    bytes += (values[std::to_string(order.host)] = to_text(order)).size();
  if (bytes <= kSecretBytesMax) return values;
  auto split = split_orders(orders);
  values[kSharedOrderFile] = std::move(split.shared);
  for (size_t i = 0; i < orders.size(); ++i)
    values[std::to_string(orders[i].host)] = std::move(split.own[i]);
  return values;
}

Result<Json> secret_data(const std::vector<HostOrder>& orders) {
  Json data = Json::object();
  size_t bytes = 0;
  for (const auto& [key, value] : values_of(orders)) {
    bytes += value.size();
    data[key] = to_base64(value);
  }
  if (bytes > kSecretBytesMax)
    return exhausted("the orders of the gang's " + std::to_string(orders.size()) + " hosts have " +
                     human_bytes(bytes) + ", and a Secret of Kubernetes holds at most " +
                     human_bytes(kSecretBytesMax) +
                     ": use fewer hosts, or a smaller environment and hyperparameters");
  return data;
}

void override_by(KubernetesPlacement& placement, const KubernetesPlacement& other) {
  for (auto member : {&KubernetesPlacement::priority_class, &KubernetesPlacement::service_account,
                      &KubernetesPlacement::runtime_class, &KubernetesPlacement::local_queue})
    if (!(other.*member).empty()) placement.*member = other.*member;
  if (!other.node_selector.empty()) placement.node_selector = other.node_selector;
  if (!other.tolerations.empty()) placement.tolerations = other.tolerations;
}

bool tolerates(const KubernetesPlacement& placement, const KubernetesNode::Taint& taint) {
  return std::ranges::any_of(placement.tolerations, [&](const KubernetesToleration& toleration) {
    return (toleration.key.empty() || toleration.key == taint.key) &&
           (toleration.value.empty() || toleration.value == taint.value) &&
           (toleration.effect.empty() || toleration.effect == taint.effect);
  });
}

}  // namespace

KubernetesPlacement placement_of(const KubernetesJobSettings& settings, const std::string& queue,
                                 const std::string& instance_type) {
  KubernetesPlacement placement = settings.placement;
  if (const auto found = settings.of_queues.find(queue); found != settings.of_queues.end())
    override_by(placement, found->second);
  if (const auto found = settings.of_instance_types.find(instance_type);
      found != settings.of_instance_types.end())
    override_by(placement, found->second);
  return placement;
}

std::string gang_name(const std::string& mark, const domain::AttemptId& attempt) {
  return "trainyard-" + mark + "-" + attempt.text();
}

Result<GangObjects> plan_objects(const KubernetesJobSettings& settings, const Gang& gang,
                                 const std::vector<KubernetesNode>& nodes,
                                 const std::string& seal) {
  const auto amounts = largest_of(gang);
  TRY(check_gang(gang, nodes, amounts));
  GangObjects objects;
  objects.name = gang_name(settings.mark, gang.attempt);
  const Json metadata = metadata_of(settings, gang, objects.name);
  objects.job = {{"apiVersion", "batch/v1"},
                 {"kind", "Job"},
                 {"metadata", metadata},
                 {"spec",
                  {{"completionMode", "Indexed"},
                   {"completions", gang.members.size()},
                   {"parallelism", gang.members.size()},
                   {"backoffLimitPerIndex", 0},
                   {"podReplacementPolicy", kKubernetesFailed},
                   {"suspend", true},
                   {"template", pod_of(settings, gang, objects.name, amounts)}}}};
  objects.job["metadata"]["annotations"] = {{kSealAnnotation, seal}};
  objects.network_policy = network_policy_of(settings, gang, metadata);
  objects.service = {{"apiVersion", "v1"},
                     {"kind", "Service"},
                     {"metadata", metadata},
                     {"spec",
                      {{"clusterIP", "None"},
                       {"publishNotReadyAddresses", true},
                       {"selector", labels_of(settings, gang)}}}};
  // Computed before the list: a return from within it would leak its first elements.
  const Json data = TRY(secret_data(TRY(orders_of(settings, gang, objects.name))));
  objects.secret = {{"apiVersion", "v1"},
                    {"kind", "Secret"},
                    {"metadata", metadata},
                    {"immutable", true},
                    {"data", data}};
  return objects;
}

void set_owner(Json& object, const std::string& job, const std::string& uid) {
  const Json owner = {{"apiVersion", "batch/v1"},
                      {"kind", "Job"},
                      {"name", job},
                      {"uid", uid},
                      {"blockOwnerDeletion", false}};
  object["metadata"]["ownerReferences"] = Json::array({owner});
}

bool is_selected(const KubernetesNode& node, const KubernetesPlacement& placement) {
  return std::ranges::all_of(placement.node_selector, [&](const auto& each) {
    const auto found = node.labels.find(each.first);
    return found != node.labels.end() && found->second == each.second;
  });
}

bool admits(const KubernetesNode& node, const KubernetesPlacement& placement) {
  return is_selected(node, placement) &&
         std::ranges::all_of(node.taints, [&](const KubernetesNode::Taint& taint) {
           return taint.effect == "PreferNoSchedule" || tolerates(placement, taint);
         });
}

}  // namespace trainyard::launch
