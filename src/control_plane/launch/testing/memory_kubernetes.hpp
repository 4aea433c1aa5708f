// MemoryKubernetes is an API server of Kubernetes in memory, for tests. It sends lists and watches
// as text, like a real one. The pods of a resumed Job run at once, unless a test keeps them
// pending; they end when a test ends them, and stay until their Job is deleted, which takes no
// time.
//
// Tests change its public members; the next request compares them with what was shown before, and
// makes the events. Each change has a version. A watch sends the events after its version and a
// bookmark, and ends, as at its timeout; with `stream` it waits for others. Tests of launchers with
// threads change the members in change() only.
//
// A MemoryKubernetes outlives the launchers (servers) that use it through a
// MemoryKubernetes::Client. Threads: the members are confined to the test's, unless change() is
// used.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "launch/kubernetes/answers.hpp"
#include "launch/kubernetes/kubernetes.hpp"
#include "launch/testing/kubernetes_json.hpp"

namespace trainyard::launch {

class MemoryKubernetes {
 public:
  class Client final : public Kubernetes {
   public:
    explicit Client(MemoryKubernetes& cluster) : cluster_(cluster) {}

    Result<void> find_kueue() override {
      const MutexLock lock(cluster_.mutex_);
      TRY(cluster_.answer());
      if (!cluster_.has_kueue) return not_found("the cluster has no Kueue");
      return {};
    }
    Result<std::string> list(KubernetesResource resource, const std::string& page) override {
      const MutexLock lock(cluster_.mutex_);
      return cluster_.list(resource, page);
    }
    Result<void> watch(KubernetesResource resource, const KubernetesWatch& watch) override {
      return cluster_.watch(resource, watch, stopped_);
    }
    void stop() override {
      const MutexLock lock(cluster_.mutex_);
      stopped_ = true;
      cluster_.changed_.notify_all();
    }
    Result<std::optional<KubernetesJob>> find_job(const std::string& name) override {
      const MutexLock lock(cluster_.mutex_);
      TRY(cluster_.answer());
      return cluster_.shown_job(name);
    }
    Result<std::string> why_no_pods(const std::string&) override {
      const MutexLock lock(cluster_.mutex_);
      TRY(cluster_.answer());
      ++cluster_.event_requests;
      return cluster_.no_pods_reason;
    }
    // As the API server would show it: what stands in the object is all that is known later.
    Result<KubernetesJob> create_job(const Json& job) override {
      const MutexLock lock(cluster_.mutex_);
      TRY(cluster_.answer());
      const std::string name = job["metadata"]["name"];
      if (cluster_.jobs.contains(name)) return conflict("jobs \"" + name + "\" already exists");
      Json shown = job;
      shown["metadata"]["uid"] = "uid-" + std::to_string(++cluster_.last_uid_);
      cluster_.mark_ = job["metadata"]["labels"][kServerLabel];
      const auto read = read_object<KubernetesJob>(shown, cluster_.mark_);
      if (!read) return invalid("the Job is not a gang's: " + dump(job));
      cluster_.jobs[name] = *read;
      if (cluster_.after_create) TRY(cluster_.after_create(*read));
      return *cluster_.shown_job(name);
    }
    Result<void> apply(const Json& object) override {
      const MutexLock lock(cluster_.mutex_);
      TRY(cluster_.answer());
      cluster_.applied[object["metadata"]["name"]][object["kind"]] = object;
      return {};
    }
    Result<KubernetesJob> submit_job(const std::string& name,
                                     const std::string& local_queue) override {
      const MutexLock lock(cluster_.mutex_);
      TRY(cluster_.answer());
      const auto job = cluster_.jobs.find(name);
      if (job == cluster_.jobs.end()) return not_found("jobs \"" + name + "\" not found");
      job->second.local_queue = local_queue;
      if (local_queue.empty()) cluster_.resume(job->second);
      return *cluster_.shown_job(name);
    }
    Result<std::optional<KubernetesJob>> delete_job(const std::string& name,
                                                    const std::string& uid) override {
      const MutexLock lock(cluster_.mutex_);
      TRY(cluster_.answer());
      const auto job = cluster_.jobs.find(name);
      if (job == cluster_.jobs.end() || job->second.uid != uid)
        return std::optional<KubernetesJob>();
      const auto attempt = job->second.attempt;
      std::erase_if(cluster_.pods, [&](const auto& pod) { return pod.second.attempt == attempt; });
      cluster_.applied.erase(name);
      cluster_.jobs.erase(job);
      cluster_.show();
      return std::optional<KubernetesJob>();
    }

