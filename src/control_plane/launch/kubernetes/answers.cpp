#include "launch/kubernetes/answers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"
#include "domain/limits.hpp"
#include "launch/kubernetes/json_members.hpp"

namespace trainyard::launch {
namespace {

constexpr int64_t kQuantityMilliMax = int64_t{1} << 60;
constexpr size_t kContinueBytesMax = 64 << 10;
constexpr size_t kTaintsMax = 1'000;
// The versions of Kueue's API in which Workloads have the members that are read here, best first.
constexpr std::array kKueueVersions = {"v1beta2", "v1beta1"};
// uids have 36 characters; they are opaque.
constexpr size_t kUidBytesMax = 128;

std::string short_json_text(const Json& object, const char* name) {
  return shorten(json_text(object, name), kKubernetesTextBytesMax);
}

int64_t json_int(const Json& object, const char* name) {
  const Json& found = json_member(object, name);
  return found.is_number_integer() ? found.get<int64_t>() : 0;
}

bool is_json_true(const Json& object, const char* name) {
  return json_member(object, name) == Json(true);
}

// Returns "Reason: message", or the part that exists.
std::string reason_and_message(const Json& object) {
  const std::string reason = short_json_text(object, "reason");
  const std::string message = short_json_text(object, "message");
  if (reason.empty() || message.empty()) return reason + message;
  return reason + ": " + message;
}

const Json& condition_of(const Json& status, std::string_view type) {
  static const Json kNone;
  for (const Json& each : json_list(status, "conditions"))
    if (json_text(each, "type") == type) return each;
  return kNone;
}

struct PageText {
  Json json;
  std::string next, version;
};

Result<PageText> read_page_text(std::string_view body) {
  PageText page;
  page.json = TRY(parse_json(body).in("reading the answer of Kubernetes"));
  const Json& items = json_member(page.json, "items");
  const Json& metadata = json_member(page.json, "metadata");
  // Go formats an empty list as null.
  if (!page.json.is_object() || !(items.is_array() || items.is_null()) || !metadata.is_object())
    return corrupt("the answer of Kubernetes is not a list");
  page.next = json_text(metadata, "continue");
  if (page.next.size() > kContinueBytesMax)
    return corrupt("the answer of Kubernetes continues at a text of " +
                   std::to_string(page.next.size()) + " bytes");
  page.version = json_text(metadata, "resourceVersion");
  if (page.version.empty() || page.version.size() > kKubernetesVersionBytesMax)
    return corrupt("the list of Kubernetes has no valid resourceVersion");
  return page;
}

bool is_object_name(std::string_view name) {
  return !name.empty() && name.size() <= 253 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

bool is_of(const Json& metadata, std::string_view mark) {
  return json_text(json_member(metadata, "labels"), kServerLabel) == mark;
}

std::string reason_of_failure(const Json& status) {
  for (const char* type : {kKubernetesFailed, "FailureTarget"})
    if (const Json& found = condition_of(status, type); json_text(found, "status") == "True")
      return reason_and_message(found);
  return "";
}

// Returns why a container waits or has ended.
std::string reason_of_container(const Json& status) {
  const Json& state = json_member(status, "state");
  if (const Json& waiting = json_member(state, "waiting"); waiting.is_object())
    return reason_and_message(waiting);
  const Json& ended = json_member(state, "terminated");
  if (!ended.is_object()) return "";
  std::string text = short_json_text(ended, "reason");
  if (const int64_t code = json_int(ended, "exitCode"); code != 0)
    text += (text.empty() ? "" : ", ") + std::string("exit code ") + std::to_string(code);
  // The message may be the end of a log, whose last line is the most informative.
  const std::string message = json_text(ended, "message");
  const std::string_view whole = trim(message);
  const auto line = trim(whole.substr(whole.find_last_of('\n') + 1));
  if (!line.empty()) text += ": " + shorten(line, kKubernetesTextBytesMax);
  return text;
}

// Returns the condition of a pod that was preempted or evicted, or whose node is lost; else null.
const Json* disruption_of_pod(const Json& status) {
  const Json& target = condition_of(status, "DisruptionTarget");
  return json_text(target, "status") == "True" ? &target : nullptr;
}

bool is_preempted(const Json& status) {
  const Json* disruption = disruption_of_pod(status);
  return disruption && json_text(*disruption, "reason") == "PreemptionByScheduler";
}

// Returns the most informative of a pod's reasons, as Kubernetes reports it.
std::string reason_of_pod(const Json& status) {
  if (const Json* disruption = disruption_of_pod(status)) return reason_and_message(*disruption);
  if (std::string own = reason_and_message(status); !own.empty()) return own;
  if (json_text(status, "phase") == "Pending")
    if (const Json& scheduled = condition_of(status, "PodScheduled");
        json_text(scheduled, "status") == "False")
      return reason_and_message(scheduled);
  for (const Json& container : json_list(status, "containerStatuses"))
    if (std::string text = reason_of_container(container); !text.empty()) return text;
  return "";
}

// Returns 0 if the object has no such quantity.
int64_t milli_of(const Json& quantities, const char* name) {
  const auto quantity = parse_quantity_milli(json_text(quantities, name));
  return quantity ? *quantity : 0;
}

KubernetesAmounts amounts_in(const Json& quantities) {
  return {milli_of(quantities, "cpu"), milli_of(quantities, "memory") / 1000,
          milli_of(quantities, kGpuResource) / 1000};
}

// Returns a pod's requests as Kubernetes counts them: the sum of the containers, or the largest
// init container. Sidecars (restartable init containers) count with the containers.
KubernetesAmounts requests_of(const Json& spec) {
  const auto of = [](const Json& container) {
    return amounts_in(json_member(json_member(container, "resources"), "requests"));
  };
  KubernetesAmounts sum, largest;
  for (const Json& container : json_list(spec, "containers")) add_amounts(sum, of(container));
  for (const Json& container : json_list(spec, "initContainers")) {
    const auto amounts = of(container);
    if (json_text(container, "restartPolicy") == "Always") {
      add_amounts(sum, amounts);
      continue;
    }
    raise_to(largest, amounts);
  }
  raise_to(sum, largest);
  add_amounts(sum, amounts_in(json_member(spec, "overhead")));
  return sum;
}

}  // namespace

// Returns nullopt if the item is not the Job of a gang.
template <>
std::optional<KubernetesJob> read_object(const Json& item, std::string_view mark) {
  const Json& metadata = json_member(item, "metadata");
  const auto attempt =
      domain::parse_attempt_id(json_text(json_member(metadata, "labels"), kAttemptLabel));
  KubernetesJob job;
  job.name = json_text(metadata, "name");
  job.uid = json_text(metadata, "uid");
  job.version = json_text(metadata, "resourceVersion");
  job.seal = json_text(json_member(metadata, "annotations"), kSealAnnotation);
  job.local_queue = json_text(json_member(metadata, "labels"), kLocalQueueLabel);
  const Json& spec = json_member(item, "spec");
  const int64_t hosts = json_int(spec, "completions");
  if (!is_of(metadata, mark) || !attempt || !is_object_name(job.name) || job.uid.empty() ||
      hosts < 1 || hosts > domain::kGangHostsMax)
    return {};
  job.attempt = *attempt;
  job.hosts = uint32_t(hosts);
  job.suspended = is_json_true(spec, "suspend");
  job.deleting = !json_text(metadata, "deletionTimestamp").empty();
  const Json& status = json_member(item, "status");
  job.reason = reason_of_failure(status);
  job.ended = json_text(condition_of(status, kKubernetesFailed), "status") == "True" ||
              json_text(condition_of(status, "Complete"), "status") == "True";
  for (const char* name : {"failedIndexes", "completedIndexes"})
    if (const auto indexes = parse_indexes(json_text(status, name), job.hosts))
      job.ended_hosts.insert(indexes->begin(), indexes->end());
  return job;
}

template <>
std::optional<KubernetesPod> read_object(const Json& item, std::string_view mark) {
  const Json& metadata = json_member(item, "metadata");
  const Json& labels = json_member(metadata, "labels");
  const auto attempt = domain::parse_attempt_id(json_text(labels, kAttemptLabel));
  const auto host = parse_int(json_text(labels, "batch.kubernetes.io/job-completion-index"));
  KubernetesPod pod;
  pod.name = json_text(metadata, "name");
  if (!is_of(metadata, mark) || !attempt || !host || *host < 0 || *host >= domain::kGangHostsMax ||
      !is_object_name(pod.name))
    return {};
  pod.attempt = *attempt;
  pod.host = domain::HostIndex(*host);
  pod.node = json_text(json_member(item, "spec"), "nodeName");
  pod.created = json_text(metadata, "creationTimestamp");
  pod.deleting = !json_text(metadata, "deletionTimestamp").empty();
  const Json& status = json_member(item, "status");
  pod.phase = json_text(status, "phase");
  pod.preempted = is_preempted(status);
  pod.reason = reason_of_pod(status);
  return pod;
}

template <>
std::optional<KubernetesNode> read_object(const Json& item, std::string_view) {
  KubernetesNode node;
  const Json& metadata = json_member(item, "metadata");
  node.name = json_text(metadata, "name");
  if (!is_object_name(node.name)) return {};
  const Json& labels = json_member(metadata, "labels");
  if (labels.is_object())
    for (const auto& [name, value] : labels.items())
      if (value.is_string()) node.labels[name] = value.get<std::string>();
  const Json& spec = json_member(item, "spec");
  node.schedulable = !is_json_true(spec, "unschedulable");
  for (const Json& taint : json_list(spec, "taints"))
    if (node.taints.size() < kTaintsMax)
      node.taints.push_back(
          {json_text(taint, "key"), json_text(taint, "value"), json_text(taint, "effect")});
  const Json& status = json_member(item, "status");
  const Json& ready = condition_of(status, "Ready");
  node.ready = json_text(ready, "status") == "True";
  if (!node.ready) node.reason = reason_and_message(ready);
  node.allocatable = amounts_in(json_member(status, "allocatable"));
  return node;
}

template <>
std::optional<KubernetesUse> read_object(const Json& item, std::string_view mark) {
  const Json& spec = json_member(item, "spec");
  const std::string phase = json_text(json_member(item, "status"), "phase");
  const std::string node = json_text(spec, "nodeName");
  if (!is_object_name(node) || phase == "Succeeded" || phase == kKubernetesFailed ||
      is_of(json_member(item, "metadata"), mark))
    return {};
  return KubernetesUse{node, requests_of(spec)};
}

template <>
std::optional<KubernetesWorkload> read_object(const Json& item, std::string_view) {
  KubernetesWorkload workload;
  workload.job_uid =
      json_text(json_member(json_member(item, "metadata"), "labels"), "kueue.x-k8s.io/job-uid");
  if (workload.job_uid.empty() || workload.job_uid.size() > kUidBytesMax) return {};
  const Json& status = json_member(item, "status");
  // The condition stays, as False, when the Workload is admitted again.
  const Json& evicted = condition_of(status, "Evicted");
  workload.evicted = evicted.is_object();
  workload.deactivated = json_member(json_member(item, "spec"), "active") == Json(false);
  if (workload.evicted) {
    workload.reason = reason_and_message(evicted);
    return workload;
  }
  for (const char* type : {"QuotaReserved", "Admitted"})
    if (const Json& found = condition_of(status, type);
        workload.reason.empty() && json_text(found, "status") == "False")
      workload.reason = reason_and_message(found);
  return workload;
}

template <class T>
Result<KubernetesIdentity> read_identity(const Json& object) {
  const Json& metadata = json_member(object, "metadata");
  const std::string name = json_text(metadata, "name");
  const std::string space = json_text(metadata, "namespace");
  KubernetesIdentity identity{name, json_text(metadata, "uid"),
                              json_text(metadata, "resourceVersion")};
  if (kResourceOf<T> == KubernetesResource::others) {
    if (!is_object_name(space)) return corrupt("a pod of Kubernetes has no valid namespace");
    identity.name = space + "/" + name;
  }
  if (!is_object_name(name)) return corrupt("an object of Kubernetes has no valid name");
  if (identity.version.empty() || identity.version.size() > kKubernetesVersionBytesMax ||
      identity.uid.size() > kUidBytesMax)
    return corrupt("the object " + identity.name + " of Kubernetes has no valid resourceVersion");
  return identity;
}

template <class T>
Result<KubernetesPage<T>> read_page(std::string_view body, std::string_view mark) {
  PageText text = TRY(read_page_text(body));
  KubernetesPage<T> page;
  page.next = std::move(text.next);
  page.version = std::move(text.version);
  for (const Json& item : json_list(text.json, "items"))
    if (auto object = read_object<T>(item, mark)) {
      KubernetesIdentity identity = TRY(read_identity<T>(item));
      page.objects.emplace_back(std::move(identity.name), *std::move(object));
    }
  return page;
}

#define TRAINYARD_READ(T)                                            \
  template Result<KubernetesIdentity> read_identity<T>(const Json&); \
  template Result<KubernetesPage<T>> read_page(std::string_view, std::string_view);
TRAINYARD_READ(KubernetesJob)
TRAINYARD_READ(KubernetesPod)
TRAINYARD_READ(KubernetesNode)
TRAINYARD_READ(KubernetesUse)
TRAINYARD_READ(KubernetesWorkload)
#undef TRAINYARD_READ

void add_amounts(KubernetesAmounts& sum, const KubernetesAmounts& more) {
  sum.cpus_milli = std::min(sum.cpus_milli + more.cpus_milli, kQuantityMilliMax);
  sum.memory_bytes = std::min(sum.memory_bytes + more.memory_bytes, kQuantityMilliMax);
  sum.gpus = std::min(sum.gpus + more.gpus, kQuantityMilliMax);
}

void raise_to(KubernetesAmounts& largest, const KubernetesAmounts& other) {
  largest.cpus_milli = std::max(largest.cpus_milli, other.cpus_milli);
  largest.memory_bytes = std::max(largest.memory_bytes, other.memory_bytes);
  largest.gpus = std::max(largest.gpus, other.gpus);
}

Result<std::string> read_kueue_version(std::string_view body) {
  const Json json = TRY(parse_json(body).in("reading the versions of Kueue's API"));
  if (!json_member(json, "versions").is_array())
    return corrupt("the answer of Kubernetes has no versions of Kueue's API");
  for (const char* known : kKueueVersions)
    for (const Json& version : json_list(json, "versions"))
      if (json_text(version, "version") == known) return std::string(known);
  return not_found(std::string("the cluster's Kueue serves neither version ") + kKueueVersions[0] +
                   " nor " + kKueueVersions[1] + " of its API: use Kueue 0.11 to 0.15");
}

Result<KubernetesJob> read_job_answer(std::string_view body, std::string_view mark) {
  const Json json = TRY(parse_json(body).in("reading the answer of Kubernetes"));
  TRY(read_identity<KubernetesJob>(json));
  auto job = read_object<KubernetesJob>(json, mark);
  if (!job) return corrupt("the answer of Kubernetes is not the Job of the request");
  return *std::move(job);
}

Result<std::string> read_latest_event(std::string_view body) {
  const Json json = TRY(parse_json(body).in("reading the events of Kubernetes"));
  if (!json_member(json, "metadata").is_object())
    return corrupt("the answer of Kubernetes is not a list of events");
  std::string latest, text;
  for (const Json& event : json_list(json, "items")) {
    std::string when = json_text(event, "lastTimestamp");
    if (when.empty()) when = json_text(event, "eventTime");
    if (when < latest) continue;
    latest = std::move(when);
    text = reason_and_message(event);
  }
  return text;
}

Result<void> check_kubernetes_answer(int status, std::string_view body) {
  if (status >= 200 && status < 300) return {};
  const auto json = parse_json(body);
  std::string message = json ? short_json_text(*json, "message") : "";
  if (message.empty()) message = "HTTP status " + std::to_string(status);
  const std::string reason = json ? json_text(*json, "reason") : "";
  switch (status) {
    case 401:
      return denied("Kubernetes does not know the caller: " + message +
                    ": check the credentials of kubernetes.kubeconfig");
    case 403:
      // Quotas also reject with 403.
      if (message.find("exceeded quota") != std::string::npos)
        return exhausted("Kubernetes rejects the request: " + message);
      return denied("Kubernetes denies the request: " + message);
    case 404:
      return not_found("Kubernetes: " + message);
    case 409:
      return conflict("Kubernetes: " + message);
    case 410:
      return conflict("Kubernetes: " + message, KubernetesFault::expired);
    case 400:
    case 405:
    case 413:
    case 415:
    case 422:
      return invalid("Kubernetes rejects the request: " + message);
    default:
      return unavailable("Kubernetes reports: " + message);
  }
}

Result<int64_t> parse_quantity_milli(std::string_view text) {
  constexpr std::array kUnits = {
      std::pair("", 1.0),      std::pair("m", 1e-3),    std::pair("k", 1e3),
      std::pair("M", 1e6),     std::pair("G", 1e9),     std::pair("T", 1e12),
      std::pair("P", 1e15),    std::pair("E", 1e18),    std::pair("Ki", 0x1p10),
      std::pair("Mi", 0x1p20), std::pair("Gi", 0x1p30), std::pair("Ti", 0x1p40),
      std::pair("Pi", 0x1p50), std::pair("Ei", 0x1p60), std::pair("u", 1e-6),
      std::pair("n", 1e-9)};
  const auto bad = [&] { return invalid("'" + shorten(text, 40) + "' is not a quantity"); };
  // "1e3" has an exponent, "1E" a unit.
  auto number = parse_double(text);
  std::string_view unit;
  if (!number) {
    const size_t end = text.find_last_of("0123456789.");
    if (end == std::string_view::npos) return bad();
    unit = text.substr(end + 1);
    number = parse_double(text.substr(0, end + 1));
  }
  const auto found = std::ranges::find(kUnits, unit, [](const auto& each) { return each.first; });
  if (!number || !std::isfinite(*number) || *number < 0 || found == kUnits.end()) return bad();
  return int64_t(std::min(*number * found->second * 1000, double(kQuantityMilliMax)));
}

Result<std::set<domain::HostIndex>> parse_indexes(std::string_view text, uint32_t hosts) {
  std::set<domain::HostIndex> indexes;
  if (text.empty()) return indexes;
  int64_t next = 0;  // indexes are in ascending order
  for (const auto range : split(text, ',')) {
    const auto ends = split(range, '-');
    const auto first = parse_int(ends.front()), last = parse_int(ends.back());
    if (ends.size() > 2 || !first || !last || *first < next || *last < *first)
      return corrupt("'" + shorten(text, 40) + "' are not indexes of a Job");
    for (int64_t index = *first; index <= *last && index < int64_t(hosts); ++index)
      indexes.insert(domain::HostIndex(index));
    next = *last;
  }
  return indexes;
}

}  // namespace trainyard::launch
