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

void read_lists(std::string_view text) {
  std::vector<KubernetesJob> jobs;
  if (read_job_page(text, "3fa91c", jobs))
    for (const auto& job : jobs) {
      CHECK(job.hosts > 0 && job.hosts <= domain::kGangHostsMax, "the gang's size has its limits");
      for (const auto host : job.ended_hosts)
        CHECK(host < job.hosts, "the host index is below the gang's size");
    }
  std::vector<KubernetesPod> pods;
  if (read_pod_page(text, "3fa91c", pods))
    for (const auto& pod : pods)
      CHECK(pod.host < domain::kGangHostsMax, "the host index has its limit");
  std::vector<KubernetesNode> nodes;
  if (read_node_page(text, nodes))
    for (const auto& node : nodes) {
      CHECK(!node.name.empty(), "the node has a name");
      CHECK(node.allocatable.cpus_milli >= 0 && node.allocatable.memory_bytes >= 0,
            "amounts are not negative");
    }
  std::map<std::string, KubernetesAmounts> used;
  size_t count = 0;
  if (read_use_page(text, "3fa91c", used, count))
    for (const auto& [name, amounts] : used)
      CHECK(amounts.cpus_milli >= 0 && amounts.memory_bytes >= 0, "amounts are not negative");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_lists(text);
  (void)read_uid(text);
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
