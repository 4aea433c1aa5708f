#include "gradients/fusion/negotiator.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "base/thread_safety.hpp"
#include "collectives/plan/plan.hpp"
#include "gradients/fusion/carrier.hpp"
#include "gradients/fusion/handle_state.hpp"
#include "gradients/fusion/negotiation.hpp"
#include "gradients/fusion/tuner.hpp"

namespace trainyard::gradients {
namespace {

using std::chrono::nanoseconds;

// While a thread waits for a handle, the pause between cycles is this fraction of the cycle time:
// other tensors may follow soon, but a full pause would only delay.
constexpr int kWaitedForDivisor = 8;
// Copying these bytes in and out at 10 GB/s takes as long as a call: some 20 us in shared memory,
// some 200 us between hosts.
constexpr uint64_t kFusedBytesMaxOnOneHost = uint64_t{128} << 10;
constexpr uint64_t kFusedBytesMaxBetweenHosts = uint64_t{1} << 20;
// Limits the report of a rank and the answer of rank 0: a hundred thousand tensors.
constexpr uint64_t kMessageBytesMax = uint64_t{64} << 20;

// The values that rank 0 sends to all ranks at the start.
struct Common {
  uint64_t fusion_bytes;
  uint64_t cycle_microseconds;
  uint64_t cache_entries_max;
  int64_t stall_report_ms;
  int64_t stall_fail_ms;
  uint64_t reproducible;
  uint64_t fused_tensor_bytes_max;
};

std::string ranks_text(const std::vector<uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  return text;
}

}  // namespace

class Negotiator::Impl {
 public:
  Impl(std::unique_ptr<collectives::Group> group, Options options, Negotiation::Limits limits)
      : options_(std::move(options)),
        group_(std::move(group)),
        began_(std::chrono::steady_clock::now()),
        carrier_(*group_, options_.on_event, [this] { return since_began(); }),
        negotiation_(group_->rank(), group_->size(), limits) {
    sets_ = negotiation_.sets();
    settings_ = negotiation_.settings();
    if (options_.autotune && group_->rank() == 0) tuner_.emplace(settings_, options_.autotune_seed);
    tuning_ = tuner_.has_value();
    thread_ = std::thread([this] { loop(); });
  }

  ~Impl() { stop(); }

  collectives::Group& group() { return *group_; }
  std::chrono::steady_clock::time_point began() const { return began_; }

  std::vector<Handle> submit(std::vector<Request> requests) {
    std::vector<Handle> handles;
    std::vector<Work> works;
    for (Request& request : requests) {
      Work work{std::move(request), {}, std::make_shared<Handle::State>(notifier_), since_began()};
      handles.emplace_back(work.state);
      works.push_back(std::move(work));
    }
    Result<void> fine;
    for (Work& work : works) {
      if (auto described = describe(work); !described) {
        fine = std::move(described).error().in(work.request.name);
        break;
      }
    }
    bool ended = false;
    if (fine) {
      const MutexLock lock(notifier_->mutex);
      ended = ended_.has_value();
      fine = ended ? Result<void>(*ended_) : take_names(works);
      if (fine) {
        for (Work& work : works) {
          work.number = ++submissions_;
          outstanding_.emplace(work.number, work.request.name);
          inbox_.push_back(std::move(work));
        }
      }
    }
    if (!fine) {
      for (Work& work : works) {
        work.state->refused = !ended;
        finish(work, fine.error());
      }
    } else {
      notifier_->changed.notify_all();
    }
    return handles;
  }

  std::vector<int> members_of(int set) const {
    const MutexLock lock(notifier_->mutex);
    const auto found = sets_.find(set);
    return found == sets_.end() ? std::vector<int>{} : found->second;
  }

  void stop() {
    {
      const MutexLock lock(notifier_->mutex);
      stopping_ = true;
    }
    notifier_->changed.notify_all();
    const MutexLock lock(stop_mutex_);
    if (thread_.joinable()) thread_.join();
  }

  Counters counters() const {
    const MutexLock lock(notifier_->mutex);
    return counters_;
  }
  bool tuning() const { return tuning_; }
  Settings settings() const {
    const MutexLock lock(notifier_->mutex);
    return settings_;
  }
  std::vector<std::string> outstanding() const {
    const MutexLock lock(notifier_->mutex);
    std::vector<std::string> names;
    for (const auto& [number, name] : outstanding_) names.push_back(name);
    return names;
  }

