// WatchedObjects caches the objects of a resource, as its list and the events of its watch show
// them. WatchedPods and WatchedJobs add what the launcher must know beyond that.
//
// Threads: confined to one at a time. Errors: exhausted (too many objects).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "launch/kubernetes/kubernetes.hpp"
#include "launch/kubernetes/watch_events.hpp"

namespace trainyard::launch {

// Returns the limit of objects of a resource.
size_t kubernetes_objects_max(KubernetesResource resource);
// Returns "nodes", as it stands in messages.
std::string_view describe(KubernetesResource resource);
Result<void> check_object_count(KubernetesResource resource, size_t count);

template <class T>
class WatchedObjects {
 public:
  using Object = T;
  using Objects = std::map<std::string, T>;  // by KubernetesIdentity::name

  const Objects& objects() const { return objects_; }

  // A list begins; replace() follows, unless it fails.
  void begin_list() {}
  // Replaces all objects by those of the list. Returns true if they differ.
  bool replace(Objects listed) {
    const bool differs = listed != objects_;
    objects_ = std::move(listed);
    return differs;
  }
  // Applies an event. Returns true if an object differs. An event may arrive twice.
  Result<bool> apply(const KubernetesEvent<T>& event) {
    using Type = typename KubernetesEvent<T>::Type;
    if (event.type == Type::bookmark) return false;
    if (event.type == Type::deleted || !event.object)
      return objects_.erase(event.identity.name) > 0;
    return put(event.identity.name, *event.object);
  }
  // Returns true if only another list can tell the state.
  bool wants_list() const { return false; }

 protected:
  Result<bool> put(const std::string& name, const T& object) {
    const auto found = objects_.find(name);
    if (found != objects_.end()) {
      if (found->second == object) return false;
      found->second = object;
      return true;
    }
    TRY(check_object_count(kResourceOf<T>, objects_.size() + 1));
    objects_.emplace(name, object);
    return true;
  }

  Objects objects_;
};

// Remembers preempted pods that have vanished: the events of the preemption and of the deletion may
// arrive together.
class WatchedPods : public WatchedObjects<KubernetesPod> {
 public:
  // Beyond it the first ones are forgotten: their jobs then count as failed.
  static constexpr size_t kVanishedMax = 10'000;

  bool replace(Objects listed);
  Result<bool> apply(const KubernetesEvent<KubernetesPod>& event);
  // Returns the preempted pods that have vanished since the last call, as they were last.
  std::vector<KubernetesPod> take_vanished() { return std::exchange(vanished_, {}); }

 private:
  void note_vanished(const KubernetesPod& pod);

  std::vector<KubernetesPod> vanished_;
};

// Shows Jobs that this server has written at once, although the events of its writes arrive later
// or, when a list runs meanwhile, never.
//
// Versions are compared for equality only. A write is pending from its answer until the watch shows
// its version, or its Job is deleted; until then events of the Job are older than the write and
// have no effect. A list that was requested after the answer shows the write or what has followed,
// and ends it too. One that was requested before may show either, and the watch after it may never
// show the version: then another list follows (wants_list()).
//
// While the request of a write runs, its event may arrive before its answer, and later events with
// it: so the versions that arrive meanwhile are noted. If the answer's is among them, nothing is
// pending.
//
//   begin_write(name);  create, change or delete the Job;  end_write(..) or cancel_write()
class WatchedJobs : public WatchedObjects<KubernetesJob> {
 public:
  // Events of one Job during one request, which takes half a minute at most.
  static constexpr size_t kSeenMax = 10'000;

  void begin_list();
  bool replace(Objects listed);
  Result<bool> apply(const KubernetesEvent<KubernetesJob>& event);
  bool wants_list() const { return wants_list_; }

  void begin_write(const std::string& name);
  // The request has failed, or its result is unknown.
  void cancel_write() { writing_.reset(); }
  // The answer shows the Job after the write.
  void end_write(const KubernetesJob& job);
  // The answer shows that the Job with this uid no longer exists.
  void end_write_without(const std::string& uid);
  // Returns the number of pending writes.
  size_t pending() const { return pending_.size(); }

 private:
  struct Writing {
    explicit Writing(std::string job) : name(std::move(job)) {}
    std::string name;
    std::set<std::string> versions;  // seen since the request, and the one before it
    std::set<std::string> deleted;   // uids
    bool listed = false;             // a list has run meanwhile, and may hide events
  };
  struct Pending {
    std::string uid, version;  // version "": until the Job is deleted
    uint64_t list = 0;         // the last list that was requested before the answer
  };

  void note(const KubernetesEvent<KubernetesJob>& event);
  void pend(const Writing& writing, const std::string& uid, const std::string& version);

  std::optional<Writing> writing_;
  std::map<std::string, Pending> pending_;  // by name
  uint64_t lists_ = 0;                      // requested
  bool listing_ = false;
  bool wants_list_ = false;
};

}  // namespace trainyard::launch
