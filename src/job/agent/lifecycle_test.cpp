#include "agent/lifecycle.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.hpp"

namespace trainyard::agent {
namespace {

using domain::Fault;
using domain::HostState;
using domain::StopCause;

constexpr const char* kStates[] = {"placed",    "preparing", "downloading", "running", "draining",
                                   "uploading", "finished",  "failed",      "lost"};

// One host's run, driven by events; records its actions as words.
class HostScenario {
 public:
  explicit HostScenario(domain::HostIndex host = 0, uint32_t hosts = 1) {
    run.host = host;
    run.hosts = hosts;
  }

  // Returns the actions for the event, as "report running, terminate".
  std::string on(const Event& event) {
    auto decision = next(run, event);
    if (!decision) return "conflict";
    run = decision->run;
    std::string message;
    for (const auto& action : decision->actions) {
      if (!message.empty()) message += ", ";
      if (const auto* report = std::get_if<Report>(&action)) {
        facts.push_back(report->fact);
        message += std::string("report ") + kStates[static_cast<int>(report->fact.state)];
      } else if (const auto* work = std::get_if<Work>(&action)) {
        message += "work " + std::string(to_string(work->stage));
      } else if (std::holds_alternative<Interrupt>(action)) {
        message += "interrupt";
      } else if (std::holds_alternative<Terminate>(action)) {
        message += "terminate";
      } else if (std::holds_alternative<Kill>(action)) {
        message += "kill";
      } else if (std::holds_alternative<Undo>(action)) {
        message += "undo";
      } else {
        message += "leave";
      }
    }
    return message;
  }

  void until_running() {
    on(Begin{});
    for (int i = 0; i < 4; ++i) on(StepsDone{});
  }

