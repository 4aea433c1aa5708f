// FaultyLedger is the real ledger on a faulty disk, which is full at times and fails to write or to
// sync. The process may die before and after each commit. In some clusters the files of the ledger
// are on a disk that loses power at any write, and with it any part of the unsynced data
// (torn_disk.hpp).
//
// After a failed sync, the commit may be durable or not, and nothing may be committed before the
// process has ended. opened_again() reports that it has.
//
// Threads: one.
#pragma once

#include <memory>
#include <optional>

#include "ledger/ledger.hpp"
#include "sim/checkers.hpp"
#include "sim/torn_disk.hpp"
#include "sim/world.hpp"

namespace trainyard::sim {

class FaultyLedger final : public ledger::Ledger {
 public:
  FaultyLedger(World& world, Checkers& checkers) : world_(world), checkers_(checkers) {
    if (world_.random.chance(kTornOneIn)) disk_ = std::make_unique<TornDisk>(world_);
    open();
  }
  Result<void> commit(const ledger::Batch& batch) override {
    world_.may_crash("before a commit");
    World::check(failure_.empty(), "a commit after a sync of the ledger had failed");
    if (world_.fault(60))
      return world_.random.chance(2) ? exhausted("disk full") : unavailable("input/output error");
    if (world_.fault(150)) return fail_sync(batch);
    if (disk_)
      disk_->lose_power_after(world_.fault(40) ? 1 + world_.random.below(kStepsOfACommit) : 0);
    const auto done = inner_->commit(batch);
    if (disk_ && disk_->power_lost()) {
      in_flight_ = batch;
      throw ServerCrash{"when the power goes"};
    }
    if (!done) return done;
    durable(batch);
    world_.may_crash("after a commit");
    return done;
  }
  // Writes records that precede the first server, without faults.
  void plant(const ledger::Batch& batch) {
    World::check(bool(inner_->commit(batch)), "the ledger cannot be filled with earlier records");
    durable(batch);
  }
  std::string failure() override { return failure_; }
  // A new process has opened the ledger.
  void opened_again() {
    failure_.clear();
    if (!disk_) return;
    if (world_.fault(2)) disk_->lose_power();  // the machine died, not only the process
    if (!disk_->power_lost()) return disk_->lose_power_after(0);
    inner_.reset();
    disk_->power_on();
    open();
    // The commit in progress is durable, or not.
    const uint64_t last = inner_->last_sequence();
    if (in_flight_ && last == in_flight_->commands.back().sequence) durable(*in_flight_);
    in_flight_.reset();
    World::check(last == last_durable_, "the ledger was committed up to " +
                                            std::to_string(last_durable_) + ", and has " +
                                            std::to_string(last) + " after a power failure");
  }
  uint64_t last_sequence() override { return inner_->last_sequence(); }
  domain::JobNumber last_job_number() override { return inner_->last_job_number(); }
  Result<std::vector<domain::Job>> live_jobs() override { return inner_->live_jobs(); }
  Result<domain::Job> find_job(const domain::JobKey& key) override { return inner_->find_job(key); }
  Result<domain::Job> find_job(domain::JobNumber number) override {
    return inner_->find_job(number);
  }
  Result<domain::Job> find_array_of(domain::JobNumber child) override {
    return inner_->find_array_of(child);
  }
  Result<std::vector<domain::Job>> children(const ledger::ChildQuery& query) override {
    return inner_->children(query);
  }
  Result<domain::ChildCounts> count_children(domain::JobNumber array) override {
    return inner_->count_children(array);
  }
  Result<ledger::JobPage> list_jobs(const ledger::JobQuery& query) override {
    return inner_->list_jobs(query);
  }
  Result<std::vector<domain::Tag>> tags(const std::string& arn) override {
    return inner_->tags(arn);
  }
  Result<std::vector<ledger::ResourceRecord>> resources() override { return inner_->resources(); }
  Result<domain::Usages> usages() override { return inner_->usages(); }
  Result<domain::Records> records() override { return inner_->records(); }
  Result<std::vector<ledger::ResourceRecord>> definitions(
      const ledger::DefinitionQuery& query) override {
    return inner_->definitions(query);
  }
  Result<void> replay(
      const std::function<Result<void>(const ledger::CommandRecord&)>& each) override {
    return inner_->replay(each);
  }

 private:
  static constexpr uint64_t kTornOneIn = 4;        // clusters
  static constexpr uint64_t kStepsOfACommit = 12;  // writes and syncs; a commit may have fewer

  void open() {
    auto opened = ledger::open_sqlite(disk_ ? "/ledger.db" : ":memory:");
    World::check(bool(opened),
                 "the ledger cannot be opened" + (opened ? "" : ": " + opened.error().message));
    inner_ = *std::move(opened);
  }
  void durable(const ledger::Batch& batch) {
    last_durable_ = batch.commands.back().sequence;
    checkers_.committed(batch);
  }

  Result<void> fail_sync(const ledger::Batch& batch) {
    const bool there = world_.random.chance(2);
    if (there) {
      if (disk_) disk_->lose_power_after(0);  // an earlier commit had fewer steps
      if (const auto done = inner_->commit(batch); !done) return done;
      durable(batch);
    }
    world_.trace("ledger", there ? "a sync failed, but the commit is durable" : "a sync failed");
    failure_ = "a sync failed";
    return unavailable(failure_);
  }

  World& world_;
  Checkers& checkers_;
  std::unique_ptr<TornDisk> disk_;  // nullptr: in memory, where nothing is lost
  std::unique_ptr<ledger::Ledger> inner_;
  uint64_t last_durable_ = 0;
  std::optional<ledger::Batch> in_flight_;  // the commit during which the power failed
  std::string failure_;
};

}  // namespace trainyard::sim
