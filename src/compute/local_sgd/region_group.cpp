#include "local_sgd/region_group.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace trainyard::local_sgd {

RegionGroup::RegionGroup(Replica& replica, uint32_t region, uint32_t regions)
    : replica_(replica), region_(region), regions_(regions), regions_min_(regions) {
  CHECK(region < regions && regions <= kRegionsMax,
        "region must be below regions, which is at most kRegionsMax");
  found_if_possible();
}

bool RegionGroup::is_member(uint32_t peer) const {
  return std::find(members_.begin(), members_.end(), peer) != members_.end();
}

uint32_t RegionGroup::leader() const {
  CHECK(is_member(), "only members have a leader");
  return members_.front();
}

// members_ contains only linked regions, so its first one is reachable.
void RegionGroup::remove(uint32_t peer) {
  offers_.erase(peer);
  const auto found = std::find(members_.begin(), members_.end(), peer);
  if (found == members_.end()) return;
  const bool led = found == members_.begin();
  members_.erase(found);
  --size_;
  if (!led || !is_member()) return;
  if (own_offer_ && leader() != region_) send(leader(), *own_offer_);
  // Some members may have lost the message of the last leader that made them members. Others were
  // linked after it, and are not among this region's members although the leader had both.
  for (const uint32_t each : linked_) send(each, hello());
}

void RegionGroup::linked(uint32_t peer) {
  linked_.insert(peer);
  if (!is_member()) {
    send(peer, join());
  } else {
    send(peer, hello());
    if (finished_) send(peer, Done{replica_.round()});
  }
}

void RegionGroup::lost(uint32_t peer) {
  linked_.erase(peer);
  joiners_.erase(peer);
  done_.erase(peer);
  remove(peer);
  // This peer may have been the leader that was to admit this region.
  if (!is_member()) request_to_join();
  step();
}

void RegionGroup::received(uint32_t peer, Message message) {
  if (!linked_.contains(peer)) return;
  std::visit([&](auto& each) { handle(peer, std::move(each)); }, message);
  step();
}

void RegionGroup::form_with(uint32_t regions_min) {
  regions_min_ = std::min(regions_min_, std::max(1u, regions_min));
  step();
}

void RegionGroup::resend_state() {
  if (!is_member()) return request_to_join();
  for (const uint32_t each : waited_for()) send(each, hello());
}

void RegionGroup::offer(Offer own) {
  CHECK(is_member() && !own_offer_ && !finished_,
        "only a member may send an offer, and only one at a time");
  own_offer_ = std::move(own);
  if (leader() != region_) send(leader(), *own_offer_);
  step();
}

void RegionGroup::finish() {
  finished_ = true;
  for (const uint32_t peer : linked_) send(peer, Done{replica_.round()});
  step();
}

std::vector<Outgoing> RegionGroup::take_outgoing() { return std::exchange(outgoing_, {}); }
bool RegionGroup::take_caught_up() { return std::exchange(caught_up_, false); }

bool RegionGroup::may_leave() const {
  if (!finished_) return false;
  return std::all_of(members_.begin(), members_.end(),
                     [&](uint32_t each) { return each == region_ || done_.contains(each); });
}

std::vector<uint32_t> RegionGroup::waited_for() const {
  std::vector<uint32_t> all;
  if (!is_member()) return {linked_.begin(), linked_.end()};
  if (finished_) {
    for (const uint32_t each : members_) {
      if (each != region_ && !done_.contains(each)) all.push_back(each);
    }
  } else if (own_offer_ && leader() != region_) {
    all.push_back(leader());
  } else if (own_offer_) {
    for (const uint32_t each : members_) {
      if (each != region_ && !offers_.contains(each)) all.push_back(each);
    }
  }
  return all;
}

// -- messages

bool RegionGroup::outranks(const Hello& other) const {
  const auto rank = [](const Hello& hello) {
    return std::tuple(hello.finished, hello.members.size(), hello.round,
                      kRegionsMax - hello.members.front());
  };
  return rank(other) > rank(hello());
}

void RegionGroup::handle(uint32_t peer, const Hello& hello) {
  if (hello.members.empty()) return;
  const auto has = [&](uint32_t each) {
    return std::find(hello.members.begin(), hello.members.end(), each) != hello.members.end();
  };
  const bool includes_us = has(region_);
  if (!is_member()) {
    // The peer believes that this region is a member, but the snapshot was lost with its leader.
    if (includes_us) send(peer, join());
    return;
  }
  // Members of one group may briefly have different leaders, while only some have noticed that the
  // first one was lost.
  const bool one_group = hello.members.front() == leader() || !has(leader());
  if (includes_us && is_member(peer) && one_group) {
    // The peer has applied a mean that was lost on its way here.
    if (hello.round > replica_.round()) return rejoin();
    // The offer may have reached the peer before the peer knew that it leads.
    if (peer == leader() && own_offer_) send(peer, *own_offer_);
    return;
  }
  // the leader continues without this region
  if (!includes_us && peer == leader()) return rejoin();
  // the common leader admitted or excluded the peer
  if (hello.members.front() == leader()) return;
  if (is_member(peer)) remove(peer);
  if (outranks(hello)) {
    rejoin();
  } else {
    send(peer, this->hello());
  }
}

void RegionGroup::handle(uint32_t peer, const Join& join) {
  if (join.parameters != replica_.parameters().size()) {
    refuse(peer, "region " + std::to_string(region_) + " trains " +
                     std::to_string(replica_.parameters().size()) + " parameters, not " +
                     std::to_string(join.parameters));
    return;
  }
  remove(peer);
  done_.erase(peer);
  joiners_[peer] = join;
}