  HostRun run;
  std::vector<wire::StateFact> facts;
};

TEST(Lifecycle, ASingleHostPassesThroughAllStages) {
  HostScenario story;
  EXPECT_EQ(story.on(Begin{}), "report preparing, work prepare");
  EXPECT_EQ(story.on(StepsDone{}), "report downloading, work pull");
  EXPECT_EQ(story.on(StepsDone{}), "work mount");
  EXPECT_EQ(story.on(StepsDone{}), "work run");
  EXPECT_EQ(story.on(StepsDone{.notice = "its share is not enforced"}),
            "report running, report running");
  EXPECT_EQ(story.on(ProcessExited{}), "report draining, work drain");
  EXPECT_EQ(story.on(StepsDone{}), "report uploading, work upload");
  EXPECT_EQ(story.on(StepsDone{.model_uri = "s3://b/model.tar.gz"}), "report finished, undo");
  EXPECT_EQ(story.on(Dismissed{}), "leave");
  EXPECT_EQ(story.facts.back().model_uri, "s3://b/model.tar.gz");
  EXPECT_EQ(story.facts.back().exit_code, 0);
}

TEST(Lifecycle, AQuietHostReportsPreparingRunningAndItsEnd) {
  HostScenario story;
  story.run.quiet = true;
  EXPECT_EQ(story.on(Begin{}), "report preparing, work prepare");
  EXPECT_EQ(story.on(StepsDone{}), "work pull");
  EXPECT_EQ(story.on(StepsDone{}), "work mount");
  EXPECT_EQ(story.on(StepsDone{}), "work run");
  EXPECT_EQ(story.on(StepsDone{}), "report running");
  EXPECT_EQ(story.on(ProcessExited{}), "work drain");
  EXPECT_EQ(story.on(StepsDone{}), "work upload");
  EXPECT_EQ(story.on(StepsDone{}), "report finished, undo");
  EXPECT_EQ(story.facts.back().exit_code, 0);
}

TEST(Lifecycle, AQuietHostReportsAFailureAtOnce) {
  HostScenario story;
  story.run.quiet = true;
  story.until_running();
  EXPECT_EQ(story.on(ProcessExited{7, Fault::algorithm, "it broke"}),
            "report draining, work drain");
  EXPECT_EQ(story.facts.back().fault, Fault::algorithm);
  EXPECT_EQ(story.on(StepsDone{}), "work upload");
  EXPECT_EQ(story.on(StepsDone{}), "report failed, undo");
}

TEST(Lifecycle, AQuietHostReportsTheCauseOfAStop) {
  HostScenario story;
  story.run.quiet = true;
  story.until_running();
  EXPECT_EQ(story.on(StopOrdered{StopCause::user, 30s}), "terminate");
  EXPECT_EQ(story.on(ProcessExited{143, {}, {}}), "work drain");
  EXPECT_EQ(story.on(StepsDone{}), "work upload");
  EXPECT_EQ(story.on(StepsDone{}), "report finished, undo");
  EXPECT_EQ(story.facts.back().exit_code, 143);
  EXPECT_EQ(story.facts.back().stopped, StopCause::user);
}

TEST(Lifecycle, AHostThatFollowsStartsItsProcessWhenTheMainHostRuns) {
  for (const bool notified_early : {false, true}) {
    HostScenario story(1, 1);
    story.run.follows_main = true;
    if (notified_early) {
      EXPECT_EQ(story.on(MainRuns{}), "");
    }
    EXPECT_EQ(story.on(Begin{}), "report preparing, work prepare");
    EXPECT_EQ(story.on(StepsDone{}), "report downloading, work pull");
    EXPECT_EQ(story.on(StepsDone{}), "work mount");
    EXPECT_EQ(story.on(StepsDone{}), notified_early ? "work run" : "")
        << "all is ready, but its process";
    EXPECT_EQ(story.on(MainRuns{}), notified_early ? "" : "work run");
    EXPECT_EQ(story.on(MainRuns{}), "") << "repeated on each link";
    EXPECT_EQ(story.on(StepsDone{}), "report running");
    EXPECT_EQ(story.on(StopOrdered{StopCause::main_ended, 30s}), "terminate");
    EXPECT_EQ(story.on(ProcessExited{143, {}, {}}), "report draining, work drain");
    EXPECT_EQ(story.on(StepsDone{}), "report uploading, work upload");
    EXPECT_EQ(story.on(StepsDone{}), "report finished, undo");
    EXPECT_EQ(story.facts.back().stopped, StopCause::main_ended);
    EXPECT_FALSE(story.facts.back().fault);
  }
}

TEST(Lifecycle, AHostThatWaitsForTheMainHostStopsAtOnce) {
  HostScenario story(1, 1);
  story.run.follows_main = true;
  story.on(Begin{});
  for (int i = 0; i < 3; ++i) story.on(StepsDone{});
  EXPECT_EQ(story.on(StepsDone{}), "conflict") << "no work is under way";
  EXPECT_EQ(story.on(StopOrdered{StopCause::main_ended, 30s}), "report finished, undo");
  EXPECT_EQ(story.facts.back().stopped, StopCause::main_ended);
  EXPECT_EQ(story.on(MainRuns{}), "");
}

TEST(Lifecycle, TheOrderDecidesTheRoleOfTheHost) {
  wire::Order order;
  order.host = 1;
  order.spec.groups = {{"all", "ml.m5.large", 3}};
  EXPECT_EQ(initial_run(order).hosts, 3u);
  EXPECT_FALSE(initial_run(order).follows_main);
  order.spec.queue.emplace();
  order.spec.contract = domain::Contract::plain;
  EXPECT_EQ(initial_run(order).hosts, 1u);
  EXPECT_FALSE(initial_run(order).quiet) << "other hosts of its gang depend on what it reports";
  order.spec.main_node = 0;
  EXPECT_TRUE(initial_run(order).follows_main);
  order.host = 0;
  EXPECT_FALSE(initial_run(order).follows_main);
}

TEST(Lifecycle, TheFirstHostWaitsForItsPeers) {
  HostScenario story(0, 2);
  story.until_running();
  story.on(ProcessExited{});
  EXPECT_EQ(story.on(StepsDone{}), "report uploading");
  EXPECT_EQ(story.on(PeersDrained{{"staged/algo-2"}}), "work upload");
  EXPECT_EQ(story.on(PeersDrained{{"staged/algo-2"}}), "");
  EXPECT_EQ(story.run.peers->at(0), "staged/algo-2");
  EXPECT_EQ(story.on(StepsDone{}), "report finished, undo");
}

TEST(Lifecycle, PeersMayDrainBeforeTheFirstHost) {
  HostScenario story(0, 2);
  story.until_running();
  EXPECT_EQ(story.on(PeersDrained{{""}}), "");
  story.on(ProcessExited{});
  EXPECT_EQ(story.on(StepsDone{}), "report uploading, work upload");
}

TEST(Lifecycle, LaterHostsNameTheirStagedFiles) {
  HostScenario story(1, 2);
  story.until_running();
  story.on(ProcessExited{});
  EXPECT_EQ(story.on(StepsDone{.staged_model = "k"}), "report uploading, work upload");
  EXPECT_EQ(story.facts.back().staged_model, "k");
}

TEST(Lifecycle, AStopTerminatesThenKillsThenUploads) {
  HostScenario story;
  story.until_running();
  EXPECT_EQ(story.on(StopOrdered{StopCause::user, 120s}), "terminate");
  EXPECT_EQ(story.on(StopOrdered{StopCause::user, 120s}), "");
  EXPECT_EQ(story.on(GraceOver{}), "kill");
  EXPECT_EQ(story.on(ProcessExited{137, {}, {}}), "report draining, work drain");
  EXPECT_TRUE(story.run.keeps_model());
  story.on(StepsDone{});
  EXPECT_EQ(story.on(StepsDone{}), "report finished, undo");
  EXPECT_EQ(story.facts.back().exit_code, 137);
}

TEST(Lifecycle, AStopWithoutGraceEndsTheGraceOfAnEarlierOne) {
  HostScenario story;
  story.until_running();
  EXPECT_EQ(story.on(StopOrdered{StopCause::user, 120s}), "terminate");
  EXPECT_EQ(story.on(StopOrdered{StopCause::user, 0s}), "kill");
  EXPECT_EQ(story.on(ProcessExited{137, {}, {}}), "report draining, work drain");
  EXPECT_TRUE(story.run.keeps_model());
  EXPECT_EQ(story.on(StopOrdered{StopCause::user, 0s}), "") << "its process has ended";
}

TEST(Lifecycle, AStopWithoutGraceDuringTheStartLeavesNoGrace) {
  HostScenario story;
  story.on(Begin{});
  for (int i = 0; i < 3; ++i) story.on(StepsDone{});
  EXPECT_EQ(story.on(StopOrdered{StopCause::user, 120s}), "interrupt");
  EXPECT_EQ(story.on(StopOrdered{StopCause::user, 0s}), "");
  EXPECT_EQ(story.on(StepsDone{}), "report running, terminate");
  EXPECT_EQ(story.run.grace, Duration(0s));
}

TEST(Lifecycle, AStopBeforeTheProcessRanEndsWithoutUpload) {
  HostScenario story;
  story.on(Begin{});
  story.on(StepsDone{});
  EXPECT_EQ(story.on(StopOrdered{StopCause::user, 120s}), "interrupt");
  EXPECT_EQ(story.on(StepsFailed{{Fault::internal, "interrupted"}}), "report finished, undo");
  EXPECT_FALSE(story.facts.back().fault);
}

TEST(Lifecycle, AStopDuringTheStartTerminatesTheStartedProcess) {
  HostScenario story;
  story.on(Begin{});
  for (int i = 0; i < 3; ++i) story.on(StepsDone{});
  ASSERT_EQ(story.run.stage, Stage::run);
  EXPECT_EQ(story.on(StopOrdered{StopCause::user, 120s}), "interrupt");
  EXPECT_EQ(story.on(StepsDone{}), "report running, terminate");
}

TEST(Lifecycle, AnInterruptionKeepsNoModelAndReportsIt) {
  HostScenario story;
  story.until_running();
  EXPECT_EQ(story.on(StopOrdered{StopCause::interrupted, 5s}), "terminate");
  EXPECT_EQ(story.on(ProcessExited{0, {}, {}}), "report draining, work drain")
      << "it saved what it had";
  EXPECT_FALSE(story.run.keeps_model());
  EXPECT_EQ(story.facts.back().stopped, StopCause::interrupted);
  EXPECT_EQ(story.on(StepsDone{}), "report uploading, work upload");
  EXPECT_EQ(story.on(StepsDone{}), "report finished, undo");
  EXPECT_EQ(story.facts.back().stopped, StopCause::interrupted);
}

TEST(Lifecycle, AnInterruptionEndsTheDownload) {
  HostScenario story;
  story.on(Begin{});
  story.on(StepsDone{});
  EXPECT_EQ(story.on(StopOrdered{StopCause::interrupted, 5s}), "interrupt");
  EXPECT_EQ(story.on(StepsFailed{{Fault::internal, "interrupted"}}), "report finished, undo");
  EXPECT_EQ(story.facts.back().stopped, StopCause::interrupted);
}

TEST(Lifecycle, AnInterruptionEndsTheUploadUnlessItIsDone) {
  for (const bool done : {false, true}) {
    HostScenario story;
    story.until_running();
    story.on(ProcessExited{});
    story.on(StepsDone{});
    EXPECT_EQ(story.on(StopOrdered{StopCause::interrupted, 5s}), "interrupt");
    if (done)
      EXPECT_EQ(story.on(StepsDone{.model_uri = "s3://b/m"}), "report finished, undo");
    else
      EXPECT_EQ(story.on(StepsFailed{{Fault::internal, "cancelled"}}), "report finished, undo");
    EXPECT_EQ(story.facts.back().stopped, done ? StopCause::none : StopCause::interrupted);
  }
}

TEST(Lifecycle, AnInterruptionEndsTheFirstHostsWaitForPeers) {
  HostScenario story(0, 2);
  story.until_running();
  story.on(ProcessExited{});
  story.on(StepsDone{});
  EXPECT_EQ(story.on(StopOrdered{StopCause::interrupted, 5s}), "work upload");
  EXPECT_EQ(story.on(StepsDone{}), "report finished, undo");
  EXPECT_EQ(story.facts.back().stopped, StopCause::interrupted);
}

TEST(Lifecycle, AReclaimedMachineStopsTheProcessAndReportsNoEnd) {
  HostScenario story;
  story.until_running();
  EXPECT_EQ(story.on(MachineReclaimed{30s}), "terminate");
  EXPECT_EQ(story.on(MachineReclaimed{30s}), "") << "the second of Slurm's signals";
  EXPECT_EQ(story.on(ProcessExited{143, Fault::algorithm, "exit code 143"}),
            "report draining, work drain");
  EXPECT_FALSE(story.facts.back().fault);
  EXPECT_EQ(story.on(StepsDone{}), "report uploading, work upload");
  EXPECT_FALSE(story.run.keeps_model());
  EXPECT_EQ(story.on(StepsDone{}), "undo, leave");
}

TEST(Lifecycle, AReclaimedMachineThatTheServerStopsReportsItsEnd) {
  for (const StopCause cause : {StopCause::interrupted, StopCause::user}) {
    HostScenario story;
    story.until_running();
    EXPECT_EQ(story.on(MachineReclaimed{30s}), "terminate");
    EXPECT_EQ(story.on(StopOrdered{cause, 20s}), "") << "the process was told";
    EXPECT_EQ(story.on(ProcessExited{143, {}, {}}), "report draining, work drain");
    story.on(StepsDone{});
    EXPECT_EQ(story.run.keeps_model(), cause == StopCause::user);
    EXPECT_EQ(story.on(StepsDone{}), "report finished, undo");
    EXPECT_EQ(story.facts.back().stopped, cause);
  }
}

TEST(Lifecycle, AReclaimedMachineEndsAHostThatHasNotStartedItsProcess) {
  HostScenario story;
  story.on(Begin{});
  EXPECT_EQ(story.on(MachineReclaimed{30s}), "interrupt");
  EXPECT_EQ(story.on(StepsFailed{{Fault::internal, "interrupted"}}), "undo, leave");
  HostScenario waits(1, 1);
  waits.run.follows_main = true;
  waits.on(Begin{});
  for (int i = 0; i < 3; ++i) waits.on(StepsDone{});
  EXPECT_EQ(waits.on(MachineReclaimed{30s}), "undo, leave");
}

TEST(Lifecycle, AReclaimedMachineLetsAFinishedProcessUpload) {
  HostScenario story;
  story.until_running();
  story.on(ProcessExited{});
  EXPECT_EQ(story.on(MachineReclaimed{30s}), "");
  story.on(StepsDone{});
  EXPECT_EQ(story.on(MachineReclaimed{30s}), "");
  EXPECT_EQ(story.on(StepsDone{.model_uri = "s3://b/m"}), "report finished, undo");
  EXPECT_EQ(story.facts.back().stopped, StopCause::none);
}

TEST(Lifecycle, ReportsTheFaultOfAnExitAtOnce) {
  HostScenario story;
  story.until_running();
  story.on(ProcessExited{137, Fault::internal, "the process was lost"});
  EXPECT_EQ(story.facts.back().fault, Fault::internal);
  EXPECT_EQ(story.facts.back().message, "the process was lost");
}

TEST(Lifecycle, AFailedProcessKeepsItsOutputAndNoModel) {
  HostScenario story;
  story.until_running();
  story.on(ProcessExited{3, Fault::algorithm, "AlgorithmError: no, exit code: 3"});
  EXPECT_FALSE(story.run.keeps_model());
  story.on(StepsDone{});
  EXPECT_EQ(story.on(StepsDone{.output_uri = "s3://b/output.tar.gz"}), "report failed, undo");
  EXPECT_EQ(story.facts.back().message, "AlgorithmError: no, exit code: 3");
  EXPECT_EQ(story.facts.back().output_uri, "s3://b/output.tar.gz");
  EXPECT_EQ(story.facts.back().fault, Fault::algorithm);
}

TEST(Lifecycle, AFailedGangEndsTheFirstHostsWaitForPeers) {
  HostScenario story(0, 2);
  story.until_running();
  story.on(ProcessExited{});
  EXPECT_EQ(story.on(StepsDone{}), "report uploading");
  EXPECT_EQ(story.on(StopOrdered{StopCause::host_failed, 120s}), "work upload");
  EXPECT_FALSE(story.run.keeps_model());
}

TEST(Lifecycle, AFailedDownloadEndsTheRun) {
  HostScenario story;
  story.on(Begin{});
  story.on(StepsDone{});
  EXPECT_EQ(story.on(StepsFailed{{Fault::client, "no objects"}}), "report failed, undo");
  EXPECT_EQ(story.on(Dismissed{}), "leave");
}

TEST(Lifecycle, ReportsTheFirstFailure) {
  HostScenario story;
  story.until_running();
  story.on(ProcessExited{1, Fault::algorithm, "first"});
  story.on(StepsFailed{{Fault::internal, "second"}});
  story.on(StepsFailed{{Fault::internal, "third"}});
  EXPECT_EQ(story.facts.back().message, "first");
}

// The host has ended in the ledger, by the report of another agent.
TEST(Lifecycle, AGoodbyeBeforeItsReportFencesTheAgent) {
  for (const Stage stage : {Stage::prepare, Stage::run, Stage::upload}) {
    HostRun run;
    run.stage = stage;
    run.begun = run.start_ordered = true;
    run.process_started = stage >= Stage::run;
    const auto decision = next(run, Dismissed{});
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->run.stage, Stage::gone);
    EXPECT_EQ(decision->actions.size(), next(run, Fenced{})->actions.size());
  }
}

// Every event in every stage (and both halves of run and upload): decided, or a conflict, but a
// server's message is never a conflict; stages never go back; reported states are legal moves of
// domain; no action follows leaving.
TEST(Lifecycle, DecidesOrRejectsEachPairOfStageAndEvent) {
  const std::vector<Event> events = {
      Begin{},       StepsDone{}, StepsFailed{},     ProcessExited{1, {}, {}},
      StopOrdered{}, GraceOver{}, PeersDrained{},    MainRuns{},
      Fenced{},      Dismissed{}, MachineReclaimed{}};
  ASSERT_EQ(events.size(), static_cast<size_t>(kEvents));
  const std::set<size_t> from_server = {4, 5, 6, 7, 8, 9, 10};
  for (int stage = 0; stage < kStages; ++stage) {
    for (int variant = 0; variant < 8; ++variant) {
      HostRun run;
      run.hosts = 2;
      run.follows_main = (variant & 4) != 0;
      run.stage = static_cast<Stage>(stage);
      run.begun = run.stage != Stage::prepare || (variant & 1) != 0;
      run.process_started =
          run.stage > Stage::run || (run.stage == Stage::run && (variant & 1) != 0);
      run.start_ordered = run.process_started || !run.follows_main;
      run.upload_ordered =
          run.stage > Stage::upload || (run.stage == Stage::upload && (variant & 1) != 0);
      if ((variant & 2) != 0) run.stop = StopCause::user;
      for (size_t i = 0; i < events.size(); ++i) {
        const auto decision = next(run, events[i]);
        if (!decision) {
          EXPECT_FALSE(from_server.contains(i)) << to_string(run.stage) << " event " << i;
          continue;
        }
        EXPECT_GE(decision->run.stage, run.stage);
        EXPECT_TRUE(run.stage != Stage::gone || decision->actions.empty());
      }
    }
  }
}

// Random walks of all events end, and report only legal moves.
TEST(Lifecycle, RandomEventsEndInLegalStates) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SeededRandom random(seed);
    HostRun run;
    run.hosts = 1 + static_cast<uint32_t>(random.below(3));
    run.host = static_cast<domain::HostIndex>(random.below(run.hosts));
    run.follows_main = random.chance(3);
    HostState state = HostState::placed;
    bool left = false, working = false;
    std::vector<Event> coming = {Begin{}};
    for (int step = 0; step < 200 && !left; ++step) {
      if (random.chance(8))
        coming.insert(coming.begin(),
                      StopOrdered{random.chance(2) ? StopCause::user : StopCause::host_failed, 1s});
      if (random.chance(20)) coming.insert(coming.begin(), MachineReclaimed{1s});
      if (random.chance(8)) coming.insert(coming.begin(), PeersDrained{{"", ""}});
      if (random.chance(8)) coming.insert(coming.begin(), MainRuns{});
      if (run.stage == Stage::report && random.chance(3)) coming.push_back(Dismissed{});
      if (coming.empty()) {
        if (working) {
          working = false;
          coming.push_back(random.chance(6) ? Event(StepsFailed{}) : Event(StepsDone{}));
        } else if (run.stage == Stage::run && run.process_started) {
          coming.push_back(ProcessExited{random.chance(3) ? 1 : 0, {}, {}});
        } else if (run.stage == Stage::run) {
          coming.push_back(MainRuns{});
        } else if (run.stage == Stage::upload) {
          coming.push_back(PeersDrained{{"", ""}});
        } else {
          ASSERT_EQ(run.stage, Stage::report) << "nothing can happen any more; seed " << seed;
          coming.push_back(Dismissed{});
        }
      }
      const Event event = coming.front();
      coming.erase(coming.begin());
      auto decision = next(run, event);
      ASSERT_TRUE(decision) << decision.error().message << "; seed " << seed;
      run = decision->run;
      for (const auto& action : decision->actions) {
        if (const auto* report = std::get_if<Report>(&action)) {
          EXPECT_GT(report->fact.state, state) << "seed " << seed;
          state = report->fact.state;
        }
        if (std::holds_alternative<Work>(action)) {
          EXPECT_FALSE(working) << "two works at once; seed " << seed;
          working = true;
        }
        left |= std::holds_alternative<Leave>(action);
      }
    }
    EXPECT_TRUE(left) << "seed " << seed;
  }
}

}  // namespace
}  // namespace trainyard::agent
