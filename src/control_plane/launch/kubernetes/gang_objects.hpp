// Plans the Kubernetes objects of a gang: an Indexed Job with one pod for each host, a headless
// Service that gives the pods names, a Secret with the hosts' orders, and a NetworkPolicy.
//
// All have the gang's name. The Job owns the others, so that Kubernetes deletes them with it.
// The Job is created suspended, and has no pods until it is resumed, which Kueue does for a Job
// with the label of a LocalQueue. The label is added last of all (Kubernetes::submit_job()). The
// pods may run only on the nodes that the scheduler chose. A pod that ends is not replaced.
//
// The pod of host k runs trainyard-pod-host of the image with the order in the Secret's key k; in a
// large gang, what the orders share is in another key (split_orders() of nodes/host_order.hpp).
// This program prepares the host's network within the pod, reaches the gang's other pods by the
// names JOB-k.SERVICE, and becomes the agent (nodes/host_run.hpp). Jobs' containers are made within
// the pod, which is privileged for that.
//
// The NetworkPolicy isolates gangs as on one machine: a pod receives nothing but the overlay's
// packets of its own gang. Connections that it makes itself are not restricted.
//
// Threads: pure. Errors: invalid (the gang), denied (not supported by this launcher), unavailable
// (nodes that Kubernetes does not list, or that are too small), exhausted (orders that do not fit
// into a Secret, and those of choose_subnet()).
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

// Settings of pods. Empty members stand for Kubernetes' defaults.
struct KubernetesPlacement {
  std::map<std::string, std::string> node_selector = {};
  std::vector<KubernetesToleration> tolerations = {};
  std::string priority_class = {};
  std::string service_account = {};
  std::string runtime_class = {};
  std::string local_queue = {};  // Kueue admits the Jobs in this LocalQueue; "": without Kueue
  bool operator==(const KubernetesPlacement&) const = default;
};

// A directory in the pods, for shared directories that jobs mount.
struct KubernetesMount {
  std::string claim;      // a PersistentVolumeClaim of the namespace; "": none
  std::string directory;  // a directory of each node, if there is no claim
  bool operator==(const KubernetesMount&) const = default;
};

// The time that an agent has for the upload of checkpoints after its process has ended.
inline constexpr Duration kLastUploadMax = 60s;

struct KubernetesJobSettings : NodeSettings {
  std::string name_space = "default";
  std::string image;              // the image with Trainyard's programs
  std::string program_directory;  // the directory of trainyard-pod-host in the image
  std::map<std::string, KubernetesMount> mounts;  // by path in the pods
  KubernetesPlacement placement;
  // Set members replace those of `placement`; an instance type's replace a queue's.
  std::map<std::string, KubernetesPlacement> of_queues, of_instance_types;
  // Added to a job's run time limit, for images, inputs and artifacts.
  Duration time_margin = 30min;
  // The time that processes have between SIGTERM and SIGKILL. A pod has kLastUploadMax more.
  Duration stop_grace = 120s;
};

struct GangObjects {
  std::string name;
  Json job, network_policy, secret, service;
};

KubernetesPlacement placement_of(const KubernetesJobSettings& settings, const std::string& queue,
                                 const std::string& instance_type);

// Returns "trainyard-3fa91c-j17a1".
std::string gang_name(const std::string& mark, const domain::AttemptId& attempt);

// `seal` is the sealed token.
Result<GangObjects> plan_objects(const KubernetesJobSettings& settings, const Gang& gang,
                                 const std::vector<KubernetesNode>& nodes, const std::string& seal);

// Makes the Job the owner of the object.
void set_owner(Json& object, const std::string& job, const std::string& uid);

// Returns true if the node has the labels of the placement's node selector.
bool is_selected(const KubernetesNode& node, const KubernetesPlacement& placement);
// Returns true if the node's labels and taints allow a pod with the placement.
bool admits(const KubernetesNode& node, const KubernetesPlacement& placement);

}  // namespace trainyard::launch
