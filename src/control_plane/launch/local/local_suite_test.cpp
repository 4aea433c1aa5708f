// Runs LauncherSuite, the tests of every launcher, on the local launcher and a simulated machine.
#include <algorithm>
#include <optional>

#include "base/testing/test_clock.hpp"
#include "launch/local/stepped_launcher.hpp"
#include "launch/testing/launcher_suite.hpp"
#include "launch/testing/memory_machine.hpp"
#include "os/machine_files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::launch {
namespace {

class LocalWorld {
 public:
  LocalWorld() {
    settings_.data_directory = directory_.path() + "/data";
    settings_.run_directory = directory_.path() + "/run";
    settings_.agent_program = "trainyard-agent";
    settings_.clear_gpus = false;
    settings_.machines = [] { return std::vector<Machine>{{"box", 8, 1 << 30}}; };
    machine_.before = [this](const std::string& step) -> Result<void> {
      if (killed_) return unavailable("the server has ended");
      if (step != "start an agent") return ok();
      if (end_after_ && started_ >= *end_after_) {
        killed_ = true;
        throw ServerEnded();
      }
      if (fail_after_ && started_ >= *fail_after_) return unavailable("out of processes");
      ++started_;
      return ok();
    };
  }

  std::unique_ptr<Launcher> server() {
    killed_ = false;
    auto made = make_local_over(settings_, clock_, {files_, machine_, machine_, false});
    EXPECT_TRUE(made) << made.error().message;
    current_ = made->get();
    return std::move(*made);
  }
  void end_agent(const Launcher&, domain::AttemptId attempt, domain::HostIndex host) {
    const std::string directory =
        settings_.data_directory + "/attempts/" + attempt.text() + "/" + std::to_string(host);
    for (const auto& [identity, value] : machine_.find_marked(kHostVariable))
      if (value == directory) {
        EXPECT_TRUE(machine_.kill_and_wait(identity, 1s));
      }
  }
  void fail_starts_after(std::optional<size_t> agents) { fail_after_ = agents, started_ = 0; }
  void end_server_after(std::optional<size_t> agents) { end_after_ = agents, started_ = 0; }
  void settle(Launcher&) {
    for (int i = 0; i < 10; ++i) {
      clock_.advance(2s);
      current_->work();
    }
  }
  std::string left() {
    std::string out;
    for (const auto& [name, comment] : machine_.links()) out += " link " + name;
    for (const auto& [name, comment] : machine_.tables()) out += " table " + name;
    if (machine_.running() > 0) out += " " + std::to_string(machine_.running()) + " processes";
    const auto attempts = files_.list_directory(settings_.data_directory + "/attempts");
    if (attempts)
      for (const auto& name : *attempts) out += " directory " + name;
    return out;
  }

 private:
  os::TemporaryDirectory directory_;
  os::MachineFiles files_;
  MemoryMachine machine_{files_};
  TestClock clock_;
  LocalSettings settings_;
  SteppedLauncher* current_ = nullptr;  // made by the last server()
  std::optional<size_t> fail_after_, end_after_;
  size_t started_ = 0;  // agents that were started since one of the two was set
  bool killed_ = false;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Local, LauncherSuite, LocalWorld);

}  // namespace
}  // namespace trainyard::launch
