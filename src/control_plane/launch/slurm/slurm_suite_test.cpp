// Runs LauncherSuite, the tests of every launcher, on a Slurm cluster in memory.
#include <optional>

#include "base/testing/test_clock.hpp"
#include "launch/slurm/slurm_launcher.hpp"
#include "launch/testing/launcher_suite.hpp"
#include "launch/testing/memory_slurm.hpp"
#include "launch/testing/plain_seals.hpp"

namespace trainyard::launch {
namespace {

class SlurmWorld {
 public:
  SlurmWorld() {
    settings_.own_thread = false;
    settings_.jobs.mark = "3fa91c";
    settings_.jobs.program_directory = "/opt/trainyard";
    settings_.jobs.pool = *networks::parse_subnet("10.201.0.0/16");
    set_plain_seals(settings_);
    SlurmNode node;
    node.name = node.address = "n1";
    node.states = {"IDLE"};
    node.cpus = 8;
    node.memory_mib = 1024;
    slurm_.nodes = {node};
    // A gang is one job: its agents start together, or none does.
    slurm_.before_submit = [this](const SlurmJobRequest& request) -> Result<void> {
      const size_t agents = read_job_comment(request.comment)->hosts;
      if (end_after_ && agents > *end_after_) throw ServerEnded();
      if (fail_after_ && agents > *fail_after_) return exhausted("out of nodes");
      return {};
    };
  }

  std::unique_ptr<Launcher> server() {
    auto made = make_slurm(settings_, {slurm_.client(), slurm_.client(), slurm_.client()}, clock_);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  void end_agent(const Launcher&, domain::AttemptId attempt, domain::HostIndex host) {
    slurm_.end_host(attempt, host, 137);
  }
  void fail_starts_after(std::optional<size_t> agents) { fail_after_ = agents; }
  void end_server_after(std::optional<size_t> agents) { end_after_ = agents; }
  void settle(Launcher&) {}
  std::string left() {
    return slurm_.running() == 0 ? "" : std::to_string(slurm_.running()) + " jobs";
  }

 private:
  TestClock clock_;
  SlurmSettings settings_;
  MemorySlurm slurm_;
  std::optional<size_t> fail_after_, end_after_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Slurm, LauncherSuite, SlurmWorld);

}  // namespace
}  // namespace trainyard::launch
