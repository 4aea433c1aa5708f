#include "cluster_setup/setup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/testing/test_clock.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "cluster_setup/testing/facts.hpp"

namespace trainyard::cluster_setup {
namespace {

// Answers inspections, and notes all other scripts.
class FakeShells : public Shells {
 public:
  Result<std::string> run(const std::string& destination, const std::string& script,
                          Duration) override {
    if (const auto problem = unreachable.find(destination); problem != unreachable.end())
      return unavailable(problem->second);
    if (script == inspection_script())
      return inspection_of(names.at(destination), more[destination]);
    if (script == read_key_script()) return to_base64(std::string(1024, 'k'));
    for (const auto& [place, part] : failing)
      if (place == destination && script.find(part) != std::string::npos)
        return conflict("E: no space left");
    const MutexLock lock(mutex_);
    scripts_.emplace_back(destination, script);
    return std::string();
  }

  size_t count(const std::string& destination, const std::string& part) {
    const MutexLock lock(mutex_);
    return size_t(std::count_if(scripts_.begin(), scripts_.end(), [&](const auto& each) {
      return each.first == destination && each.second.find(part) != std::string::npos;
    }));
  }

  std::map<std::string, std::string> names;                  // destination -> name of the host
  std::map<std::string, std::string> more;                   // further lines of its inspection
  std::map<std::string, std::string> unreachable;            // destination -> ssh's message
  std::vector<std::pair<std::string, std::string>> failing;  // destination, part of a script

 private:
  Mutex mutex_;
  std::vector<std::pair<std::string, std::string>> scripts_ GUARDED_BY(mutex_);
};

class SetupTest : public testing::Test {
 protected:
  SetupTest() { shells_.names = {{"", "ws1"}, {"ws2", "ws2"}, {"ws3", "ws3"}}; }

  std::map<std::string, std::string> run(const std::vector<std::string>& joining,
                                         const Wish& wish = {}) {
    MachineSetup setup(shells_, clock_, "",
                       [](const std::string&) { return std::string("program"); });
    auto cluster = setup.find();
    EXPECT_TRUE(cluster) << cluster.error().message;
    EXPECT_TRUE(setup.inspect(*cluster, joining));
    const std::atomic<bool> cancelled = false;
    const SetupObserver observer{
        [](const std::string&, const Step&) {},
        [](const std::string&, const Step&, const std::string&, const std::string&) {}};
    const auto outcomes = setup.carry_out(*cluster, wish, observer, cancelled);
    EXPECT_TRUE(outcomes) << outcomes.error().message;
    std::map<std::string, std::string> errors;
    for (const MachineOutcome& outcome : *outcomes) errors[outcome.name] = outcome.error;
    return errors;
  }

  FakeShells shells_;
  TestClock clock_{from_milliseconds(1'800'000'000'000)};
};

TEST_F(SetupTest, DoesTheStepsOfAllMachines) {
  const auto errors = run({"ws2", "ws3"});
  EXPECT_EQ(errors, (std::map<std::string, std::string>{{"ws1", ""}, {"ws2", ""}, {"ws3", ""}}));
  EXPECT_EQ(shells_.count("", "head -c 1024 /dev/urandom"), 1u);
  for (const char* machine : {"ws2", "ws3"})
    EXPECT_EQ(shells_.count(machine, to_base64(std::string(1023, 'k')).substr(0, 1364)), 1u)
        << "has the key";
}

TEST_F(SetupTest, LeavesOutAMachineWhosePackagesFail) {
  shells_.failing = {{"ws2", "apt-get install"}};
  const auto errors = run({"ws2", "ws3"});
  EXPECT_NE(errors.at("ws2").find("install munge"), std::string::npos) << errors.at("ws2");
  EXPECT_NE(errors.at("ws2").find("no space left"), std::string::npos);
  EXPECT_EQ(errors.at("ws3"), "");
  EXPECT_EQ(shells_.count("ws2", "slurm.conf"), 0u);
  EXPECT_EQ(shells_.count("", "node='ws2'"), 0u) << "Slurm does not know it";
  EXPECT_EQ(shells_.count("", "node='ws3'"), 1u);
}

TEST_F(SetupTest, EndsWhenTheControllerFails) {
  shells_.failing = {{"", "service='slurmctld'"}};
  const auto errors = run({"ws2"});
  EXPECT_NE(errors.at("ws1").find("start slurmctld"), std::string::npos);
  EXPECT_EQ(shells_.count("ws2", "service='slurmd'"), 0u);
}

TEST_F(SetupTest, ContinuesWithoutANodeThatFails) {
  shells_.failing = {{"ws2", "service='munge'"}};
  const auto errors = run({"ws2", "ws3"});
  EXPECT_NE(errors.at("ws2").find("start munge"), std::string::npos);
  EXPECT_EQ(shells_.count("ws2", "service='slurmd'"), 0u);
  EXPECT_EQ(errors.at("ws3"), "");
}

TEST_F(SetupTest, NamesAMachineThatDoesNotAnswer) {
  shells_.unreachable = {{"ws2", "ssh: connect to host ws2 port 22: No route to host"}};
  const auto errors = run({"ws2", "ws3"});
  EXPECT_EQ(errors.at("ws2"), "ssh: connect to host ws2 port 22: No route to host");
  EXPECT_EQ(errors.at("ws3"), "");
}

TEST_F(SetupTest, RefusesAHostileMachine) {
  shells_.more["ws2"] = "gpu_file 0\nhostname evil;reboot\n";
  const auto errors = run({"ws2"});
  EXPECT_NE(errors.at("ws2").find("unexpected line"), std::string::npos) << errors.at("ws2");
  EXPECT_EQ(shells_.count("ws2", ""), 0u) << "nothing ran there";
}

TEST_F(SetupTest, NeedsItsController) {
  shells_.unreachable = {{"head", "ssh: Permission denied (publickey)"}};
  MachineSetup setup(shells_, clock_, "head", {});
  EXPECT_EQ(setup.find().error().message,
            "inspecting the controller head: ssh: Permission denied (publickey)");
}

TEST_F(SetupTest, KeepsANodeThatCannotBeDrained) {
  ClusterRecord record;
  record.name = "trainyard", record.system = "debian 12";
  record.machines = {{"", "ws1", "10.0.0.2", 16, 61'056, {}, true},
                     {"ws2", "ws2", "10.0.0.2", 16, 61'056, {}, true}};
  shells_.more[""] = "record " + to_base64(to_text(record)) + "\n";
  shells_.failing = {{"", "state=drain"}};
  Wish wish;
  wish.dissolve = true;
  const auto errors = run({}, wish);
  EXPECT_NE(errors.at("ws2").find("drain the node"), std::string::npos);
  EXPECT_EQ(shells_.count("ws2", "before"), 0u) << "nothing is undone";
  EXPECT_EQ(shells_.count("", "before"), 0u);
}

TEST(LastLines, AreWhatAProgramSaidLast) {
  EXPECT_EQ(last_lines("a\nb\n\n c \nd\n"), "b; c; d");
  EXPECT_EQ(last_lines(""), "");
  EXPECT_EQ(last_lines("\xff"), "\xef\xbf\xbd");
}

}  // namespace
}  // namespace trainyard::cluster_setup
