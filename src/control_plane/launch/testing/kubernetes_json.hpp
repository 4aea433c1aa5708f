// Formats what the launcher uses of Kubernetes' objects as an API server would show it, for
// MemoryKubernetes and tests of decoders.
//
// Threads: pure. Errors: none.
#pragma once

#include <string>

#include "base/json.hpp"
#include "launch/kubernetes/kubernetes.hpp"

namespace trainyard::launch {

constexpr const char* kSomeInstant = "2026-11-24T12:00:00Z";

// Splits "Reason: message", as answers.hpp joins it.
inline void set_reason(Json& object, const std::string& text) {
  const size_t colon = text.find(": ");
  if (colon == std::string::npos)
    object["message"] = text;
  else
    object.update({{"reason", text.substr(0, colon)}, {"message", text.substr(colon + 2)}});
}

inline Json json_of(const KubernetesAmounts& amounts) {
  return {{"cpu", std::to_string(amounts.cpus_milli) + "m"},
          {"memory", std::to_string(amounts.memory_bytes)},
          {kGpuResource, std::to_string(amounts.gpus)}};
}

inline Json json_of(const KubernetesJob& job, const std::string& mark) {
  Json metadata = {{"name", job.name},
                   {"namespace", "trainyard"},
                   {"uid", job.uid},
                   {"labels", {{kServerLabel, mark}, {kAttemptLabel, job.attempt.text()}}},
                   {"annotations", {{kSealAnnotation, job.seal}}}};
  if (job.deleting) metadata["deletionTimestamp"] = kSomeInstant;
  if (!job.local_queue.empty()) metadata["labels"][kLocalQueueLabel] = job.local_queue;
  std::string ended;
  for (const auto host : job.ended_hosts)
    ended += (ended.empty() ? "" : ",") + std::to_string(host);
  Json condition = {{"type", kKubernetesFailed}, {"status", job.ended ? "True" : "False"}};
  if (!job.reason.empty()) set_reason(condition, job.reason);
  return {{"metadata", metadata},
          {"spec", {{"completions", job.hosts}, {"suspend", job.suspended}}},
          {"status", {{"failedIndexes", ended}, {"conditions", Json::array({condition})}}}};
}

inline Json json_of(const KubernetesPod& pod, const std::string& mark) {
  Json metadata = {{"name", pod.name},
                   {"namespace", "trainyard"},
                   {"uid", "uid-of-" + pod.name},
                   {"creationTimestamp", pod.created},
                   {"labels",
                    {{kServerLabel, mark},
                     {kAttemptLabel, pod.attempt.text()},
                     {"batch.kubernetes.io/job-completion-index", std::to_string(pod.host)}}}};
  if (pod.deleting) metadata["deletionTimestamp"] = kSomeInstant;
  Json status = {{"phase", pod.phase}};
  if (pod.preempted) {
    Json target = {{"type", "DisruptionTarget"}, {"status", "True"}};
    set_reason(target, pod.reason);
    status["conditions"] = Json::array({target});
  } else if (!pod.reason.empty()) {
    set_reason(status, pod.reason);
  }
  return {{"metadata", metadata}, {"spec", {{"nodeName", pod.node}}}, {"status", status}};
}

inline Json json_of(const KubernetesNode& node) {
  Json taints = Json::array();
  for (const auto& taint : node.taints)
    taints.push_back({{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
  Json ready = {{"type", "Ready"}, {"status", node.ready ? "True" : "Unknown"}};
  if (!node.reason.empty()) set_reason(ready, node.reason);
  return {
      {"metadata", {{"name", node.name}, {"uid", "uid-of-" + node.name}, {"labels", node.labels}}},
      {"spec", {{"unschedulable", !node.schedulable}, {"taints", taints}}},
      {"status",
       {{"allocatable", json_of(node.allocatable)}, {"conditions", Json::array({ready})}}}};
}

inline Json json_of(const std::string& name, const KubernetesWorkload& workload) {
  Json condition = {{"type", workload.evicted ? "Evicted" : "QuotaReserved"},
                    {"status", workload.evicted || workload.reason.empty() ? "True" : "False"}};
  set_reason(condition, workload.reason);
  return {{"metadata",
           {{"name", name},
            {"namespace", "trainyard"},
            {"uid", "uid-of-" + name},
            {"labels", {{"kueue.x-k8s.io/job-uid", workload.job_uid}}}}},
          {"spec", {{"active", !workload.deactivated}}},
          {"status", {{"conditions", Json::array({condition})}}}};
}

inline Json json_of(const KubernetesUse& use) {
  const Json container = {{"resources", {{"requests", json_of(use.amounts)}}}};
  return {{"metadata",
           {{"name", "on-" + use.node}, {"namespace", "default"}, {"uid", "uid-on-" + use.node}}},
          {"spec", {{"nodeName", use.node}, {"containers", Json::array({container})}}},
          {"status", {{"phase", "Running"}}}};
}

}  // namespace trainyard::launch
