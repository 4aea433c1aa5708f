#include "launch/kubernetes/kubernetes_launcher.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/log.hpp"
#include "base/text.hpp"
#include "launch/kubernetes/cluster_view.hpp"

namespace trainyard::launch {
namespace {

// After this time an interrupted start counts as abandoned, since ensure() has not completed it.
// Control calls ensure() at each look, which are half a second apart at most.
constexpr Duration kInterruptedMax = 1min;
// The time in which Kubernetes usually creates the pods of a Job. After it, its events are read.
constexpr Duration kPodsLate = 2s;
// Between two requests for the events of a Job, and after a failed request for those of any.
constexpr Duration kEventsInterval = 10s;

struct OwnGang {
  KubernetesJob job;
  std::string token;
};

const KubernetesNode* find_node(const std::vector<KubernetesNode>& nodes, const std::string& name) {
  const auto node = std::ranges::find(nodes, name, &KubernetesNode::name);
  return node == nodes.end() ? nullptr : &*node;
}

bool has_ended(const KubernetesPod& pod) {
  return pod.phase == "Succeeded" || pod.phase == kKubernetesFailed;
}

// Returns true if a pod runs. A deleted pod runs until its node ends it, which a lost node does
// not.
bool is_lost(const KubernetesPod& pod, const std::vector<KubernetesNode>& nodes) {
  if (!pod.deleting) return false;
  const KubernetesNode* node = find_node(nodes, pod.node);
  return node == nullptr || !node->ready;
}

// Returns true if the pod's watch is behind its Job's. Kubernetes counts a host as ended after its
// pod has ended, and pod and Job have different watches. The pod's event is on its way, and says
// why.
bool is_behind(const KubernetesPod* pod) { return pod && !has_ended(*pod) && !pod->deleting; }

std::string describe(const KubernetesPod& pod, const std::vector<KubernetesNode>& nodes) {
  std::string text = "Kubernetes pod " + pod.name + " is " + (pod.phase.empty() ? "?" : pod.phase);
  if (pod.deleting) text += " and was deleted";
  if (!pod.reason.empty()) text += " (" + pod.reason + ")";
  if (const KubernetesNode* node = find_node(nodes, pod.node); node && !node->ready)
    text += "; node " + node->name + " is not ready" +
            (node->reason.empty() ? "" : " (" + node->reason + ")");
  return text;
}

bool has_left_queue(const KubernetesWorkload* workload) {
  return workload && (workload->evicted || workload->deactivated);
}

// Returns true if the Job has been submitted: its pods may exist, or it waits for Kueue.
bool is_submitted(const KubernetesJob& job) { return !job.suspended || !job.local_queue.empty(); }

std::string describe(const KubernetesJob& job, const KubernetesWorkload* workload,
                     const std::string& no_pods_reason) {
  std::string text = "Kubernetes Job " + job.name;
  if (job.deleting) return text + " was deleted";
  if (!job.reason.empty()) return text + " has failed (" + job.reason + ")";
  if (job.ended) return text + " has ended";
  const std::string reason =
      workload && !workload->reason.empty() ? " (" + workload->reason + ")" : "";
  if (has_left_queue(workload))
    return text + (workload->deactivated ? " was deactivated in" : " was evicted from") +
           " Kueue's LocalQueue " + job.local_queue + reason;
  if (job.suspended) return text + " waits in Kueue's LocalQueue " + job.local_queue + reason;
  return text + " has no pod for it" + (no_pods_reason.empty() ? "" : " (" + no_pods_reason + ")");
}

std::string describe(const KubernetesPlacement& placement) {
  std::string text;
  for (const auto& [name, value] : placement.node_selector)
    text += (text.empty() ? "" : ", ") + name + "=" + value;
  return "'" + text + "'";
}

class KubernetesLauncher final : public Launcher {
 public:
  KubernetesLauncher(const KubernetesSettings& settings, std::unique_ptr<Kubernetes> kubernetes,
                     Clock& clock, Random& random, KubernetesThreads threads)
      : settings_(settings),
        clock_(clock),
        placements_(placements_of(settings_.jobs)),
        view_(std::move(kubernetes), settings_.jobs.mark, clock, random,
              threads == KubernetesThreads::own) {}

