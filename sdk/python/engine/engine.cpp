#include "sdk/python/engine/engine.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/group.hpp"
#include "collectives/transport/tcp/bootstrap.hpp"
#include "gradients/fusion/negotiator.hpp"
#include "sdk/python/engine/said.hpp"
#include "sdk/python/engine/timeline.hpp"

namespace sdk = trainyard::sdk;
using namespace trainyard;
using namespace trainyard::collectives;
using gradients::Compression;
using gradients::kCompressionsCount;

namespace {

constexpr size_t kRequestsMax =
    1 << 20;  // of one submission, and outstanding: what is never waited for is kept

// One request until it is forgotten.
struct Pending {
  gradients::Handle handle;
  // Written by the negotiator's thread before the handle is done, read after it was waited for.
  std::shared_ptr<std::vector<std::byte>> kept;
  std::optional<Result<gradients::Outcome>> outcome;
};

std::string text(const char* value) { return value ? value : ""; }

}  // namespace

struct engine {
  std::unique_ptr<gradients::Negotiator> negotiator;
  std::vector<std::string> heard;
  std::vector<int> hosts;
  sdk::Timeline timeline;
  std::ofstream tries;  // of rank 0's tuner: cycle in milliseconds, fusion bytes, bytes a second
  std::mutex mutex;
  // guarded by mutex; shared with whoever waits
  std::map<int64_t, std::shared_ptr<Pending>> pending;
  int64_t last_handle = 0;  // guarded by mutex

  ~engine() { negotiator.reset(); }  // its thread writes the timeline and the tries

  std::shared_ptr<Pending> find(int64_t handle) {
    const std::lock_guard lock(mutex);
    const auto found = pending.find(handle);
    return found == pending.end() ? nullptr : found->second;
  }
  int64_t keep(std::shared_ptr<Pending> each) {
    const std::lock_guard lock(mutex);
    pending.emplace(++last_handle, std::move(each));
    return last_handle;
  }
};

