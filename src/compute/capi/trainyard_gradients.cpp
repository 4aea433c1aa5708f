#include "capi/trainyard_gradients.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"
#include "capi/conversion.hpp"
#include "gradients/fusion/negotiator.hpp"
#include "gradients/fusion/timeline.hpp"

using namespace trainyard;
using namespace trainyard::collectives;
using capi::check_size;
using capi::report;
using capi::text_from;
using gradients::Compression;

namespace {

// Requests that were submitted and not forgotten. A caller that never forgets gets an error,
// instead of using up the memory.
constexpr size_t kRequestsMax = 1 << 20;

// A request, until it is forgotten.
struct Pending {
  gradients::Handle handle;
  // The output that the negotiator allocated. Its thread writes it before the handle is done; it is
  // read after the wait.
  std::shared_ptr<std::vector<std::byte>> output;
  std::optional<Result<gradients::Outcome>> outcome;
};

}  // namespace

struct trainyard_negotiator {
  std::unique_ptr<gradients::Negotiator> negotiator;
  gradients::Timeline timeline;
  std::ofstream tries;  // of rank 0's tuner: cycle in milliseconds, fusion bytes, bytes a second
  Mutex mutex;
  // shared with waiting threads
  std::map<int64_t, std::shared_ptr<Pending>> pending GUARDED_BY(mutex);
  int64_t last_number GUARDED_BY(mutex) = 0;

  ~trainyard_negotiator() { negotiator.reset(); }  // its thread writes the timeline and the tries

  std::shared_ptr<Pending> find(int64_t number) {
    const MutexLock lock(mutex);
    const auto found = pending.find(number);
    return found == pending.end() ? nullptr : found->second;
  }
  // Returns the outcome of a request for which a wait returned without an error; else null.
  const gradients::Outcome* outcome_of(const std::shared_ptr<Pending>& request) const {
    return request && request->outcome && *request->outcome ? &request->outcome->value() : nullptr;
  }
  int64_t keep(std::shared_ptr<Pending> request) {
    const MutexLock lock(mutex);
    pending.emplace(++last_number, std::move(request));
    return last_number;
  }
};