  Result<void> begin() {
    TRY(view_.begin(std::ranges::any_of(
        placements_, [](const auto& placement) { return !placement.local_queue.empty(); })));
    look();
    // Only labels are checked, since taints change often.
    for (const auto& placement : placements_)
      if (!placement.node_selector.empty() && std::ranges::none_of(nodes_, [&](const auto& node) {
            return is_selected(node, placement);
          }))
        return invalid("no node of Kubernetes has the labels " + describe(placement) +
                       " of the config's [kubernetes]: `kubectl get nodes --show-labels` lists "
                       "them");
    return {};
  }

  std::vector<Machine> machines() override {
    look();
    return machines_of(nodes_, placements_, view_.used_by_others());
  }

  void on_change(std::function<void()> changed) override { view_.on_change(std::move(changed)); }

  Result<void> ensure(const Gang& gang) override {
    auto ensured = create_unless_there(gang);
    if (ensured || ensured.error().kind != Kind::denied) return ensured;
    // The rights were checked when the server started. An API server that has just started denies
    // requests until it knows the roles, and administrators restore rights.
    Error error = std::move(ensured).error();
    error.kind = Kind::unavailable;
    return error;
  }

  std::vector<Agent> list() override {
    look();
    note_preempted();
    note_missing_pods();
    std::vector<Agent> agents;
    for (const auto& [attempt, own] : gangs_) {
      if (own.job.deleting || !is_started(own)) continue;
      const auto missing = missing_.find(own.job.uid);
      for (Agent& agent : agents_of(own.job, own.token, pods_of(attempt), nodes_, workload_of(own),
                                    missing == missing_.end() ? "" : missing->second.why)) {
        if (const auto reason = preempted_.find({attempt, agent.host});
            reason != preempted_.end()) {
          agent.preempted = true;
          agent.note = reason->second;
        }
        agents.push_back(std::move(agent));
      }
    }
    return agents;
  }

  Result<void> remove(domain::AttemptId attempt) override {
    look();
    const auto found = gangs_.find(attempt);
    if (found == gangs_.end() || found->second.job.deleting) return {};
    TRY(check_writer());
    return view_.delete_job(found->second.job.name, found->second.job.uid);
  }

 private:
  Result<void> create_unless_there(const Gang& gang) {
    look();
    std::optional<std::string> begun;  // the uid of the Job of a start that was interrupted
    if (const OwnGang* known = find(gang.attempt)) {
      TRY(check_same(*known, gang));
      if (is_submitted(known->job)) return {};
      begun = known->job.uid;
    }
    if (auto started = start(gang, begun); !started) {
      if (const auto removed = remove_started(gang.attempt); !removed)
        log(Level::warning, "launch",
            "removing what could not be started: " + removed.error().message,
            {{"attempt", gang.attempt.text()}});
      return std::move(started).error().in("starting attempt " + gang.attempt.text());
    }
    return {};
  }

  // Removes what may be left of a start that failed. The response may be lost although the Job was
  // created, so the API server is queried.
  Result<void> remove_started(domain::AttemptId attempt) {
    const auto job = TRY(view_.find_job(gang_name(settings_.jobs.mark, attempt)));
    if (!job || job->deleting || !settings_.unseal(job->seal, attempt.text())) return {};
    TRY(check_writer());
    return view_.delete_job(job->name, job->uid);
  }

