#include "collectives/group.hpp"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "base/fnv.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "collectives/execute.hpp"
#include "collectives/transport/memory/memory_transport.hpp"
#include "collectives/transport/shm/shm_transport.hpp"
#include "collectives/transport/tcp/bootstrap.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {
namespace {

using plan::Operation;
using SteadyClock = std::chrono::steady_clock;
constexpr const char* kNoSharedMemory = "the ranks share no memory: use ordinary memory";

size_t bytes_of(const Call& call) {
  return std::max(call.input.count * bytes_of(call.input.type),
                  call.output.count * bytes_of(call.output.type));
}

// Activity describes the operation that a group executes now, for reports: a call, or a message
// between two ranks.
// Lifetime: the referenced objects outlive it.
struct Activity {
  const Call* call = nullptr;
  std::string_view verb;  // "send to"
  int peer = 0;
  std::string_view name;  // name of the message
  size_t bytes = 0;
};

std::string name_of(const Activity& activity) {
  if (activity.call) return name_of(*activity.call);
  return std::string(activity.verb) + " rank " + std::to_string(activity.peer) +
         (activity.name.empty() ? "" : " of ") + std::string(activity.name);
}

// Adds the operation to an error: at the end if a rank was lost ("rank 3 exited during allreduce of
// 'grad'"), else in front.
Error in_activity(Error error, const Activity& activity) {
  if (error.kind != Kind::unavailable) return std::move(error).in(name_of(activity));
  const std::string_view name =
      activity.call ? std::string_view(activity.call->reducing.name) : activity.name;
  error.message.append(" during ")
      .append(activity.call
                  ? std::string(to_string(activity.call->operation))
                  : std::string(activity.verb) + " rank " + std::to_string(activity.peer));
  if (!name.empty()) error.message.append(" of '").append(name).append("'");
  return error;
}

// One operation in the timeline.
struct Span {
  std::string name;  // "allreduce of layer1.weight"
  std::string plan;
  size_t bytes = 0;
  std::chrono::nanoseconds begin{};  // since the group was made
  std::chrono::nanoseconds end{};
};

// Encodes a text as JSON.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char each : to_utf8(text)) {
    if (each == '"' || each == '\\') out += '\\';
    out += uint8_t(each) < 0x20 ? ' ' : each;
  }
  return out + '"';
}

// Returns a number that is equal on all ranks of a group, and different for groups at different
// ports.
uint64_t digest_of(const std::vector<Endpoint>& endpoints) {
  uint64_t digest = kFnvBasis;
  for (const Endpoint& each : endpoints)
    digest = fnv1a_step(fnv1a_step(fnv1a(each.host, digest), 0), each.port);
  return digest;
}

Call call_of(Operation operation, ConstBufferView input, BufferView output) {
  return Call{operation, input, output, {}, 0, {}, {}};
}

}  // namespace

namespace calls {

Call allreduce(BufferView values, ReduceOptions reducing) {
  return allreduce(values, values, std::move(reducing));
}
Call allreduce(ConstBufferView input, BufferView output, ReduceOptions reducing) {
  Call call = call_of(Operation::allreduce, input, output);
  call.reducing = std::move(reducing);
  return call;
}
Call reduce_scatter(ConstBufferView input, BufferView output, ReduceOptions reducing,
                    std::vector<size_t> counts) {
  Call call = call_of(Operation::reduce_scatter, input, output);
  call.reducing = std::move(reducing);
  call.counts = std::move(counts);
  return call;
}
Call all_gather(ConstBufferView input, BufferView output, std::vector<size_t> counts) {
  Call call = call_of(Operation::all_gather, input, output);
  call.counts = std::move(counts);
  return call;
}
Call broadcast(BufferView values, int root) {
  Call call = call_of(Operation::broadcast, values, values);
  call.root = root;
  return call;
}
Call reduce(ConstBufferView input, BufferView output, int root, ReduceOptions reducing) {
  Call call = call_of(Operation::reduce, input, output);
  call.root = root;
  call.reducing = std::move(reducing);
  return call;
}
Call gather(ConstBufferView input, BufferView output, int root, std::vector<size_t> counts) {
  Call call = call_of(Operation::gather, input, output);
  call.root = root;
  call.counts = std::move(counts);
  return call;
}
Call scatter(ConstBufferView input, BufferView output, int root, std::vector<size_t> counts) {
  Call call = call_of(Operation::scatter, input, output);
  call.root = root;
  call.counts = std::move(counts);
  return call;
}
Call all_to_all(ConstBufferView input, BufferView output, std::vector<size_t> counts,
                std::vector<size_t> received_counts) {
  Call call = call_of(Operation::all_to_all, input, output);
  call.counts = std::move(counts);
  call.received_counts = std::move(received_counts);
  return call;
}
Call barrier() { return call_of(Operation::barrier, {}, {}); }

}  // namespace calls