 private:
  struct Work {
    Request request;
    Signature signature;
    std::shared_ptr<Handle::State> state;
    nanoseconds submitted{};
    uint64_t number = 0;  // position among this rank's requests; 0: refused
  };

  nanoseconds since_began() const { return std::chrono::steady_clock::now() - began_; }
  Duration now() const { return std::chrono::duration_cast<Duration>(since_began()); }

  static bool has_name(const Work& work) { return work.signature.operation != Operation::join; }
  Result<void> describe(Work& work) const;
  // Registers the names of all works, or of none if a name is outstanding. Requires: the notifier's
  // mutex is held.
  Result<void> take_names(const std::vector<Work>& works) REQUIRES(notifier_->mutex);
  void finish(Work& work, Result<Outcome> result) {
    {
      const MutexLock lock(notifier_->mutex);
      if (outstanding_.erase(work.number) > 0 && has_name(work))
        names_.erase(key_of(work.signature));
    }
    if (work.request.on_done) work.request.on_done(result);
    work.state->finish(std::move(result));
  }

  void loop();
  void pause();
  void take_inbox();
  Result<void> cycle();
  Result<std::vector<uint64_t>> and_over_all(std::vector<uint64_t> bits);
  Result<void> exchange_with_rank_0();
  Result<void> carry_out(Plan& plan);
  void tune(const Plan& plan);
  void fail_all(const Error& error);
  void note(const Plan& plan, bool slow);
  bool has_news() const REQUIRES(notifier_->mutex) {
    return stopping_ || notifier_->hurry || !inbox_.empty();
  }
  Result<void> abandon_on_error(Result<void> result);

  const Options options_;
  const std::unique_ptr<collectives::Group> group_;
  const std::chrono::steady_clock::time_point began_;
  const std::shared_ptr<Notifier> notifier_ = std::make_shared<Notifier>();

  std::deque<Work> inbox_ GUARDED_BY(notifier_->mutex);  // bounded by the tensors of the callers
  bool stopping_ GUARDED_BY(notifier_->mutex) = false;
  std::optional<Error> ended_ GUARDED_BY(notifier_->mutex);  // set: nothing more is carried out
  Sets sets_ GUARDED_BY(notifier_->mutex);
  Settings settings_ GUARDED_BY(notifier_->mutex);
  Counters counters_ GUARDED_BY(notifier_->mutex);
  uint64_t submissions_ GUARDED_BY(notifier_->mutex) = 0;
  std::map<uint64_t, std::string> outstanding_ GUARDED_BY(notifier_->mutex);  // names by number
  // keys of outstanding requests, except joins
  std::set<std::string> names_ GUARDED_BY(notifier_->mutex);

  // Confined to the background thread.
  Carrier carrier_;
  Negotiation negotiation_;
  std::map<std::string, Work> works_;  // by key
  std::map<int, Work> joins_;          // by set
  nanoseconds cycle_began_{};
  bool over_ = false;
  std::optional<Tuner> tuner_;
  nanoseconds tuned_at_{};

  std::atomic<bool> tuning_ = false;

