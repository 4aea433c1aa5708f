// PlainControl fakes control for tests of operations. kStart is the time at which they start.
//
// Threads: confined to the test's thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "base/time.hpp"
#include "batch/catalog.hpp"
#include "control/control.hpp"
#include "control/replayer.hpp"
#include "domain/stage.hpp"

namespace trainyard::api::in_memory {

// 2026-11-20T09:45:00Z.
inline constexpr Instant kStart{Duration{1'795'167'900'000}};

// PlainControl is a control in memory. It answers at once or, if `hold` is set, when the test calls
// the functions in `held`.
class PlainControl : public control::Control {
 public:
  explicit PlainControl(Clock& clock) : clock_(clock) {}
  std::map<domain::JobKey, std::shared_ptr<const domain::Job>> jobs;
  std::map<std::string, std::vector<domain::Tag>> tags_of;
  std::vector<ledger::JobQuery> queries;
  ledger::JobPage page;
  std::vector<control::Interruption> interruptions;
  std::vector<int64_t> kept_alive;
  std::vector<std::string> killed;  // the reasons
  trainyard::batch::Catalog catalog;
  std::shared_ptr<const domain::Records> stored_records = std::make_shared<const domain::Records>();
  // newest first
  std::map<domain::JobKey, std::vector<trainyard::batch::JobDefinition>> definitions_of;
  bool hold = false;
  std::vector<std::function<void()>> held;

