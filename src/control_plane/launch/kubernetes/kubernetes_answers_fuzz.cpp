// decoder: src/control_plane/launch/kubernetes/answers.cpp
// decoder: src/control_plane/launch/kubernetes/kubeconfig.cpp
//
// Reads any bytes as each of an API server's answers, as a quantity, and as a kubeconfig: reading
// must terminate and respect the limits.
#include <cstdint>

#include "base/check.hpp"
#include "domain/limits.hpp"
#include "launch/kubernetes/answers.hpp"
#include "launch/kubernetes/kubeconfig.hpp"

using namespace trainyard;
using namespace trainyard::launch;

namespace {

bool are_natural(const KubernetesAmounts& amounts) {
  return amounts.cpus_milli >= 0 && amounts.memory_bytes >= 0 && amounts.gpus >= 0;
}

void read_lists(std::string_view text) {
  if (const auto jobs = read_page<KubernetesJob>(text, "3fa91c"))
    for (const auto& [name, job] : jobs->objects) {
      CHECK(job.hosts > 0 && job.hosts <= domain::kGangHostsMax, "the gang's size has its limits");
      for (const auto host : job.ended_hosts)
        CHECK(host < job.hosts, "the host index is below the gang's size");
    }
  if (const auto pods = read_page<KubernetesPod>(text, "3fa91c"))
    for (const auto& [name, pod] : pods->objects)
      CHECK(pod.host < domain::kGangHostsMax, "the host index has its limit");
  if (const auto nodes = read_page<KubernetesNode>(text, "3fa91c"))
    for (const auto& [name, node] : nodes->objects) {
      CHECK(!node.name.empty(), "the node has a name");
      CHECK(are_natural(node.allocatable), "amounts are not negative");
    }
  if (const auto uses = read_page<KubernetesUse>(text, "3fa91c"))
    for (const auto& [name, use] : uses->objects)
      CHECK(are_natural(use.amounts), "amounts are not negative");
  if (const auto workloads = read_page<KubernetesWorkload>(text, "3fa91c"))
    for (const auto& [name, workload] : workloads->objects) {
      CHECK(!workload.job_uid.empty(), "the Workload is of a Job");
      CHECK(workload.reason.size() <= 3 * kKubernetesTextBytesMax, "the reason has its limits");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_lists(text);
  (void)read_job_answer(text, "3fa91c");
  if (const auto event = read_latest_event(text))
    CHECK(event->size() <= 3 * kKubernetesTextBytesMax, "a reason and a message have their limits");
  if (const auto version = read_kueue_version(text))
    CHECK(version->starts_with("v1beta"), "the version is a known one");
  CHECK(check_kubernetes_answer(200, text), "status 200 is accepted");
  for (const int status : {400, 401, 403, 404, 409, 422, 429, 500})
    CHECK(!check_kubernetes_answer(status, text), "an error status is rejected");
  if (const auto quantity = parse_quantity_milli(text))
    CHECK(*quantity >= 0, "amounts are not negative");
  if (const auto indexes = parse_indexes(text, 7))
    for (const auto host : *indexes) CHECK(host < 7, "the host index is below the gang's size");
  const auto access = read_kubeconfig(
      text, "", "/etc", [](const std::string&) { return Result<std::string>("PEM"); });
  if (access) CHECK(access->server.starts_with("https://"), "the server URL is https");
  return 0;
}
