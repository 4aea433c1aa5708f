#include "events/job_events.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"

namespace trainyard::api::events {
namespace {

constexpr const char* kMarkKind = "job";
constexpr const char* kPositionKind = "position";
constexpr const char* kPositionId = "jobs";
constexpr size_t kJobsAtOnce = 200;      // in one transaction
constexpr Duration kRetryPause = 1s;     // after a fault of the store
constexpr Duration kQuietInterval = 5s;  // between writes while no rule and no client wants events
constexpr Duration kForgetInterval = 1min;
// How far before the position jobs are compared, too: a job's own time may lag behind the wall
// clock.
constexpr Duration kPositionMargin = 1h;

Json json_of(const Announced& announced) {
  Json json{{"phases", announced.phases}, {"status", announced.status}};
  if (announced.over) json["over"] = to_milliseconds(*announced.over);
  return json;
}

Result<Announced> announced_from(const Json& json) {
  Announced out;
  out.phases = size_t(TRY(int_at(json, "phases")));
  out.status = TRY(string_at(json, "status"));
  if (json.contains("over")) out.over = from_milliseconds(TRY(int_at(json, "over")));
  return out;
}

}  // namespace

JobEvents::JobEvents(notify::EventBus& bus, control::Control& control,
                     std::vector<std::string> regions, Clock& clock)
    : bus_(bus), control_(control), regions_(std::move(regions)), clock_(clock) {}

JobEvents::~JobEvents() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void JobEvents::add_change(const std::shared_ptr<const domain::Job>& job) {
  {
    const MutexLock lock(mutex_);
    if (changes_.size() < kChangesMax)
      changes_.push_back(job);
    else
      compare_ = true;
  }
  changed_.notify_one();
}

void JobEvents::add_fault(const domain::JobKey& job, const diagnosis::FaultNews& news) {
  {
    const MutexLock lock(mutex_);
    if (faults_.size() >= kFaultsMax)
      return log(Level::warning, "events", "a fault of a rank was not announced: too many wait",
                 {{"fault", news.fault.text}});
    faults_.emplace_back(job, news);
  }
  changed_.notify_one();
}

Result<void> JobEvents::open() {
  const auto documents = TRY(bus_.notifications().documents());
  for (const auto& each : documents)
    if (const auto done = read_document(each); !done)
      notify::log_ignored_record(each.kind, each.id, done.error());
  return {};
}

Result<void> JobEvents::read_document(const notify::Document& each) {
  if (!each.body) return {};
  if (each.kind == kPositionKind && each.id == kPositionId)
    position_ = from_milliseconds(TRY(int_at(*each.body, "modified")));
  if (each.kind != kMarkKind) return {};
  const auto number = TRY(parse_int(each.id));
  announced_[domain::JobNumber(number)] = TRY(announced_from(*each.body));
  return {};
}

void JobEvents::start() {
  thread_ = std::thread([this] { run(); });
}

void JobEvents::run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (changes_.empty() && faults_.empty() && !compare_ && is_written_) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    const auto stepped = step();
    if (!stepped)
      log(Level::error, "events", "cannot store the events of jobs; retrying later",
          {{"why", stepped.error().message}});
    lock.lock();
    if (!stopping_ && !stepped)
      changed_.wait_for(lock, kRetryPause);
    else if (!stopping_ && changes_.empty() && faults_.empty() && !is_written_)
      changed_.wait_for(lock, kQuietInterval);
  }
}

std::deque<JobEvents::JobPointer> JobEvents::take(bool& compare) {
  const MutexLock lock(mutex_);
  compare = std::exchange(compare_, false);
  return std::exchange(changes_, {});
}

// Puts the events of faults. Faults that cannot be put are dropped, since they would soon be
// outdated.
Result<void> JobEvents::announce_faults() {
  std::deque<std::pair<domain::JobKey, diagnosis::FaultNews>> faults;
  {
    const MutexLock lock(mutex_);
    faults.swap(faults_);
  }
  std::vector<notify::Event> events;
  for (const auto& [key, news] : faults) {
    const auto job = control_.find(key);
    if (job && bus_.wanted((*job)->key.region))
      events.push_back(fault_event(**job, news, clock_.now()));
  }
  if (!events.empty()) TRY(bus_.put(std::move(events)));
  return {};
}

Result<void> JobEvents::step() {
  TRY(announce_faults());
  bool compare = false;
  std::deque<JobPointer> jobs = take(compare);
  // After a fault these changes are queued before newer ones.
  const auto put_back = [&](Error error) -> Result<void> {
    const MutexLock lock(mutex_);
    compare_ = compare_ || compare;
    changes_.insert(changes_.begin(), jobs.begin(), jobs.end());
    return error;
  };
  if (compare) {
    std::deque<JobPointer> all;
    if (auto compared = compare_all(all); !compared) return put_back(compared.error());
    jobs.insert(jobs.begin(), all.begin(), all.end());
    compare = false;
  }
  if (auto announced = announce(jobs); !announced) return put_back(announced.error());
  return {};
}

