// Tests the launcher on a simulated machine whose disk and network fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "base/testing/test_clock.hpp"
#include "launch/local/stepped_launcher.hpp"
#include "launch/testing/memory_machine.hpp"
#include "os/machine_clock.hpp"
#include "os/machine_files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::launch {
namespace {

// Files of the machine, some of which cannot be read or removed.
class FailingFiles final : public Files {
 public:
  std::string unreadable, irremovable;  // suffixes of paths; "": none

  Result<std::unique_ptr<AppendFile>> open_append(const std::string& path, unsigned mode) override {
    return files_.open_append(path, mode);
  }
  Result<void> write(const std::string& path, std::string_view bytes, unsigned mode) override {
    return files_.write(path, bytes, mode);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return files_.rename(from, to);
  }
  Result<void> remove(const std::string& path) override { return files_.remove(path); }
  Result<void> remove_all(const std::string& path) override {
    if (!irremovable.empty() && path.ends_with(irremovable))
      return from_errno("removing " + path, EIO);
    return files_.remove_all(path);
  }
  Result<void> make_directories(const std::string& path, unsigned mode) override {
    return files_.make_directories(path, mode);
  }
  Result<void> sync_directory(const std::string& path) override {
    return files_.sync_directory(path);
  }
  Result<std::string> read(const std::string& path, size_t bytes_max) override {
    if (!unreadable.empty() && path.ends_with(unreadable))
      return from_errno("reading " + path, EIO);
    return files_.read(path, bytes_max);
  }
  Result<std::string> read_at(const std::string& path, uint64_t offset, size_t bytes) override {
    return files_.read_at(path, offset, bytes);
  }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return files_.list_directory(path);
  }
  bool exists(const std::string& path) override { return files_.exists(path); }

 private:
  os::MachineFiles files_;
};

// The clock of these tests advances only in work().
class LocalFaults : public testing::Test {
 protected:
  LocalFaults() {
    settings_.data_directory = directory_.path() + "/data";
    settings_.run_directory = directory_.path() + "/run";
    settings_.agent_program = "trainyard-agent";
    settings_.clear_gpus = false;
    settings_.machines = [] {
      return std::vector<Machine>{{"box", 8, 1 << 30, 2, {"/dev/full", "/dev/zero"}}};
    };
    machine_.before = [this](const std::string& step) -> Result<void> {
      if (failing_.contains(step)) return unavailable(step + ": not now");
      return ok();
    };
  }

  std::unique_ptr<SteppedLauncher> server() {
    auto made = make_local_over(settings_, clock_, {files_, machine_, machine_, false});
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  // Simulates a kill of the server, which does not wait for background work.
  void kill(std::unique_ptr<SteppedLauncher>& launcher) {
    failing_.insert("remove networks");
    launcher.reset();
    failing_.erase("remove networks");
  }
  void work(SteppedLauncher& launcher) {
    for (int i = 0; i < 10; i++) {
      clock_.advance(2s);
      launcher.work();
    }
  }
  static Gang gang(uint64_t job, size_t hosts) {
    Gang gang;
    gang.attempt = {job, 1};
    gang.token = "token" + std::to_string(job);
    for (size_t i = 0; i < hosts; i++) gang.members.push_back({{"box", {}}, "order"});
    return gang;
  }
  std::string attempt_path(uint64_t job) const {
    return settings_.data_directory + "/attempts/j" + std::to_string(job) + "a1";
  }
  static size_t alive(Launcher& launcher) {
    const auto agents = launcher.list();
    return size_t(std::ranges::count_if(agents, &Agent::alive));
  }

  os::TemporaryDirectory directory_;
  FailingFiles files_;
  MemoryMachine machine_{files_};
  TestClock clock_;
  LocalSettings settings_;
  std::set<std::string> failing_;  // steps of the machine
};

TEST_F(LocalFaults, KeepsTheNextStartOfAnAttemptDuringALateRemoval) {
  auto launcher = server();
  failing_ = {"start an agent", "remove networks"};
  ASSERT_FALSE(launcher->ensure(gang(1, 2)));
  failing_ = {"remove networks"};
  const auto early = launcher->ensure(gang(1, 2));
  if (!early) {
    EXPECT_EQ(early.error().kind, Kind::unavailable) << early.error().message;
  }
  failing_.clear();
  work(*launcher);
  ASSERT_TRUE(launcher->ensure(gang(1, 2)));
  work(*launcher);
  EXPECT_TRUE(files_.exists(attempt_path(1) + "/launch.json"));
  EXPECT_TRUE(files_.exists(attempt_path(1) + "/1/order.json"));
  EXPECT_EQ(machine_.links().size(), 3u);
  EXPECT_EQ(alive(*launcher), 2u);
  ASSERT_TRUE(launcher->remove({1, 1}));
  work(*launcher);
  EXPECT_TRUE(machine_.links().empty());
  EXPECT_FALSE(files_.exists(attempt_path(1)));
}

// Nothing shows it to control, which may not start the attempt again.
TEST_F(LocalFaults, RemovesAFailedStartLaterThatCouldNotBeUndone) {
  auto launcher = server();
  failing_ = {"start an agent"};
  files_.irremovable = "/0";
  ASSERT_FALSE(launcher->ensure(gang(1, 2)));
  EXPECT_TRUE(launcher->list().empty());
  work(*launcher);
  EXPECT_EQ(machine_.links().size(), 3u) << "they are still recorded";
  files_.irremovable = "";
  EXPECT_TRUE(launcher->list().empty());
  work(*launcher);
  EXPECT_TRUE(machine_.links().empty());
  EXPECT_FALSE(files_.exists(attempt_path(1)));
}

TEST_F(LocalFaults, KeepsTheRecordOfAnAgentThatCannotBeEnded) {
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang(1, 2)));
  ASSERT_TRUE(launcher->remove({1, 1}));  // its addresses are free in a moment
  size_t starts = 0;
  machine_.before = [&](const std::string& step) -> Result<void> {
    if (step == "kill") return unavailable("not now");
    if (step == "start an agent" && ++starts == 2) return exhausted("too many processes");
    return ok();
  };
  EXPECT_FALSE(launcher->ensure(gang(2, 2)));
  EXPECT_EQ(machine_.running(), 1u) << "it is not started a second time";
  machine_.before = [](const std::string&) { return ok(); };
  ASSERT_TRUE(launcher->remove({2, 1}));
  work(*launcher);
  EXPECT_EQ(machine_.running(), 0u);
  EXPECT_TRUE(machine_.links().empty());
}

