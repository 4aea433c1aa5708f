#include "launch/kubernetes/watched_objects.hpp"

#include <algorithm>

#include "base/enum_table.hpp"

namespace trainyard::launch {
namespace {

constexpr EnumTable<KubernetesResource> kResources{
    "resource",
    {{KubernetesResource::jobs, "this server's Jobs"},
     {KubernetesResource::pods, "this server's pods"},
     {KubernetesResource::nodes, "nodes"},
     {KubernetesResource::others, "the pods of all namespaces"},
     {KubernetesResource::workloads, "Kueue's Workloads"}}};

}  // namespace

size_t kubernetes_objects_max(KubernetesResource resource) {
  switch (resource) {
    case KubernetesResource::jobs:
    case KubernetesResource::workloads:
      return kKubernetesJobsMax;
    case KubernetesResource::nodes:
      return kKubernetesNodesMax;
    case KubernetesResource::pods:
    case KubernetesResource::others:
      break;
  }
  return kKubernetesPodsMax;
}

std::string_view describe(KubernetesResource resource) { return kResources.text(resource); }

Result<void> check_object_count(KubernetesResource resource, size_t count) {
  const size_t max = kubernetes_objects_max(resource);
  if (count <= max) return {};
  return exhausted("Kubernetes has more than " + std::to_string(max) + " of " +
                   std::string(describe(resource)));
}

// -- WatchedPods

bool WatchedPods::replace(Objects listed) {
  for (const auto& [name, pod] : objects_)
    if (!listed.contains(name)) note_vanished(pod);
  return WatchedObjects::replace(std::move(listed));
}

Result<bool> WatchedPods::apply(const KubernetesEvent<KubernetesPod>& event) {
  if (event.type == KubernetesEvent<KubernetesPod>::Type::deleted && event.object)
    note_vanished(*event.object);
  return WatchedObjects::apply(event);
}

void WatchedPods::note_vanished(const KubernetesPod& pod) {
  if (!pod.preempted) return;
  if (vanished_.size() >= kVanishedMax) vanished_.erase(vanished_.begin());
  vanished_.push_back(pod);
}

// -- WatchedJobs

void WatchedJobs::begin_list() {
  ++lists_;
  listing_ = true;
  wants_list_ = false;  // the list is requested after all answers so far
  if (writing_) writing_->listed = true;
}

bool WatchedJobs::replace(Objects listed) {
  listing_ = false;
  if (writing_)
    if (const auto found = listed.find(writing_->name); found != listed.end())
      writing_->versions.insert(found->second.version);
  std::erase_if(pending_, [&](const auto& each) { return each.second.list < lists_; });
  for (const auto& [name, write] : pending_) {
    const auto shown = objects_.find(name);
    if (shown == objects_.end())
      listed.erase(name);
    else
      listed.insert_or_assign(name, shown->second);
  }
  return WatchedObjects::replace(std::move(listed));
}

Result<bool> WatchedJobs::apply(const KubernetesEvent<KubernetesJob>& event) {
  using Type = KubernetesEvent<KubernetesJob>::Type;
  note(event);
  if (const auto found = pending_.find(event.identity.name); found != pending_.end()) {
    const Pending& write = found->second;
    const bool is_write = event.identity.version == write.version;
    const bool is_end = event.type == Type::deleted && event.identity.uid == write.uid;
    if (!is_write && !is_end) return false;
    pending_.erase(found);
  }
  return WatchedObjects::apply(event);
}

void WatchedJobs::note(const KubernetesEvent<KubernetesJob>& event) {
  if (!writing_ || event.identity.name != writing_->name) return;
  if (writing_->versions.size() >= kSeenMax) {
    writing_->listed = true;  // as if a list had hidden this event
    return;
  }
  writing_->versions.insert(event.identity.version);
  if (event.type == KubernetesEvent<KubernetesJob>::Type::deleted)
    writing_->deleted.insert(event.identity.uid);
}

void WatchedJobs::begin_write(const std::string& name) {
  writing_.emplace(name);
  writing_->listed = listing_;
  if (const auto found = objects_.find(name); found != objects_.end() && !pending_.contains(name))
    writing_->versions.insert(found->second.version);
}

void WatchedJobs::end_write(const KubernetesJob& job) {
  const Writing writing = *std::exchange(writing_, std::nullopt);
  if (writing.deleted.contains(job.uid) || writing.versions.contains(job.version)) return;
  objects_.insert_or_assign(job.name, job);
  pend(writing, job.uid, job.version);
}

void WatchedJobs::end_write_without(const std::string& uid) {
  const Writing writing = *std::exchange(writing_, std::nullopt);
  const auto found = objects_.find(writing.name);
  if (found == objects_.end() || found->second.uid != uid) return;
  objects_.erase(found);
  pend(writing, uid, "");
}

void WatchedJobs::pend(const Writing& writing, const std::string& uid, const std::string& version) {
  pending_.insert_or_assign(writing.name, Pending{uid, version, lists_});
  if (writing.listed) wants_list_ = true;
}

}  // namespace trainyard::launch
