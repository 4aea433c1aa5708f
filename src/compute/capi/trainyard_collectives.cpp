#include "capi/trainyard_collectives.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "capi/conversion.hpp"
#include "capi/launch.hpp"
#include "collectives/group.hpp"
#include "collectives/launch.hpp"
#include "collectives/plan/plan.hpp"
#include "collectives/select.hpp"

using namespace trainyard;
using namespace trainyard::capi;
using trainyard::capi::report;

struct trainyard_handle {
  collectives::Handle handle;
};

namespace {

static_assert(int(collectives::Type::boolean) == TRAINYARD_BOOL &&
              int(collectives::Type::i64) == TRAINYARD_I64);
static_assert(int(collectives::Reduction::bits_xor) == TRAINYARD_BITS_XOR);
static_assert(int(collectives::Reduction::product) == TRAINYARD_PRODUCT &&
              int(collectives::Reduction::average) == TRAINYARD_AVERAGE);
static_assert(int(collectives::plan::Operation::barrier) == TRAINYARD_BARRIER);
static_assert(int(collectives::plan::Operation::all_gather) == TRAINYARD_ALL_GATHER);
static_assert(int(Kind::internal) + 1 == TRAINYARD_INTERNAL &&
              int(Kind::invalid) + 1 == TRAINYARD_INVALID);

Result<collectives::Call> call_from(const trainyard_group* group, const trainyard_call* from) {
  if (!group) return invalid("the group of a trainyard_call is null");
  TRY(check_size(from, "trainyard_call"));
  if (from->operation < 0 || from->operation > TRAINYARD_BARRIER)
    return invalid("unknown operation " + std::to_string(from->operation));
  if (from->type < 0 || from->type > TRAINYARD_BOOL)
    return invalid("unknown type " + std::to_string(from->type));
  if (from->reduction < 0 || from->reduction > TRAINYARD_BITS_XOR)
    return invalid("unknown reduction " + std::to_string(from->reduction));
  const auto type = collectives::Type(from->type);
  const auto ranks = size_t(group->group->size());
  collectives::Call call{collectives::plan::Operation(from->operation),
                         collectives::ConstBufferView(from->input, from->input_count, type),
                         collectives::BufferView{from->output, from->output_count, type},
                         {collectives::Reduction(from->reduction),
                          from->prescale == 0 ? 1 : from->prescale, from->name ? from->name : ""},
                         from->root,
                         {},
                         {}};
  if (call.operation == collectives::plan::Operation::broadcast)
    call.input = collectives::ConstBufferView(call.output);
  if (from->counts) call.counts.assign(from->counts, from->counts + ranks);
  if (from->received_counts)
    call.received_counts.assign(from->received_counts, from->received_counts + ranks);
  return call;
}

Result<collectives::Launch> launch_from(const trainyard_join& join) {
  collectives::Launch launch;
  if (join.from_launcher) return read_launch(trainyard_launch_source{});
  if (join.ranks < 1 || join.rank < 0 || join.rank >= join.ranks)
    return invalid("invalid trainyard_join: rank " + std::to_string(join.rank) + " of " +
                   std::to_string(join.ranks));
  launch.rank = join.rank;
  launch.ranks = join.ranks;
  if (join.rendezvous) {
    TRY(collectives::set_rendezvous(launch, join.rendezvous).in("trainyard_join.rendezvous"));
  } else if (join.ranks > 1) {
    return invalid(
        "trainyard_join has no hosts and no rendezvous: set one of the two, or from_launcher");
  }
  return launch;
}

Result<std::unique_ptr<collectives::Group>> join_from(const trainyard_join& join) {
  auto options = options_from(join);
  if (!join.hosts) {
    auto launch = TRY(launch_from(join));
    if (join.sockets_per_peer != 0) launch.sockets_per_peer.reset();
    return collectives::join(launch, std::move(options));
  }
  if (join.rendezvous || join.from_launcher)
    return invalid(
        "trainyard_join has hosts, and also a rendezvous or from_launcher: set one of them");
  for (int rank = 0; rank < join.ranks; ++rank)
    options.endpoints.push_back({join.hosts[rank], join.ports[rank]});
  options.rank = join.rank;
  return collectives::join_over_tcp(std::move(options));
}

}  // namespace

Result<trainyard_join> trainyard::capi::whole(const trainyard_join* join) {
  if (!join || join->size < offsetof(trainyard_join, encrypt) || join->size > sizeof *join)
    return wrong_size("trainyard_join");
  trainyard_join all{};
  std::memcpy(&all, join, join->size);
  return all;
}