TEST_F(LocalFaults, KeepsTheRecordOfAFailedStartUntilItsNetworkIsRemoved) {
  auto launcher = server();
  failing_ = {"start an agent", "remove networks"};
  ASSERT_FALSE(launcher->ensure(gang(1, 2)));
  EXPECT_TRUE(files_.exists(attempt_path(1) + "/launch.json"))
      << "the next server reads from it what to remove";
  kill(launcher);
  failing_.clear();
  launcher = server();
  work(*launcher);
  EXPECT_TRUE(machine_.links().empty());
  EXPECT_FALSE(files_.exists(attempt_path(1)));
}

TEST_F(LocalFaults, KeepsAddressesInUseUntilTheRecordIsRemoved) {
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang(1, 2)));
  files_.irremovable = "j1a1";
  ASSERT_TRUE(launcher->remove({1, 1}));
  work(*launcher);
  EXPECT_TRUE(files_.exists(attempt_path(1) + "/launch.json"));
  settings_.network_pool = "10.201.0.0/28";  // a single gang fits into it
  kill(launcher);
  launcher = server();
  ASSERT_TRUE(launcher);
  EXPECT_FALSE(launcher->ensure(gang(2, 2)));
  files_.irremovable = "";
  work(*launcher);
  EXPECT_FALSE(files_.exists(attempt_path(1)));
  ASSERT_TRUE(launcher->ensure(gang(2, 2)));
  kill(launcher);
  EXPECT_EQ(alive(*server()), 2u);
  EXPECT_EQ(machine_.links().size(), 3u);
}

TEST_F(LocalFaults, KeepsAddressesInUseWithoutARestart) {
  settings_.network_pool = "10.201.0.0/28";
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang(1, 2)));
  files_.irremovable = "j1a1";
  ASSERT_TRUE(launcher->remove({1, 1}));
  work(*launcher);
  const auto second = launcher->ensure(gang(2, 2));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, Kind::exhausted) << second.error().message;
  files_.irremovable = "";
  work(*launcher);
  ASSERT_TRUE(launcher->ensure(gang(2, 2)));
}

// Servers of earlier releases left such records.
TEST_F(LocalFaults, DoesNotRemoveTheNetworkOfAnotherGangForAStaleRecord) {
  settings_.network_pool = "10.201.0.0/28";
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang(1, 2)));
  const std::string record = *files_.read(attempt_path(1) + "/launch.json", 1 << 20);
  ASSERT_TRUE(launcher->remove({1, 1}));
  work(*launcher);
  ASSERT_TRUE(launcher->ensure(gang(2, 2)));
  kill(launcher);
  for (const bool swept : {false, true}) {
    ASSERT_TRUE(files_.make_directories(attempt_path(1), 0700));
    ASSERT_TRUE(files_.write(attempt_path(1) + "/launch.json", record, 0600));
    if (swept) {
      ASSERT_TRUE(sweep_over(settings_.data_directory, settings_.run_directory,
                             {files_, machine_, machine_, false}));
    } else {
      launcher = server();
      EXPECT_EQ(alive(*launcher), 2u);
      EXPECT_FALSE(files_.exists(attempt_path(1)));
      kill(launcher);
    }
    EXPECT_EQ(machine_.links().size(), 3u) << swept;
    EXPECT_EQ(machine_.tables().size(), 1u) << swept;
  }
}

