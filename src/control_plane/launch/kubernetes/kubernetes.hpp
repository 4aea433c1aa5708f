// Kubernetes is the launcher's interface to a Kubernetes cluster: it lists and watches the Jobs and
// pods of this server, the nodes and the pods of others there, and creates and deletes a gang's
// objects. rest.hpp implements it, and memory_kubernetes.hpp for tests. If the cluster has Kueue,
// which admits Jobs by quotas, its Workloads are watched too.
//
// Lists and watches are passed as the API server sends them; answers.hpp and watch_events.hpp
// decode them.
//
// Threads: list() and watch() of one resource are confined to one thread at a time; each resource
// may have its own. stop() is callable from anywhere, the others from one further thread. Errors:
// unavailable (the API server does not answer: try again), denied (wrong or expired credentials,
// missing right), conflict (an object of that name exists; with the detail `expired`: the changes
// after this version, or the pages after this one, are no longer known), invalid (Kubernetes
// rejects the request; the message quotes it), exhausted (a quota, or an answer beyond its limit),
// cancelled (stopped).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/job.hpp"

namespace trainyard::launch {

// Limits of lists, beyond the 5,000 nodes and 150,000 pods that Kubernetes supports.
inline constexpr size_t kKubernetesNodesMax = 20'000;
inline constexpr size_t kKubernetesPodsMax = 300'000;
inline constexpr size_t kKubernetesJobsMax = 100'000;
// Items on one page of a list.
inline constexpr size_t kKubernetesPageItems = 500;

enum class KubernetesFault {
  expired,  // HTTP status 410
};

// The text for failure in conditions of Jobs, phases of pods, and policies of Jobs.
inline constexpr const char* kKubernetesFailed = "Failed";

// Labels and annotations of a gang's objects.
inline constexpr const char* kServerLabel = "trainyard/server";    // the mark of the server
inline constexpr const char* kAttemptLabel = "trainyard/attempt";  // "j17a1"
inline constexpr const char* kSealAnnotation = "trainyard/seal";   // the encrypted token
inline constexpr const char* kLocalQueueLabel = "kueue.x-k8s.io/queue-name";  // read by Kueue

// The resource of NVIDIA's device plugin.
inline constexpr const char* kGpuResource = "nvidia.com/gpu";

struct KubernetesAmounts {
  int64_t cpus_milli = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
  bool operator==(const KubernetesAmounts&) const = default;
};

// A Job with the labels of a gang.
struct KubernetesJob {
  std::string name;
  std::string uid;
  std::string version;  // its resourceVersion, which is compared for equality only
  domain::AttemptId attempt;
  uint32_t hosts = 0;
  std::string seal;
  std::string local_queue;  // the LocalQueue of Kueue that it was submitted to; "": none
  bool suspended = false;
  bool deleting = false;  // it was deleted, and its pods are ending
  bool ended = false;     // complete or failed
  std::string reason;     // why it failed: "FailedIndexes: Job has failed indexes"
  std::set<domain::HostIndex> ended_hosts;
  bool operator==(const KubernetesJob&) const = default;
};

// A pod of such a Job.
struct KubernetesPod {
  std::string name;
  domain::AttemptId attempt;
  domain::HostIndex host = 0;
  std::string node;     // "": not scheduled yet
  std::string phase;    // "Pending", "Running", "Succeeded", "Failed", "Unknown"
  std::string created;  // in ISO 8601; of two pods of a host the later one counts
  bool deleting = false;
  bool preempted = false;  // by the scheduler, in favour of another pod
  // Why it does not run yet, or has ended: "Unschedulable: 0/3 nodes are available", "OOMKilled,
  // exit code 137"; "": unknown.
  std::string reason;
  bool operator==(const KubernetesPod&) const = default;
};

struct KubernetesNode {
  std::string name;
  bool ready = false;
  bool schedulable = true;
  std::string reason;  // why it is not ready, as Kubernetes reports it
  std::map<std::string, std::string> labels;
  struct Taint {
    std::string key, value, effect;
    bool operator==(const Taint&) const = default;
  };
  std::vector<Taint> taints;
  KubernetesAmounts allocatable;
  bool operator==(const KubernetesNode&) const = default;
};

// Describes the requests of a pod of others on its node. Pods that have ended, or have no node,
// request nothing.
struct KubernetesUse {
  std::string node;
  KubernetesAmounts amounts;
  bool operator==(const KubernetesUse&) const = default;
};

// A Workload of Kueue, which stands for a Job in a LocalQueue.
struct KubernetesWorkload {
  std::string job_uid;
  bool evicted = false;      // Kueue has ended its pods, and may admit it again
  bool deactivated = false;  // an administrator, or a limit of Kueue, has stopped it for good
  // Why it is not admitted, or was evicted: "Pending: insufficient unused quota for cpu"; "":
  // unknown, or it is admitted.
  std::string reason;
  bool operator==(const KubernetesWorkload&) const = default;
};

// Names what is listed and watched. Each resource has a type of objects.
enum class KubernetesResource {
  jobs,       // KubernetesJob: of this server
  pods,       // KubernetesPod: of such Jobs
  nodes,      // KubernetesNode: all
  others,     // KubernetesUse: the pods of all namespaces, except this server's
  workloads,  // KubernetesWorkload: of all Jobs in the namespace, if Kueue is used
};
inline constexpr size_t kKubernetesResources = 5;

template <class T>
inline constexpr KubernetesResource kResourceOf = KubernetesResource::others;
template <>
inline constexpr KubernetesResource kResourceOf<KubernetesJob> = KubernetesResource::jobs;
template <>
inline constexpr KubernetesResource kResourceOf<KubernetesPod> = KubernetesResource::pods;
template <>
inline constexpr KubernetesResource kResourceOf<KubernetesNode> = KubernetesResource::nodes;
template <>
inline constexpr KubernetesResource kResourceOf<KubernetesWorkload> = KubernetesResource::workloads;

// Requests the changes of a resource.
struct KubernetesWatch {
  std::string version;  // the last one that is known: of a list, an event or a bookmark
  Duration timeout{};   // the API server ends the watch then
  // Receives "" when the API server accepts the watch, then the bytes of its lines in pieces of any
  // size. Returns false to end the watch.
  std::function<bool(std::string_view)> receive;
};

class Kubernetes {
 public:
  virtual ~Kubernetes() = default;
  // Finds the version of Kueue's API, which list() and watch() of Workloads need. Errors:
  // not_found, when the cluster has no Kueue.
  virtual Result<void> find_kueue() = 0;
  // Returns one page of the list. `page` is the token in the page before it; "": the first one,
  // which shows all that was written before the request.
  virtual Result<std::string> list(KubernetesResource resource, const std::string& page) = 0;
  // Returns when the watch has ended: by the API server or the receiver. A connection that sends
  // nothing for longer than the timeout is dropped (unavailable).
  virtual Result<void> watch(KubernetesResource resource, const KubernetesWatch& watch) = 0;
  // Ends list() and watch(), now and in future.
  virtual void stop() {}
  // Returns the Job of this server with the name, as it is now; nullopt: no such Job exists.
  virtual Result<std::optional<KubernetesJob>> find_job(const std::string& name) = 0;
  // Returns why Kubernetes last failed to create pods of the Job: "FailedCreate: pods .. is
  // forbidden: exceeded quota: ..". "": it reports no failure.
  virtual Result<std::string> why_no_pods(const std::string& job) = 0;
  // Returns the created Job. Errors: conflict, when one of its name exists.
  virtual Result<KubernetesJob> create_job(const Json& job) = 0;
  // Creates or replaces a Secret, Service or NetworkPolicy.
  virtual Result<void> apply(const Json& object) = 0;
  // Lets the pods of a suspended Job be created: now, or when Kueue admits it in the LocalQueue.
  // `local_queue`: "": none. Returns the changed Job.
  virtual Result<KubernetesJob> submit_job(const std::string& name,
                                           const std::string& local_queue) = 0;
  // Deletes the Job with its pods and the objects that it owns; they no longer exist when the Job
  // does not. Returns the Job, whose pods end; nullopt: no Job with this name and uid exists.
  virtual Result<std::optional<KubernetesJob>> delete_job(const std::string& name,
                                                          const std::string& uid) = 0;
};

}  // namespace trainyard::launch
