// TestCluster is a control plane with dependencies in memory; its loops run when a test calls
// run().
//
// Threads: one.
#pragma once

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "control/control.hpp"
#include "control/testing/test_world.hpp"
#include "reconcile/state.hpp"
#include "wire/messages.hpp"

namespace trainyard::control::test {

using domain::HostState;

// `run()` repeats both steps until nothing changes.
class TestCluster {
 public:
  TestClock clock;
  MemoryLogs logs;
  KeptLauncher launcher;
  SeededRandom random{1};
  Settings settings;
  std::unique_ptr<ledger::Ledger> ledger = *ledger::open_sqlite(":memory:");
  std::unique_ptr<ControlPlane> control;

  TestCluster() {
    settings.account = "123456789012";
    settings.images["machine"] = {};
    settings.scale_gangs = false;
    restart();
  }

  // Simulates a crash: all state in memory is lost.
  void restart() {
    control.reset();
    control = *make_control(settings, *ledger, launcher, logs, clock, random);
  }

  void run() {
    for (int iteration = 0; iteration < 6; ++iteration) {
      control->commit_step();
      control->reconcile_step();
    }
    control->commit_step();
  }

  static CreateJob job(const std::string& name, uint32_t hosts = 1,
                       const std::string& type = "ml.m5.large") {
    CreateJob job;
    job.key = {"us-east-1", name};
    job.spec.image = "machine";
    job.spec.groups = {{"homogeneousCluster", type, hosts}};
    return job;
  }

  Result<domain::Job> create(CreateJob job) {
    Result<domain::Job> result = internal("not answered");
    control->create_job(std::move(job),
                        [&](Result<domain::Job> answer) { result = std::move(answer); });
    run();
    return result;
  }
  Result<domain::Job> stop(const std::string& name) {
    Result<domain::Job> result = internal("not answered");
    control->stop_job({"us-east-1", name},
                      [&](Result<domain::Job> answer) { result = std::move(answer); });
    run();
    return result;
  }
  Result<domain::Job> kill(const std::string& name) {
    Result<domain::Job> result = internal("not answered");
    control->kill_job({"us-east-1", name}, "by hand",
                      [&](Result<domain::Job> answer) { result = std::move(answer); });
    run();
    return result;
  }
  std::shared_ptr<const domain::Job> find(const std::string& name) {
    return *control->find({"us-east-1", name}, reconcile::see_all_jobs);
  }

  // Reports the host's next fact.
  Result<FactApplied> report(const std::string& name, domain::HostIndex host,
                             wire::StateFact fact) {
    const auto job = find(name);
    if (fact.number == 0) fact.number = job->attempt()->hosts[host].facts_applied + 1;
    if (fact.at == Instant{}) fact.at = clock.now();
    Result<FactApplied> result = internal("not answered");
    control->report({job->number, job->attempt()->number}, host, fact,
                    [&](Result<FactApplied> answer) { result = std::move(answer); });
    run();
    return result;
  }
  Result<FactApplied> report(const std::string& name, domain::HostIndex host, HostState state) {
    wire::StateFact fact;
    fact.state = state;
    return report(name, host, fact);
  }
  void walk(const std::string& name, domain::HostIndex host, HostState until) {
    for (int state = int(HostState::preparing); state <= int(until); ++state)
      ASSERT_TRUE(report(name, host, HostState(state)));
  }
  std::vector<std::string> phases(const std::string& name) {
    std::vector<std::string> phases;
    const auto job = find(name);
    for (const auto& transition : job->transitions)
      phases.push_back(std::string(to_string(transition.phase)) + ": " + transition.message);
    return phases;
  }
};

}  // namespace trainyard::control::test