TEST_F(LocalFaults, KeepsTheAgentsOfAnUnreadableRecord) {
  for (const size_t hosts : {1u, 2u}) {
    auto launcher = server();
    ASSERT_TRUE(launcher->ensure(gang(1, hosts)));
    kill(launcher);
    files_.unreadable = "launch.json";
    ASSERT_TRUE(sweep_over(settings_.data_directory, settings_.run_directory,
                           {files_, machine_, machine_, false}));
    launcher = server();
    ASSERT_TRUE(launcher);
    EXPECT_EQ(machine_.running(), hosts);
    EXPECT_EQ(machine_.links().size(), hosts == 1 ? 1u : 3u);
    EXPECT_EQ(machine_.tables().size(), 1u);
    EXPECT_EQ(alive(*launcher), hosts) << "they are listed";
    EXPECT_EQ(launcher->list()[0].token, "") << "the token is in the record";
    EXPECT_EQ(launcher->ensure(gang(1, hosts)).error().kind, Kind::unavailable);
    EXPECT_EQ(launcher->remove({1, 1}).error().kind, Kind::unavailable);
    auto with_gpu = gang(2, 1);
    with_gpu.members[0].share.gpus = 1;
    EXPECT_EQ(launcher->ensure(with_gpu).error().kind, Kind::unavailable)
        << "it is unknown which job has which GPU";
    EXPECT_EQ(machine_.running(), hosts);
    files_.unreadable = "";
    ASSERT_EQ(launcher->list().size(), hosts);
    EXPECT_EQ(launcher->list()[0].token, "token1");
    ASSERT_TRUE(launcher->ensure(gang(1, hosts)));
    ASSERT_TRUE(launcher->remove({1, 1}));
    work(*launcher);
    EXPECT_EQ(machine_.running(), 0u);
    EXPECT_TRUE(machine_.links().empty());
    EXPECT_TRUE(machine_.tables().empty());
    EXPECT_FALSE(files_.exists(attempt_path(1)));
  }
}

TEST_F(LocalFaults, RemovesAnUnreadableRecordOnceItsAgentsHaveEnded) {
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang(1, 1)));
  kill(launcher);
  files_.unreadable = "launch.json";
  launcher = server();
  ASSERT_TRUE(launcher);
  for (const auto& [identity, value] : machine_.find_marked(kAttemptVariable))
    ASSERT_TRUE(machine_.kill_and_wait(identity, 1s));
  EXPECT_TRUE(launcher->list().empty());
  EXPECT_FALSE(files_.exists(attempt_path(1)));
  EXPECT_TRUE(machine_.links().empty());
}

TEST_F(LocalFaults, RetriesTheRemovalOfOrphans) {
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang(1, 2)));
  ASSERT_TRUE(launcher->ensure(gang(2, 2)));
  kill(launcher);
  ASSERT_TRUE(files_.remove(attempt_path(2) + "/launch.json"));
  files_.unreadable = "j1a1/launch.json";
  launcher = server();
  ASSERT_TRUE(launcher);
  files_.unreadable = "";
  failing_ = {"remove links"};
  EXPECT_EQ(alive(*launcher), 2u);
  EXPECT_EQ(machine_.links().size(), 6u) << "the links of the second gang cannot be removed";
  failing_.clear();
  EXPECT_EQ(alive(*launcher), 2u);
  EXPECT_EQ(machine_.links().size(), 3u);
  EXPECT_EQ(machine_.tables().size(), 1u);
}

TEST_F(LocalFaults, SweepsNothingOfAServerWithAnUnreadableOwnerFile) {
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang(1, 2)));
  files_.unreadable = "data-directory";
  ASSERT_TRUE(sweep_over("", settings_.run_directory, {files_, machine_, machine_, false}));
  EXPECT_EQ(machine_.links().size(), 3u);
}

// In a container without a user namespace processes have visible marks, and may start each other
// faster than they are killed.
TEST_F(LocalFaults, RemovesAnAttemptHoweverFastItsContainerForks) {
  bool runs = true;
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang(1, 1)));
  os::DetachedProgram forked;
  forked.environment[kAttemptVariable] = attempt_path(1);
  machine_.killed = [&](const MemoryMachine::Process& process) {
    if (runs && process.program.arguments.empty())
      machine_.add(process.program, [&runs] { return runs; });
  };
  machine_.containers_removed = [&](const std::string&) { runs = false; };
  machine_.add(forked, [&runs] { return runs; });
  const auto removed = launcher->remove({1, 1});
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(files_.exists(attempt_path(1) + "/0"));
}

TEST_F(LocalFaults, KeepsTheAgentOfAnUnreadableAgentFile) {
  auto launcher = server();
  ASSERT_TRUE(launcher->ensure(gang(1, 2)));
  kill(launcher);
  files_.unreadable = "agent.json";
  launcher = server();
  ASSERT_TRUE(launcher);
  EXPECT_EQ(alive(*launcher), 2u);
}

}  // namespace
}  // namespace trainyard::launch
