// Kubernetes is the launcher's interface to a Kubernetes cluster: it lists the Jobs and pods of
// this server, the nodes and the requests of other pods there, and creates and deletes a gang's
// objects. rest.hpp implements it, and memory_kubernetes.hpp for tests.
//
// Threads: confined to the launcher's. Errors: unavailable (the API server does not answer: try
// again), denied (wrong or expired credentials, missing right), conflict (an object of that name
// exists), invalid (Kubernetes rejects the request; the message quotes it), exhausted (a quota, or
// an answer beyond its limit).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "domain/job.hpp"

namespace trainyard::launch {

// Limits of lists, beyond the 5,000 nodes and 150,000 pods that Kubernetes supports.
inline constexpr size_t kKubernetesNodesMax = 20'000;
inline constexpr size_t kKubernetesPodsMax = 300'000;
inline constexpr size_t kKubernetesJobsMax = 100'000;
// Items on one page of a list.
inline constexpr size_t kKubernetesPageItems = 500;

// The text for failure in conditions of Jobs, phases of pods, and policies of Jobs.
inline constexpr const char* kKubernetesFailed = "Failed";

// Labels and annotations of a gang's objects.
inline constexpr const char* kServerLabel = "trainyard/server";    // the mark of the server
inline constexpr const char* kAttemptLabel = "trainyard/attempt";  // "j17a1"
inline constexpr const char* kSealAnnotation = "trainyard/seal";   // the encrypted token

struct KubernetesAmounts {
  int64_t cpus_milli = 0;
  int64_t memory_bytes = 0;
};

// A Job with the labels of a gang.
struct KubernetesJob {
  std::string name;
  std::string uid;
  domain::AttemptId attempt;
  uint32_t hosts = 0;
  std::string seal;
  bool suspended = false;
  bool deleting = false;  // it was deleted, and its pods are ending
  bool ended = false;     // complete or failed
  std::string reason;     // why it failed: "FailedIndexes: Job has failed indexes"
  std::set<domain::HostIndex> ended_hosts;
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
};

struct KubernetesNode {
  std::string name;
  bool ready = false;
  bool schedulable = true;
  std::string reason;  // why it is not ready, as Kubernetes reports it
  std::map<std::string, std::string> labels;
  struct Taint {
    std::string key, value, effect;
  };
  std::vector<Taint> taints;
  KubernetesAmounts allocatable;
};

class Kubernetes {
 public:
  virtual ~Kubernetes() = default;
  virtual Result<std::vector<KubernetesJob>> jobs() = 0;
  virtual Result<std::vector<KubernetesPod>> pods() = 0;
  virtual Result<std::vector<KubernetesNode>> nodes() = 0;
  // Returns the sum of requests on each node, by the pods of all namespaces that have not ended;
  // those of this server are excluded.
  virtual Result<std::map<std::string, KubernetesAmounts>> used_by_others() = 0;
  // Returns the Job's uid. Errors: conflict, when one of its name exists.
  virtual Result<std::string> create_job(const Json& job) = 0;
  // Create or replace the object.
  virtual Result<void> apply_secret(const Json& secret) = 0;
  virtual Result<void> apply_service(const Json& service) = 0;
  // Lets the pods of a suspended Job be created.
  virtual Result<void> resume_job(const std::string& name) = 0;
  // Deletes the Job with its pods, Secret and Service; they no longer exist when the Job does not.
  // Does nothing if no Job with this name and uid exists.
  virtual Result<void> delete_job(const std::string& name, const std::string& uid) = 0;
};

}  // namespace trainyard::launch
