// KubernetesLauncher runs each gang as one Indexed Job, whose pods may run on the nodes that the
// scheduler chose, with one agent in each pod.
//
// Its knowledge of a gang is in the Job: its labels name the attempt, and an annotation
// has the attempt's token, encrypted. So a server with an empty memory finds every agent again. The
// Job is created suspended, then its Secret and Service, then it is resumed: a start that was
// interrupted has left a suspended Job, without pods, which ensure() completes. An agent counts as
// alive from there until its pod ends, also while the pod is pending. A removed Job stays until all
// its pods have ended; until then its attempt is not started again.
//
// While the API server does not answer, list() and machines() return what they returned last;
// without that the launcher is not made.
//
// Threads: as launcher.hpp.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launch/kubernetes/gang_objects.hpp"
#include "launch/kubernetes/kubernetes.hpp"
#include "launch/launcher.hpp"

namespace trainyard::launch {

struct KubernetesSettings {
  KubernetesJobSettings jobs;
  // Encrypt a token for an attempt, and decrypt it: a Job whose seal does not open is another
  // server's.
  std::function<std::string(const std::string& token, const std::string& attempt)> seal;
  std::function<Result<std::string>(const std::string& sealed, const std::string& attempt)> unseal;
  // Returns "" while this server may create and delete objects, as the writer of its ledger.
  std::function<std::string()> why_not = [] { return std::string(); };
};

// Errors: unavailable (the API server does not answer), denied, invalid (node selectors that no
// node fits).
Result<std::unique_ptr<Launcher>> make_kubernetes(const KubernetesSettings& settings,
                                                  std::unique_ptr<Kubernetes> kubernetes);

// The part of a node that jobs of this server may use: nothing if it is not ready, cordoned, or
// admits none of the placements. `others`: what pods of others request there. Pure.
std::vector<Machine> machines_of(const std::vector<KubernetesNode>& nodes,
                                 const std::vector<KubernetesPlacement>& placements,
                                 const std::map<std::string, KubernetesAmounts>& others);

// All placements that a job can get, of its queue and instance type.
std::vector<KubernetesPlacement> placements_of(const KubernetesJobSettings& settings);

// The agents of one gang, with Kubernetes' messages about those that do not run. Pure.
std::vector<Agent> agents_of(const KubernetesJob& job, const std::string& token,
                             const std::vector<const KubernetesPod*>& pods,
                             const std::vector<KubernetesNode>& nodes);

}  // namespace trainyard::launch