  // Takes what has changed since the last call.
  void look() {
    view_.refresh();
    if (auto jobs = view_.jobs(); jobs != jobs_) {
      jobs_ = std::move(jobs);
      take_jobs();
    }
    if (auto pods = view_.pods(); pods != pods_) {
      pods_ = std::move(pods);
      pods_of_.clear();
      for (const auto& [name, pod] : *pods_) pods_of_[pod.attempt].push_back(&pod);
    }
    if (auto nodes = view_.nodes(); nodes != seen_nodes_) {
      seen_nodes_ = std::move(nodes);
      nodes_.clear();
      for (const auto& [name, node] : *seen_nodes_) nodes_.push_back(node);
    }
    if (auto workloads = view_.workloads(); workloads != workloads_) {
      workloads_ = std::move(workloads);
      workload_of_.clear();
      for (const auto& [name, workload] : *workloads_) workload_of_[workload.job_uid] = &workload;
    }
  }

  void take_jobs() {
    const auto former = std::exchange(gangs_, {});
    std::set<std::string> suspended;
    for (const auto& [name, job] : *jobs_) {
      if (job.name != gang_name(settings_.jobs.mark, job.attempt)) continue;
      // Another server may have the same mark, but it has another key.
      const auto token = token_of(job, former);
      if (!token) continue;
      if (!is_submitted(job)) suspended.insert(job.uid);
      gangs_.insert_or_assign(job.attempt, OwnGang{job, *token});
    }
    std::erase_if(interrupted_, [&](const auto& each) { return !suspended.contains(each.first); });
  }

  // Returns the token of a known Job again, or decrypts it.
  std::optional<std::string> token_of(const KubernetesJob& job,
                                      const std::map<domain::AttemptId, OwnGang>& former) const {
    if (const auto known = former.find(job.attempt);
        known != former.end() && known->second.job.seal == job.seal)
      return known->second.token;
    auto token = settings_.unseal(job.seal, job.attempt.text());
    return token ? std::optional(*std::move(token)) : std::nullopt;
  }

  void note_preempted() {
    std::erase_if(preempted_, [&](const auto& each) { return !gangs_.contains(each.first.first); });
    const auto note = [&](const KubernetesPod& pod) {
      if (pod.preempted && gangs_.contains(pod.attempt))
        preempted_[{pod.attempt, pod.host}] = describe(pod, nodes_);
    };
    for (const KubernetesPod& pod : view_.take_vanished()) note(pod);
    for (const auto& [name, pod] : *pods_) note(pod);
  }

  const std::vector<const KubernetesPod*>& pods_of(const domain::AttemptId& attempt) const {
    static const std::vector<const KubernetesPod*> kNone;
    const auto found = pods_of_.find(attempt);
    return found == pods_of_.end() ? kNone : found->second;
  }

  const KubernetesWorkload* workload_of(const OwnGang& own) const {
    const auto found = workload_of_.find(own.job.uid);
    return found == workload_of_.end() ? nullptr : found->second;
  }

  bool lacks_pods(const KubernetesJob& job) const {
    auto hosts = job.ended_hosts;
    for (const KubernetesPod* pod : pods_of(job.attempt)) hosts.insert(pod->host);
    return hosts.size() < job.hosts;
  }

  // Finds the Jobs for which Kubernetes creates no pods, and reads the events of one of them.
  void note_missing_pods() {
    const auto now = clock_.monotonic();
    std::map<std::string, Missing> missing;
    bool queried = events_failed_ && now - *events_failed_ < kEventsInterval;
    for (const auto& [attempt, own] : gangs_) {
      const KubernetesJob& job = own.job;
      if (job.suspended || job.deleting || job.ended || !lacks_pods(job)) continue;
      const auto known = missing_.find(job.uid);
      Missing& one = missing[job.uid] =
          known == missing_.end() ? Missing{now, {}, ""} : known->second;
      if (queried || now - one.since < kPodsLate ||
          (one.queried && now - *one.queried < kEventsInterval))
        continue;
      queried = true;
      one.queried = now;
      if (auto why = view_.why_no_pods(job.name))
        one.why = *std::move(why);
      else
        events_failed_ = now;
    }
    missing_ = std::move(missing);
  }

