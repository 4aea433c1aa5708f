// KubernetesView shows the Jobs and pods of this server, the nodes, what others use of them, and
// Kueue's Workloads, as watches of the API server report them. No request is made to read it.
//
// It shows the changes that this server makes itself as soon as they are answered, although their
// events arrive later (WatchedJobs). While the API server does not answer, it shows what was last
// known. A thread for each resource watches.
//
// Threads: confined to the launcher's, in addition to its own, except for on_change(). Errors:
// those of kubernetes.hpp.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "launch/kubernetes/resource_watch.hpp"

namespace trainyard::launch {

class KubernetesView {
 public:
  using Jobs = WatchedJobs::Objects;
  using Pods = WatchedPods::Objects;
  using Nodes = WatchedObjects<KubernetesNode>::Objects;
  using Workloads = WatchedObjects<KubernetesWorkload>::Objects;

  // An API server accepts a watch as quickly as a list, or denies it. begin() does not wait longer.
  static constexpr Duration kFirstWatchMax = 10s;

  // Without threads, refresh() queries the API server. Lifetime: `clock` and `random` outlive it.
  KubernetesView(std::unique_ptr<Kubernetes> kubernetes, const std::string& mark, Clock& clock,
                 Random& random, bool own_threads);
  // Interrupts the watches.
  ~KubernetesView();
  KubernetesView(const KubernetesView&) = delete;

  // Lists everything, and begins to watch. `with_kueue`: Workloads too, of which there are none
  // otherwise.
  Result<void> begin(bool with_kueue = false);
  // Queries the API server, if there are no threads.
  void refresh();

  // Return the objects by name; the same ones as before if none differs. Requires: begin() has
  // succeeded.
  std::shared_ptr<const Jobs> jobs() { return jobs_.objects(); }
  std::shared_ptr<const Pods> pods() { return pods_.objects(); }
  std::shared_ptr<const Nodes> nodes() { return nodes_.objects(); }
  std::shared_ptr<const Workloads> workloads() { return workloads_.objects(); }
  // Returns the preempted pods that have vanished since the last call.
  std::vector<KubernetesPod> take_vanished();
  // Returns the sum of the requests of others' pods on each node.
  const std::map<std::string, KubernetesAmounts>& used_by_others();

  // Sets the function that is called, on any thread, when something differs; it must not block.
  // After the return no earlier function is called. Callable from anywhere.
  void on_change(std::function<void()> changed);

  // As those of Kubernetes.
  Result<std::optional<KubernetesJob>> find_job(const std::string& name);
  Result<std::string> why_no_pods(const std::string& job) { return kubernetes_->why_no_pods(job); }
  Result<KubernetesJob> create_job(const Json& job);
  Result<void> apply(const Json& object) { return kubernetes_->apply(object); }
  Result<void> submit_job(const std::string& name, const std::string& local_queue);
  Result<void> delete_job(const std::string& name, const std::string& uid);

 private:
  WatchReports reports_of(KubernetesResource resource);
  void note_answer(KubernetesResource resource);
  void note_failure(KubernetesResource resource, const Error& error);

  struct Condition {
    bool watched = false;  // the API server has answered since the threads were started
    std::optional<Error> failure;
  };

  const std::unique_ptr<Kubernetes> kubernetes_;
  const bool own_threads_;
  bool with_kueue_ = false;  // set by begin()
  Mutex mutex_;
  ConditionVariable noted_;
  std::array<Condition, kKubernetesResources> conditions_ GUARDED_BY(mutex_);  // by resource
  Mutex change_mutex_;  // held while on_change's function runs
  std::function<void()> changed_ GUARDED_BY(change_mutex_);
  ResourceWatch<WatchedJobs> jobs_;
  ResourceWatch<WatchedPods> pods_;
  ResourceWatch<WatchedObjects<KubernetesNode>> nodes_;
  ResourceWatch<WatchedObjects<KubernetesUse>> others_;
  ResourceWatch<WatchedObjects<KubernetesWorkload>> workloads_;
  std::map<std::string, KubernetesAmounts> used_;  // the sums
  std::optional<uint64_t> added_;                  // the generation of others_ that was added
};

}  // namespace trainyard::launch