namespace {

Result<std::unique_ptr<Group>> meet(const engine_options& options) {
  TcpOptions tcp;
  tcp.rank = options.rank;
  tcp.shared_value = text(options.secret);
  tcp.encrypt = options.encrypt != 0;
  tcp.sockets_per_peer = options.sockets_per_peer;
  tcp.join_deadline = Duration(options.join_ms);
  tcp.silence_max = Duration(options.silence_ms);
  tcp.group.plans = text(options.plans);
  tcp.group.deterministic = options.deterministic != 0;
  if (options.ranks == 1) {
    auto groups = join_in_memory(1);
    return std::move(groups.front());
  }
  if (options.member) return sdk::join_generation(options.member, std::move(tcp));
  Bootstrap met =
      options.folder && *options.folder
          ? TRY(bootstrap_in(options.folder, options.ranks, tcp).in("meeting the other ranks"))
          : TRY(bootstrap_at({text(options.meeting_host), uint16_t(options.meeting_port)},
                             options.ranks, tcp)
                    .in("meeting the other ranks"));
  tcp.endpoints = std::move(met.endpoints);
  return join_bootstrapped(std::move(tcp), std::move(met.listener));
}

Result<std::unique_ptr<engine>> join(const engine_options& options) {
  auto made = std::make_unique<engine>();
  auto group = TRY(meet(options));
  made->heard = TRY(group->all_gather(text(options.said)));
  made->hosts = group->hosts();
  gradients::Options wanted;
  wanted.settings.fusion_bytes = options.fusion_bytes;
  wanted.settings.cycle_microseconds = options.cycle_us;
  wanted.cache_entries_max = options.cache_entries;
  wanted.stall_report_after = Duration(options.stall_report_ms);
  wanted.stall_fail_after = Duration(options.stall_fail_ms);
  wanted.reproducible = options.reproducible != 0;
  wanted.on_stall = [](const std::string& report) {
    const std::string line = report + "\n";
    (void)!::write(2, line.data(), line.size());
  };
  wanted.on_event = [timeline = &made->timeline](const gradients::Event& event) {
    timeline->write(event);
  };
  wanted.autotune = options.autotune != 0;
  if (const std::string path = text(options.autotune_log);
      wanted.autotune && !path.empty() && group->rank() == 0) {
    made->tries.open(path, std::ios::app);
    if (!made->tries) return from_errno("writing what autotuning tries to " + path);
    wanted.on_tried = [tries = &made->tries](const gradients::Settings& tried,
                                             double bytes_per_second) {
      *tries << double(tried.cycle_microseconds) / 1000 << "," << tried.fusion_bytes << ","
             << bytes_per_second << std::endl;
    };
  }
  made->negotiator = TRY(gradients::Negotiator::start(std::move(group), std::move(wanted)));
  return made;
}

// The numbers that common/engine.py writes down.
static_assert(int(gradients::Operation::allreduce) == 0 && int(gradients::Operation::adasum) == 1 &&
              int(gradients::Operation::all_gather) == 2 &&
              int(gradients::Operation::broadcast) == 3 &&
              int(gradients::Operation::reduce_scatter) == 4 &&
              int(gradients::Operation::all_to_all) == 5 &&
              int(gradients::Operation::barrier) == 6);
static_assert(int(Type::f64) == 0 && int(Type::bf16) == 3 && int(Type::i64) == 6 &&
              int(Type::boolean) == 11);
static_assert(int(Reduction::sum) == 0 && int(Reduction::average) == 1 &&
              int(Reduction::minimum) == 2 && int(Reduction::maximum) == 3 &&
              int(Reduction::product) == 4);
static_assert(int(Compression::Kind::int8) == 3 && int(Compression::Kind::low_rank) == 4);

// What comes from Python may be from another version of it: numbers are looked at before they
// become enumerations.
Result<gradients::Request> request_from(const engine_request& from) {
  if (from.operation < 0 || from.operation >= gradients::kOperationsCount || from.type < 0 ||
      from.type >= kTypesCount || from.reduction < 0 || from.reduction >= kReductionsCount)
    return invalid("no such operation, type or reduction");
  gradients::Request request;
  request.name = text(from.name);
  request.operation = gradients::Operation(from.operation);
  const auto type = Type(from.type);
  request.input = ConstBufferView(from.input, size_t(from.input_count), type);
  request.output = {from.output, size_t(from.output_count), type};
  request.shape.assign(from.shape, from.shape + from.dimensions);
  request.splits.assign(from.splits, from.splits + from.splits_count);
  request.reduction = Reduction(from.reduction);
  request.prescale = from.prescale;
  request.postscale = from.postscale;
  request.root = from.root;
  request.set = from.set;
  request.priority = from.priority;
  if (from.compression < 0 || from.compression >= kCompressionsCount)
    return invalid("no such compression");
  request.compression = {Compression::Kind(from.compression), uint32_t(from.compression_rank)};
  return request;
}

}  // namespace

int32_t engine_version(void) { return TRAINYARD_ENGINE_VERSION; }
const char* engine_error(void) { return sdk::last_said().c_str(); }

engine* engine_join(const engine_options* options) {
  auto made = join(*options);
  if (!made) return sdk::say(made.error()), nullptr;
  return std::move(made).value().release();
}

void engine_leave(engine* engine) { delete engine; }
int32_t engine_rank(const engine* engine) { return engine->negotiator->rank(); }
int32_t engine_ranks(const engine* engine) { return engine->negotiator->size(); }
int32_t engine_host_of(const engine* engine, int32_t rank) {
  return engine->hosts.at(size_t(rank));
}
const char* engine_heard(const engine* engine, int32_t rank) {
  return engine->heard.at(size_t(rank)).c_str();
}

