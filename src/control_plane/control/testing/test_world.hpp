// Implements control's dependencies in memory, for its tests and the simulator: a launcher that
// only records gangs, and logs and metrics without files.
//
// Threads: the logs from anywhere; the launcher from one thread at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "base/check.hpp"
#include "base/thread_safety.hpp"
#include "batch/catalog.hpp"
#include "control/control.hpp"
#include "domain/usage.hpp"
#include "launch/launcher.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"
#include "reconcile/state.hpp"

namespace trainyard::control::test {

class MemoryLogs final : public observe::Logs {
 public:
  struct Stream {
    std::vector<observe::LogEvent> events;
    uint64_t last_batch = 0;
  };

  Result<void> create_group(const std::string&, const std::string&,
                            const observe::LogGroupSettings&) override {
    return {};
  }
  Result<observe::LogGroupInfo> group(const std::string&, const std::string& group) override {
    return observe::LogGroupInfo{.name = group};
  }
  Result<void> change_group(const std::string&, const std::string&, const ChangeGroup&) override {
    return {};
  }
  Result<void> delete_group(const std::string& region, const std::string& group) override {
    const MutexLock lock(mutex_);
    std::erase_if(streams_, [&](const auto& each) {
      return each.first.region == region && each.first.group == group;
    });
    return {};
  }
  Result<void> delete_stream(const observe::StreamKey& key) override {
    const MutexLock lock(mutex_);
    if (streams_.erase(key) == 0) return not_found("no stream " + key.stream);
    return {};
  }
  observe::LogDefinitions& definitions() override {
    CHECK(false, "control uses no definitions");
    std::abort();
  }
  Result<void> create_stream(const observe::StreamKey& key) override { return ensure_stream(key); }
  Result<void> ensure_stream(const observe::StreamKey& key) override {
    const MutexLock lock(mutex_);
    streams_[key];
    return {};
  }
  Result<void> append(const observe::StreamKey& key, const std::vector<observe::LogEvent>& events,
                      uint64_t batch) override {
    const MutexLock lock(mutex_);
    const auto found = streams_.find(key);
    if (found == streams_.end()) return not_found("no stream " + key.stream);
    if (nearly_full && !events.empty()) return exhausted("the disk is nearly full");
    if (batch != 0 && batch <= found->second.last_batch) return {};
    found->second.events.insert(found->second.events.end(), events.begin(), events.end());
    if (batch != 0) found->second.last_batch = batch;
    return {};
  }
  Result<uint64_t> stored_bytes(const observe::StreamKey& key) override {
    const MutexLock lock(mutex_);
    const auto found = streams_.find(key);
    if (found == streams_.end()) return not_found("no stream " + key.stream);
    uint64_t bytes = 0;
    for (const auto& event : found->second.events) bytes += event.message.size();
    return bytes;
  }
  std::atomic<bool> nearly_full = false;
  Result<uint64_t> last_batch(const observe::StreamKey& key) override {
    const MutexLock lock(mutex_);
    return streams_[key].last_batch;
  }
  Result<observe::LogPage> read(const observe::StreamKey& key, const observe::ReadQuery&) override {
    const MutexLock lock(mutex_);
    const auto found = streams_.find(key);
    if (found == streams_.end()) return not_found("no stream " + key.stream);
    return observe::LogPage{found->second.events, 0, found->second.events.size()};
  }
  Result<observe::FilterPage> filter(const std::string&, const std::string&,
                                     const observe::FilterQuery&) override {
    return observe::FilterPage{};
  }
  Result<std::unique_ptr<observe::LogScan>> scan(const std::string&, const std::string&,
                                                 const observe::ScanQuery&) override {
    return invalid("unused");
  }
  Result<std::vector<observe::LogStreamInfo>> streams(const std::string& region,
                                                      const std::string& group,
                                                      const std::string& prefix) override {
    const MutexLock lock(mutex_);
    std::vector<observe::LogStreamInfo> infos;
    for (const auto& [key, stream] : streams_) {
      if (key.region != region || key.group != group || !key.stream.starts_with(prefix)) continue;
      infos.emplace_back();
      infos.back().name = key.stream;
    }
    return infos;
  }
  Result<std::vector<observe::LogGroupInfo>> groups(const std::string&,
                                                    const std::string&) override {
    return std::vector<observe::LogGroupInfo>{};
  }
  Result<void> retire(Instant) override { return {}; }

