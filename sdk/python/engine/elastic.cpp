#include "sdk/python/engine/elastic.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "membership/member.hpp"
#include "membership/service.hpp"
#include "sdk/python/engine/said.hpp"

namespace sdk = trainyard::sdk;
using namespace trainyard;
using namespace trainyard::collectives;

struct engine_service {
  std::unique_ptr<membership::Service> service;
  std::optional<membership::News> news;  // whose texts were given out
  std::string missing;
};

struct engine_member {
  std::unique_ptr<membership::Member> member;
};

engine_service* service_start(const char* host, int32_t port, const char* secret, int32_t ranks_min,
                              int32_t ranks_max, int64_t settle_ms, int32_t generations_max) {
  auto service =
      membership::Service::start({{host, uint16_t(port)},
                                  secret,
                                  {ranks_min, ranks_max, Duration(settle_ms), generations_max}});
  if (!service) return sdk::say(service.error()), nullptr;
  return new engine_service{std::move(service).value(), {}, {}};
}

void service_stop(engine_service* service) { delete service; }
int32_t service_port(const engine_service* service) { return service->service->port(); }
void service_expect(engine_service* service, const char* name) { service->service->expect(name); }
void service_gone(engine_service* service, const char* name, const char* why) {
  service->service->gone(name, why);
}
void service_host(engine_service* service, const char* host, int32_t leaves) {
  leaves ? service->service->host_leaves(host) : service->service->host_returns(host);
}

int32_t service_next(engine_service* service, int64_t at_most_ms, const char** name,
                     const char** words, uint64_t* generation, int32_t* ranks) {
  service->news = service->service->next(Duration(at_most_ms));
  if (!service->news) return 0;
  *name = service->news->name.c_str();
  *words = service->news->text.c_str();
  *generation = service->news->generation;
  *ranks = service->news->ranks;
  return int32_t(service->news->kind) + 1;
}

const char* service_missing(engine_service* service) {
  service->missing = service->service->missing();
  return service->missing.c_str();
}

engine_member* member_connect(const char* host, int32_t port, const char* secret, const char* name,
                              const char* own_host, int32_t wanted_rank) {
  membership::MemberOptions options;
  options.service = {host, uint16_t(port)};
  options.secret = secret;
  options.name = name;
  options.host = own_host;
  options.wanted_rank = wanted_rank;
  auto member = membership::Member::connect(std::move(options));
  if (!member) return sdk::say(member.error()), nullptr;
  return new engine_member{std::move(member).value()};
}

void member_leave(engine_member* member) { delete member; }

int32_t member_next(engine_member* member, const char* complaint, int64_t at_most_ms,
                    engine_seat* slot) {
  const auto place = member->member->next(complaint, Duration(at_most_ms));
  if (!place) return sdk::say(place.error());
  const auto& ours = place->generation.slots[size_t(place->rank)];
  *slot = {place->generation.number, place->rank, int32_t(place->generation.slots.size()),
           ours.local_rank, ours.local_ranks};
  return 0;
}

int32_t member_changed(engine_member* member) {
  const auto changed = member->member->changed();
  return (changed.added ? 1 : 0) | (changed.removed ? 2 : 0);
}

void member_done(engine_member* member) { member->member->done(); }

Result<std::unique_ptr<Group>> sdk::join_generation(void* member, TcpOptions options) {
  return static_cast<engine_member*>(member)->member->join(std::move(options));
}