struct Handle::State {
  explicit State(std::function<Result<void>()> work) : work(std::move(work)) {}
  const std::function<Result<void>()> work;
  mutable Mutex mutex;
  ConditionVariable finished;
  std::optional<Result<void>> result GUARDED_BY(mutex);
};

bool Handle::done() const {
  const MutexLock lock(state_->mutex);
  return state_->result.has_value();
}

Result<void> Handle::wait() {
  MutexLock lock(state_->mutex);
  state_->finished.wait(lock, [&]() REQUIRES(state_->mutex) { return state_->result.has_value(); });
  return *state_->result;
}

// Implements a group. One thread at a time uses the executor: the caller when no operation is
// running or queued, else the worker, which runs the backlog in order.
class Group::Impl {
 public:
  Impl(std::unique_ptr<Transport> transport, Table table, GroupOptions options)
      : options_(std::move(options)),
        activity_(options_.activity, transport->rank(), transport->size()),
        executor_(std::move(transport), std::move(table), activity_),
        began_(SteadyClock::now()) {}

  ~Impl() {
    {
      const MutexLock lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    if (worker_.joinable()) worker_.join();
  }

  Executor& executor() { return executor_; }
  const GroupOptions& options() const { return options_; }
  ActivityCounter& count_elsewhere() {
    counts_ = false;
    return activity_;
  }

  template <class Work>
  Result<void> now(const Work& work) {
    {
      MutexLock lock(mutex_);
      if (busy_ || !backlog_.empty()) {
        lock.unlock();
        return later(work).wait();
      }
      busy_ = true;
    }
    auto result = work();
    bool more;
    {
      const MutexLock lock(mutex_);
      release_executor();
      more = !backlog_.empty();
    }
    if (more) changed_.notify_all();
    return result;
  }

  Handle later(std::function<Result<void>()> work) {
    auto state = std::make_shared<Handle::State>(std::move(work));
    {
      const MutexLock lock(mutex_);
      backlog_.push_back(state);
      if (!worker_.joinable()) worker_ = std::thread([this] { carry_out_backlog(); });
    }
    changed_.notify_all();
    return Handle(std::move(state));
  }

  Result<void> execute(const Call& call) {
    return carry_out({.call = &call, .bytes = bytes_of(call)},
                     [&] { return executor_.execute(call); });
  }
  Result<void> send(int peer, ConstBufferView values, std::string_view name) {
    return carry_out({.verb = "send to",
                      .peer = peer,
                      .name = name,
                      .bytes = values.count * bytes_of(values.type)},
                     [&] { return executor_.send(peer, values); });
  }
  Result<void> receive(int peer, BufferView values, std::string_view name) {
    return carry_out({.verb = "receive from",
                      .peer = peer,
                      .name = name,
                      .bytes = values.count * bytes_of(values.type)},
                     [&] { return executor_.receive(peer, values); });
  }

  Counters counters() const {
    return {operations_.load(), bytes_.load(), double(nanoseconds_.load()) * 1e-9};
  }

  std::string current_operation() const {
    const MutexLock lock(mutex_);  // until the end, `current_` and what it refers to stay
    if (!is_current_.load(std::memory_order_acquire)) return "";
    const auto now = (SteadyClock::now() - began_).count();
    return name_of(current_) + " (" + std::to_string(current_.bytes) + " bytes) for " +
           std::to_string((now - current_since_.load()) / 1'000'000) + " ms";
  }

  std::string timeline() const {
    const MutexLock lock(spans_mutex_);
    const int rank = executor_rank_;
    // With this time, the timelines of all ranks have one clock. The field has SageMaker's name.
    const auto began = std::chrono::system_clock::now() - (SteadyClock::now() - began_);
    std::string text = "[{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" + std::to_string(rank) +
                       ",\"args\":{\"name\":\"rank " + std::to_string(rank) +
                       "\",\"start_time_since_epoch_in_micros\":" +
                       std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(
                                          began.time_since_epoch())
                                          .count()) +
                       "}}";
    for (const Span& span : spans_) {
      const auto microseconds = [](std::chrono::nanoseconds time) {
        return std::to_string(double(time.count()) / 1000.0);
      };
      text += ",\n{\"name\":" + quoted(span.name) + ",\"cat\":" + quoted(span.plan) +
              ",\"ph\":\"X\",\"pid\":" + std::to_string(rank) +
              ",\"tid\":0,\"ts\":" + microseconds(span.begin) +
              ",\"dur\":" + microseconds(span.end - span.begin) +
              ",\"args\":{\"bytes\":" + std::to_string(span.bytes) + "}}";
    }
    return text + "]\n";
  }