  // Leaves out an interrupted start, which ensure() completes. An abandoned one is listed, so that
  // control removes it.
  bool is_started(const OwnGang& own) {
    if (is_submitted(own.job)) return true;
    const auto now = clock_.monotonic();
    return now - interrupted_.try_emplace(own.job.uid, now).first->second > kInterruptedMax;
  }

  const OwnGang* find(const domain::AttemptId& attempt) const {
    const auto found = gangs_.find(attempt);
    return found == gangs_.end() ? nullptr : &found->second;
  }

  static Result<void> check_same(const OwnGang& known, const Gang& gang) {
    const std::string attempt = "attempt " + gang.attempt.text();
    if (known.job.deleting)
      return unavailable("the Kubernetes Job of " + attempt +
                         " was removed, and its pods still end");
    if (known.job.hosts != gang.members.size())
      return conflict(attempt + " was started with another number of hosts");
    if (known.token != gang.token) return conflict(attempt + " was started with another token");
    return {};
  }

  Result<void> check_writer() const { return launch::check_writer(settings_.why_not()); }

  Result<void> start(const Gang& gang, const std::optional<std::string>& begun) {
    auto objects = TRY(plan_objects(settings_.jobs, gang, nodes_,
                                    settings_.seal(gang.token, gang.attempt.text())));
    TRY(check_writer());
    const std::string uid = begun ? *begun : TRY(view_.create_job(objects.job)).uid;
    for (Json* owned : {&objects.network_policy, &objects.secret, &objects.service}) {
      set_owner(*owned, objects.name, uid);
      TRY(view_.apply(*owned));
    }
    TRY(view_.submit_job(objects.name,
                         placement_of(settings_.jobs, gang.queue, gang.instance_type).local_queue));
    log(Level::info, "launch", "created in Kubernetes",
        {{"attempt", gang.attempt.text()}, {"job", objects.name}});
    return {};
  }

