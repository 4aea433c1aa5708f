// BatchCluster is a TestCluster with a queue and a compute environment of 4 vCPU, for tests of
// Batch jobs.
#pragma once

#include "batch/catalog.hpp"
#include "batch/limits.hpp"
#include "batch/status.hpp"
#include "control/testing/test_cluster.hpp"
#include "domain/stage.hpp"
#include "reconcile/state.hpp"

namespace trainyard::control::test {

inline constexpr const char* kRegion = "us-east-1";

class BatchCluster : public TestCluster {
 public:
  BatchCluster() {
    add_environment("box", 4);
    add_queue("q", {"box"}, 1);
  }

  Result<batch::Resource> change(batch::ResourceChange how, batch::Resource resource) {
    Result<batch::Resource> result = internal("not answered");
    control->change_resource({how, std::move(resource)},
                             [&](auto answer) { result = std::move(answer); });
    run();
    return result;
  }
  void add_environment(const std::string& name, double cpus_max, bool spot = false) {
    batch::ComputeEnvironment environment;
    environment.key = {kRegion, name};
    environment.cpus_max = cpus_max;
    environment.spot = spot;
    ASSERT_TRUE(change(batch::ResourceChange::create, environment));
  }
  batch::JobQueue queue_of(const std::string& name, std::vector<std::string> environments,
                           int64_t priority) {
    batch::JobQueue queue;
    queue.key = {kRegion, name};
    queue.environments = std::move(environments);
    queue.priority = priority;
    return queue;
  }
  void add_queue(const std::string& name, std::vector<std::string> environments, int64_t priority) {
    ASSERT_TRUE(
        change(batch::ResourceChange::create, queue_of(name, std::move(environments), priority)));
  }

  static CreateJob batch_job(const std::string& id, double cpus = 1, const std::string& queue = "q",
                             std::vector<std::string> depends_on = {}) {
    CreateJob job = job_of(id);
    job.spec.groups = {{"default", "vCPU", 1, domain::Share{cpus, 64 << 20, 0}}};
    job.spec.max_runtime_seconds = batch::kRuntimeSecondsMax;
    job.spec.queue->name = queue;
    job.spec.depends_on = std::move(depends_on);
    return job;
  }
  static CreateJob job_of(const std::string& id) {
    CreateJob job = TestCluster::job(id);
    job.spec.queue.emplace();
    job.spec.contract = domain::Contract::plain;
    job.spec.display_name = "mnist";
    job.spec.definition = "arn:aws:batch:us-east-1:123456789012:job-definition/train:3";
    return job;
  }

  Result<domain::Job> cancel(const std::string& id, domain::Cancellation how,
                             const std::string& reason) {
    Result<domain::Job> result = internal("not answered");
    control->cancel_job({kRegion, id}, how, reason,
                        [&](auto answer) { result = std::move(answer); });
    run();
    return result;
  }
  void exit(const std::string& id, int code) {
    walk(id, 0, domain::HostState::running);
    wire::StateFact fact;
    fact.state = domain::HostState::draining;
    fact.exit_code = code;
    if (code != 0) fact.fault = domain::Fault::algorithm;
    ASSERT_TRUE(report(id, 0, fact));
    ASSERT_TRUE(report(id, 0, domain::HostState::uploading));
    ASSERT_TRUE(report(id, 0, domain::HostState::finished));
    const auto job = find(id);
    for (const auto& attempt : job->attempts)
      ASSERT_TRUE(launcher.remove({job->number, attempt.number}));
    clock.advance(2s);
    run();
  }
  std::string status(const std::string& id) {
    return std::string(batch::status_name(domain::stage_of(*find(id))));
  }
};

}  // namespace trainyard::control::test