namespace {

static_assert(int(gradients::Operation::allreduce) == TRAINYARD_NAMED_ALLREDUCE &&
              int(gradients::Operation::adasum) == TRAINYARD_NAMED_ADASUM &&
              int(gradients::Operation::all_gather) == TRAINYARD_NAMED_ALL_GATHER &&
              int(gradients::Operation::broadcast) == TRAINYARD_NAMED_BROADCAST &&
              int(gradients::Operation::reduce_scatter) == TRAINYARD_NAMED_REDUCE_SCATTER &&
              int(gradients::Operation::all_to_all) == TRAINYARD_NAMED_ALL_TO_ALL &&
              int(gradients::Operation::barrier) == TRAINYARD_NAMED_BARRIER);
static_assert(int(Compression::Kind::none) == TRAINYARD_UNCOMPRESSED &&
              int(Compression::Kind::f16) == TRAINYARD_COMPRESSED_F16 &&
              int(Compression::Kind::bf16) == TRAINYARD_COMPRESSED_BF16 &&
              int(Compression::Kind::int8) == TRAINYARD_COMPRESSED_INT8 &&
              int(Compression::Kind::low_rank) == TRAINYARD_COMPRESSED_LOW_RANK);

gradients::Options options_from(const trainyard_negotiator_options& from) {
  gradients::Options options;
  options.settings.fusion_bytes = from.fusion_bytes;
  options.settings.cycle_microseconds = from.cycle_us;
  options.cache_entries_max = from.cache_entries;
  options.stall_report_after = Duration(from.stall_report_ms);
  options.stall_fail_after = Duration(from.stall_fail_ms);
  options.reproducible = from.reproducible != 0;
  options.autotune = from.autotune != 0;
  options.on_stall = [](const std::string& report) {
    const std::string line = report + "\n";
    (void)!::write(2, line.data(), line.size());
  };
  return options;
}

Result<std::unique_ptr<trainyard_negotiator>> start(std::unique_ptr<Group> group,
                                                    const trainyard_negotiator_options* from) {
  if (!group) return invalid("the group of a negotiator is null");
  TRY(check_size(from, "trainyard_negotiator_options"));
  auto made = std::make_unique<trainyard_negotiator>();
  auto options = options_from(*from);
  options.on_event = [timeline = &made->timeline](const gradients::Event& event) {
    timeline->write(event);
  };
  if (const std::string path = text_from(from->autotune_log);
      options.autotune && !path.empty() && group->rank() == 0) {
    made->tries.open(path, std::ios::app);
    if (!made->tries) return from_errno("opening the autotune log " + path);
    options.on_tried = [tries = &made->tries](const gradients::Settings& tried,
                                              double bytes_per_second) {
      *tries << double(tried.cycle_microseconds) / 1000 << "," << tried.fusion_bytes << ","
             << bytes_per_second << std::endl;
    };
  }
  made->negotiator = TRY(gradients::Negotiator::start(std::move(group), std::move(options)));
  return made;
}

// Checks numbers before they become enumerations: the caller may have been compiled for another
// version.
Result<gradients::Request> request_from(const trainyard_request& from) {
  TRY(check_size(&from, "trainyard_request"));
  if (from.operation < 0 || from.operation > TRAINYARD_NAMED_BARRIER)
    return invalid("unknown operation " + std::to_string(from.operation));
  if (from.type < 0 || from.type > TRAINYARD_BOOL)
    return invalid("unknown type " + std::to_string(from.type));
  if (from.reduction < 0 || from.reduction > TRAINYARD_BITS_XOR)
    return invalid("unknown reduction " + std::to_string(from.reduction));
  if (from.compression < 0 || from.compression > TRAINYARD_COMPRESSED_LOW_RANK)
    return invalid("unknown compression " + std::to_string(from.compression));
  gradients::Request request;
  request.name = text_from(from.name);
  request.operation = gradients::Operation(from.operation);
  const auto type = Type(from.type);
  request.input = ConstBufferView(from.input, from.input_count, type);
  request.output = {from.output, from.output_count, type};
  request.shape.assign(from.shape, from.shape + from.dimensions);
  request.splits.assign(from.splits, from.splits + from.splits_count);
  request.reduction = Reduction(from.reduction);
  request.prescale = from.prescale;
  request.postscale = from.postscale;
  request.root = from.root;
  request.set = from.set;
  request.priority = from.priority;
  request.compression = {Compression::Kind(from.compression), from.compression_rank};
  return request;
}

// Makes the negotiator allocate the output of a request that has none.
std::shared_ptr<std::vector<std::byte>> allocate_output(gradients::Request& request) {
  const bool needs_one = !request.output.data && request.output.count == 0 &&
                         request.operation != gradients::Operation::barrier;
  if (!needs_one) return nullptr;
  auto output = std::make_shared<std::vector<std::byte>>();
  request.allocate = [output, type = request.input.type](size_t elements,
                                                         const gradients::Outcome&) {
    // null would mean: no memory
    output->resize(std::max<size_t>(1, elements * bytes_of(type)));
    return static_cast<void*>(output->data());
  };
  return output;
}

Result<void> submit(trainyard_negotiator& negotiator, const trainyard_request* requests,
                    size_t count, int64_t* numbers) {
  {
    const MutexLock lock(negotiator.mutex);
    if (negotiator.pending.size() + count > kRequestsMax)
      return exhausted("more than " + std::to_string(kRequestsMax) +
                       " requests were not waited for and forgotten");
  }
  std::vector<gradients::Request> all;
  std::vector<std::shared_ptr<std::vector<std::byte>>> outputs;
  for (size_t i = 0; i < count; ++i) {
    all.push_back(TRY(request_from(requests[i])));
    outputs.push_back(allocate_output(all.back()));
  }
  auto started = count == 1 ? std::vector{negotiator.negotiator->submit(std::move(all.front()))}
                            : negotiator.negotiator->submit_together(std::move(all));
  if (!started.empty() && started.front().refused()) return started.front().wait().error();
  for (size_t i = 0; i < started.size(); ++i)
    numbers[i] = negotiator.keep(
        std::make_shared<Pending>(Pending{std::move(started[i]), std::move(outputs[i]), {}}));
  return ok();
}

}  // namespace