   private:
    MemoryKubernetes& cluster_;
    std::atomic<bool> stopped_ = false;
  };

  std::unique_ptr<Kubernetes> client() { return std::make_unique<Client>(*this); }

  // Lets the pods of a suspended Job be created, as Kueue does when it admits it.
  void resume(KubernetesJob& job) {
    job.suspended = false;
    for (domain::HostIndex host = 0; host < job.hosts; ++host) {
      KubernetesPod pod;
      pod.name = job.name + "-" + std::to_string(host) + "-x";
      pod.attempt = job.attempt;
      pod.host = host;
      pod.node = nodes.at(0).name;
      pod.phase = phase_of_new_pods;
      pods[pod.name] = pod;
    }
  }

  void end_host(domain::AttemptId attempt, domain::HostIndex host, const std::string& reason) {
    for (auto& [name, pod] : pods)
      if (pod.attempt == attempt && pod.host == host) {
        pod.phase = kKubernetesFailed;
        pod.reason = reason;
      }
  }

  // Changes members while watches stream, and sends the events.
  void change(const std::function<void()>& change) {
    const MutexLock lock(mutex_);
    change();
    show();
  }
  // Forgets the events so far: a watch after an earlier version gets status 410.
  void forget_events() {
    const MutexLock lock(mutex_);
    show();
    events_.clear();
    oldest_ = version_;
  }

  std::vector<KubernetesNode> nodes;
  std::map<std::string, KubernetesJob> jobs;
  std::map<std::string, KubernetesPod> pods;
  std::map<std::string, std::map<std::string, Json>> applied;  // by name and kind
  std::map<std::string, KubernetesAmounts> used_by_others;
  std::map<std::string, KubernetesWorkload> workloads;
  bool has_kueue = false;
  std::string phase_of_new_pods = "Running";
  std::string no_pods_reason = {};  // the latest event that each Job has
  int event_requests = 0;
  std::string away = {};             // not "": why the API server does not answer
  std::string forbidden = {};        // not "": why it denies all requests
  std::string watch_forbidden = {};  // not "": why it denies watches
  // Called when a suspended Job was created; may throw.
  std::function<Result<void>(const KubernetesJob&)> after_create;

  size_t page_items = 2;
  bool stream = false;           // true: watches wait for events until the client stops
  bool expired_as_event = true;  // false: 410 is the status of the answer
  // Called with each event of a watch; returns what is sent instead.
  std::function<std::string(const std::string& line)> alter;
  // Requests so far, by resource.
  std::array<int, kKubernetesResources> lists{}, watches{};

 private:
  struct Shown {
    Json object;  // without its version
    uint64_t version = 0;
  };
  struct Event {
    KubernetesResource resource;
    uint64_t version;
    std::string line;
  };

  Result<void> answer() const {
    if (!away.empty()) return unavailable(away);
    if (!forbidden.empty()) return denied(forbidden);
    return {};
  }

  std::map<std::string, Json> objects_of(KubernetesResource resource) const REQUIRES(mutex_) {
    std::map<std::string, Json> objects;
    const auto add = [&](Json object) {
      const std::string name = object["metadata"]["name"];
      objects[name] = std::move(object);
    };
    if (resource == KubernetesResource::jobs)
      for (const auto& [name, job] : jobs) add(json_of(job, mark_));
    if (resource == KubernetesResource::pods)
      for (const auto& [name, pod] : pods) add(json_of(pod, mark_));
    if (resource == KubernetesResource::nodes)
      for (const KubernetesNode& node : nodes) add(json_of(node));
    if (resource == KubernetesResource::others)
      for (const auto& [node, amounts] : used_by_others) add(json_of(KubernetesUse{node, amounts}));
    if (resource == KubernetesResource::workloads)
      for (const auto& [name, workload] : workloads) add(json_of(name, workload));
    return objects;
  }

