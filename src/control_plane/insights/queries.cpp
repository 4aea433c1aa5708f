// A thread takes a waiting query of the principal that follows, in the order of names, the one that
// was served last. A principal with queries on all threads but one is passed over, unless no other
// principal waits and a thread stays free.
#include "insights/queries.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "insights/message_filter.hpp"

namespace trainyard::insights {
namespace {

constexpr uint64_t kEventOverheadBytes = 26;  // as AWS counts

bool has_ended(QueryState state) {
  return state != QueryState::scheduled && state != QueryState::running;
}

// The events of one group in order of time, a page at a time: those that the query may use.
class GroupReader {
 public:
  GroupReader(observe::Logs& logs, const QueryRequest& request, const std::string& group)
      : logs_(logs), request_(request), group_(group), log_(request.account + ":" + group) {}

  // Loads the next page if the current one is used up. Returns false at the end.
  Result<bool> fill() {
    if (has_event()) return true;
    if (page_.ended) return false;
    if (!scan_)
      scan_ = TRY(logs_.scan(request_.region, group_,
                             {.from = request_.from,
                              .to = request_.to + 1ms,
                              .wanted = message_filter(request_.query)}));
    page_ = TRY(scan_->next());
    at_ = 0;
    // A page without events is not the last one: the caller looks whether to continue.
    return has_event() || !page_.ended;
  }
  bool has_event() const { return at_ < page_.events.size(); }
  Instant at() const { return page_.events[at_].event.at; }
  // Later events are not earlier than this.
  Instant reached() const { return has_event() ? at() : page_.reached; }
  // Events read so far, and their bytes.
  uint64_t scanned() const { return page_.scanned; }
  uint64_t scanned_bytes() const {
    return page_.scanned_bytes + page_.scanned * kEventOverheadBytes;
  }
  std::shared_ptr<const Event> take() {
    auto& found = page_.events[at_++];
    return std::make_shared<const Event>(Event{.group = group_,
                                               .log = log_,
                                               .stream = std::move(found.stream),
                                               .position = found.position,
                                               .at = to_milliseconds(found.event.at),
                                               .ingested = to_milliseconds(found.event.ingested),
                                               .message = std::move(found.event.message)});
  }

 private:
  observe::Logs& logs_;
  const QueryRequest& request_;
  const std::string group_, log_;
  std::unique_ptr<observe::LogScan> scan_;  // nullptr: before the first page
  observe::ScanPage page_;
  size_t at_ = 0;
};

}  // namespace

struct Queries::Run {
  std::string id;
  QueryRequest request;
  Instant created;
  std::chrono::nanoseconds began{};
  std::atomic<bool> stop = false;
  // Written by the thread that runs it, read by reports.
  std::atomic<uint64_t> matched = 0, scanned = 0, scanned_bytes = 0, skipped = 0;
  std::atomic<int64_t> reached = 0;  // the time of the last event, in milliseconds
  // These are read and written with the lock of Queries.
  QueryState state = QueryState::scheduled;
  Duration took{};
  std::chrono::nanoseconds ended{};
  std::string why;
  std::shared_ptr<const std::vector<ResultRow>> rows;
  size_t bytes = 0;
};

Queries::Queries(observe::Logs& logs, Clock& clock, Random& random, QuerySettings settings)
    : logs_(logs), clock_(clock), random_(random), settings_(settings) {
  for (size_t i = 0; i < std::max<size_t>(2, settings_.threads); ++i)
    threads_.emplace_back([this] { work(); });
}

Queries::~Queries() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& [id, run] : runs_) run->stop = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

Result<std::string> Queries::start(QueryRequest request) {
  auto run = std::make_shared<Run>();
  run->created = clock_.now();
  run->request = std::move(request);
  const MutexLock lock(mutex_);
  run->id = random_.uuid();
  forget_locked();
  const std::string& principal = run->request.principal;
  size_t active = 0, all = 0;
  for (const auto& [name, ids] : waiting_) {
    all += ids.size();
    if (name == principal) active += ids.size();
  }
  for (const auto& [name, count] : running_) {
    all += count;
    if (name == principal) active += count;
  }
  if (active >= settings_.queries_per_principal_max || all >= settings_.queries_max)
    return exhausted(std::to_string(all) + " queries are waiting or running, " +
                     std::to_string(active) +
                     " of them of this principal; retry when some have ended");
  waiting_[principal].push_back(run->id);
  order_.push_back(run->id);
  const std::string id = run->id;
  runs_.emplace(id, std::move(run));
  changed_.notify_all();
  return id;
}