// Finds all jobs that may have changed since the position. A new store has no position; then the
// current state of all jobs counts as announced.
Result<void> JobEvents::compare_all(std::deque<JobPointer>& jobs) {
  const Instant now = clock_.now();
  const auto live = control_.live_jobs();
  if (!position_) {
    for (const auto& job : live) announced_[job->number] = announced_of(*job, now);
    position_ = now;
    for (const auto& [number, announced] : announced_) unwritten_.insert(number);
    is_written_ = false;
    return {};
  }
  std::copy(live.begin(), live.end(), std::back_inserter(jobs));
  for (const auto& region : regions_) {
    ledger::JobQuery query;
    query.region = region;
    query.modified_after = *position_ - kPositionMargin;
    query.jobs_max = ledger::kPageJobsMax;
    do {
      auto page = TRY(control_.list(query));
      for (auto& job : page.jobs)
        jobs.push_back(std::make_shared<const domain::Job>(std::move(job)));
      query.token = page.next_token;
    } while (!query.token.empty());
  }
  const size_t parents = jobs.size();
  for (size_t i = 0; i < parents; ++i)
    if (jobs[i]->is_array()) TRY(add_children(*jobs[i], jobs));
  return {};
}

Result<void> JobEvents::add_children(const domain::Job& array, std::deque<JobPointer>& jobs) {
  ledger::ChildQuery query;
  query.array = array.number;
  query.end = array.children_made;
  query.children_max = ledger::kPageJobsMax;
  while (query.first < query.end) {
    auto children = TRY(control_.children(array, query));
    if (children.empty()) break;
    query.first += uint32_t(children.size());
    for (auto& child : children) {
      if (child.modified >= *position_ - kPositionMargin)
        jobs.push_back(std::make_shared<const domain::Job>(std::move(child)));
    }
  }
  return {};
}

// Forgets jobs that ended long ago. Their marks are removed at the next write.
void JobEvents::forget_old(Instant now) {
  if (now < forgot_ + kForgetInterval) return;
  forgot_ = now;
  for (auto at = announced_.begin(); at != announced_.end();) {
    if (at->second.over && *at->second.over + kOverKept < now) {
      unwritten_.insert(at->first);
      is_written_ = false;
      at = announced_.erase(at);
    } else {
      ++at;
    }
  }
}

// Compares a job with what was announced of it, and adds what is new. `changed`: the other jobs of
// this step that changed.
void JobEvents::compare(const domain::Job& job, Instant now,
                        std::map<domain::JobNumber, Announced>& changed,
                        std::vector<notify::Event>& events) const {
  const auto earlier = changed.find(job.number);
  const auto known = announced_.find(job.number);
  const Announced before = earlier != changed.end()    ? earlier->second
                           : known != announced_.end() ? known->second
                                                       : Announced{};
  Announced after = announced_of(job, now);
  // A page of the ledger may be older than the last announcement.
  if (before.over || after.phases < before.phases || after == before) return;
  if (bus_.wanted(job.key.region)) {
    auto due = due_events(job, before, now);
    if (due)
      std::move(due->begin(), due->end(), std::back_inserter(events));
    else  // one job that cannot be described must not stop the others
      log(Level::error, "events", "a change of a job was not announced",
          {{"job", job.key.name}, {"why", due.error().message}});
  }
  changed[job.number] = std::move(after);
}

// Stores events with the marks of what is then announced.
Result<void> JobEvents::write(std::vector<notify::Event> events,
                              const std::map<domain::JobNumber, Announced>& changed,
                              Instant position) {
  std::vector<notify::Document> documents;
  const auto add_mark = [&](domain::JobNumber job, const Announced* announced) {
    documents.push_back({kMarkKind, std::to_string(job),
                         announced ? std::optional(json_of(*announced)) : std::nullopt});
  };
  for (const auto job : unwritten_) {
    const auto found = announced_.find(job);
    if (!changed.contains(job)) add_mark(job, found == announced_.end() ? nullptr : &found->second);
  }
  for (const auto& [job, announced] : changed) add_mark(job, &announced);
  documents.push_back({kPositionKind, kPositionId, Json{{"modified", to_milliseconds(position)}}});
  TRY(bus_.put(std::move(events), std::move(documents)));
  unwritten_.clear();
  is_written_ = true;
  return {};
}

// Announces jobs, and removes them from the front of the queue. Without events, marks are written
// only after kQuietInterval.
Result<void> JobEvents::announce(std::deque<JobPointer>& jobs) {
  do {
    const Instant now = clock_.now();
    const size_t count = std::min(jobs.size(), kJobsAtOnce);
    std::vector<notify::Event> events;
    std::map<domain::JobNumber, Announced> changed;
    Instant position = position_.value_or(now);
    for (size_t i = 0; i < count; ++i) {
      compare(*jobs[i], now, changed, events);
      if (changed.contains(jobs[i]->number))
        position = std::max(position, std::min(jobs[i]->modified, now));
    }
    forget_old(now);
    if (!events.empty() ||
        ((!changed.empty() || !is_written_) && now >= written_ + kQuietInterval)) {
      TRY(write(std::move(events), changed, position));
      written_ = now;
    } else {
      for (const auto& [number, announced] : changed) unwritten_.insert(number);
      is_written_ = is_written_ && changed.empty();
    }
    for (auto& [number, announced] : changed) announced_[number] = std::move(announced);
    position_ = position;
    jobs.erase(jobs.begin(), jobs.begin() + long(count));
  } while (!jobs.empty());
  return {};
}

}  // namespace trainyard::api::events
