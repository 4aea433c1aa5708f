// A CommitBatch is a sequence of commands that share a transaction. Each command is applied to the
// state after the commands before it, and no change is visible until all are durable. Private to
// this module.
//
// Threads: confined to the thread of commit_step().
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

// Adapts an Answer, which takes the job by value.
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
  std::optional<domain::JobKey> key;  // identifies the job of a command that lacks its number
  // Called with the job after the command (nullptr for tags), or with the error.
  std::function<void(Result<std::shared_ptr<const domain::Job>>)> job_answer;
  TagAnswer tag_answer;
  ResourceAnswer resource_answer = nullptr;
  std::optional<batch::Resource> resource = {};  // after the command
  RecordsAnswer records_answer = nullptr;

  // Reports the result of a command that changes records: all current records, or the error.
  void answer_records(const Result<std::shared_ptr<const domain::Job>>& done,
                      const std::shared_ptr<const domain::Records>& records) const {
    if (!records_answer) return;
    if (done)
      records_answer(records);
    else
      records_answer(done.error());
  }

  // Reports an error to the caller.
  void refuse(const Error& error) const {
    if (job_answer) job_answer(error);
    if (tag_answer) tag_answer(error);
    if (resource_answer) resource_answer(error);
    if (records_answer) records_answer(error);
  }
};

// Returns a job of the ledger, or a child that its array has not created yet. Errors: not_found;
// the ledger's.
Result<domain::Job> find_stored(ledger::Ledger& ledger, const domain::JobKey& key);
Result<domain::Job> find_stored(ledger::Ledger& ledger, domain::JobNumber number);
// Read an array's children, including those that are not created yet: their number in each status,
// and the children that a query selects.
Result<domain::ChildCounts> count_stored_children(ledger::Ledger& ledger, const domain::Job& array);
Result<std::vector<domain::Job>> stored_children(ledger::Ledger& ledger, const domain::Job& array,
                                                 const ledger::ChildQuery& query);

// Returns the error for a new job whose name is in use.
Error name_taken(const domain::JobKey& key);

class CommitBatch {
 public:
  CommitBatch(ledger::Ledger& ledger, const Live& live, const UsageIndex& usages,
              std::shared_ptr<const batch::Catalog> catalog,
              std::shared_ptr<const domain::Records> records, Instant now, Duration clock_offset);

  // Applies a command, and returns its job after it; nullptr for a command without a job (tags).
  Result<std::shared_ptr<const domain::Job>> add(PendingCommand& pending);
  // Makes all changes durable, or none.
  Result<void> commit();

  // -- the changes, to be published after commit()
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
  const UsageIndex& stored_usages_;
  const Instant now_;            // control's time
  const Duration clock_offset_;  // for new jobs
  ledger::Batch batch_;
  // Jobs that this batch has changed.
  std::map<domain::JobNumber, std::shared_ptr<const domain::Job>> jobs_;
  std::map<domain::JobKey, domain::JobNumber> created_;
  std::map<std::string, std::vector<domain::Tag>> tags_;
  std::map<domain::ShareKey, std::optional<domain::Usage>> usages_;
  std::shared_ptr<const batch::Catalog> catalog_;
  std::shared_ptr<const domain::Records> records_;
  // The last revisions of the definitions that this batch registered.
  std::map<domain::JobKey, batch::JobDefinition> definitions_;
  domain::JobNumber last_number_;
  uint64_t last_sequence_;
};

}  // namespace trainyard::control