 private:
  Mutex mutex_;
  std::map<observe::StreamKey, Stream> streams_ GUARDED_BY(mutex_);
};

class MemoryMetrics final : public observe::Metrics {
 public:
  Result<void> append(const std::vector<observe::MetricRecord>& records) override {
    const MutexLock lock(mutex_);
    for (const auto& record : records) samples_[record.key].push_back(record.sample);
    return {};
  }
  Result<uint64_t> append_allowed(const std::vector<observe::MetricRecord>& records) override {
    TRY(append(records));
    return 0;
  }
  Result<uint64_t> append_series_allowed(
      const std::vector<observe::MetricSeries>& series) override {
    const MutexLock lock(mutex_);
    for (const auto& [key, samples] : series)
      samples_[key].insert(samples_[key].end(), samples.begin(), samples.end());
    return 0;
  }
  Result<void> append_batch(const std::string& writer, uint64_t batch,
                            const std::vector<observe::MetricRecord>& records) override {
    {
      const MutexLock lock(mutex_);
      if (batch <= last_batch_[writer]) return {};
      last_batch_[writer] = batch;
    }
    return append(records);
  }
  Result<uint64_t> last_batch(const std::string& writer) override {
    const MutexLock lock(mutex_);
    return last_batch_[writer];
  }
  Result<std::vector<observe::Datapoint>> statistics(const observe::StatisticsQuery&) override {
    return std::vector<observe::Datapoint>{};
  }
  Result<std::vector<observe::Sample>> samples(const observe::StatisticsQuery& query,
                                               size_t) override {
    const MutexLock lock(mutex_);
    std::vector<observe::Sample> found;
    for (const auto& each : samples_[query.key])
      if (each.at >= query.from && each.at < query.to) found.push_back(each);
    return found;
  }
  Result<std::optional<observe::Sample>> last(const observe::MetricKey& key) override {
    const MutexLock lock(mutex_);
    const auto found = samples_.find(key);
    if (found == samples_.end()) return std::optional<observe::Sample>{};
    return std::optional(found->second.back());
  }
  Result<std::vector<observe::MetricKey>> list(const std::string&, const std::string&,
                                               const std::string&) override {
    const MutexLock lock(mutex_);
    std::vector<observe::MetricKey> keys;
    for (const auto& [key, samples] : samples_) keys.push_back(key);
    return keys;
  }
  Result<void> retire(Instant) override { return {}; }
  size_t samples(const observe::MetricKey& key) {
    const MutexLock lock(mutex_);
    return samples_[key].size();
  }

 private:
  Mutex mutex_;
  std::map<observe::MetricKey, std::vector<observe::Sample>> samples_ GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> last_batch_ GUARDED_BY(mutex_);
};

// KeptLauncher records the gangs that it should start. Their agents live until a test ends them.
class KeptLauncher final : public launch::Launcher {
 public:
  std::vector<launch::Machine> the_machines{{"box-1", 8, int64_t{32} << 30, 0}};
  std::map<domain::AttemptId, launch::Gang> gangs;
  std::vector<launch::Agent> agents;
  std::optional<Error> refuses;   // the result of each ensure()
  int ensured = 0;                // calls of ensure()
  std::atomic<int> starts = 0;    // started gangs; any thread may read it
  std::atomic<int> lists = 0;     // calls of list(); any thread may read it
  std::function<void()> changed;  // that of on_change()
  std::function<void(const std::string& call)> while_called;  // "ensure" or "remove"

  std::vector<launch::MachineKind> the_kinds;
  std::map<std::string, uint32_t> grown;  // by kind: the last requested number of machines
  std::set<std::string> released;         // machines

  std::vector<launch::Machine> machines() override { return the_machines; }
  std::vector<launch::MachineKind> kinds() override { return the_kinds; }
  Result<void> grow(const std::string& kind, uint32_t machines) override {
    grown[kind] = machines;
    return {};
  }
  Result<void> shrink(const std::string& machine) override {
    released.insert(machine);
    return {};
  }
  Result<void> ensure(const launch::Gang& gang) override {
    ++ensured;
    if (while_called) while_called("ensure");
    if (refuses) return *refuses;
    if (!gangs.emplace(gang.attempt, gang).second) return {};
    ++starts;
    for (domain::HostIndex host = 0; host < gang.members.size(); ++host)
      agents.push_back({gang.attempt, gang.token, host, true});
    return {};
  }
  std::vector<launch::Agent> list() override {
    ++lists;
    return agents;
  }
  void on_change(std::function<void()> function) override { changed = std::move(function); }
  Result<void> remove(domain::AttemptId attempt) override {
    if (while_called) while_called("remove");
    gangs.erase(attempt);
    std::erase_if(agents, [&](const launch::Agent& agent) { return agent.attempt == attempt; });
    return {};
  }