  void create_job(control::CreateJob job, control::Answer answer) override {
    run([this, job = std::move(job), answer = std::move(answer)] {
      if (jobs.contains(job.key)) return answer(conflict("taken"));
      domain::Job made;
      made.number = jobs.size() + 1;
      made.key = job.key;
      made.spec = job.spec;
      made.account = "123456789012";
      made.created = made.modified = clock_.now();
      made.transitions.push_back(
          {domain::Phase::starting, "Starting the training job.", clock_.now(), {}});
      jobs[job.key] = std::make_shared<const domain::Job>(made);
      tags_of[control::job_arn(made)] = job.tags;
      answer(made);
    });
  }
  void stop_job(domain::JobKey key, control::Answer answer) override {
    run([this, key = std::move(key), answer = std::move(answer)] {
      const auto found = jobs.find(key);
      if (found == jobs.end()) return answer(not_found("no job " + key.name));
      if (found->second->finished()) return answer(conflict("it is finished"));
      answer(*found->second);
    });
  }
  void interrupt_job(domain::JobKey key, control::Interruption interruption,
                     control::Answer answer) override {
    interruptions.push_back(std::move(interruption));
    stop_job(std::move(key), std::move(answer));
  }
  void kill_job(domain::JobKey key, std::string reason, control::Answer answer) override {
    killed.push_back(std::move(reason));
    stop_job(std::move(key), std::move(answer));
  }
  void keep_alive(domain::JobKey key, int64_t seconds, control::Answer answer) override {
    kept_alive.push_back(seconds);
    const auto found = jobs.find(key);
    if (found == jobs.end()) return answer(not_found("no job " + key.name));
    if (found->second->spec.keep_alive_seconds == 0) return answer(conflict("it has no warm pool"));
    answer(*found->second);
  }
  void cancel_job(domain::JobKey key, domain::Cancellation, std::string,
                  control::Answer answer) override {
    stop_job(std::move(key), std::move(answer));
  }
  void change_resource(control::ResourceRequest requested,
                       control::ResourceAnswer answer) override {
    const domain::JobKey key = trainyard::batch::key_of(requested.resource);
    const auto* last = definitions_of.contains(key) ? &definitions_of[key].front() : nullptr;
    auto resource =
        trainyard::batch::changed(catalog, last, requested.how, std::move(requested.resource));
    if (!resource) return answer(resource.error());
    trainyard::batch::put(catalog, requested.how, *resource);
    if (const auto* definition = std::get_if<trainyard::batch::JobDefinition>(&*resource)) {
      auto& revisions = definitions_of[key];
      std::erase_if(revisions,
                    [&](const auto& each) { return each.revision == definition->revision; });
      revisions.insert(revisions.begin(), *definition);
    }
    answer(*std::move(resource));
  }
  void change_records(control::RecordsRequest requested, control::RecordsAnswer answer) override {
    if (requested.expected != stored_records->version) return answer(conflict("read them again"));
    auto next = domain::changed(*stored_records, requested.writes);
    if (!next) return answer(next.error());
    stored_records = std::make_shared<const domain::Records>(*std::move(next));
    answer(stored_records);
  }
  std::shared_ptr<const domain::Records> records() override { return stored_records; }
  Result<domain::Image> find_image(const std::string&) override { return domain::Image(); }
  std::vector<std::shared_ptr<const domain::Job>> live_jobs() override {
    std::vector<std::shared_ptr<const domain::Job>> all;
    for (const auto& [key, job] : jobs)
      if (job->live()) all.push_back(job);
    return all;
  }
  std::shared_ptr<const reconcile::QueueHeads> queue_heads() override {
    return std::make_shared<reconcile::QueueHeads>();
  }
  // Explains with the jobs above, on `machines`.
  std::vector<launch::Machine> machines;
  Result<reconcile::Explanation> explain(const domain::JobKey& key,
                                         const reconcile::ExplainRights& rights) override {
    const auto job = find(key);
    if (!job) return job.error();
    return reconcile::explain(snapshot_of_jobs(), {}, {}, {}, clock_.now(), (*job)->number, rights);
  }
  // Replays with the jobs above, and those of `page`.
  Result<control::ReplayReport> start_replay(const control::ReplayCaller& caller,
                                             control::ReplayRequest request) override {
    explainer_.put(snapshot_of_jobs(), clock_.now());
    return replayer_.start(caller, std::move(request));
  }
  Result<control::ReplayReport> resume_replay(const control::ReplayCaller& caller,
                                              const std::string& id) override {
    return replayer_.resume(caller, id);
  }
  Result<reconcile::Explanation> preview_job(control::CreateJob job,
                                             const reconcile::ExplainRights& rights,
                                             bool with_changes) override {
    if (jobs.contains(job.key)) return conflict("taken");
    return reconcile::preview(snapshot_of_jobs(), {}, {}, {}, clock_.now(), std::move(job), rights,
                              with_changes);
  }
  Instant now() override { return {}; }
  Duration clock_offset() override { return {}; }
  void prioritise_job(domain::JobKey key, int64_t, control::Answer answer) override {
    stop_job(std::move(key), std::move(answer));
  }
  std::shared_ptr<const trainyard::batch::Catalog> batch_catalog() override {
    return std::make_shared<trainyard::batch::Catalog>(catalog);
  }
  Result<std::vector<trainyard::batch::JobDefinition>> definitions(
      const ledger::DefinitionQuery& query) override {
    std::vector<trainyard::batch::JobDefinition> found;
    for (const auto& [key, revisions] : definitions_of)
      for (const auto& each : revisions)
        if (key.region == query.region && (query.name.empty() || key.name == query.name) &&
            each.revision == query.revision.value_or(each.revision) &&
            each.active == query.active.value_or(each.active) &&
            found.size() < query.definitions_max)
          found.push_back(each);
    return found;
  }
  void set_tags(std::string arn, std::vector<domain::Tag> add, std::vector<std::string> remove_keys,
                control::TagAnswer answer) override {
    auto& tags = tags_of[arn];
    for (const auto& key : remove_keys)
      std::erase_if(tags, [&](const auto& tag) { return tag.key == key; });
    for (auto& tag : add) {
      std::erase_if(tags, [&](const auto& other) { return other.key == tag.key; });
      tags.push_back(tag);
    }
    answer(tags);
  }
  using Control::find;
  Result<std::shared_ptr<const domain::Job>> find(const domain::JobKey& key,
                                                  const reconcile::MaySeeJob&) override {
    const auto found = jobs.find(key);
    if (found == jobs.end()) return not_found("no job " + key.name);
    return found->second;
  }
  Result<ledger::JobPage> list(const ledger::JobQuery& query) override {
    queries.push_back(query);
    return page;
  }
  // No child has been made yet.
  Result<domain::ChildCounts> count_children(const domain::Job& array) override {
    domain::ChildCounts counts;
    counts.of[size_t(domain::stage_of(domain::child_of(array, 0)))] = array.spec.array.size;
    return counts;
  }
  Result<std::vector<domain::Job>> children(const domain::Job& array,
                                            const ledger::ChildQuery& query) override {
    std::vector<domain::Job> found;
    for (uint32_t index = query.first; index < array.spec.array.size; ++index)
      if (found.size() < query.children_max) found.push_back(domain::child_of(array, index));
    return found;
  }
  Result<std::vector<domain::Tag>> tags(const std::string& arn) override { return tags_of[arn]; }
  void commit_step() override {}
  std::chrono::nanoseconds reconcile_step() override { return {}; }

 private:
  reconcile::Snapshot snapshot_of_jobs() {
    reconcile::Snapshot snapshot;
    for (const auto& [each, job] : jobs) snapshot.jobs.push_back(job);
    std::ranges::sort(snapshot.jobs, {}, [](const auto& job) { return job->number; });
    snapshot.machines = machines;
    snapshot.catalog = batch_catalog();
    return snapshot;
  }
  void run(std::function<void()> work) {
    if (hold)
      held.push_back(std::move(work));
    else
      work();
  }
  Clock& clock_;
  SeededRandom random_{1};
  const control::Settings settings_{};
  control::Explainer explainer_{settings_};
  control::Replayer replayer_{settings_, *this, explainer_, clock_, random_};
};

}  // namespace trainyard::api::in_memory