  Mutex stop_mutex_;
  std::thread thread_ GUARDED_BY(stop_mutex_);  // once it runs
};

// Fills the signature of a request, and checks that the request is valid.
Result<void> Negotiator::Impl::describe(Work& work) const {
  const Request& request = work.request;
  Signature& signature = work.signature;
  const bool brings = request.input.data != nullptr || request.operation != Operation::broadcast;
  const collectives::ConstBufferView numbers =
      brings ? request.input : collectives::ConstBufferView(request.output);
  signature = {request.name,     request.operation, numbers.type,  request.reduction,
               request.prescale, request.postscale, request.root,  request.compression,
               request.priority, request.set,       request.group, request.group_members,
               request.shape,    request.splits};
  if (request.name.empty()) return invalid("the request has no name");
  const bool has_numbers = request.operation < Operation::barrier;
  if (!has_numbers) return ok();
  if (signature.shape.empty() && numbers.count != 1) signature.shape = {numbers.count};
  if (signature.elements() != numbers.count)
    return invalid("the shape does not match the buffer's " + std::to_string(numbers.count) +
                   " elements");
  const bool same_size =
      request.operation == Operation::allreduce || request.operation == Operation::adasum ||
      (request.operation == Operation::broadcast && request.input.data && request.output.data);
  if (same_size &&
      (request.output.count != request.input.count || request.output.type != request.input.type))
    return invalid("the input and the output differ in size or type");
  if (request.operation == Operation::all_to_all && signature.splits.empty()) {
    const auto members = members_of(request.set);
    for (size_t member = 0; member < members.size(); ++member)
      signature.splits.push_back(
          collectives::plan::piece(signature.rows(), int(member), int(members.size())).size());
  }
  return ok();
}

Result<void> Negotiator::Impl::take_names(const std::vector<Work>& works) {
  for (size_t taken = 0; taken < works.size(); ++taken) {
    const Signature& signature = works[taken].signature;
    if (!has_name(works[taken]) || names_.insert(key_of(signature)).second) continue;
    while (taken-- > 0) names_.erase(key_of(works[taken].signature));
    return conflict(name_of(signature) +
                    ": a tensor of this name was submitted already and is not done");
  }
  return ok();
}

void Negotiator::Impl::pause() {
  MutexLock lock(notifier_->mutex);
  const nanoseconds cycle = std::chrono::microseconds(settings_.cycle_microseconds);
  const bool alone = sets_.size() == 1;
  if (negotiation_.idle() && !has_news()) {
    const nanoseconds idle = alone ? std::max<nanoseconds>(options_.idle_cycle, cycle) : cycle;
    notifier_->changed.wait_for(lock, idle,
                                [&]() REQUIRES(notifier_->mutex) { return has_news(); });
  }
  while (!stopping_ && !notifier_->hurry) {
    const auto until =
        began_ + cycle_began_ + (notifier_->waiting > 0 ? cycle / kWaitedForDivisor : cycle);
    if (std::chrono::steady_clock::now() >= until) break;
    notifier_->changed.wait_until(lock, until);
  }
  notifier_->hurry = false;
}

void Negotiator::Impl::take_inbox() {
  std::deque<Work> inbox;
  bool stopping;
  {
    const MutexLock lock(notifier_->mutex);
    inbox.swap(inbox_);
    stopping = stopping_;
  }
  if (stopping) negotiation_.leave();
  for (Work& work : inbox) {
    if (auto submitted = negotiation_.submit(work.signature, now()); !submitted) {
      finish(work, std::move(submitted).error().in(name_of(work.signature)));
    } else if (work.signature.operation == Operation::join) {
      joins_.emplace(work.signature.set, std::move(work));
    } else {
      works_.emplace(key_of(work.signature), std::move(work));
    }
  }
}

Result<std::vector<uint64_t>> Negotiator::Impl::and_over_all(std::vector<uint64_t> bits) {
  TRY(group_->run(collectives::calls::allreduce(
      {bits.data(), bits.size(), collectives::Type::i64},
      {.reduction = collectives::Reduction::bits_and, .name = "ready tensors"})));
  return bits;
}

// Ends the group if this rank has an error that the group did not report. Otherwise the other ranks
// would wait for this one.
Result<void> Negotiator::Impl::abandon_on_error(Result<void> result) {
  if (!result) group_->abandon(result.error().message);
  return result;
}

Result<void> Negotiator::Impl::exchange_with_rank_0() {
  const std::string mine = encode(negotiation_.report(now()));
  const auto ranks = size_t(group_->size());
  std::vector<uint64_t> lengths(ranks);
  const uint64_t length = mine.size();
  TRY(group_->all_gather(std::as_bytes(std::span(&length, 1)),
                         std::as_writable_bytes(std::span(lengths))));
  std::vector<size_t> counts;
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (lengths[rank] > kMessageBytesMax)
      return abandon_on_error(
          exhausted("rank " + std::to_string(rank) + " submitted too many tensors at once"));
    counts.push_back(lengths[rank]);
  }
  std::string all(std::accumulate(counts.begin(), counts.end(), size_t{0}), '\0');
  const bool answers = group_->rank() == 0;
  TRY(group_->run(collectives::calls::gather(
      collectives::buffer_view(std::as_bytes(std::span(mine))),
      answers ? collectives::buffer_view(std::as_writable_bytes(std::span(all)))
              : collectives::BufferView{},
      0, counts)));
  std::string answer;
  if (answers) {
    std::vector<Report> reports;
    size_t begin = 0;
    for (size_t rank = 0; rank < ranks; ++rank) {
      auto report = decode_report(std::string_view(all).substr(begin, counts[rank]));
      if (!report) {
        return abandon_on_error(
            std::move(report).error().in("the request of rank " + std::to_string(rank)));
      }
      reports.push_back(std::move(*report));
      begin += counts[rank];
    }
    auto decided = negotiation_.answer(reports);
    if (!decided) return abandon_on_error(std::move(decided).error());
    answer = encode(*decided);
  }
  uint64_t answer_length = answer.size();
  TRY(group_->broadcast(std::as_writable_bytes(std::span(&answer_length, 1)), 0));
  if (answer_length > kMessageBytesMax * ranks)
    return abandon_on_error(exhausted("the answer of rank 0 exceeds its limit"));
  answer.resize(answer_length);
  TRY(group_->broadcast(std::as_writable_bytes(std::span(answer)), 0));
  auto heard = decode_answer(answer);
  if (!heard) return abandon_on_error(std::move(heard).error());
  return abandon_on_error(negotiation_.apply_answer(*heard));
}