  // Makes the events of the changes since the last call.
  void show() REQUIRES(mutex_) {
    for (size_t number = 0; number < shown_.size(); ++number) {
      const auto resource = KubernetesResource(number);
      const auto now = objects_of(resource);
      auto& before = shown_[number];
      for (auto each = before.begin(); each != before.end();) {
        if (now.contains(each->first)) {
          ++each;
          continue;
        }
        add_event(resource, "DELETED", each->second.object);
        each = before.erase(each);
      }
      for (const auto& [name, object] : now) {
        const auto known = before.find(name);
        if (known != before.end() && known->second.object == object) continue;
        add_event(resource, known == before.end() ? "ADDED" : "MODIFIED", object);
        before[name] = {object, version_};
      }
    }
    changed_.notify_all();
  }

  void add_event(KubernetesResource resource, const char* type, Json object) REQUIRES(mutex_) {
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    events_.push_back({resource, version_, dump({{"type", type}, {"object", object}})});
  }

  std::optional<KubernetesJob> shown_job(const std::string& name) REQUIRES(mutex_) {
    show();
    const auto& all = shown_[size_t(KubernetesResource::jobs)];
    const auto found = all.find(name);
    if (found == all.end()) return {};
    Json object = found->second.object;
    object["metadata"]["resourceVersion"] = std::to_string(found->second.version);
    return read_object<KubernetesJob>(object, mark_);
  }

  // The token of a page is the version of the list and the number of items before it.
  Result<std::string> list(KubernetesResource resource, const std::string& page) REQUIRES(mutex_) {
    if (page.empty()) ++lists[size_t(resource)];
    TRY(answer());
    show();
    const auto parts = split(page, '/');
    const uint64_t version = page.empty() ? version_ : uint64_t(*parse_int(parts[0]));
    const size_t from = page.empty() ? 0 : size_t(*parse_int(parts[1]));
    if (version < oldest_ || version != version_)
      return conflict("the continue token is too old", KubernetesFault::expired);
    Json items = Json::array();
    size_t number = 0;
    for (const auto& [name, shown] : shown_[size_t(resource)]) {
      if (number++ < from || items.size() == page_items) continue;
      items.push_back(shown.object);
      items.back()["metadata"]["resourceVersion"] = std::to_string(shown.version);
    }
    Json metadata = {{"resourceVersion", std::to_string(version_)}};
    if (from + items.size() < number)
      metadata["continue"] = std::to_string(version_) + "/" + std::to_string(from + items.size());
    return dump({{"metadata", metadata}, {"items", items}});
  }

  Result<void> watch(KubernetesResource resource, const KubernetesWatch& watch,
                     const std::atomic<bool>& stopped) {
    MutexLock lock(mutex_);
    ++watches[size_t(resource)];
    TRY(answer());
    if (!watch_forbidden.empty()) return denied(watch_forbidden);
    show();
    uint64_t version = uint64_t(*parse_int(watch.version));
    const bool is_expired = version < oldest_;
    if (is_expired && !expired_as_event)
      return conflict("too old resource version", KubernetesFault::expired);
    const auto send = [&](const std::string& text) REQUIRES(mutex_) {
      const MutexUnlock unlock(mutex_);  // the receiver has its own mutex
      return watch.receive(text);
    };
    if (!send("")) return {};
    if (is_expired) {
      (void)send(R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired",)"
                 R"("message":"too old resource version"}})"
                 "\n");
      return {};
    }
    for (;;) {
      const auto next = std::ranges::find_if(events_, [&](const Event& event) {
        return event.resource == resource && event.version > version;
      });
      if (stopped) return cancelled("the client has stopped");
      if (!away.empty()) return unavailable("the connection broke");
      if (next != events_.end()) {
        version = next->version;
        const std::string line = next->line + "\n";
        if (!send(alter ? alter(line) : line)) return {};
      } else if (stream) {
        changed_.wait(lock);
      } else {
        version = version_;
        break;
      }
    }
    const Json bookmark = {{"metadata", {{"resourceVersion", std::to_string(version)}}}};
    (void)send(dump({{"type", "BOOKMARK"}, {"object", bookmark}}) + "\n");
    return {};
  }

  Mutex mutex_;
  ConditionVariable changed_;
  std::string mark_ GUARDED_BY(mutex_) = "3fa91c";
  // By resource.
  std::array<std::map<std::string, Shown>, kKubernetesResources> shown_ GUARDED_BY(mutex_);
  std::vector<Event> events_ GUARDED_BY(mutex_);
  uint64_t version_ GUARDED_BY(mutex_) = 1;
  uint64_t oldest_ GUARDED_BY(mutex_) = 0;
  uint64_t last_uid_ GUARDED_BY(mutex_) = 0;
};

}  // namespace trainyard::launch
