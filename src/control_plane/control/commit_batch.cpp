#include "control/commit_batch.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "batch/catalog.hpp"
#include "control/resource_records.hpp"
#include "domain/stage.hpp"

namespace trainyard::control {

using domain::Job;
using domain::JobKey;
using domain::JobNumber;

namespace {

// Sets the job number of a command whose client identified the job by its key.
void name(reconcile::Command& command, JobNumber number) {
  if (auto* stop = std::get_if<reconcile::StopJob>(&command)) stop->job = number;
  if (auto* interrupt = std::get_if<reconcile::Interrupt>(&command)) interrupt->job = number;
  if (auto* keep = std::get_if<reconcile::KeepAlive>(&command)) keep->job = number;
  if (auto* cancel = std::get_if<reconcile::CancelJob>(&command)) cancel->job = number;
  if (auto* prioritise = std::get_if<reconcile::Prioritise>(&command)) prioritise->job = number;
}

// Returns the child of that name, if `array` is an array and has it.
Result<Job> child_named(const Job& array, const domain::ChildName& name) {
  if (!array.is_array() || name.index >= array.spec.array.size)
    return not_found("the job " + name.array + " has no child " + std::to_string(name.index));
  return domain::child_of(array, name.index);
}

}  // namespace

Result<Job> find_stored(ledger::Ledger& ledger, const JobKey& key) {
  auto found = ledger.find_job(key);
  if (found || found.error().kind != Kind::not_found) return found;
  const auto name = domain::parse_child_name(key.name);
  if (!name) return found;
  return child_named(TRY(ledger.find_job(JobKey{key.region, name->array})), *name);
}

Result<Job> find_stored(ledger::Ledger& ledger, JobNumber number) {
  auto found = ledger.find_job(number);
  if (found || found.error().kind != Kind::not_found) return found;
  const Job array = TRY(ledger.find_array_of(number));
  return domain::child_of(array, uint32_t(number - array.number - 1));
}

Result<domain::ChildCounts> count_stored_children(ledger::Ledger& ledger, const Job& array) {
  auto counts = TRY(ledger.count_children(array.number));
  // Children that were not created yet have the same stage.
  const uint32_t made = counts.all(), size = array.spec.array.size;
  if (made < size)
    counts.of[size_t(domain::stage_of(domain::child_of(array, size - 1)))] += size - made;
  return counts;
}

Result<std::vector<Job>> stored_children(ledger::Ledger& ledger, const Job& array,
                                         const ledger::ChildQuery& query) {
  const uint32_t end = std::min(query.end, array.spec.array.size);
  std::vector<Job> found;
  ledger::ChildQuery made = query;
  made.array = array.number;
  made.end = std::min(end, array.children_made);
  if (made.first < made.end) found = TRY(ledger.children(made));
  // The ledger also has children beyond children_made: children that were cancelled before their
  // creation, and children that were created meanwhile.
  made.first = std::max(query.first, array.children_made);
  made.end = end;
  made.stage.reset();
  made.children_max = ledger::kPageJobsMax;
  std::vector<Job> early;
  size_t next = 0;
  for (uint32_t index = made.first; index < end && found.size() < query.children_max; ++index) {
    if (index == made.first) {
      early = TRY(ledger.children(made));
      next = 0;
      made.first = early.size() < made.children_max ? end : domain::array_index(early.back()) + 1;
    }
    const bool is_made = next < early.size() && domain::array_index(early[next]) == index;
    Job child = is_made ? std::move(early[next++]) : domain::child_of(array, index);
    if (!query.stage || domain::stage_of(child) == *query.stage) found.push_back(std::move(child));
  }
  return found;
}

CommitBatch::CommitBatch(ledger::Ledger& ledger, const Live& live, const UsageIndex& usages,
                         std::shared_ptr<const batch::Catalog> catalog,
                         std::shared_ptr<const domain::Records> records, Instant now,
                         Duration clock_offset)
    : ledger_(ledger),
      live_(live),
      stored_usages_(usages),
      now_(now),
      clock_offset_(clock_offset),
      catalog_(std::move(catalog)),
      records_(std::move(records)),
      last_number_(ledger.last_job_number()),
      last_sequence_(ledger.last_sequence()) {}

CommitBatch::Found CommitBatch::job(JobNumber number) {
  if (const auto found = jobs_.find(number); found != jobs_.end()) return found->second;
  if (auto live = live_.stored(number)) return live;
  return std::shared_ptr<const Job>(std::make_shared<Job>(TRY(ledger_.find_job(number))));
}

CommitBatch::Found CommitBatch::job(const JobKey& key) {
  if (const auto found = created_.find(key); found != created_.end()) return job(found->second);
  if (const auto number = live_.number_of(key)) return job(*number);
  if (auto found = ledger_.find_job(key); found) {
    if (const auto here = jobs_.find(found->number); here != jobs_.end()) return here->second;
    return std::shared_ptr<const Job>(std::make_shared<Job>(*std::move(found)));
  } else if (const auto name = domain::parse_child_name(key.name);
             !name || found.error().kind != Kind::not_found) {
    return std::move(found).error();
  } else {
    const auto array = TRY(job(JobKey{key.region, name->array}));
    Job child = TRY(child_named(*array, *name));
    // This batch created or cancelled the child.
    if (const auto here = jobs_.find(child.number); here != jobs_.end()) return here->second;
    return std::shared_ptr<const Job>(std::make_shared<Job>(std::move(child)));
  }
}

Error name_taken(const JobKey& key) {
  return conflict("a job named " + key.name + " already exists");
}

CommitBatch::Found CommitBatch::add(PendingCommand& pending) {
  std::shared_ptr<const Job> subject;
  std::vector<domain::Tag> present_tags;
  std::set<JobNumber> before;
  if (auto* create = std::get_if<reconcile::CreateJob>(&pending.command)) {
    TRY(assign_position(*create));
  } else if (auto* set = std::get_if<reconcile::SetTags>(&pending.command)) {
    const auto found = tags_.find(set->arn);
    present_tags = found != tags_.end() ? found->second : TRY(ledger_.tags(set->arn));
  } else if (std::holds_alternative<reconcile::ChangeResource>(pending.command)) {
    return change_resource(pending);
  } else if (std::holds_alternative<reconcile::ChangeRecords>(pending.command)) {
    return change_records(pending);
  } else if (pending.key) {
    subject = TRY(job(*pending.key));
    name(pending.command, subject->number);
  } else {
    subject = TRY(job(*reconcile::job_of(pending.command)));
    if (const auto* make = std::get_if<reconcile::MakeChildren>(&pending.command))
      before = TRY(made_before(*subject, *make));
  }
  reconcile::Change change = TRY(apply_alone(
      {subject.get(), &present_tags, nullptr, nullptr, std::move(before)}, pending.command));
  if (change.nothing()) return subject;
  remember(pending.command);
  if (change.tags) tags_[change.tags->first] = std::move(change.tags->second);
  for (Job& child : change.children) keep(std::move(child));
  if (!change.job) return subject;
  const JobNumber number = change.job->number;
  if (std::holds_alternative<reconcile::CreateJob>(pending.command)) {
    last_number_ = domain::last_number_of(*change.job);
    created_[change.job->key] = number;
  }
  account(subject.get(), *change.job);
  keep(*std::move(change.job));
  if (std::holds_alternative<reconcile::StartAttempt>(pending.command)) TRY(use_up(*jobs_[number]));
  return jobs_[number];
}

// Applies a command. If the job's record makes the command impossible, only that job fails.
Result<reconcile::Change> CommitBatch::apply_alone(const reconcile::Subject& subject,
                                                   reconcile::Command& command) const {
  std::string why;
  try {
    return reconcile::apply(subject, command, now_);
  } catch (const std::exception& fault) {
    why = "the command " + std::string(reconcile::kind_of(command)) +
          " cannot be applied to the job: " + fault.what();
  }
  if (!subject.job || subject.job->finished() || std::holds_alternative<reconcile::Fail>(command))
    return internal(why);
  try {
    command = reconcile::Fail{subject.job->number, why};
    return reconcile::apply(subject, command, now_);
  } catch (const std::exception&) {
    return internal(why);
  }
}

Result<void> CommitBatch::commit() {
  if (batch_.commands.empty()) return {};
  for (const auto& [number, job] : jobs_) batch_.jobs.push_back(*job);
  for (auto& each : tags_) batch_.tags.push_back(each);
  batch_.usages.assign(usages_.begin(), usages_.end());
  return ledger_.commit(batch_);
}

std::vector<std::shared_ptr<const Job>> CommitBatch::changed() const {
  std::vector<std::shared_ptr<const Job>> changed;
  changed.reserve(jobs_.size());
  for (const auto& [number, job] : jobs_) changed.push_back(job);
  return changed;
}

// Checks the name of a new job, and assigns its number and its position in a queue.
Result<void> CommitBatch::assign_position(CreateJob& create) {
  const auto taken = job(create.key);
  if (taken) return name_taken(create.key);
  if (taken.error().kind != Kind::not_found) return taken.error();
  create.number = last_number_ + 1;
  create.clock_offset = clock_offset_;
  return create.spec.queue ? put_into_queue(create) : Result<void>();
}

// Errors: invalid, for a queue that accepts no jobs, for unknown dependencies, and for arrays of
// another size.
Result<void> CommitBatch::put_into_queue(CreateJob& created) {
  const batch::JobQueue* queue = catalog_->queue({created.key.region, created.spec.queue->name});
  if (!queue) return invalid("the job queue " + created.spec.queue->name + " does not exist");
  TRY(batch::check_fits_queue(*catalog_, *queue, created.spec));
  const auto add = [](std::vector<JobNumber>& numbers, JobNumber number) {
    if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
  };
  for (const std::string& id : created.spec.depends_on)
    add(created.awaits, TRY(number_of(created, id, false)));
  for (const std::string& id : created.spec.depends_on_alike)
    add(created.awaits_alike, TRY(number_of(created, id, true)));
  return {};
}

// Returns the number of a job that `created` depends on.
Result<JobNumber> CommitBatch::number_of(const CreateJob& created, const std::string& id,
                                         bool child_by_child) {
  const auto found = job(JobKey{created.key.region, id});
  if (!found && found.error().kind != Kind::not_found) return found.error();
  if (!found || !(*found)->spec.queue)
    return invalid("the job " + id + " that it depends on does not exist");
  const Job& other = **found;
  if (!child_by_child) return other.number;
  const std::string size = std::to_string(created.spec.array.size);
  if (!other.is_array())
    return invalid("an N_TO_N dependency is on an array job of the same size, here " + size +
                   ", and the job " + id + " is not an array");
  if (other.spec.array.size != created.spec.array.size)
    return invalid("an N_TO_N dependency is on an array job of the same size, here " + size +
                   ", and the job " + id + " has " + std::to_string(other.spec.array.size) +
                   " children");
  return other.number;
}

// Returns the children that exist already, since they were cancelled before their creation.
Result<std::set<JobNumber>> CommitBatch::made_before(const Job& array,
                                                     const reconcile::MakeChildren& make) {
  ledger::ChildQuery query;
  query.array = array.number;
  query.first = array.children_made;
  query.end = array.children_made + make.count;
  query.children_max = ledger::kPageJobsMax;
  std::set<JobNumber> numbers;
  for (;;) {
    const auto page = TRY(ledger_.children(query));
    for (const Job& child : page) numbers.insert(child.number);
    if (page.size() < query.children_max) break;
    query.first = domain::array_index(page.back()) + 1;
  }
  const auto last = jobs_.upper_bound(domain::last_number_of(array));
  for (auto here = jobs_.upper_bound(array.number); here != last; ++here)
    numbers.insert(here->first);
  return numbers;
}

// Returns nullptr, since no job is concerned.
CommitBatch::Found CommitBatch::change_resource(PendingCommand& pending) {
  const auto& change_of = std::get<reconcile::ChangeResource>(pending.command);
  const batch::JobDefinition* last = nullptr;
  if (std::holds_alternative<batch::JobDefinition>(change_of.resource)) {
    const JobKey& key = batch::key_of(change_of.resource);
    if (!definitions_.contains(key)) {
      ledger::DefinitionQuery query;
      query.region = key.region;
      query.name = key.name;
      query.definitions_max = 1;
      auto found = TRY(definitions_of(TRY(ledger_.definitions(query))));
      if (!found.empty()) definitions_.emplace(key, std::move(found.front()));
    }
    if (const auto found = definitions_.find(key); found != definitions_.end())
      last = &found->second;
  }
  reconcile::Change change =
      TRY(reconcile::apply({nullptr, nullptr, catalog_.get(), last}, pending.command, now_));
  remember(pending.command);
  if (auto* definition = std::get_if<batch::JobDefinition>(&*change.resource);
      definition && change_of.how == batch::ResourceChange::create)
    definitions_.insert_or_assign(definition->key, *definition);
  auto next_cluster = std::make_shared<batch::Catalog>(*catalog_);
  batch::put(*next_cluster, change_of.how, *change.resource);
  catalog_ = std::move(next_cluster);
  batch_.resources.push_back(
      {record_of(*change.resource), change_of.how == batch::ResourceChange::remove});
  // A later queue of that name begins without usage.
  if (change_of.how == batch::ResourceChange::remove &&
      std::holds_alternative<batch::JobQueue>(*change.resource))
    forget_usages(batch::key_of(*change.resource), true);
  pending.resource = std::move(change.resource);
  return std::shared_ptr<const Job>();
}

// Returns nullptr, since no job is concerned.
CommitBatch::Found CommitBatch::change_records(const PendingCommand& pending) {
  reconcile::Subject subject;
  subject.records = records_.get();
  reconcile::Change change = TRY(reconcile::apply(subject, pending.command, now_));
  remember(pending.command);
  records_ = std::move(change.records);
  for (const domain::RecordWrite& write :
       std::get<reconcile::ChangeRecords>(pending.command).writes) {
    const auto found = records_->all.find(write.key);
    batch_.records.emplace_back(write.key, found == records_->all.end() ? nullptr : found->second);
  }
  return std::shared_ptr<const Job>();
}

// Subtracts the resources that an attempt uses up from their totals.
Result<void> CommitBatch::use_up(const Job& placed) {
  if (!placed.spec.queue) return {};
  for (const domain::Consumption& each : placed.spec.queue->consumes) {
    const batch::ConsumableResource* resource =
        catalog_->resource({placed.key.region, each.resource});
    if (!resource || resource->replenishable) continue;
    batch::ConsumableResource change = *resource;
    // The total may have been reduced since the scheduler read it.
    change.add = -std::min(each.quantity, resource->total);
    PendingCommand taking{
        reconcile::ChangeResource{batch::ResourceChange::update, std::move(change)}, {}, {}, {}};
    TRY(change_resource(taking));
  }
  return {};
}

// Adds an attempt that has ended to the usage of its share.
void CommitBatch::account(const Job* before, const Job& after) {
  const auto share = domain::share_of(after);
  if (!share) return;
  const auto here = usages_.find(*share);
  const auto present = here != usages_.end() ? here->second : stored_usages_.find(*share);
  auto usage =
      domain::usage_after(present, before, after, batch::decay_of(*catalog_, share->queue));
  if (!usage) return;
  if (!present) forget_usages(share->queue, false);
  usages_[*share] = *usage;
}

// Removes the usage of a queue's shares: of all, or only usage that has decayed to nothing, so that
// unused share names do not accumulate.
void CommitBatch::forget_usages(const JobKey& queue, bool all) {
  const Duration decay = batch::decay_of(*catalog_, queue);
  for (const auto& [share, usage] : stored_usages_.of(queue))
    if (all || (!usages_.contains(share) && domain::is_negligible(usage, decay, now_)))
      usages_[share] = std::nullopt;
  if (!all) return;
  for (auto& [share, usage] : usages_)
    if (share.queue == queue) usage = std::nullopt;
}

void CommitBatch::remember(const reconcile::Command& command) {
  batch_.commands.push_back({++last_sequence_, now_, std::string(reconcile::kind_of(command)),
                             reconcile::body_of(command)});
}

void CommitBatch::keep(Job job) {
  const JobNumber number = job.number;
  jobs_[number] = std::make_shared<const Job>(std::move(job));
}

}  // namespace trainyard::control