void Queries::wait(const std::string& id, Duration at_most) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, at_most, [&]() REQUIRES(mutex_) {
    const auto found = runs_.find(id);
    return stopping_ || found == runs_.end() || has_ended(found->second->state);
  });
}

QueryReport Queries::report_of(const Run& run) {
  QueryReport report{.id = run.id,
                     .request = run.request,
                     .state = run.state,
                     .created = run.created,
                     .took = run.took,
                     .statistics = {run.matched, run.scanned, run.scanned_bytes, run.skipped, 0},
                     .why = run.why,
                     .rows = run.rows};
  const double from = double(to_milliseconds(run.request.from)),
               to = double(to_milliseconds(run.request.to));
  if (run.state == QueryState::complete)
    report.statistics.progress = 1;
  else if (run.reached != 0 && to > from)
    report.statistics.progress = std::clamp((double(run.reached) - from) / (to - from), 0.0, 1.0);
  return report;
}

std::optional<QueryReport> Queries::find(const std::string& id) {
  const MutexLock lock(mutex_);
  forget_locked();
  const auto found = runs_.find(id);
  if (found == runs_.end()) return {};
  return report_of(*found->second);
}

Result<bool> Queries::stop(const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = runs_.find(id);
  if (found == runs_.end()) return not_found("unknown query " + shorten(id, 64));
  Run& run = *found->second;
  if (has_ended(run.state)) return false;
  run.stop = true;
  if (run.state == QueryState::scheduled) {
    auto& ids = waiting_[run.request.principal];
    std::erase(ids, id);
    if (ids.empty()) waiting_.erase(run.request.principal);
    run.ended = clock_.monotonic();
  }
  run.state = QueryState::cancelled;
  changed_.notify_all();
  return true;
}

void Queries::forget(const std::string& region, const std::string& group) {
  const MutexLock lock(mutex_);
  std::erase_if(order_, [&](const std::string& id) REQUIRES(mutex_) {
    const auto found = runs_.find(id);
    Run& run = *found->second;
    if (run.request.region != region ||
        std::ranges::find(run.request.groups, group) == run.request.groups.end())
      return false;
    run.stop = true;
    if (run.state == QueryState::scheduled) {
      auto& ids = waiting_[run.request.principal];
      std::erase(ids, id);
      if (ids.empty()) waiting_.erase(run.request.principal);
    }
    if (!has_ended(run.state)) run.state = QueryState::cancelled;
    runs_.erase(found);  // a thread that runs it still holds it
    return true;
  });
  changed_.notify_all();
}

std::vector<QueryReport> Queries::list(const std::string& region) {
  const MutexLock lock(mutex_);
  forget_locked();
  std::vector<QueryReport> reports;
  for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
    const Run& run = *runs_.at(*id);
    if (run.request.region != region) continue;
    reports.push_back(report_of(run));
    reports.back().rows = nullptr;
  }
  return reports;
}

// Drops ended queries that are too old, too many or too large, the oldest first.
void Queries::forget_locked() {
  size_t kept = 0, bytes = 0;
  const auto now = clock_.monotonic();
  std::deque<std::string> order;
  for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
    const auto found = runs_.find(*id);
    const Run& run = *found->second;
    if (run.ended != std::chrono::nanoseconds{}) {
      bytes += run.bytes;
      if (++kept > settings_.kept_max || bytes > settings_.kept_bytes_max ||
          now - run.ended > settings_.kept_time) {
        runs_.erase(found);
        continue;
      }
    }
    order.push_front(*id);
  }
  order_ = std::move(order);
}

std::shared_ptr<Queries::Run> Queries::next_locked() {
  if (waiting_.empty()) return nullptr;
  const size_t own_max = threads_.size() - 1;
  auto next = waiting_.upper_bound(last_served_);
  for (size_t i = 0; i < waiting_.size(); ++i, ++next) {
    if (next == waiting_.end()) next = waiting_.begin();
    const auto running = running_.find(next->first);
    if (next->second.empty() || (running != running_.end() && running->second >= own_max)) continue;
    const std::string principal = next->first;
    const auto run = runs_.at(next->second.front());
    next->second.pop_front();
    if (next->second.empty()) waiting_.erase(next);
    last_served_ = principal;
    ++running_[principal];
    run->state = QueryState::running;
    run->began = clock_.monotonic();
    return run;
  }
  return nullptr;
}