void RegionGroup::handle(uint32_t peer, Offer offer) {
  if (!is_member())  // the peer believes that this region leads
    return send(peer, join());
  if (offer.gradient.size() != coded_bytes(offer.coding, replica_.parameters().size()) ||
      !std::isfinite(offer.weight) || offer.weight < 0) {
    refuse(peer, "invalid offer: the gradient must have " +
                     std::to_string(replica_.parameters().size()) +
                     " numbers, and the weight must be finite and not negative");
    return;
  }
  if (!is_member(peer)) {
    send(peer, hello());  // the peer believes that it is a member, and may become one
    return;
  }
  // The peer may know earlier than this region that the members before it are lost.
  offers_[peer] = std::move(offer);
}

void RegionGroup::handle(uint32_t peer, const Averaged& averaged) {
  if (!is_member() || peer != leader() || !own_offer_ || averaged.round != replica_.round() + 1)
    return;
  const auto applied = replica_.apply(averaged);
  if (!applied) return rejoin();
  own_offer_.reset();
  set_members(averaged.members);
}

void RegionGroup::handle(uint32_t peer, const Snapshot& snapshot) {
  const bool wanted = !finished_ && (!is_member() || peer == leader());
  // this region is in another group by now, or has finished
  if (!wanted) return send(peer, hello());
  const bool lists_us = std::find(snapshot.members.begin(), snapshot.members.end(), region_) !=
                        snapshot.members.end();
  if (!lists_us) return;
  if (!is_member() || !replica_.equals(snapshot)) {
    if (!replica_.restore(snapshot)) return;
    caught_up_ = true;
    own_offer_.reset();
    offers_.clear();
  }
  set_members(snapshot.members);
}

void RegionGroup::handle(uint32_t peer, const Refuse& refuse) {
  if (!is_member())
    refused_ = "region " + std::to_string(peer) + " refused this region: " + refuse.why;
}

void RegionGroup::handle(uint32_t peer, const Done&) { done_.insert(peer); }

void RegionGroup::refuse(uint32_t peer, std::string why) {
  remove(peer);
  joiners_.erase(peer);
  send(peer, Refuse{std::move(why)});
}

// -- transitions

void RegionGroup::request_to_join() {
  for (const uint32_t peer : linked_) send(peer, join());
}

void RegionGroup::rejoin() {
  offers_.clear();
  if (finished_) {  // the result is final, and others may copy it
    members_ = {region_};
    size_ = 1;
    return;
  }
  members_.clear();
  size_ = 0;
  own_offer_.reset();
  request_to_join();
}

void RegionGroup::set_members(const Members& members) {
  const Members before = std::exchange(members_, {});
  size_ = size_of_round_ = members.size();
  for (const uint32_t each : members) {
    if (each == region_ || linked_.contains(each)) members_.push_back(each);
    joiners_.erase(each);
  }
  if (!is_member(region_)) return rejoin();
  // A region that the leader does not reach may believe that this region is in its group.
  for (const uint32_t each : before) {
    if (each != region_ && linked_.contains(each) && !is_member(each)) send(each, hello());
  }
}

void RegionGroup::step() {
  if (!is_member()) {
    found_if_possible();
  } else if (leader() == region_) {
    step_as_leader();
  }
}

void RegionGroup::found_if_possible() {
  // A linked region that does not want to join is in a group already, and admits this one.
  if (joiners_.size() + 1 < regions_min_ || joiners_.size() < linked_.size()) return;
  for (const auto& [peer, join] : joiners_) {
    if (std::tuple(join.round, kRegionsMax - peer) >
        std::tuple(replica_.round(), kRegionsMax - region_))
      return;
  }
  members_ = {region_};
  caught_up_ = true;
  admit_joiners();
}

void RegionGroup::step_as_leader() {
  for (auto each = offers_.begin(); each != offers_.end();) {
    const auto& [peer, offer] = *each;
    if (offer.round > replica_.round() + 1) return rejoin();
    if (offer.round == replica_.round() + 1 && offer.digest == replica_.digest()) {
      ++each;
      continue;
    }
    Snapshot snapshot = replica_.snapshot(offer.digest);
    snapshot.members = members_;
    send(peer, std::move(snapshot));
    each = offers_.erase(each);
  }
  if (finished_) return admit_joiners();
  if (own_offer_ && offers_.size() + 1 == members_.size()) end_round();
}

void RegionGroup::end_round() {
  // Sums in the order of regions, so that the result does not depend on the order of arrival.
  std::vector<Offer> offers;
  for (uint32_t each = 0; each < regions_; ++each) {
    if (each == region_) offers.push_back(*own_offer_);
    if (const auto offer = offers_.find(each); offer != offers_.end())
      offers.push_back(offer->second);
  }
  auto averaged = replica_.average(offers);
  CHECK(averaged && replica_.apply(*averaged), "handle() has checked every offer");
  own_offer_.reset();
  offers_.clear();
  const Members had_offers = members_;
  admit_joiners();
  averaged->members = members_;
  for (const uint32_t each : had_offers) {
    if (each != region_) send(each, *averaged);
  }
}

void RegionGroup::admit_joiners() {
  for (const auto& [peer, join] : joiners_) members_.push_back(peer);
  size_ = size_of_round_ = members_.size();
  for (const auto& [peer, join] : joiners_) {
    Snapshot snapshot = replica_.snapshot(join.digest);
    snapshot.members = members_;
    send(peer, std::move(snapshot));
  }
  joiners_.clear();
}

}  // namespace trainyard::local_sgd
