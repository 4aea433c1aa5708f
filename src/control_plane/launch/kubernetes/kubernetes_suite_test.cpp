// Runs LauncherSuite, the tests of every launcher, on a Kubernetes cluster in memory.
#include <optional>

#include "base/testing/test_clock.hpp"
#include "launch/kubernetes/kubernetes_launcher.hpp"
#include "launch/testing/launcher_suite.hpp"
#include "launch/testing/memory_kubernetes.hpp"
#include "launch/testing/plain_seals.hpp"

namespace trainyard::launch {
namespace {

class KubernetesWorld {
 public:
  KubernetesWorld() {
    settings_.jobs.mark = "3fa91c";
    settings_.jobs.image = "trainyard";
    settings_.jobs.program_directory = "/opt/trainyard";
    settings_.jobs.pool = *networks::parse_subnet("10.201.0.0/16");
    set_plain_seals(settings_);
    KubernetesNode node;
    node.name = "n1";
    node.ready = true;
    node.allocatable = {8000, int64_t{1} << 30};
    cluster_.nodes = {node};
    // A gang is one Job: its agents start together, or none does.
    cluster_.after_create = [this](const KubernetesJob& job) -> Result<void> {
      if (end_after_ && job.hosts > *end_after_) throw ServerEnded();
      if (fail_after_ && job.hosts > *fail_after_) return unavailable("no answer");
      return {};
    };
  }

  std::unique_ptr<Launcher> server() {
    auto made =
        make_kubernetes(settings_, cluster_.client(), clock_, random_, KubernetesThreads::none);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  void end_agent(const Launcher&, domain::AttemptId attempt, domain::HostIndex host) {
    cluster_.end_host(attempt, host, "OOMKilled, exit code 137");
  }
  void fail_starts_after(std::optional<size_t> agents) { fail_after_ = agents; }
  void end_server_after(std::optional<size_t> agents) { end_after_ = agents; }
  void settle(Launcher&) {}
  std::string left() {
    std::string text;
    for (const auto& [what, count] : {std::pair("Jobs", cluster_.jobs.size()),
                                      {"pods", cluster_.pods.size()},
                                      {"names of applied objects", cluster_.applied.size()}})
      if (count > 0) text += std::to_string(count) + " " + what + " ";
    return text;
  }

 private:
  TestClock clock_;
  SeededRandom random_{1};
  KubernetesSettings settings_;
  MemoryKubernetes cluster_;
  std::optional<size_t> fail_after_, end_after_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Kubernetes, LauncherSuite, KubernetesWorld);

}  // namespace
}  // namespace trainyard::launch
