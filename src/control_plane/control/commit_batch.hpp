// Group is a batch of commands that share a transaction: each is applied to the state after those
// before it, and none of the changes is visible until all of them are durable. Private to this
// module.
//
// Threads: confined to commit_step's.
// Lifetime: ledger and live outlive it; one batch for each transaction.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch/catalog.hpp"
#include "control/control.hpp"
#include "control/live.hpp"
#include "ledger/ledger.hpp"
#include "reconcile/state.hpp"

namespace trainyard::control {

// Passes the job on by value.
inline std::function<void(Result<std::shared_ptr<const domain::Job>>)> by_value(Answer answer) {
  return [answer = std::move(answer)](Result<std::shared_ptr<const domain::Job>> job) {
    if (job)
      answer(**job);
    else
      answer(std::move(job).error());
  };
}

// A pending command, and the recipient of its result.
struct PendingCommand {
  reconcile::Command command;
  std::optional<domain::JobKey> key;  // the job that is meant, when its number is not known yet
  // Called with the job after the command (nothing for tags), or why not.
  std::function<void(Result<std::shared_ptr<const domain::Job>>)> job_answer;
  TagAnswer tag_answer;
  ResourceAnswer resource_answer = nullptr;
  std::optional<batch::Resource> resource = {};  // after the command
  RecordsAnswer records_answer = nullptr;

  // Tells what became of a change of records: all of them as they are now, or why not.
  void answer_records(const Result<std::shared_ptr<const domain::Job>>& done,
                      const std::shared_ptr<const domain::Records>& records) const {
    if (!records_answer) return;
    if (done)
      records_answer(records);
    else
      records_answer(done.error());
  }

  void refuse(const Error& error) const {
    if (job_answer) job_answer(error);
    if (tag_answer) tag_answer(error);
    if (resource_answer) resource_answer(error);
    if (records_answer) records_answer(error);
  }
};

// The job that the ledger has, or the child that its array has not made yet. Errors: not_found; the
// ledger's.
Result<domain::Job> find_stored(ledger::Ledger& ledger, const domain::JobKey& key);
Result<domain::Job> find_stored(ledger::Ledger& ledger, domain::JobNumber number);
// An array's children, including those that were not created yet: the count of each status, and
// those that the query selects.
Result<domain::ChildCounts> count_stored_children(ledger::Ledger& ledger, const domain::Job& array);
Result<std::vector<domain::Job>> stored_children(ledger::Ledger& ledger, const domain::Job& array,
                                                 const ledger::ChildQuery& query);

// The error of a job whose name another one has.
Error name_taken(const domain::JobKey& key);

class CommitBatch {
 public:
  CommitBatch(ledger::Ledger& ledger, const Live& live, const UsageIndex& usages,
              std::shared_ptr<const batch::Catalog> catalog,
              std::shared_ptr<const domain::Records> records, Instant now, Duration clock_offset);

  // The command's job after it. Nothing when there is none (tags).
  Result<std::shared_ptr<const domain::Job>> add(PendingCommand& pending);
  // All of it is durable when it returns, or none of it happened.
  Result<void> commit();

  // -- what is to be seen, once it was committed
  std::vector<std::shared_ptr<const domain::Job>> changed() const;
  const std::vector<domain::Tag>& tags_of(const std::string& arn) { return tags_[arn]; }
  bool changed_resources() const { return !batch_.resources.empty(); }
  bool changed_tags() const { return !tags_.empty(); }
  const std::vector<std::pair<domain::ShareKey, std::optional<domain::Usage>>>& changed_usages()
      const {
    return batch_.usages;
  }
  const std::shared_ptr<const batch::Catalog>& catalog() const { return catalog_; }
  bool changed_records() const { return !batch_.records.empty(); }
  const std::shared_ptr<const domain::Records>& records() const { return records_; }

 private:
  using Found = Result<std::shared_ptr<const domain::Job>>;
  Found job(domain::JobNumber number);
  Found job(const domain::JobKey& key);
  Result<void> assign_position(CreateJob& create);
  Result<void> put_into_queue(CreateJob& created);
  Result<domain::JobNumber> number_of(const CreateJob& created, const std::string& id,
                                      bool child_by_child);
  Result<std::set<domain::JobNumber>> made_before(const domain::Job& array,
                                                  const reconcile::MakeChildren& make);
  Result<reconcile::Change> apply_alone(const reconcile::Subject& subject,
                                        reconcile::Command& command) const;
  Found change_resource(PendingCommand& pending);
  Found change_records(const PendingCommand& pending);
  Result<void> use_up(const domain::Job& placed);
  void account(const domain::Job* before, const domain::Job& after);
  void forget_usages(const domain::JobKey& queue, bool all);
  void remember(const reconcile::Command& command);
  void keep(domain::Job job);

  ledger::Ledger& ledger_;
  const Live& live_;
  const UsageIndex& kept_usages_;
  const Instant now_;            // control's time
  const Duration clock_offset_;  // of jobs that are created
  ledger::Batch batch_;
  // as changed by this batch
  std::map<domain::JobNumber, std::shared_ptr<const domain::Job>> jobs_;
  std::map<domain::JobKey, domain::JobNumber> created_;
  std::map<std::string, std::vector<domain::Tag>> tags_;
  std::map<domain::ShareKey, std::optional<domain::Usage>> usages_;
  std::shared_ptr<const batch::Catalog> catalog_;
  std::shared_ptr<const domain::Records> records_;
  // the last revisions of those that it made
  std::map<domain::JobKey, batch::JobDefinition> definitions_;
  domain::JobNumber last_number_;
  uint64_t last_sequence_;
};

}  // namespace trainyard::control