  void kill(domain::AttemptId attempt, domain::HostIndex host) {
    for (launch::Agent& agent : agents)
      if (agent.attempt == attempt && agent.host == host) agent.alive = false;
  }
};

// Replay applies a ledger's commands again, from an empty state.
struct Replay {
  std::map<domain::JobNumber, domain::Job> jobs;
  std::map<std::string, std::vector<domain::Tag>> tags;
  batch::Catalog catalog;
  domain::Records records;
  domain::Usages usages;  // including usage that has decayed to nothing

  // Errors: those of commands that cannot be read or applied; internal, for a command without
  // effect.
  Result<void> run(ledger::Ledger& ledger) {
    return ledger.replay(
        [this](const ledger::CommandRecord& record) { return apply_again(record); });
  }

 private:
  Result<void> apply_again(const ledger::CommandRecord& record) {
    const reconcile::Command command = TRY(reconcile::command_of(record));
    const auto number = reconcile::job_of(command);
    const std::optional<domain::Job> subject = number ? find(*number) : std::nullopt;
    const auto* set = std::get_if<reconcile::SetTags>(&command);
    const auto* definition = std::get_if<reconcile::ChangeResource>(&command);
    const batch::JobDefinition* last = definition ? last_of(*definition) : nullptr;
    std::set<domain::JobNumber> made;
    if (const auto* make = std::get_if<reconcile::MakeChildren>(&command))
      for (auto job = jobs.upper_bound(make->array); job != jobs.end(); ++job)
        made.insert(job->first);
    const reconcile::Change change =
        TRY(reconcile::apply({subject ? &*subject : nullptr, set ? &tags[set->arn] : nullptr,
                              &catalog, last, made, &records},
                             command, record.at)
                .in("command " + std::to_string(record.sequence) + ", " + record.kind));
    if (change.nothing())
      return internal("command " + std::to_string(record.sequence) + ", " + record.kind +
                      ", changes nothing");
    if (change.job) account(subject ? &*subject : nullptr, *change.job);
    if (change.job) jobs.insert_or_assign(change.job->number, *change.job);
    for (const domain::Job& child : change.children) jobs.insert_or_assign(child.number, child);
    if (change.records) records = *change.records;
    if (change.tags) tags[change.tags->first] = change.tags->second;
    if (!change.resource) return {};
    batch::put(catalog, definition->how, *change.resource);
    if (definition->how == batch::ResourceChange::remove)
      std::erase_if(usages, [&](const auto& each) {
        return std::holds_alternative<batch::JobQueue>(*change.resource) &&
               each.first.queue == batch::key_of(*change.resource);
      });
    if (const auto* made_now = std::get_if<batch::JobDefinition>(&*change.resource))
      definitions_[made_now->key].revision =
          std::max(definitions_[made_now->key].revision, made_now->revision);
    return {};
  }

  void account(const domain::Job* before, const domain::Job& after) {
    const auto share = domain::share_of(after);
    if (!share) return;
    const auto present = usages.find(*share);
    if (const auto usage = domain::usage_after(
            present == usages.end() ? std::nullopt : std::optional(present->second), before, after,
            batch::decay_of(catalog, share->queue)))
      usages[*share] = *usage;
  }

  // Finds also a child that its array has not created yet.
  std::optional<domain::Job> find(domain::JobNumber number) const {
    auto found = jobs.upper_bound(number);
    if (found == jobs.begin()) return std::nullopt;
    --found;
    if (found->first == number) return found->second;
    const auto parent = found->second.parent != 0 ? jobs.find(found->second.parent) : found;
    if (number > domain::last_number_of(parent->second)) return std::nullopt;
    return domain::child_of(parent->second, uint32_t(number - parent->first - 1));
  }

  const batch::JobDefinition* last_of(const reconcile::ChangeResource& change) const {
    const auto found = definitions_.find(batch::key_of(change.resource));
    return found == definitions_.end() ? nullptr : &found->second;
  }

  std::map<domain::JobKey, batch::JobDefinition> definitions_;  // the last revisions
};

}  // namespace trainyard::control::test
