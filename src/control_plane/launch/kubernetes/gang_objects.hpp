// Plans the Kubernetes objects of a gang: an Indexed Job with one pod for each host, a headless
// Service that gives the pods names, and a Secret with the hosts' orders.
//
// All three have the gang's name, and are the Job's: Kubernetes deletes the others with it. The Job
// is created suspended; until it is resumed no pod of it exists. Its pods may run on the nodes that
// the scheduler chose, and on no others. A pod that ends is not replaced.
//
// The pod of host k runs the program trainyard-pod-host of the image with the order that the Secret
// has under k. It prepares the host's network within the pod, where the gang's other pods are
// reached by the names JOB-k.SERVICE, and becomes the agent (nodes/host_run.hpp). The containers of
// jobs are made within the pod, which is privileged for that.
//
// Threads: pure. Errors: invalid (the gang), denied (what this launcher does not support),
// unavailable (nodes that Kubernetes does not list, or that are too small), exhausted (orders that
// do not fit into a Secret, and those of choose_subnet()).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "launch/kubernetes/kubernetes.hpp"
#include "launch/launcher.hpp"
#include "launch/nodes/host_plan.hpp"

namespace trainyard::launch {

// Kubernetes rejects larger Secrets.
inline constexpr size_t kSecretBytesMax = 1 << 20;

struct KubernetesToleration {
  std::string key, value, effect;  // "": any
  bool operator==(const KubernetesToleration&) const = default;
};

// Where and as what pods run. Empty members are Kubernetes' defaults.
struct KubernetesPlacement {
  std::map<std::string, std::string> node_selector = {};
  std::vector<KubernetesToleration> tolerations = {};
  std::string priority_class = {};
  std::string service_account = {};
  std::string runtime_class = {};
  bool operator==(const KubernetesPlacement&) const = default;
};

struct KubernetesJobSettings : NodeSettings {
  std::string name_space = "default";
  std::string image;              // with Trainyard's programs
  std::string program_directory;  // where the image has trainyard-pod-host
  KubernetesPlacement placement;
  // Members that are set replace those of `placement`; an instance type's replace a queue's.
  std::map<std::string, KubernetesPlacement> of_queues, of_instance_types;
  // Added to a job's own limit of its run time: for images, inputs and artifacts.
  Duration time_margin = 30min;
  // Between a pod's SIGTERM and its SIGKILL.
  Duration stop_grace = 120s;
};

struct GangObjects {
  std::string name;
  Json job, service, secret;
};

KubernetesPlacement placement_of(const KubernetesJobSettings& settings, const std::string& queue,
                                 const std::string& instance_type);

// "trainyard-3fa91c-j17a1".
std::string gang_name(const std::string& mark, const domain::AttemptId& attempt);

// `seal`: of the token.
Result<GangObjects> plan_objects(const KubernetesJobSettings& settings, const Gang& gang,
                                 const std::vector<KubernetesNode>& nodes, const std::string& seal);

// Makes the Job the owner of the object.
void set_owner(Json& object, const std::string& job, const std::string& uid);

// True if the node has the labels of the placement's node selector.
bool is_selected(const KubernetesNode& node, const KubernetesPlacement& placement);
// True if a pod with the placement may be scheduled on the node, resources aside.
bool admits(const KubernetesNode& node, const KubernetesPlacement& placement);

}  // namespace trainyard::launch
