// MemoryKubernetes is a Kubernetes cluster in memory, for tests. The pods of a resumed Job run at
// once, unless a test keeps them pending; they end when a test ends them, and stay listed until
// their Job is deleted, which takes no time.
//
// A MemoryKubernetes outlives the launchers (servers) that use it through a
// MemoryKubernetes::Client. Threads: confined to the test's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "launch/kubernetes/answers.hpp"
#include "launch/kubernetes/kubernetes.hpp"

namespace trainyard::launch {

class MemoryKubernetes {
 public:
  class Client final : public Kubernetes {
   public:
    explicit Client(MemoryKubernetes& cluster) : cluster_(cluster) {}

    Result<std::vector<KubernetesJob>> jobs() override {
      TRY(cluster_.answer());
      std::vector<KubernetesJob> jobs;
      for (const auto& [name, job] : cluster_.jobs) jobs.push_back(job);
      return jobs;
    }
    Result<std::vector<KubernetesPod>> pods() override {
      TRY(cluster_.answer());
      std::vector<KubernetesPod> pods;
      for (const auto& [name, pod] : cluster_.pods) pods.push_back(pod);
      return pods;
    }
    Result<std::vector<KubernetesNode>> nodes() override {
      TRY(cluster_.answer());
      return cluster_.nodes;
    }
    Result<std::map<std::string, KubernetesAmounts>> used_by_others() override {
      TRY(cluster_.answer());
      return cluster_.used_by_others;
    }
    // As the API server would show it: what stands in the object is all that is known later.
    Result<std::string> create_job(const Json& job) override {
      TRY(cluster_.answer());
      const std::string name = job["metadata"]["name"];
      if (cluster_.jobs.contains(name)) return conflict("jobs \"" + name + "\" already exists");
      Json shown = job;
      const std::string uid = "uid-" + std::to_string(++cluster_.last_uid_);
      shown["metadata"]["uid"] = uid;
      std::vector<KubernetesJob> jobs;
      TRY(read_job_page(dump({{"metadata", Json::object()}, {"items", Json::array({shown})}}),
                        std::string(job["metadata"]["labels"][kServerLabel]), jobs));
      if (jobs.size() != 1) return invalid("the Job is not a gang's: " + dump(job));
      cluster_.jobs[name] = jobs[0];
      if (cluster_.after_create) TRY(cluster_.after_create(jobs[0]));
      return uid;
    }
    Result<void> apply_secret(const Json& secret) override {
      TRY(cluster_.answer());
      cluster_.secrets[secret["metadata"]["name"]] = secret;
      return {};
    }
    Result<void> apply_service(const Json& service) override {
      TRY(cluster_.answer());
      cluster_.services[service["metadata"]["name"]] = service;
      return {};
    }
    Result<void> resume_job(const std::string& name) override {
      TRY(cluster_.answer());
      const auto job = cluster_.jobs.find(name);
      if (job == cluster_.jobs.end()) return not_found("jobs \"" + name + "\" not found");
      job->second.suspended = false;
      for (domain::HostIndex host = 0; host < job->second.hosts; ++host) {
        KubernetesPod pod;
        pod.name = name + "-" + std::to_string(host) + "-x";
        pod.attempt = job->second.attempt;
        pod.host = host;
        pod.node = cluster_.nodes.at(0).name;
        pod.phase = cluster_.phase_of_new_pods;
        cluster_.pods[pod.name] = pod;
      }
      return {};
    }
    Result<void> delete_job(const std::string& name, const std::string& uid) override {
      TRY(cluster_.answer());
      const auto job = cluster_.jobs.find(name);
      if (job == cluster_.jobs.end() || job->second.uid != uid) return {};
      const auto attempt = job->second.attempt;
      std::erase_if(cluster_.pods, [&](const auto& pod) { return pod.second.attempt == attempt; });
      cluster_.secrets.erase(name);
      cluster_.services.erase(name);
      cluster_.jobs.erase(job);
      return {};
    }

   private:
    MemoryKubernetes& cluster_;
  };

  std::unique_ptr<Kubernetes> client() { return std::make_unique<Client>(*this); }

  void end_host(domain::AttemptId attempt, domain::HostIndex host, const std::string& reason) {
    for (auto& [name, pod] : pods)
      if (pod.attempt == attempt && pod.host == host) {
        pod.phase = kKubernetesFailed;
        pod.reason = reason;
      }
  }

  std::vector<KubernetesNode> nodes;
  std::map<std::string, KubernetesJob> jobs;
  std::map<std::string, KubernetesPod> pods;
  std::map<std::string, Json> secrets, services;
  std::map<std::string, KubernetesAmounts> used_by_others;
  std::string phase_of_new_pods = "Running";
  std::string away = {};       // not "": why the API server does not answer
  std::string forbidden = {};  // not "": why it denies all requests
  // Called when a suspended Job was created; may throw.
  std::function<Result<void>(const KubernetesJob&)> after_create;

 private:
  Result<void> answer() const {
    if (!away.empty()) return unavailable(away);
    if (!forbidden.empty()) return denied(forbidden);
    return {};
  }

  uint64_t last_uid_ = 0;
};

}  // namespace trainyard::launch