Result<void> Negotiator::Impl::carry_out(Plan& plan) {
  for (const Agreement& agreement : plan.faults) {
    const auto found = works_.find(key_of(agreement.signature));
    if (found == works_.end()) continue;
    Error error = agreement.late ? unavailable(agreement.fault) : conflict(agreement.fault);
    finish(found->second, std::move(error).in(name_of(found->second.signature)));
    works_.erase(found);
  }
  for (const Batch& batch : plan.batches) {
    std::vector<Carrier::Part> parts;
    std::vector<Work*> works;
    for (const Agreement& agreement : batch.parts) {
      Work* work = nullptr;
      if (agreement.signature.operation == Operation::join) {
        if (const auto found = joins_.find(agreement.signature.set); found != joins_.end())
          work = &found->second;
      } else if (const auto found = works_.find(key_of(agreement.signature));
                 found != works_.end()) {
        work = &found->second;
      }
      works.push_back(work);
      parts.push_back({&agreement, work ? &work->request : nullptr, {}});
      if (work && options_.on_event) {
        options_.on_event({Phase::negotiate, work->signature.operation, work->signature.name,
                           work->submitted, since_began()});
      }
    }
    TRY(carrier_.carry_out(parts));
    if (batch.parts.front().signature.operation == Operation::add_set ||
        batch.parts.front().signature.operation == Operation::remove_set) {
      const MutexLock lock(notifier_->mutex);
      sets_ = negotiation_.sets();
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!works[i]) continue;
      CHECK(parts[i].result, "each completed request has a result");
      finish(*works[i], std::move(*parts[i].result));
      if (batch.parts[i].signature.operation == Operation::join) {
        joins_.erase(batch.parts[i].signature.set);
      } else {
        works_.erase(key_of(batch.parts[i].signature));
      }
    }
  }
  return ok();
}

Result<void> Negotiator::Impl::cycle() {
  cycle_began_ = since_began();
  take_inbox();
  carrier_.note_outstanding(!works_.empty() || !joins_.empty());
  const auto all = TRY(and_over_all(negotiation_.bits(now())));
  const auto needs_answer = negotiation_.apply_bits(all, now());
  if (!needs_answer) return abandon_on_error(needs_answer.error());
  if (*needs_answer) TRY(exchange_with_rank_0());
  Plan plan = negotiation_.take_plan();
  note(plan, *needs_answer);
  if (!plan.stalls.empty() && options_.on_stall) options_.on_stall(plan.stalls);
  TRY(carry_out(plan));
  carrier_.note_outstanding(!works_.empty() || !joins_.empty());
  if (tuning_) tune(plan);
  if (options_.on_event && !plan.batches.empty())
    options_.on_event({Phase::cycle, Operation::barrier, "", cycle_began_, since_began()});
  if (!plan.leaving.empty()) {
    over_ = true;
    return cancelled(ranks_text(plan.leaving) + " stopped the negotiation");
  }
  return ok();
}

void Negotiator::Impl::note(const Plan& plan, bool slow) {
  const MutexLock lock(notifier_->mutex);
  ++counters_.cycles;
  counters_.slow_cycles += slow ? 1 : 0;
  counters_.cached_tensors += plan.cached;
  counters_.collectives += plan.batches.size();
  for (const Batch& batch : plan.batches) counters_.tensors += batch.parts.size();
  settings_ = negotiation_.settings();
}

void Negotiator::Impl::tune(const Plan& plan) {
  uint64_t bytes = 0;
  for (const Batch& batch : plan.batches) {
    for (const Agreement& part : batch.parts) bytes += bytes_of(part);
  }
  const auto now = since_began();
  const size_t tried = tuner_->tried().size();
  if (const auto settings = tuner_->sample(bytes, now - std::exchange(tuned_at_, now)))
    negotiation_.change(*settings);
  if (tuner_->tried().size() > tried && options_.on_tried)
    options_.on_tried(tuner_->tried().back().settings, tuner_->tried().back().bytes_per_second);
  tuning_ = !tuner_->done();
}

