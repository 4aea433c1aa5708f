// MemorySlurm is a Slurm cluster in memory, for tests: jobs run as soon as they are submitted,
// their hosts end when a test says so, and ended jobs stay listed.
//
// A MemorySlurm outlives the launchers (servers) that use it through a MemorySlurm::Client.
// Threads: confined to the test's thread.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "launch/slurm/answers.hpp"
#include "launch/slurm/components.hpp"
#include "launch/slurm/job_comment.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

class MemorySlurm {
 public:
  struct Job {
    SlurmJob shown;
    SlurmJobRequest request;
    std::string ended;  // as the job's script appends it to the comment
  };

  class Client final : public Slurm {
   public:
    explicit Client(MemorySlurm& slurm) : slurm_(slurm) {}
    Result<std::vector<SlurmJob>> jobs() override { return slurm_.list(); }
    Result<std::vector<SlurmNode>> nodes() override {
      TRY(slurm_.answer());
      return slurm_.nodes;
    }
    Result<std::vector<SlurmJob>> ended(const std::vector<uint64_t>& ids) override {
      if (slurm_.accounting_away) return *slurm_.accounting_away;
      std::vector<SlurmJob> jobs;
      for (const SlurmJob& job : slurm_.accounted)
        if (std::ranges::find(ids, job.id) != ids.end()) jobs.push_back(job);
      return jobs;
    }
    Result<void> check_user(const UnixUser& user) override {
      if (slurm_.refused_user == user.name) return denied("no jobs of " + user.name);
      return {};
    }
    Result<uint64_t> submit(const SlurmJobRequest& request) override {
      return slurm_.submit(request);
    }
    Result<void> cancel(uint64_t id, const std::string& name) override {
      TRY(slurm_.answer());
      const auto job = slurm_.all.find(id);
      if (job == slurm_.all.end() || !runs(job->second)) return {};
      job->second.shown.name = name;
      if (slurm_.after_renaming) TRY(slurm_.after_renaming(id));
      job->second.shown.state = "CANCELLED";
      return {};
    }
    Result<void> power_up(const std::vector<std::string>& names) override {
      return slurm_.set_power(names, "POWERING_UP");
    }
    Result<void> power_down(const std::vector<std::string>& names) override {
      return slurm_.set_power(names, "POWERING_DOWN");
    }

   private:
    MemorySlurm& slurm_;
  };

  std::unique_ptr<Slurm> client() { return std::make_unique<Client>(*this); }

  // Ends a host's step with that exit code, as the script writes it into the comment.
  void end_host(domain::AttemptId attempt, domain::HostIndex host, int code) {
    for (auto& [id, job] : all) {
      const auto comment = read_job_comment(job.request.comment);
      if (!comment || comment->attempt != attempt || !runs(job)) continue;
      job.ended +=
          (job.ended.empty() ? "" : ",") + std::to_string(host) + ":" + std::to_string(code);
      job.shown.comment = job.request.comment + " ended=" + job.ended + " why=n1: Killed";
    }
  }

  static bool runs(const Job& job) {
    return job.shown.state == "RUNNING" || job.shown.state == "PENDING";
  }
  size_t running() const {
    return size_t(std::ranges::count_if(all, [](const auto& job) { return runs(job.second); }));
  }

  std::vector<SlurmNode> nodes;
  std::map<uint64_t, Job> all;
  // Called before a job is accepted, and after; they may throw.
  std::function<Result<void>(const SlurmJobRequest&)> before_submit, after_submit;
  // Called when a cancelled job has its new name and still runs; may throw.
  std::function<Result<void>(uint64_t)> after_renaming;
  std::string away = {};  // the reason why slurmctld does not answer; "": it answers
  std::string state_of_new_jobs = "RUNNING";
  std::vector<SlurmJob> accounted;       // ended jobs that the accounting knows
  std::optional<Error> accounting_away;  // why it does not answer
  std::string refused_user = "-";        // an account for which no jobs can be submitted

 private:
  Result<void> answer() const {
    if (!away.empty()) return unavailable(away);
    return {};
  }
  Result<void> set_power(const std::vector<std::string>& names, const std::string& state) {
    TRY(answer());
    for (SlurmNode& node : nodes)
      if (std::ranges::find(names, node.name) != names.end())
        node.states = {"IDLE", "CLOUD", state};
    return {};
  }
  Result<std::vector<SlurmJob>> list() const {
    TRY(answer());
    std::vector<SlurmJob> jobs;
    for (const auto& [id, job] : all) jobs.push_back(job.shown);
    return jobs;
  }
  Result<uint64_t> submit(const SlurmJobRequest& request) {
    TRY(answer());
    if (before_submit) TRY(before_submit(request));
    const uint64_t id = all.empty() ? 1 : all.rbegin()->first + 1;
    Job& job = all[id];
    job.request = request;
    job.shown = {id, state_of_new_jobs, "None",          "",
                 "", request.name,      request.comment, request.user.name};
    if (state_of_new_jobs == "RUNNING") {
      job.shown.nodes = join_names(nodes_of(request));
      if (!request.others.empty())
        for (const SlurmComponent* component : components_of(request))
          job.shown.component_nodes.push_back(join_names(component->nodes));
    }
    if (after_submit) TRY(after_submit(request));
    return id;
  }
};

}  // namespace trainyard::launch