collectives::TcpOptions trainyard::capi::options_from(const trainyard_join& join) {
  collectives::TcpOptions options;
  options.shared_value = text_from(join.secret);
  if (join.join_deadline_ms > 0) options.join_deadline = Duration(join.join_deadline_ms);
  if (join.peer_timeout_ms > 0) options.peer_timeout = Duration(join.peer_timeout_ms);
  options.group.deterministic = join.deterministic != 0;
  options.group.timeline = join.timeline != 0;
  options.group.plans = text_from(join.plans);
  options.group.activity = activity_of_process();
  options.encrypt = join.encrypt != 0;
  if (join.sockets_per_peer != 0) options.sockets_per_peer = join.sockets_per_peer;
  return options;
}

extern "C" {

int trainyard_collectives_abi(void) { return TRAINYARD_COLLECTIVES_ABI; }

trainyard_kind trainyard_group_join(const trainyard_join* join, trainyard_group** group,
                                    char* message) {
  if (!group) return report(invalid("group must not be null"), message);
  const auto all = whole(join);
  if (!all) return report(all.error(), message);
  auto joined = join_from(*all);
  if (!joined) return report(joined.error(), message);
  *group = new trainyard_group{*std::move(joined)};
  return TRAINYARD_OK;
}

void trainyard_group_free(trainyard_group* group) { delete group; }
int trainyard_group_rank(const trainyard_group* group) { return group->group->rank(); }
int trainyard_group_size(const trainyard_group* group) { return group->group->size(); }
int trainyard_group_host(const trainyard_group* group, int rank) {
  const auto& hosts = group->group->hosts();
  return rank < 0 || size_t(rank) >= hosts.size() ? -1 : hosts[size_t(rank)];
}

trainyard_kind trainyard_group_run(trainyard_group* group, const trainyard_call* call,
                                   char* message) {
  auto made = call_from(group, call);
  if (!made) return report(made.error(), message);
  return report(group->group->run(*made), message);
}

trainyard_kind trainyard_group_start(trainyard_group* group, const trainyard_call* call,
                                     trainyard_handle** handle, char* message) {
  auto made = call_from(group, call);
  if (!made) return report(made.error(), message);
  *handle = new trainyard_handle{group->group->start(*std::move(made))};
  return TRAINYARD_OK;
}

int trainyard_handle_done(const trainyard_handle* handle) { return handle->handle.done() ? 1 : 0; }

trainyard_kind trainyard_handle_wait(trainyard_handle* handle, char* message) {
  const auto kind = report(handle->handle.wait(), message);
  delete handle;
  return kind;
}

trainyard_kind trainyard_group_send(trainyard_group* group, int peer, const void* bytes,
                                    size_t count, char* message) {
  return report(
      group->group->send(peer, collectives::ConstBufferView(bytes, count, collectives::Type::u8)),
      message);
}

trainyard_kind trainyard_group_receive(trainyard_group* group, int peer, void* bytes, size_t count,
                                       char* message) {
  return report(
      group->group->receive(peer, collectives::BufferView{bytes, count, collectives::Type::u8}),
      message);
}

trainyard_kind trainyard_group_start_send(trainyard_group* group, int peer, const void* bytes,
                                          size_t count, trainyard_handle** handle, char*) {
  *handle = new trainyard_handle{group->group->start_send(
      peer, collectives::ConstBufferView(bytes, count, collectives::Type::u8))};
  return TRAINYARD_OK;
}

trainyard_kind trainyard_group_start_receive(trainyard_group* group, int peer, void* bytes,
                                             size_t count, trainyard_handle** handle, char*) {
  *handle = new trainyard_handle{group->group->start_receive(
      peer, collectives::BufferView{bytes, count, collectives::Type::u8})};
  return TRAINYARD_OK;
}

trainyard_kind trainyard_group_split(trainyard_group* group, int color, trainyard_group** part,
                                     char* message) {
  auto split = group->group->split(color);
  if (!split) return report(split.error(), message);
  *part = *split ? new trainyard_group{*std::move(split)} : nullptr;
  return TRAINYARD_OK;
}

trainyard_kind trainyard_group_allocate(trainyard_group* group, size_t bytes, void** memory,
                                        char* message) {
  const auto allocated = group->group->allocate(bytes);
  if (!allocated) return report(allocated.error(), message);
  *memory = allocated->data();
  return TRAINYARD_OK;
}

void trainyard_group_free_memory(trainyard_group* group, void* memory) {
  group->group->free({static_cast<std::byte*>(memory), 1});
}

char* trainyard_group_table(const trainyard_group* group) {
  return text_for_c(group->group->table().text());
}
char* trainyard_group_timeline(const trainyard_group* group) {
  return text_for_c(group->group->timeline());
}
char* trainyard_group_under_way(const trainyard_group* group) {
  return text_for_c(group->group->current_operation());
}
void trainyard_text_free(char* text) { std::free(text); }

}  // extern "C"
