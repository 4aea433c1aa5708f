// Makes a launcher that runs each gang as one Indexed Job on the nodes that the scheduler chose,
// with one agent in each pod.
//
// The Job has everything that the launcher knows about a gang: labels identify the attempt, and an
// annotation has its encrypted token. So a restarted server finds every agent again. The Job is
// created suspended, then its Secret and Service, then it is submitted: an interrupted start leaves
// a suspended Job without pods, which ensure() completes. An agent counts as alive from the
// creation of the Job until its pod ends, even while the pod is pending. A removed Job exists until
// all its pods have ended; until then its attempt is not started again.
//
// A submitted Job runs at once, or when Kueue admits it, if its placement has a LocalQueue. A Job
// that Kueue evicts counts as preempted: control removes it, and starts another attempt, which
// waits in the same LocalQueue. Kueue would admit the same Job again, and run the attempt twice.
//
// No request is made for a look: watches keep a copy of Jobs, pods and nodes (cluster_view.hpp),
// and call on_change()'s function within milliseconds of a change. The launcher's own changes are
// seen at once. While the API server does not answer, list() and machines() return their last
// results. The launcher is not made without a first answer.
//
// Threads: as launcher.hpp, in addition to its own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"
#include "launch/kubernetes/gang_objects.hpp"
#include "launch/kubernetes/kubernetes.hpp"
#include "launch/launcher.hpp"

namespace trainyard::launch {

struct KubernetesSettings {
  KubernetesJobSettings jobs;
  // Encrypt a token for an attempt, and decrypt it. A Job whose seal cannot be decrypted belongs to
  // another server.
  std::function<std::string(const std::string& token, const std::string& attempt)> seal;
  std::function<Result<std::string>(const std::string& sealed, const std::string& attempt)> unseal;
  // Returns why this server may not create and delete objects, if it is not the writer of its
  // ledger;
  // "": it may.
  std::function<std::string()> why_not = [] { return std::string(); };
};

enum class KubernetesThreads {
  own,   // watch the API server
  none,  // each call of the launcher queries it: for tests
};

// Errors: unavailable (the API server does not answer), denied, invalid (no node matches a node
// selector). `clock` and `random` outlive the launcher.
Result<std::unique_ptr<Launcher>> make_kubernetes(
    const KubernetesSettings& settings, std::unique_ptr<Kubernetes> kubernetes, Clock& clock,
    Random& random, KubernetesThreads threads = KubernetesThreads::own);

// Returns the parts of nodes that jobs of this server may use. Leaves out nodes that are not ready,
// cordoned, or admit none of the placements. `others`: the requests of other pods there. Pure.
std::vector<Machine> machines_of(const std::vector<KubernetesNode>& nodes,
                                 const std::vector<KubernetesPlacement>& placements,
                                 const std::map<std::string, KubernetesAmounts>& others);

// Returns all placements that a job can get by its queue and instance type.
std::vector<KubernetesPlacement> placements_of(const KubernetesJobSettings& settings);

// Returns the agents of one gang, with Kubernetes' messages about those that do not run.
// `workload`: that of the Job; nullptr: it has none. `no_pods_reason`: why Kubernetes does not
// create pods; "": unknown. Pure.
std::vector<Agent> agents_of(const KubernetesJob& job, const std::string& token,
                             const std::vector<const KubernetesPod*>& pods,
                             const std::vector<KubernetesNode>& nodes,
                             const KubernetesWorkload* workload, const std::string& no_pods_reason);

}  // namespace trainyard::launch
