#include "launch/local/local.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "containers/container.hpp"
#include "launch/local/stepped_launcher.hpp"
#include "networks/network.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/mounts.hpp"
#include "os/process.hpp"
#include "os/process_identity.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::launch {
namespace {

// A script in place of trainyard-agent, which records its arguments, starts a child, and waits.
constexpr const char* kAgentScript = R"(#!/bin/sh
echo "$@" >"$4/called"
: >"$4/alive"
sleep 1000 &
exec sleep 1000
)";

// Finds only processes below one directory, so that concurrent tests do not sweep each other's.
class ProcessesBelow final : public os::MachineProcesses {
 public:
  explicit ProcessesBelow(std::string directory) : directory_(std::move(directory)) {}
  std::vector<os::MarkedProcess> find_marked(const std::string& variable) override {
    auto found = MachineProcesses::find_marked(variable);
    std::erase_if(found,
                  [&](const auto& each) { return !each.value.starts_with(directory_ + "/"); });
    return found;
  }

 private:
  const std::string directory_;
};

// Each test runs in its own network namespace, in place of the machine's.
class LocalLauncher : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !os::on_path("nft")) GTEST_SKIP() << "needs root and nft";
    settings_.data_directory = directory_.path() + "/data";
    settings_.agent_program = directory_.path() + "/trainyard-agent";
    settings_.run_directory = directory_.path() + "/run";
    ASSERT_TRUE(os::write_file(settings_.agent_program, kAgentScript, 0755));
  }
  // Removes the objects of a failed test.
  void TearDown() override {
    kill_all(kAttemptVariable, directory_.path());
    EXPECT_TRUE(os::unmount_below(directory_.path()));
  }

  template <class Body>
  void in_a_machine(Body body) {
    std::thread([&] {
      ASSERT_EQ(::unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
      ASSERT_TRUE(os::run_or_fail({{"mount", "--make-rprivate", "/"}}));
      ASSERT_TRUE(os::run_or_fail({{"mount", "-t", "sysfs", "sysfs", "/sys"}}));
      body();
    }).join();
  }

  std::unique_ptr<Launcher> server() {
    auto made = make_local(settings_, clock_);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  // Repeats while other sweepers hold the lock.
  Result<std::vector<std::string>> sweep_own(const std::string& data_directory) {
    LocalParts parts = machine_parts();
    ProcessesBelow own(directory_.path());
    const LocalParts ours{parts.files, own, parts.system};
    for (int i = 0;; i++) {
      auto swept = sweep_over(data_directory, settings_.run_directory, ours);
      if (swept || swept.error().kind != Kind::conflict || i == 20) return swept;
    }
  }
  static Gang gang(uint64_t job, size_t hosts) {
    Gang gang;
    gang.attempt = {job, 1};
    gang.token = "token" + std::to_string(job);
    for (size_t i = 0; i < hosts; i++)
      gang.members.push_back({{"box", {}}, "order " + std::to_string(i)});
    return gang;
  }
  // Kills all marked processes, including those that they start meanwhile.
  static void kill_all(const char* variable, const std::string& start_of_value) {
    for (int pass = 0, found = 1; found > 0 && pass < 20; pass++) {
      found = 0;
      for (const auto& [identity, value] : os::find_marked(variable)) {
        if (!value.starts_with(start_of_value)) continue;
        EXPECT_TRUE(os::kill_and_wait(identity, 10s));
        found++;
      }
    }
  }
  std::string attempt_path(uint64_t job) const {
    return settings_.data_directory + "/attempts/j" + std::to_string(job) + "a1";
  }
  static size_t alive(Launcher& launcher) {
    size_t count = 0;
    for (const auto& agent : launcher.list()) count += agent.alive;
    return count;
  }
  // Polls until the agents' scripts have written a file.
  static std::string await_file(const std::string& path) {
    for (int i = 0; i < 2000; i++) {
      const auto text = os::read_file(path);
      if (text && !text->empty()) return *text;
      std::this_thread::sleep_for(5ms);
    }
    return "";
  }
  // Polls, since networks are removed in the background.
  static bool soon(const std::function<bool()>& condition) {
    for (int i = 0; i < 2000; i++) {
      if (condition()) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }
  void expect_nothing_left() {
    EXPECT_TRUE(soon([&] {
      const auto attempts = os::list_directory(settings_.data_directory + "/attempts");
      const auto tables = networks::firewall_tables_named("trainyard_");
      return networks::links_named("ty").empty() && tables && tables->empty() &&
             (!attempts || attempts->empty());
    }));
    EXPECT_TRUE(networks::links_named("ty").empty());
    EXPECT_TRUE(networks::links_named("tv").empty());
    const auto tables = networks::firewall_tables_named("trainyard_");
    ASSERT_TRUE(tables);
    EXPECT_TRUE(tables->empty());
    for (const auto& marked : os::find_marked(kAttemptVariable))
      EXPECT_FALSE(marked.value.starts_with(directory_.path())) << marked.identity.process;
    const auto mounts = os::read_file("/proc/self/mountinfo");
    ASSERT_TRUE(mounts);
    EXPECT_EQ(mounts->find(directory_.path()), std::string::npos);
  }

  os::TemporaryDirectory directory_;
  os::MachineClock clock_;
  LocalSettings settings_;
};

TEST_F(LocalLauncher, StartsAGangOnceAndRemovesItWhole) {
  in_a_machine([&] {
    auto launcher = server();
    ASSERT_TRUE(launcher);
    const auto begin = std::chrono::steady_clock::now();
    const auto started = launcher->ensure(gang(1, 2));
    const auto middle = std::chrono::steady_clock::now();
    ASSERT_TRUE(started) << started.error().message;
    ASSERT_TRUE(launcher->ensure(gang(1, 2))) << "again";
    EXPECT_EQ(launcher->list().size(), 2u);
    EXPECT_EQ(alive(*launcher), 2u);
    EXPECT_EQ(launcher->list()[1].host, 1u);
    EXPECT_EQ(launcher->list()[1].token, "token1");
    const std::string called = await_file(attempt_path(1) + "/1/called");
    EXPECT_NE(called.find("--order " + attempt_path(1) + "/1/order.json --directory " +
                          attempt_path(1) + "/1 --network-namespace "),
              std::string::npos)
        << called;
    EXPECT_NE(called.find(" --address 10.201.0.3 --host-table "), std::string::npos) << called;
    struct stat status;
    ASSERT_EQ(::stat((attempt_path(1) + "/1/order.json").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(*os::read_file(attempt_path(1) + "/0/hosts"),
              "127.0.0.1 localhost\n10.201.0.2 algo-1\n10.201.0.3 algo-2\n");
    const auto end = std::chrono::steady_clock::now();
    ASSERT_TRUE(launcher->remove({1, 1}));
    std::printf(
        "ensure %.1f ms, remove %.1f ms\n",
        std::chrono::duration<double, std::milli>(middle - begin).count(),
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - end).count());
    ASSERT_TRUE(launcher->remove({1, 1})) << "again";
    EXPECT_TRUE(launcher->list().empty());
    expect_nothing_left();
    EXPECT_FALSE(os::exists(attempt_path(1)));
  });
}

TEST_F(LocalLauncher, GivesGangsDifferentAddresses) {
  in_a_machine([&] {
    auto launcher = server();
    ASSERT_TRUE(launcher);
    for (uint64_t job = 1; job <= 3; job++) ASSERT_TRUE(launcher->ensure(gang(job, 1)));
    LocalSettings elsewhere = settings_;
    elsewhere.data_directory = directory_.path() + "/other";
    auto other = make_local(elsewhere, clock_);
    ASSERT_TRUE(other);
    ASSERT_TRUE((*other)->ensure(gang(1, 1))) << "another server on this machine";
    EXPECT_EQ(networks::links_named("ty").size(), 4u);
    ASSERT_TRUE(launcher->remove({1, 1}));
    EXPECT_EQ(alive(**other), 1u) << "the same attempt of another server is still running";
    ASSERT_TRUE(launcher->remove({2, 1}));
    ASSERT_TRUE(launcher->remove({3, 1}));
    ASSERT_TRUE((*other)->remove({1, 1}));
    expect_nothing_left();
  });
}

TEST_F(LocalLauncher, FindsAttemptsOfAnEarlierServer) {
  in_a_machine([&] {
    ASSERT_TRUE(server()->ensure(gang(1, 2)));
    auto launcher = server();
    ASSERT_TRUE(launcher);
    EXPECT_EQ(launcher->list().size(), 2u);
    EXPECT_EQ(alive(*launcher), 2u);
    ASSERT_TRUE(launcher->ensure(gang(1, 2)));
    ASSERT_TRUE(launcher->remove({1, 1}));
    expect_nothing_left();
  });
}

// A job's processes have their own user namespace, and may have any environment.
TEST_F(LocalLauncher, IgnoresForgedMarks) {
  in_a_machine([&] {
    auto launcher = server();
    ASSERT_TRUE(launcher);
    ASSERT_TRUE(launcher->ensure(gang(1, 1)));
    const std::string ready = directory_.path() + "/ready";
    const auto forged =
        os::start_detached({"unshare", "--user", "--map-root-user", "sh", "-c",
                            "echo ready > \"$0\"; exec sleep 1000", ready},
                           {{kAttemptVariable, attempt_path(1)}}, directory_.path() + "/log");
    ASSERT_TRUE(forged);
    const auto identity = os::identify(*forged);
    ASSERT_TRUE(identity);
    ASSERT_NE(await_file(ready), "") << "this machine permits no user namespaces";
    const auto removed = launcher->remove({1, 1});
    EXPECT_TRUE(removed) << removed.error().message;
    EXPECT_TRUE(os::is_alive(*identity));
    EXPECT_TRUE(os::kill_and_wait(*identity, 10s));
    expect_nothing_left();
  });
}

TEST_F(LocalLauncher, ReusesAnAgentForTheNextAttempt) {
  in_a_machine([&] {
    auto launcher = server();
    ASSERT_TRUE(launcher);
    ASSERT_TRUE(launcher->ensure(gang(1, 1)));
    const auto handed = launcher->reuse_host({1, 1}, gang(2, 1));
    ASSERT_TRUE(handed);
    EXPECT_FALSE(*handed) << "it does not wait for an order";
    const std::string host = attempt_path(1) + "/0";
    auto next = gang(2, 1);
    next.members[0].order = "the next order";
    for (const char* of_an_earlier_release : {"", "1", "x"}) {
      ASSERT_TRUE(os::write_file(host + "/idle", of_an_earlier_release));
      const auto kept = launcher->reuse_host({1, 1}, next);
      ASSERT_TRUE(kept && !*kept);
      EXPECT_FALSE(os::exists(host + "/next.json"));
    }
    ASSERT_TRUE(os::write_file(host + "/idle", "2"));
    const auto again = launcher->reuse_host({1, 1}, next);
    ASSERT_TRUE(again && *again);
    EXPECT_EQ(*os::read_file(host + "/next.json"), "the next order");
    EXPECT_TRUE(os::exists(host + "/taken"));
    EXPECT_FALSE(os::exists(host + "/idle"));
    for (const bool restarted : {false, true}) {
      if (restarted) launcher = server();
      ASSERT_EQ(launcher->list().size(), 1u);
      EXPECT_EQ(launcher->list()[0].attempt, (domain::AttemptId{2, 1}));
      EXPECT_EQ(launcher->list()[0].token, "token2");
      EXPECT_TRUE(launcher->list()[0].alive);
    }
    ASSERT_TRUE(launcher->ensure(next)) << "it exists";
    EXPECT_EQ(launcher->list().size(), 1u);
    ASSERT_TRUE(launcher->remove({1, 1})) << "nothing of it is left";
    EXPECT_EQ(launcher->list().size(), 1u);
    ASSERT_TRUE(launcher->remove({2, 1}));
    expect_nothing_left();
  });
}

// The server ends after each of its steps, while the agent continues.
TEST_F(LocalLauncher, CompletesOrUndoesAnInterruptedHostReuse) {
  struct Left {
    bool idle, order, record, taken;
    bool handed;
  };
  const Left all[] = {
      {true, true, false, false, false},  // the order is written
      {true, true, true, false, false},   // and the record
      {false, true, true, false, false},  // the agent has exited before it was taken
      {false, true, true, true, true},    // it is taken
      {false, false, true, true, true},   // it reads the order
      {false, false, true, false, true},  // it has read it
      {true, false, true, false, true},   // it has finished, and waits for another order
  };
  for (const Left& left : all)
    in_a_machine([&] {
      ASSERT_TRUE(server()->ensure(gang(1, 1)));
      const std::string directory = attempt_path(1), host = directory + "/0";
      auto record = *parse_json(*os::read_file(directory + "/launch.json"));
      record["attempt"] = "j2a1";
      record["token"] = "token2";
      if (left.idle) {
        ASSERT_TRUE(os::write_file(host + "/idle", ""));
      }
      if (left.order) {
        ASSERT_TRUE(os::write_file(host + "/next.json", "the next order"));
      }
      if (left.record) {
        ASSERT_TRUE(os::write_file(host + "/launch.next.json", dump(record)));
      }
      if (left.taken) {
        ASSERT_TRUE(os::write_file(host + "/taken", ""));
      }
      auto launcher = server();
      ASSERT_TRUE(launcher);
      EXPECT_EQ(os::exists(host + "/taken"), left.taken) << "only the agent removes it";
      EXPECT_EQ(os::exists(host + "/idle"), left.idle)
          << "a restarted server takes over no other process";
      EXPECT_EQ(os::exists(host + "/next.json"), left.order && left.handed);
      EXPECT_FALSE(os::exists(host + "/launch.next.json"));
      const domain::AttemptId expected{left.handed ? 2u : 1u, 1};
      for (const bool again : {false, true}) {
        if (again) launcher = server();
        const auto agents = launcher->list();
        ASSERT_EQ(agents.size(), 1u);
        EXPECT_EQ(agents[0].attempt, expected);
        EXPECT_TRUE(agents[0].alive);
      }
      ASSERT_TRUE(launcher->remove(expected));
      expect_nothing_left();
    });
}

TEST_F(LocalLauncher, DoesNotRestartAnAgentThatHasExited) {
  in_a_machine([&] {
    auto launcher = server();
    ASSERT_TRUE(launcher);
    ASSERT_TRUE(launcher->ensure(gang(1, 2)));
    kill_all(kHostVariable, attempt_path(1) + "/0");
    EXPECT_EQ(alive(*launcher), 1u);
    ASSERT_TRUE(launcher->ensure(gang(1, 2)));
    EXPECT_EQ(alive(*launcher), 1u);
    EXPECT_EQ(alive(*server()), 1u) << "also for the next server";
    ASSERT_TRUE(launcher->remove({1, 1}));
    expect_nothing_left();
  });
}

// Simulates a launcher that was killed after each of its steps, by the files that it had written.
TEST_F(LocalLauncher, CompletesAStartThatWasInterrupted) {
  in_a_machine([&] {
    ASSERT_TRUE(server()->ensure(gang(1, 2)));
    ASSERT_FALSE(await_file(attempt_path(1) + "/0/called").empty());
    // As if only the first agent had been started, and not yet recorded.
    kill_all(kHostVariable, attempt_path(1) + "/1");
    ASSERT_TRUE(os::remove_all(attempt_path(1) + "/1"));
    ASSERT_TRUE(os::remove_all(attempt_path(1) + "/0/agent.json"));
    auto launcher = server();
    ASSERT_TRUE(launcher);
    ASSERT_EQ(launcher->list().size(), 1u);
    EXPECT_TRUE(launcher->list()[0].alive);
    ASSERT_TRUE(launcher->ensure(gang(1, 2)));
    EXPECT_EQ(alive(*launcher), 2u);

    // As if it had been killed before the first agent was started: everything is made again.
    kill_all(kHostVariable, attempt_path(1));
    for (const char* host : {"/0", "/1"}) ASSERT_TRUE(os::remove_all(attempt_path(1) + host));
    launcher = server();
    ASSERT_TRUE(launcher);
    EXPECT_TRUE(launcher->list().empty());
    ASSERT_TRUE(launcher->ensure(gang(1, 2)));
    EXPECT_EQ(alive(*launcher), 2u);
    ASSERT_TRUE(launcher->remove({1, 1}));
    expect_nothing_left();
  });
}

// The agent was killed while the server was down, and before the server had recorded it.
TEST_F(LocalLauncher, DoesNotTakeTheChildOfADeadAgentForTheAgent) {
  in_a_machine([&] {
    ASSERT_TRUE(server()->ensure(gang(1, 1)));
    ASSERT_FALSE(await_file(attempt_path(1) + "/0/called").empty());
    const auto marked = [&] {
      auto found = os::find_marked(kHostVariable);
      std::erase_if(found, [&](const auto& each) { return each.value != attempt_path(1) + "/0"; });
      return found;
    };
    ASSERT_TRUE(soon([&] { return marked().size() == 2; }));
    for (const auto& [identity, value] : marked())
      if (os::leads_session(identity)) {
        ASSERT_TRUE(os::kill_and_wait(identity, 10s));
      }
    ASSERT_EQ(marked().size(), 1u) << "only the child is left";
    ASSERT_TRUE(os::remove_all(attempt_path(1) + "/0/agent.json"));
    auto launcher = server();
    ASSERT_TRUE(launcher);
    ASSERT_EQ(launcher->list().size(), 1u);
    EXPECT_FALSE(launcher->list()[0].alive);
    ASSERT_TRUE(launcher->remove({1, 1}));
    expect_nothing_left();
  });
}

TEST_F(LocalLauncher, RemovesAnOrphanNetworkAtTheNextStart) {
  in_a_machine([&] {
    ASSERT_TRUE(server()->ensure(gang(1, 1)));
    kill_all(kAttemptVariable, attempt_path(1));
    ASSERT_TRUE(os::remove_all(settings_.data_directory + "/attempts"));
    ASSERT_TRUE(server());
    expect_nothing_left();
  });
}

TEST_F(LocalLauncher, KeepsAnAttemptOfALaterRelease) {
  in_a_machine([&] {
    ASSERT_TRUE(server()->ensure(gang(1, 1)));
    const std::string path = attempt_path(1) + "/launch.json";
    const std::string text = *os::read_file(path);
    auto record = *parse_json(text);
    record["version"] = 2;
    ASSERT_TRUE(os::write_file(path, dump(record)));
    const auto refused = make_local(settings_, clock_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Kind::conflict);
    EXPECT_NE(refused.error().message.find("by a later release"), std::string::npos)
        << refused.error().message;
    ASSERT_TRUE(os::write_file(path, text));
    auto launcher = server();
    ASSERT_TRUE(launcher);
    EXPECT_EQ(alive(*launcher), 1u);
    ASSERT_TRUE(launcher->remove({1, 1}));
    expect_nothing_left();
  });
}

TEST_F(LocalLauncher, LeavesNothingOnError) {
  in_a_machine([&] {
    settings_.agent_program = directory_.path() + "/no-such-agent";
    auto launcher = server();
    ASSERT_TRUE(launcher);
    const auto started = launcher->ensure(gang(1, 2));
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().kind, Kind::not_found) << started.error().message;
    EXPECT_TRUE(launcher->list().empty());
    EXPECT_FALSE(os::exists(attempt_path(1)));
    expect_nothing_left();
  });
}

TEST_F(LocalLauncher, SweepRemovesOnlyUnusedResources) {
  in_a_machine([&] {
    auto launcher = server();
    ASSERT_TRUE(launcher);
    ASSERT_TRUE(launcher->ensure(gang(1, 1)));
    ASSERT_TRUE(launcher->ensure(gang(2, 1)));
    // The agent of the second gang is killed; the agent of the first one runs.
    kill_all(kAttemptVariable, attempt_path(2));
    launcher.reset();
    auto swept = sweep_own(settings_.data_directory);
    ASSERT_TRUE(swept) << swept.error().message;
    EXPECT_TRUE(soon([] { return networks::links_named("ty").size() == 1; }));
    EXPECT_EQ(alive(*server()), 1u);
    EXPECT_EQ(server()->list().size(), 2u)
        << "only the server removes the directory of the dead one";

    // The data directory is removed, so everything else is orphaned.
    ASSERT_TRUE(os::remove_all(settings_.data_directory));
    swept = sweep_own("");
    ASSERT_TRUE(swept) << swept.error().message;
    EXPECT_FALSE(swept->empty());
    expect_nothing_left();
  });
}

TEST_F(LocalLauncher, SweepsConcurrently) {
  in_a_machine([&] {
    auto launcher = server();
    ASSERT_TRUE(launcher);
    for (uint64_t job = 1; job <= 4; job++) ASSERT_TRUE(launcher->ensure(gang(job, 2)));
    launcher.reset();
    ASSERT_TRUE(os::remove_all(settings_.data_directory));
    // Each finds something that another removes at this moment, which is not an error.
    constexpr int kSweepers = 6;
    std::vector<Result<std::vector<std::string>>> swept(kSweepers, std::vector<std::string>());
    std::vector<std::thread> sweepers;
    for (auto& mine : swept) sweepers.emplace_back([&] { mine = sweep_own(""); });
    for (auto& sweeper : sweepers) sweeper.join();
    for (const auto& mine : swept) EXPECT_TRUE(mine) << mine.error().message;
    expect_nothing_left();
  });
}

TEST_F(LocalLauncher, RejectsAGangThatDiffersFromTheStartedOne) {
  in_a_machine([&] {
    auto launcher = server();
    ASSERT_TRUE(launcher);
    ASSERT_TRUE(launcher->ensure(gang(1, 1)));
    auto other = gang(1, 1);
    other.token = "another";
    EXPECT_EQ(launcher->ensure(other).error().kind, Kind::conflict);
    EXPECT_EQ(launcher->ensure(gang(1, 2)).error().kind, Kind::conflict);
    ASSERT_TRUE(launcher->remove({1, 1}));
  });
}

TEST_F(LocalLauncher, AssignsWholeGpusAndRemembersTheirHosts) {
  in_a_machine([&] {
    settings_.machines = [] {
      return std::vector<Machine>{{"box", 8, 1 << 30, 2, {"/dev/full", "/dev/zero"}}};
    };
    const auto with_gpu = [](uint64_t job) {
      auto one = gang(job, 1);
      one.members[0].share.gpus = 1;
      return one;
    };
    const auto given = [&](uint64_t job) {
      const std::string called = await_file(attempt_path(job) + "/0/called");
      return called.substr(called.find("--devices"));
    };
    auto launcher = server();
    ASSERT_TRUE(launcher);
    ASSERT_TRUE(launcher->ensure(with_gpu(1)));
    EXPECT_EQ(given(1), "--devices /dev/full\n");
    launcher = server();
    ASSERT_TRUE(launcher);
    ASSERT_TRUE(launcher->ensure(with_gpu(2))) << "also after a restart of the server";
    EXPECT_EQ(given(2), "--devices /dev/zero\n");
    const auto refused = launcher->ensure(with_gpu(3));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Kind::exhausted) << refused.error().message;
    ASSERT_TRUE(launcher->remove({1, 1}));
    ASSERT_TRUE(launcher->ensure(with_gpu(3)));
    EXPECT_EQ(given(3), "--devices /dev/full\n");
    ASSERT_TRUE(launcher->remove({2, 1}));
    ASSERT_TRUE(launcher->remove({3, 1}));
    expect_nothing_left();
  });
}

TEST_F(LocalLauncher, RestartsAnAttemptThatItHasJustRemoved) {
  in_a_machine([&] {
    auto launcher = server();
    ASSERT_TRUE(launcher);
    for (int i = 0; i < 3; i++) {
      ASSERT_TRUE(launcher->ensure(gang(1, 1)));
      ASSERT_TRUE(launcher->remove({1, 1}));
    }
    expect_nothing_left();
  });
}

TEST_F(LocalLauncher, OffersThisMachineUnlessConfigured) {
  auto launcher = server();
  ASSERT_TRUE(launcher);
  ASSERT_EQ(launcher->machines().size(), 1u);
  EXPECT_GE(launcher->machines()[0].cpus, 1);
  EXPECT_GT(launcher->machines()[0].memory_bytes, 0);
  settings_.machines = [] {
    return std::vector<Machine>{{"a", 8, 1 << 30, 0}, {"b", 4, 1 << 30, 1}};
  };
  EXPECT_EQ(server()->machines().size(), 2u);
}

}  // namespace
}  // namespace trainyard::launch
