// Runs LauncherSuite, the tests of every launcher, on a real Slurm cluster: TRAINYARD_SLURM_CONF
// has its slurm.conf (tests/slurm/test_launcher.py starts one); without it the tests are skipped. A
// script that waits replaces trainyard-slurm-host, since only the handling of jobs by Slurm is
// tested.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/text.hpp"
#include "launch/slurm/command_line.hpp"
#include "launch/slurm/slurm_launcher.hpp"
#include "launch/testing/launcher_suite.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::launch {
namespace {

constexpr int kLooksMax = 600;
constexpr Duration kPollInterval = 100ms;

// Forwards to Slurm; submissions fail, or end the server, as the suite says.
class GatedSlurm final : public Slurm {
 public:
  GatedSlurm(std::unique_ptr<Slurm> slurm, const std::optional<size_t>& fail_after,
             const std::optional<size_t>& end_after)
      : slurm_(std::move(slurm)), fail_after_(fail_after), end_after_(end_after) {}
  Result<std::vector<SlurmJob>> jobs() override { return slurm_->jobs(); }
  Result<std::vector<SlurmNode>> nodes() override { return slurm_->nodes(); }
  Result<uint64_t> submit(const SlurmJobRequest& request) override {
    const size_t agents = read_job_comment(request.comment)->hosts;
    if (end_after_ && agents > *end_after_) throw ServerEnded();
    if (fail_after_ && agents > *fail_after_) return exhausted("out of nodes");
    return slurm_->submit(request);
  }
  Result<void> cancel(uint64_t job, const std::string& name) override {
    return slurm_->cancel(job, name);
  }

 private:
  const std::unique_ptr<Slurm> slurm_;
  const std::optional<size_t>&fail_after_, &end_after_;
};

class RealSlurmWorld {
 public:
  RealSlurmWorld() {
    settings_.own_thread = false;  // the suite expects to see changes of the world at once
    settings_.jobs.mark =
        to_hex(std::string_view(directory_.path()).substr(directory_.path().size() - 6));
    settings_.jobs.program_directory = directory_.path();
    settings_.jobs.pool = *networks::parse_subnet("10.201.0.0/16");
    settings_.jobs.placement.partition = "train";
    settings_.seal = [](const std::string& token, const std::string&) { return token; };
    settings_.unseal = [](const std::string& sealed, const std::string&) -> Result<std::string> {
      return sealed;
    };
    const std::string script =
        "#!/bin/sh\norder=$(cat)\n"
        "host=$(printf %s \"$order\" | sed 's/.*\"host\":\\([0-9]*\\),\"host_table\".*/\\1/')\n"
        "attempt=$(printf %s \"$order\" | sed 's/.*\"attempt\":\"\\(j[0-9a]*\\)\".*/\\1/')\n"
        "echo $$ > " +
        directory_.path() + "/$attempt-$host.pid\nexec sleep 1000\n";
    EXPECT_TRUE(os::write_file(directory_.path() + "/trainyard-slurm-host", script, 0755));
  }
  ~RealSlurmWorld() {
    if (missing().empty()) (void)wait_until([&] { return left().empty(); });
  }

  static std::string missing() {
    return std::getenv("TRAINYARD_SLURM_CONF") ? "" : "TRAINYARD_SLURM_CONF is not set";
  }
  std::unique_ptr<Launcher> server() {
    auto made = make_slurm(
        settings_,
        {slurm(), std::make_unique<GatedSlurm>(slurm(), fail_after_, end_after_), slurm()}, clock_);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  void end_agent(const Launcher&, domain::AttemptId attempt, domain::HostIndex host) {
    const std::string file =
        directory_.path() + "/" + attempt.text() + "-" + std::to_string(host) + ".pid";
    EXPECT_TRUE(wait_until([&] {
      const auto text = os::read_file(file);
      return text && text->ends_with('\n');
    })) << file
        << " does not appear";
    EXPECT_TRUE(os::run_or_fail({{"kill", "-9", std::string(trim(*os::read_file(file)))}}));
    EXPECT_TRUE(wait_until([&] {
      for (const auto& comment : live_comments())
        if (comment.attempt == attempt && comment.ended.contains(host)) return true;
      return false;
    })) << "the job's comment does not name the host";
  }
  void fail_starts_after(std::optional<size_t> agents) { fail_after_ = agents; }
  void end_server_after(std::optional<size_t> agents) { end_after_ = agents; }
  void settle(Launcher&) {
    EXPECT_TRUE(wait_until([&] { return live_comments("removed-").empty(); }));
  }
  std::string left() {
    const size_t jobs = live_comments().size();
    return jobs == 0 ? "" : std::to_string(jobs) + " jobs";
  }

 private:
  static std::unique_ptr<Slurm> slurm() {
    static os::MachineRandom random;
    return slurm_by_programs({std::getenv("TRAINYARD_SLURM_CONF")}, os::run, random);
  }
  // Returns the comments of this world's unfinished jobs whose names begin with `prefix`.
  std::vector<JobComment> live_comments(const std::string& prefix = "") {
    std::vector<JobComment> comments;
    const auto jobs = slurm()->jobs();
    EXPECT_TRUE(jobs) << jobs.error().message;
    if (!jobs) return comments;
    for (const auto& job : *jobs) {
      const auto comment = read_job_comment(job.comment);
      const bool live = job.state == "PENDING" || job.state == "RUNNING" ||
                        job.state == "COMPLETING" || job.state == "CONFIGURING";
      if (comment && comment->mark == settings_.jobs.mark && live && job.name.starts_with(prefix))
        comments.push_back(*comment);
    }
    return comments;
  }
  static bool wait_until(const std::function<bool()>& condition) {
    for (int look = 0; look < kLooksMax; ++look) {
      if (condition()) return true;
      std::this_thread::sleep_for(kPollInterval);
    }
    return false;
  }

  os::MachineClock clock_;
  os::TemporaryDirectory directory_;
  SlurmSettings settings_;
  std::optional<size_t> fail_after_, end_after_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(RealSlurm, LauncherSuite, RealSlurmWorld);

}  // namespace
}  // namespace trainyard::launch