void Queries::work() {
  for (;;) {
    std::shared_ptr<Run> run;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [&]() REQUIRES(mutex_) {
        if (!stopping_) run = next_locked();
        return stopping_ || run;
      });
      if (!run) return;
    }
    Result<std::vector<ResultRow>> result = invalid("");
    try {
      result = execute(*run);
    } catch (const std::exception& fault) {
      result = internal("the query threw: " + std::string(fault.what()));
    }
    end(run, std::move(result));
  }
}

void Queries::end(const std::shared_ptr<Run>& run, Result<std::vector<ResultRow>> result) {
  const MutexLock lock(mutex_);
  const std::string& principal = run->request.principal;
  if (--running_[principal] == 0) running_.erase(principal);
  run->ended = clock_.monotonic();
  run->took = std::chrono::duration_cast<Duration>(run->ended - run->began);
  if (run->state == QueryState::running) {
    if (result) {
      for (const ResultRow& row : *result)
        for (const auto& [name, text] : row) run->bytes += name.size() + text.size() + 64;
      run->rows = std::make_shared<const std::vector<ResultRow>>(*std::move(result));
      run->state = QueryState::complete;
    } else {
      run->why = result.error().message;
      run->state =
          result.error().kind == Kind::cancelled ? QueryState::timed_out : QueryState::failed;
      log(Level::warning, "insights", "a query failed",
          {{"query", run->id}, {"principal", principal}, {"why", run->why}});
    }
  }
  changed_.notify_all();
}

Result<std::vector<ResultRow>> Queries::execute(Run& run) {
  const QueryRequest& request = run.request;
  Limits limits = settings_.limits;
  limits.rows_max = std::min(limits.rows_max, request.rows_max);
  Pipeline pipeline(*request.query, run.created, limits);
  std::vector<GroupReader> readers;
  for (const std::string& group : request.groups) readers.emplace_back(logs_, request, group);
  const auto deadline = run.began + settings_.run_time_max;
  for (bool more = true; more;) {
    if (run.stop) return invalid("the query was stopped");
    if (clock_.monotonic() > deadline)
      return cancelled("the query ran for longer than the limit of " +
                       std::to_string(settings_.run_time_max / 1min) + " minutes");
    GroupReader* first = nullptr;
    uint64_t scanned = 0, scanned_bytes = 0;
    for (GroupReader& reader : readers) {
      const bool continues = TRY(reader.fill());
      scanned += reader.scanned();
      scanned_bytes += reader.scanned_bytes();
      if (continues && (!first || reader.reached() < first->reached())) first = &reader;
    }
    run.scanned = scanned;
    run.scanned_bytes = scanned_bytes;
    if (scanned_bytes > settings_.scanned_bytes_max)
      return exhausted("the query reads more than the limit of " +
                       human_bytes(settings_.scanned_bytes_max) + "; choose a shorter time range");
    if (!first) break;
    run.reached = to_milliseconds(first->reached());
    if (!first->has_event()) continue;  // its next page is not loaded
    more = TRY(pipeline.take(first->take()));
    run.matched = pipeline.matched();
    run.skipped = pipeline.skipped();
  }
  return pipeline.finish();
}

Result<Event> find_record(observe::Logs& logs, const std::string& region,
                          const std::string& account, const std::string& pointer) {
  const auto text = from_base64(pointer);
  const auto parts = text ? parse_json(*text) : Result<Json>(invalid(""));
  if (!parts || !parts->is_array() || parts->size() != 3 || !(*parts)[0].is_string() ||
      !(*parts)[1].is_string() || !(*parts)[2].is_number_unsigned())
    return invalid("The specified log record pointer is invalid.");
  Event event{.group = (*parts)[0].get<std::string>(),
              .stream = (*parts)[1].get<std::string>(),
              .position = (*parts)[2].get<uint64_t>()};
  event.log = account + ":" + event.group;
  observe::ReadQuery query{.position = event.position, .events_max = 1};
  auto page = TRY(logs.read({region, event.group, event.stream}, query));
  if (page.events.empty() || page.begin != event.position)
    return not_found("the log event of this pointer is no longer stored",
                     observe::LogResource::stream);
  event.at = to_milliseconds(page.events[0].at);
  event.ingested = to_milliseconds(page.events[0].ingested);
  event.message = std::move(page.events[0].message);
  return event;
}

}  // namespace trainyard::insights