int32_t engine_submit(engine* engine, const engine_request* requests, int32_t count,
                      int64_t* handles) {
  std::vector<gradients::Request> all;
  std::vector<std::shared_ptr<std::vector<std::byte>>> kept;
  for (int32_t place = 0; place < count; ++place) {
    auto request = request_from(requests[place]);
    if (!request) return sdk::say(request.error());
    auto& memory = kept.emplace_back();
    if (!request->output.data && requests[place].output_count == 0 &&
        request->operation != gradients::Operation::barrier) {
      memory = std::make_shared<std::vector<std::byte>>();
      request->allocate = [memory, type = request->input.type](size_t elements,
                                                               const gradients::Outcome&) {
        // null would mean: no memory
        memory->resize(std::max<size_t>(1, elements * bytes_of(type)));
        return static_cast<void*>(memory->data());
      };
    }
    all.push_back(std::move(request).value());
  }
  {
    const std::lock_guard lock(engine->mutex);
    if (engine->pending.size() + all.size() > kRequestsMax)
      return sdk::say(exhausted("too many operations that nobody waited for"));
  }
  auto started = count == 1 ? std::vector{engine->negotiator->submit(std::move(all.front()))}
                            : engine->negotiator->submit_together(std::move(all));
  if (!started.empty() && started.front().refused()) {
    sdk::say(started.front().wait().error());
    return 1;
  }
  for (size_t place = 0; place < started.size(); ++place)
    handles[place] = engine->keep(
        std::make_shared<Pending>(Pending{std::move(started[place]), std::move(kept[place]), {}}));
  return 0;
}

int64_t engine_join_ranks(engine* engine, int32_t set) {
  return engine->keep(std::make_shared<Pending>(Pending{engine->negotiator->join(set), {}, {}}));
}

int32_t engine_done(engine* engine, int64_t handle) {
  const auto pending = engine->find(handle);
  return !pending || pending->outcome || pending->handle.done();
}

int32_t engine_wait(engine* engine, int64_t handle) {
  const auto pending = engine->find(handle);
  if (!pending) return sdk::say(invalid("there is no such handle"));
  if (!pending->outcome) pending->outcome = pending->handle.wait();
  if (*pending->outcome) return 0;
  sdk::say(pending->outcome->error());
  return int32_t(pending->outcome->error().kind) + 1;
}

int32_t engine_last(engine* engine, int64_t handle) {
  const auto pending = engine->find(handle);
  return pending && pending->outcome && *pending->outcome ? pending->outcome->value().last : -1;
}

int32_t engine_rows(engine* engine, int64_t handle, uint64_t* rows, int32_t rows_max) {
  const auto pending = engine->find(handle);
  if (!pending || !pending->outcome || !*pending->outcome) return 0;
  const auto& all = pending->outcome->value().rows;
  std::copy_n(all.begin(), std::min(all.size(), size_t(rows_max)), rows);
  return int32_t(all.size());
}

uint64_t engine_kept_bytes(engine* engine, int64_t handle) {
  const auto pending = engine->find(handle);
  return pending && pending->kept ? pending->kept->size() : 0;
}

int32_t engine_take(engine* engine, int64_t handle, void* memory, uint64_t bytes) {
  const auto pending = engine->find(handle);
  if (!pending || !pending->kept || pending->kept->size() < bytes)
    return sdk::say(invalid("nothing is kept"));
  if (bytes > 0) std::memcpy(memory, pending->kept->data(), bytes);
  return 0;
}

void engine_forget(engine* engine, int64_t handle) {
  const std::lock_guard lock(engine->mutex);
  engine->pending.erase(handle);
}

int32_t engine_add_set(engine* engine, const int32_t* ranks, int32_t count) {
  const auto set = engine->negotiator->add_set(std::vector<int>(ranks, ranks + count));
  return set ? int32_t(*set) : sdk::say(set.error());
}

int32_t engine_remove_set(engine* engine, int32_t set) {
  const auto removed = engine->negotiator->remove_set(set);
  return removed ? 0 : sdk::say(removed.error());
}

int32_t engine_timeline_start(engine* engine, const char* path, int32_t mark_cycles) {
  const auto started = engine->timeline.start(text(path), mark_cycles != 0);
  return started ? 0 : sdk::say(started.error());
}

int32_t engine_timeline_stop(engine* engine) {
  engine->timeline.stop();
  return 0;
}