  const KubernetesSettings settings_;
  Clock& clock_;
  const std::vector<KubernetesPlacement> placements_;
  KubernetesView view_;
  // The objects that were last seen there.
  std::shared_ptr<const KubernetesView::Jobs> jobs_;
  std::shared_ptr<const KubernetesView::Pods> pods_;
  std::shared_ptr<const KubernetesView::Nodes> seen_nodes_;
  std::shared_ptr<const KubernetesView::Workloads> workloads_;
  std::map<domain::AttemptId, OwnGang> gangs_;
  std::map<domain::AttemptId, std::vector<const KubernetesPod*>> pods_of_;  // the same pods
  std::map<std::string, const KubernetesWorkload*> workload_of_;  // the same, by their Job's uid
  std::vector<KubernetesNode> nodes_;
  struct Missing {
    std::chrono::nanoseconds since;                   // when a host had no pod first
    std::optional<std::chrono::nanoseconds> queried;  // when the Job's events were read
    std::string why;                                  // as Kubernetes says it; "": unknown
  };
  std::map<std::string, Missing> missing_;  // by the uid of a Job whose pods are missing
  std::optional<std::chrono::nanoseconds> events_failed_;  // when events could not be read last
  // uid of a suspended Job -> when it was first seen
  std::map<std::string, std::chrono::nanoseconds> interrupted_;
  // By host: what its pod was before it was preempted. The pod itself vanishes when it has ended.
  std::map<std::pair<domain::AttemptId, domain::HostIndex>, std::string> preempted_;
};

}  // namespace

std::vector<Machine> machines_of(const std::vector<KubernetesNode>& nodes,
                                 const std::vector<KubernetesPlacement>& placements,
                                 const std::map<std::string, KubernetesAmounts>& others) {
  std::vector<Machine> machines;
  for (const KubernetesNode& node : nodes) {
    if (!node.ready || !node.schedulable) continue;
    if (std::ranges::none_of(placements, [&](const auto& each) { return admits(node, each); }))
      continue;
    const auto found = others.find(node.name);
    const KubernetesAmounts used = found == others.end() ? KubernetesAmounts{} : found->second;
    const int64_t cpus_milli = node.allocatable.cpus_milli - used.cpus_milli;
    const int64_t memory_bytes = node.allocatable.memory_bytes - used.memory_bytes;
    if (cpus_milli <= 0 || memory_bytes <= 0) continue;
    const int64_t gpus = std::max<int64_t>(0, node.allocatable.gpus - used.gpus);
    machines.push_back({node.name, double(cpus_milli) / 1000, memory_bytes, gpus});
  }
  return machines;
}

std::vector<KubernetesPlacement> placements_of(const KubernetesJobSettings& settings) {
  std::vector<std::string> queues = {""}, types = {""};
  for (const auto& [queue, placement] : settings.of_queues) queues.push_back(queue);
  for (const auto& [type, placement] : settings.of_instance_types) types.push_back(type);
  std::vector<KubernetesPlacement> placements;
  for (const auto& queue : queues)
    for (const auto& type : types)
      if (auto placement = placement_of(settings, queue, type);
          std::ranges::find(placements, placement) == placements.end())
        placements.push_back(std::move(placement));
  return placements;
}

std::vector<Agent> agents_of(const KubernetesJob& job, const std::string& token,
                             const std::vector<const KubernetesPod*>& pods,
                             const std::vector<KubernetesNode>& nodes,
                             const KubernetesWorkload* workload,
                             const std::string& no_pods_reason) {
  std::vector<const KubernetesPod*> of_hosts(job.hosts);
  for (const KubernetesPod* pod : pods)
    if (pod->host < job.hosts) {
      const KubernetesPod*& known = of_hosts[pod->host];
      if (known == nullptr || known->created < pod->created) known = pod;
    }
  std::vector<Agent> agents;
  std::string pending;  // why the first pending host does not run yet
  for (domain::HostIndex host = 0; host < job.hosts; ++host) {
    const KubernetesPod* pod = of_hosts[host];
    Agent agent{job.attempt, token, host, false};
    const bool is_counted = job.ended || job.ended_hosts.contains(host);
    // A deleted pod that the Job has not counted may have been evicted by Kueue. The Workload says
    // so, and its events may arrive later than those of the pod.
    const bool may_be_evicted = pod && pod->deleting && !is_counted && !job.local_queue.empty() &&
                                !has_left_queue(workload);
    const bool is_dead = pod ? (has_ended(*pod) && !may_be_evicted) || is_lost(*pod, nodes)
                             : has_left_queue(workload);
    agent.alive = is_submitted(job) && !(is_counted && !is_behind(pod)) && !is_dead;
    if (!agent.alive || pod == nullptr || pod->phase != "Running")
      agent.note = pod ? describe(*pod, nodes) : describe(job, workload, no_pods_reason);
    if (has_left_queue(workload) && !job.ended) {
      agent.note = describe(job, workload, "");
      agent.preempted = !workload->deactivated;
    }
    if (agent.alive && pending.empty()) pending = agent.note;
    agents.push_back(std::move(agent));
  }
  // The gang as a whole waits for its last host.
  for (Agent& agent : agents)
    if (agent.alive) agent.note = pending;
  return agents;
}

Result<std::unique_ptr<Launcher>> make_kubernetes(const KubernetesSettings& settings,
                                                  std::unique_ptr<Kubernetes> kubernetes,
                                                  Clock& clock, Random& random,
                                                  KubernetesThreads threads) {
  auto launcher =
      std::make_unique<KubernetesLauncher>(settings, std::move(kubernetes), clock, random, threads);
  TRY(launcher->begin());
  return std::unique_ptr<Launcher>(std::move(launcher));
}

}  // namespace trainyard::launch