extern "C" {

trainyard_kind trainyard_negotiator_start(trainyard_group* group,
                                          const trainyard_negotiator_options* options,
                                          trainyard_negotiator** negotiator, char* message) {
  const std::unique_ptr<trainyard_group> taken(group);
  auto started = start(taken ? std::move(taken->group) : nullptr, options);
  if (!started) return report(started.error(), message);
  *negotiator = started->release();
  return TRAINYARD_OK;
}

void trainyard_negotiator_free(trainyard_negotiator* negotiator) { delete negotiator; }

trainyard_kind trainyard_negotiator_submit(trainyard_negotiator* negotiator,
                                           const trainyard_request* requests, size_t count,
                                           int64_t* numbers, char* message) {
  return report(submit(*negotiator, requests, count, numbers), message);
}

int64_t trainyard_negotiator_join(trainyard_negotiator* negotiator, int set) {
  return negotiator->keep(
      std::make_shared<Pending>(Pending{negotiator->negotiator->join(set), {}, {}}));
}

int trainyard_negotiator_done(trainyard_negotiator* negotiator, int64_t number) {
  const auto request = negotiator->find(number);
  return !request || request->outcome || request->handle.done() ? 1 : 0;
}

trainyard_kind trainyard_negotiator_wait(trainyard_negotiator* negotiator, int64_t number,
                                         char* message) {
  const auto request = negotiator->find(number);
  if (!request)
    return report(not_found("request " + std::to_string(number) + " not found"), message);
  if (!request->outcome) request->outcome = request->handle.wait();
  return *request->outcome ? TRAINYARD_OK : report(request->outcome->error(), message);
}

void trainyard_negotiator_forget(trainyard_negotiator* negotiator, int64_t number) {
  const MutexLock lock(negotiator->mutex);
  negotiator->pending.erase(number);
}

int trainyard_negotiator_last_rank(trainyard_negotiator* negotiator, int64_t number) {
  const auto request = negotiator->find(number);
  const auto* outcome = negotiator->outcome_of(request);
  return outcome ? outcome->last : -1;
}

size_t trainyard_negotiator_rows(trainyard_negotiator* negotiator, int64_t number, uint64_t* rows,
                                 size_t rows_max) {
  const auto request = negotiator->find(number);
  const auto* outcome = negotiator->outcome_of(request);
  if (!outcome) return 0;
  std::copy_n(outcome->rows.begin(), std::min(outcome->rows.size(), rows_max), rows);
  return outcome->rows.size();
}

trainyard_kind trainyard_negotiator_copy_output(trainyard_negotiator* negotiator, int64_t number,
                                                void* memory, size_t bytes, char* message) {
  const auto request = negotiator->find(number);
  if (!request || !request->output || request->output->size() < bytes)
    return report(invalid("copying " + std::to_string(bytes) + " bytes of the output of request " +
                          std::to_string(number) + ": the negotiator holds fewer"),
                  message);
  if (bytes > 0) std::memcpy(memory, request->output->data(), bytes);
  return TRAINYARD_OK;
}

trainyard_kind trainyard_negotiator_add_set(trainyard_negotiator* negotiator, const int* ranks,
                                            size_t count, int* set, char* message) {
  const auto added = negotiator->negotiator->add_set(std::vector<int>(ranks, ranks + count));
  if (!added) return report(added.error(), message);
  *set = *added;
  return TRAINYARD_OK;
}

trainyard_kind trainyard_negotiator_remove_set(trainyard_negotiator* negotiator, int set,
                                               char* message) {
  return report(negotiator->negotiator->remove_set(set), message);
}

trainyard_kind trainyard_negotiator_start_timeline(trainyard_negotiator* negotiator,
                                                   const char* path, int mark_cycles,
                                                   char* message) {
  return report(negotiator->timeline.start(text_from(path), mark_cycles != 0,
                                           negotiator->negotiator->began()),
                message);
}

void trainyard_negotiator_stop_timeline(trainyard_negotiator* negotiator) {
  negotiator->timeline.stop();
}

}  // extern "C"