  uint64_t next_split() { return splits_++; }

 private:
  // For smaller operations, reading the clock twice would cost more than a tenth of their time.
  static constexpr size_t kTimedBytesMin = 4096;

  // Runs the operation, which is the current one until release_executor(). Requires: the calling
  // thread has set busy_.
  template <class Work>
  Result<void> carry_out(const Activity& activity, const Work& work) {
    const auto began = SteadyClock::now();
    current_since_.store((began - began_).count(), std::memory_order_relaxed);
    current_ = activity;
    is_current_.store(true, std::memory_order_release);
    const bool counts = counts_.load(std::memory_order_relaxed);
    const bool described = counts && activity_.describes();
    if (described && activity.call) activity_.announce(began);
    auto result = work();
    add(operations_, 1);
    if (activity.call && result && counts) activity_.count();
    add(bytes_, activity.bytes);
    if (activity.bytes >= kTimedBytesMin || options_.timeline || described) {
      const auto ended = SteadyClock::now();
      if (described) describe_end(activity, began, ended, bool(result));
      add(nanoseconds_, uint64_t((ended - began).count()));
      if (options_.timeline) remember(activity, began, ended);
    }
    if (!result) return in_activity(std::move(result).error(), activity);
    return ok();
  }

  // Adds without an atomic addition, since only the thread that has set busy_ writes.
  static void add(std::atomic<uint64_t>& counter, uint64_t value) {
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

  // Ends the current operation. Its arguments must still exist.
  void release_executor() REQUIRES(mutex_) {
    is_current_.store(false, std::memory_order_relaxed);
    busy_ = false;
  }

  void describe_end(const Activity& activity, SteadyClock::time_point began,
                    SteadyClock::time_point ended, bool completed) {
    activity_.set_links(executor_.transport().link_loads(ended));
    if (activity.call)
      activity_.leave(ended, completed);
    else
      activity_.exclude(began, ended);
  }

  void carry_out_backlog() {
    MutexLock lock(mutex_);
    for (;;) {
      changed_.wait(lock,
                    [&]() REQUIRES(mutex_) { return !busy_ && (ending_ || !backlog_.empty()); });
      if (backlog_.empty()) return;  // ending, and nothing is queued
      const auto state = backlog_.front();
      backlog_.pop_front();
      busy_ = true;
      lock.unlock();
      auto result = state->work();
      lock.lock();
      release_executor();
      {
        const MutexLock state_lock(state->mutex);
        state->result = std::move(result);
      }
      state->finished.notify_all();  // the arguments of the operation may end
    }
  }

  void remember(const Activity& activity, SteadyClock::time_point began,
                SteadyClock::time_point ended) {
    const MutexLock lock(spans_mutex_);
    if (spans_.size() == GroupOptions::kTimelineSpansMax) spans_.pop_front();
    spans_.push_back({name_of(activity),
                      activity.call ? executor_.plan_of(*activity.call) : "between two",
                      activity.bytes, began - began_, ended - began_});
  }

  const GroupOptions options_;
  ActivityCounter activity_;
  Executor executor_;  // used by the thread that holds busy_
  std::atomic<bool> counts_ = true;
  const int executor_rank_ = executor_.transport().rank();
  const SteadyClock::time_point began_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool busy_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::deque<std::shared_ptr<Handle::State>> backlog_
      GUARDED_BY(mutex_);                  // bounded by the buffers of the callers
  std::thread worker_ GUARDED_BY(mutex_);  // until the destructor

  std::atomic<uint64_t> operations_ = 0;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<uint64_t> nanoseconds_ = 0;
  Activity current_;  // written by the thread that has set busy_, while !is_current_
  std::atomic<bool> is_current_ = false;
  std::atomic<int64_t> current_since_ = 0;
  mutable Mutex spans_mutex_;
  std::deque<Span> spans_ GUARDED_BY(spans_mutex_);
  std::atomic<uint64_t> splits_ = 0;
};

Group::Group(std::unique_ptr<Impl> inside) : impl_(std::move(inside)) {}
Group::~Group() = default;

Result<std::unique_ptr<Group>> Group::make(std::unique_ptr<Transport> transport,
                                           GroupOptions options) {
  return make(std::move(transport), std::move(options), PlanScope::of_this_group);
}

Result<std::unique_ptr<Group>> Group::make(std::unique_ptr<Transport> transport,
                                           GroupOptions options, PlanScope scope) {
  Costs costs;
  if (!options.deterministic && transport->size() > 1)
    costs = TRY(measure(*transport).in("measuring the links"));
  costs.ranks_per_core = transport->ranks_per_core();
  Table table = Table::made_from(costs, transport->hosts());
  TRY(table.override_with(options.plans, scope).in("plans"));
  return std::unique_ptr<Group>(new Group(
      std::make_unique<Impl>(std::move(transport), std::move(table), std::move(options))));
}

ActivityCounter& Group::count_elsewhere() { return impl_->count_elsewhere(); }
int Group::rank() const { return impl_->executor().transport().rank(); }
int Group::size() const { return impl_->executor().transport().size(); }
const std::vector<int>& Group::hosts() const { return impl_->executor().hosts(); }
const Table& Group::table() const { return impl_->executor().table(); }

Result<void> Group::run(const Call& call) {
  return impl_->now([&] { return impl_->execute(call); });
}

Handle Group::start(Call call) {
  return impl_->later(
      [inside = impl_.get(), call = std::move(call)] { return inside->execute(call); });
}

Result<void> Group::allreduce(std::span<float> values, Reduction reduction) {
  return run(calls::allreduce(buffer_view(values), {.reduction = reduction}));
}
Result<void> Group::allreduce(std::span<double> values, Reduction reduction) {
  return run(calls::allreduce(buffer_view(values), {.reduction = reduction}));
}

Result<void> Group::broadcast(std::span<std::byte> bytes, int root) {
  return run(calls::broadcast(buffer_view(bytes), root));
}

Result<void> Group::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  CHECK(all.size() == mine.size() * size_t(size()), "the output holds the parts of all ranks");
  return run(calls::all_gather(buffer_view(mine), buffer_view(all)));
}

