#include "capi/trainyard_membership.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "capi/conversion.hpp"
#include "membership/member.hpp"
#include "membership/service.hpp"

using namespace trainyard;
using capi::check_size;
using capi::report;
using capi::text_from;
using membership::Member;
using membership::MemberOptions;
using membership::News;
using membership::Service;
using membership::ServiceOptions;

struct trainyard_membership {
  std::unique_ptr<Service> service;
  std::optional<News> news;  // the event that was read last, whose texts the caller uses
};

struct trainyard_member {
  std::unique_ptr<Member> member;
};

namespace {

static_assert(int(News::Kind::came) == TRAINYARD_MEMBER_CAME &&
              int(News::Kind::formed) == TRAINYARD_GENERATION_FORMED &&
              int(News::Kind::done) == TRAINYARD_MEMBER_DONE &&
              int(News::Kind::lost) == TRAINYARD_MEMBER_LOST &&
              int(News::Kind::dismissed) == TRAINYARD_MEMBER_DISMISSED);

Result<collectives::Endpoint> endpoint_from(const char* host, int port, int port_min) {
  if (port < port_min || port > 65535) return invalid("invalid port " + std::to_string(port));
  return collectives::Endpoint{text_from(host), uint16_t(port)};
}

Result<ServiceOptions> options_from(const trainyard_membership_options* from) {
  TRY(check_size(from, "trainyard_membership_options"));
  ServiceOptions options;
  options.listen = TRY(endpoint_from(from->host, from->port, 0));
  options.secret = text_from(from->secret);
  options.limits = {from->ranks_min, from->ranks_max, Duration(from->settle_ms),
                    from->generations_max};
  return options;
}

Result<MemberOptions> options_from(const trainyard_member_options* from) {
  TRY(check_size(from, "trainyard_member_options"));
  MemberOptions options;
  options.service = TRY(endpoint_from(from->service_host, from->service_port, 1));
  options.secret = text_from(from->secret);
  options.name = text_from(from->name);
  options.host = text_from(from->host);
  options.wanted_rank = from->wanted_rank;
  return options;
}

}  // namespace

extern "C" {

trainyard_kind trainyard_membership_start(const trainyard_membership_options* options,
                                          trainyard_membership** membership, char* message) {
  auto checked = options_from(options);
  if (!checked) return report(checked.error(), message);
  auto service = Service::start(*std::move(checked));
  if (!service) return report(service.error(), message);
  *membership = new trainyard_membership{*std::move(service), {}};
  return TRAINYARD_OK;
}

void trainyard_membership_free(trainyard_membership* membership) { delete membership; }
int trainyard_membership_port(const trainyard_membership* membership) {
  return membership->service->port();
}
void trainyard_membership_expect(trainyard_membership* membership, const char* name) {
  membership->service->expect(text_from(name));
}
void trainyard_membership_gone(trainyard_membership* membership, const char* name,
                               const char* reason) {
  membership->service->gone(text_from(name), text_from(reason));
}
void trainyard_membership_host_leaves(trainyard_membership* membership, const char* host) {
  membership->service->host_leaves(text_from(host));
}
void trainyard_membership_host_returns(trainyard_membership* membership, const char* host) {
  membership->service->host_returns(text_from(host));
}

int trainyard_membership_next(trainyard_membership* membership, int64_t at_most_ms,
                              trainyard_membership_event* event) {
  membership->news = membership->service->next(Duration(at_most_ms));
  if (!membership->news) return 0;
  const News& news = *membership->news;
  *event = {sizeof *event,     trainyard_membership_event_kind(news.kind),
            news.name.c_str(), news.text.c_str(),
            news.generation,   news.ranks};
  return 1;
}

char* trainyard_membership_missing(const trainyard_membership* membership) {
  return capi::text_for_c(membership->service->missing());
}

trainyard_kind trainyard_member_connect(const trainyard_member_options* options,
                                        trainyard_member** member, char* message) {
  auto checked = options_from(options);
  if (!checked) return report(checked.error(), message);
  auto connected = Member::connect(*std::move(checked));
  if (!connected) return report(connected.error(), message);
  *member = new trainyard_member{*std::move(connected)};
  return TRAINYARD_OK;
}

void trainyard_member_free(trainyard_member* member) { delete member; }

trainyard_kind trainyard_member_next(trainyard_member* member, const char* complaint,
                                     int64_t at_most_ms, trainyard_assignment* assignment,
                                     char* message) {
  if (const auto checked = check_size(assignment, "trainyard_assignment"); !checked)
    return report(checked, message);
  const auto next = member->member->next(text_from(complaint), Duration(at_most_ms));
  if (!next) return report(next.error(), message);
  const auto& slot = next->generation.slots[size_t(next->rank)];
  *assignment = {sizeof *assignment, next->generation.number,
                 next->rank,         int(next->generation.slots.size()),
                 slot.local_rank,    slot.local_ranks};
  return TRAINYARD_OK;
}

trainyard_kind trainyard_member_join(trainyard_member* member, const trainyard_join* join,
                                     trainyard_group** group, char* message) {
  const auto all = capi::whole(join);
  if (!all) return report(all.error(), message);
  auto joined = member->member->join(capi::options_from(*all));
  if (!joined) return report(joined.error(), message);
  *group = new trainyard_group{*std::move(joined)};
  return TRAINYARD_OK;
}

int trainyard_member_changed(const trainyard_member* member) {
  const auto changed = member->member->changed();
  return (changed.added ? TRAINYARD_MEMBERS_ADDED : 0) |
         (changed.removed ? TRAINYARD_MEMBERS_REMOVED : 0);
}

void trainyard_member_done(trainyard_member* member) { member->member->done(); }

}  // extern "C"
