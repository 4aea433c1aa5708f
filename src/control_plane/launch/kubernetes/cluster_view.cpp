#include "launch/kubernetes/cluster_view.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace trainyard::launch {

KubernetesView::KubernetesView(std::unique_ptr<Kubernetes> kubernetes, const std::string& mark,
                               Clock& clock, Random& random, bool own_threads)
    : kubernetes_(std::move(kubernetes)),
      own_threads_(own_threads),
      jobs_(*kubernetes_, mark, clock, random, reports_of(KubernetesResource::jobs)),
      pods_(*kubernetes_, mark, clock, random, reports_of(KubernetesResource::pods)),
      nodes_(*kubernetes_, mark, clock, random, reports_of(KubernetesResource::nodes)),
      others_(*kubernetes_, mark, clock, random, reports_of(KubernetesResource::others)),
      workloads_(*kubernetes_, mark, clock, random, reports_of(KubernetesResource::workloads)) {}

KubernetesView::~KubernetesView() {
  kubernetes_->stop();
  jobs_.stop();
  pods_.stop();
  nodes_.stop();
  others_.stop();
  workloads_.stop();
}

Result<void> KubernetesView::begin(bool with_kueue) {
  with_kueue_ = with_kueue;
  if (with_kueue) TRY(kubernetes_->find_kueue());
  TRY(jobs_.read_first());
  TRY(pods_.read_first());
  TRY(nodes_.read_first());
  TRY(others_.read_first());
  if (with_kueue) TRY(workloads_.read_first());
  if (own_threads_) {
    {
      const MutexLock lock(mutex_);
      conditions_ = {};
      conditions_[size_t(KubernetesResource::workloads)].watched = !with_kueue;
    }
    jobs_.start();
    pods_.start();
    nodes_.start();
    others_.start();
    if (with_kueue) workloads_.start();
  } else {
    refresh();
  }
  // The right to watch must be there when the server starts, as that to list.
  MutexLock lock(mutex_);
  noted_.wait_for(lock, own_threads_ ? kFirstWatchMax : Duration(), [&]() REQUIRES(mutex_) {
    return std::ranges::all_of(conditions_,
                               [](const Condition& each) { return each.watched || each.failure; });
  });
  for (const Condition& each : conditions_)
    if (each.failure) return *each.failure;
  return {};
}

void KubernetesView::refresh() {
  if (own_threads_) return;
  // Failures are reported to note_failure().
  (void)jobs_.refresh();
  (void)pods_.refresh();
  (void)nodes_.refresh();
  (void)others_.refresh();
  if (with_kueue_) (void)workloads_.refresh();
}

std::vector<KubernetesPod> KubernetesView::take_vanished() {
  return pods_.with([](WatchedPods& pods) { return pods.take_vanished(); });
}

const std::map<std::string, KubernetesAmounts>& KubernetesView::used_by_others() {
  const uint64_t generation = others_.generation();
  if (generation == added_) return used_;
  added_ = generation;
  used_.clear();
  // They are too many to copy.
  others_.with([&](const WatchedObjects<KubernetesUse>& pods) {
    for (const auto& [name, use] : pods.objects()) add_amounts(used_[use.node], use.amounts);
  });
  return used_;
}

void KubernetesView::on_change(std::function<void()> changed) {
  const MutexLock lock(change_mutex_);
  changed_ = std::move(changed);
}

Result<std::optional<KubernetesJob>> KubernetesView::find_job(const std::string& name) {
  return kubernetes_->find_job(name);
}

Result<KubernetesJob> KubernetesView::create_job(const Json& job) {
  const std::string name = job["metadata"]["name"].get<std::string>();
  jobs_.with([&](WatchedJobs& jobs) { jobs.begin_write(name); });
  auto created = kubernetes_->create_job(job);
  jobs_.change([&](WatchedJobs& jobs) {
    if (created)
      jobs.end_write(*created);
    else
      jobs.cancel_write();
  });
  return created;
}

Result<void> KubernetesView::submit_job(const std::string& name, const std::string& local_queue) {
  jobs_.with([&](WatchedJobs& jobs) { jobs.begin_write(name); });
  const auto submitted = kubernetes_->submit_job(name, local_queue);
  jobs_.change([&](WatchedJobs& jobs) {
    if (submitted)
      jobs.end_write(*submitted);
    else
      jobs.cancel_write();
  });
  return submitted ? Result<void>() : Result<void>(submitted.error());
}

Result<void> KubernetesView::delete_job(const std::string& name, const std::string& uid) {
  jobs_.with([&](WatchedJobs& jobs) { jobs.begin_write(name); });
  const auto deleted = kubernetes_->delete_job(name, uid);
  jobs_.change([&](WatchedJobs& jobs) {
    if (!deleted)
      jobs.cancel_write();
    else if (*deleted)
      jobs.end_write(**deleted);
    else
      jobs.end_write_without(uid);
  });
  return deleted ? Result<void>() : Result<void>(deleted.error());
}

WatchReports KubernetesView::reports_of(KubernetesResource resource) {
  WatchReports reports;
  reports.changed = [this] {
    const MutexLock lock(change_mutex_);
    if (changed_) changed_();
  };
  reports.answered = [this, resource] { note_answer(resource); };
  reports.failed = [this, resource](const Error& error) { note_failure(resource, error); };
  return reports;
}

void KubernetesView::note_answer(KubernetesResource resource) {
  const MutexLock lock(mutex_);
  Condition& condition = conditions_[size_t(resource)];
  condition.watched = true;
  noted_.notify_all();
  if (!condition.failure) return;
  condition.failure.reset();
  if (std::ranges::none_of(conditions_, [](const Condition& each) { return bool(each.failure); }))
    log(Level::info, "launch", "Kubernetes answers again");
}

void KubernetesView::note_failure(KubernetesResource resource, const Error& error) {
  if (error.kind == Kind::cancelled) return;
  const MutexLock lock(mutex_);
  // An outage concerns all resources: one of them is logged.
  const bool is_known = std::ranges::any_of(conditions_, [&](const Condition& each) {
    return each.failure && each.failure->kind == error.kind;
  });
  conditions_[size_t(resource)].failure = error;
  noted_.notify_all();
  if (!is_known)
    log(Level::warning, "launch", "cannot query Kubernetes; using its last answer",
        {{"why", error.message}});
}

}  // namespace trainyard::launch