Result<std::vector<std::string>> Group::all_gather(std::string_view mine) {
  const uint64_t length = mine.size();
  auto lengths = std::vector<uint64_t>(size_t(size()));
  TRY(all_gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths))));
  uint64_t total = 0;
  std::vector<size_t> counts;
  for (const uint64_t each : lengths) {
    if (each > kGatherBytesMax - total) {
      return exhausted("all_gather: the parts of all ranks exceed " +
                       std::to_string(kGatherBytesMax) + " bytes together");
    }
    total += each;
    counts.push_back(each);
  }
  std::string all(total, '\0');
  TRY(run(calls::all_gather(buffer_view(std::as_bytes(std::span(mine))),
                            buffer_view(std::as_writable_bytes(std::span(all))), counts)));
  std::vector<std::string> texts;
  size_t begin = 0;
  for (const size_t count : counts) {
    texts.push_back(all.substr(begin, count));
    begin += count;
  }
  return texts;
}

Result<void> Group::barrier() { return run(calls::barrier()); }

Result<void> Group::send(int peer, ConstBufferView values, std::string_view name) {
  return impl_->now([&] { return impl_->send(peer, values, name); });
}

Result<void> Group::receive(int peer, BufferView values, std::string_view name) {
  return impl_->now([&] { return impl_->receive(peer, values, name); });
}

Result<bool> Group::has_message(int peer) {
  bool has = false;
  TRY(impl_->now([&]() -> Result<void> {
    if (peer < 0 || peer >= size() || peer == rank())
      return invalid("unknown peer: rank " + std::to_string(peer) +
                     " is not another rank of this group");
    has = TRY(impl_->executor().transport().has_message(peer));
    return ok();
  }));
  return has;
}

Handle Group::start_send(int peer, ConstBufferView values, std::string_view name) {
  return impl_->later([inside = impl_.get(), peer, values, name = std::string(name)] {
    return inside->send(peer, values, name);
  });
}