void Negotiator::Impl::fail_all(const Error& error) {
  std::deque<Work> inbox;
  {
    const MutexLock lock(notifier_->mutex);
    ended_ = error;
    inbox.swap(inbox_);
  }
  const auto fail = [&](Work& work) { finish(work, Error(error).in(name_of(work.signature))); };
  for (auto& [key, work] : works_) fail(work);
  for (auto& [set, work] : joins_) fail(work);
  for (Work& work : inbox) fail(work);
  works_.clear();
  joins_.clear();
}

void Negotiator::Impl::loop() {
  for (;;) {
    pause();
    if (auto done = cycle(); !done) return fail_all(done.error());
  }
}

Negotiator::Negotiator(std::unique_ptr<Impl> inside) : impl_(std::move(inside)) {}
Negotiator::~Negotiator() = default;

Result<std::unique_ptr<Negotiator>> Negotiator::start(std::unique_ptr<collectives::Group> group,
                                                      Options options) {
  Common common{options.settings.fusion_bytes,    options.settings.cycle_microseconds,
                options.cache_entries_max,        options.stall_report_after.count(),
                options.stall_fail_after.count(), options.reproducible,
                options.fused_tensor_bytes_max};
  if (common.fused_tensor_bytes_max == 0) {
    const auto& hosts = group->hosts();
    const bool on_one_host = std::count(hosts.begin(), hosts.end(), hosts[0]) == group->size();
    common.fused_tensor_bytes_max =
        on_one_host ? kFusedBytesMaxOnOneHost : kFusedBytesMaxBetweenHosts;
  }
  TRY(group->broadcast(std::as_writable_bytes(std::span(&common, 1)), 0)
          .in("starting the negotiation"));
  if (common.cycle_microseconds > Negotiation::kCycleMicrosecondsMax)
    return invalid("a cycle must be at most " + std::to_string(Negotiation::kCycleMicrosecondsMax) +
                   " us");
  Negotiation::Limits limits;
  limits.settings = {common.fusion_bytes, uint32_t(common.cycle_microseconds)};
  limits.cache_entries_max = common.cache_entries_max;
  limits.stalls = {Duration(common.stall_report_ms), Duration(common.stall_fail_ms)};
  limits.reproducible = common.reproducible != 0;
  limits.tensor_bytes_max = common.fused_tensor_bytes_max;
  return std::unique_ptr<Negotiator>(
      new Negotiator(std::make_unique<Impl>(std::move(group), std::move(options), limits)));
}

int Negotiator::rank() const { return impl_->group().rank(); }
int Negotiator::size() const { return impl_->group().size(); }
const collectives::Group& Negotiator::group() const { return impl_->group(); }

Handle Negotiator::submit(Request request) {
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  return impl_->submit(std::move(requests)).front();
}

std::vector<Handle> Negotiator::submit_together(std::vector<Request> requests) {
  if (requests.empty()) return {};
  const std::string group = requests.front().name;
  for (Request& request : requests) {
    request.group = group;
    request.group_members = uint32_t(requests.size());
  }
  return impl_->submit(std::move(requests));
}

Handle Negotiator::join(int set) {
  Request request;
  request.name = "join";
  request.operation = Operation::join;
  request.set = set;
  return submit(std::move(request));
}

Result<int> Negotiator::add_set(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  Request request;
  request.operation = Operation::add_set;
  request.name = "the set of";
  for (const int rank : ranks) {
    if (rank < 0) return invalid("invalid rank " + std::to_string(rank));
    request.splits.push_back(uint64_t(rank));
    request.name += " " + std::to_string(rank);
  }
  return TRY(submit(std::move(request)).wait()).set;
}

Result<void> Negotiator::remove_set(int set) {
  Request request;
  request.operation = Operation::remove_set;
  request.name = "set " + std::to_string(set);
  request.root = set;
  TRY(submit(std::move(request)).wait());
  return ok();
}

std::vector<int> Negotiator::members_of(int set) const { return impl_->members_of(set); }
void Negotiator::stop() { impl_->stop(); }
Counters Negotiator::counters() const { return impl_->counters(); }
std::chrono::steady_clock::time_point Negotiator::began() const { return impl_->began(); }
Settings Negotiator::settings() const { return impl_->settings(); }
bool Negotiator::tuning() const { return impl_->tuning(); }
std::vector<std::string> Negotiator::outstanding() const { return impl_->outstanding(); }

}  // namespace trainyard::gradients