Handle Group::start_receive(int peer, BufferView values, std::string_view name) {
  return impl_->later([inside = impl_.get(), peer, values, name = std::string(name)] {
    return inside->receive(peer, values, name);
  });
}

Result<std::unique_ptr<Group>> Group::split(int color) {
  auto part = TRY(split_transport(color));
  if (!part) return std::unique_ptr<Group>();
  return make(std::move(part), impl_->options(), PlanScope::of_the_whole);
}

Result<std::unique_ptr<Group>> Group::split(int color, GroupOptions options) {
  auto part = TRY(split_transport(color));
  if (!part) return std::unique_ptr<Group>();
  return make(std::move(part), std::move(options));
}

Result<std::unique_ptr<Transport>> Group::split_transport(int color) {
  Transport& transport = impl_->executor().transport();
  std::string offer;
  if (color >= 0) {
    TRY(impl_->now([&]() -> Result<void> {
      offer = TRY(transport.offer().in("split"));
      return ok();
    }));
  }
  const auto texts = TRY(all_gather(std::to_string(color) + "\n" + offer).in("split"));
  std::vector<int> members;
  std::vector<std::string> offers;
  for (size_t peer = 0; peer < texts.size(); ++peer) {
    const size_t line = texts[peer].find('\n');
    if (line == std::string::npos)
      return corrupt("split: rank " + std::to_string(peer) + " sent an invalid color");
    if (texts[peer].substr(0, line) == std::to_string(color)) members.push_back(int(peer));
    offers.push_back(texts[peer].substr(line + 1));
  }
  const uint64_t key = impl_->next_split();
  if (color < 0) return std::unique_ptr<Transport>();
  return transport.connect_members(members, offers, key << 32 | uint64_t(color)).in("split");
}

Result<std::span<std::byte>> Group::allocate(size_t bytes) {
  RegisteredMemory* registered = impl_->executor().transport().registered();
  if (!registered) return unavailable(kNoSharedMemory);
  return registered->allocate(bytes);
}

void Group::free(std::span<std::byte> memory) {
  RegisteredMemory* registered = impl_->executor().transport().registered();
  CHECK(registered != nullptr, "the freed memory was allocated here");
  registered->free(memory.data());
}

Result<std::unique_ptr<InPlaceMemory>> Group::register_in_place(std::span<std::byte> memory) {
  RegisteredMemory* registered = impl_->executor().transport().registered();
  if (!registered) return unavailable(kNoSharedMemory);
  return registered->register_in_place(memory);
}

void Group::abandon(std::string_view why) {
  (void)impl_->now([&] {
    impl_->executor().transport().abandon(why);
    return ok();
  });
}
Counters Group::counters() const { return impl_->counters(); }
std::string Group::current_operation() const { return impl_->current_operation(); }
std::string Group::timeline() const { return impl_->timeline(); }

Result<std::unique_ptr<Group>> join_over_tcp(TcpOptions options) {
  Socket listener(options.listener);
  return join_bootstrapped(std::move(options), std::move(listener));
}

// The only function that chooses the transport of a group. A new transport wraps or replaces these
// for the peers that it reaches.
Result<std::unique_ptr<Group>> join_bootstrapped(TcpOptions options, Socket listener) {
  GroupOptions group = options.group;
  group.activity.group = digest_of(options.endpoints);
  const bool share_memory = options.share_memory;
  auto tcp = TRY(connect_tcp(std::move(options), std::move(listener)).in("joining the ranks"));
  std::unique_ptr<Transport> transport;
  if (share_memory) {
    transport = TRY(ShmTransport::make(std::move(tcp), std::make_shared<RegisteredMemory>())
                        .in("joining the ranks"));
  } else {
    transport = std::move(tcp);
  }
  return Group::make(std::move(transport), std::move(group));
}

std::vector<std::unique_ptr<Group>> join_in_memory(int size, GroupOptions options) {
  CHECK(options.deterministic || size == 1,
        "one thread creates all ranks, so they cannot measure their links");
  std::vector<std::unique_ptr<Group>> groups;
  for (auto& transport : connect_in_memory(size)) {
    auto group = Group::make(std::move(transport), options);
    CHECK(group, "the plans of a group in memory are valid");
    groups.push_back(*std::move(group));
  }
  return groups;
}

}  // namespace trainyard::collectives
