#include "local_sgd/council.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace trainyard::local_sgd {

Council::Council(Replica& replica, uint32_t region, uint32_t regions)
    : replica_(replica), region_(region), regions_(regions), regions_min_(regions) {
  CHECK(region < regions && regions <= regions_max, "a region is one of the regions");
  found_if_possible();
}

bool Council::is_member(uint32_t peer) const {
  return std::find(members_.begin(), members_.end(), peer) != members_.end();
}

uint32_t Council::leader() const {
  CHECK(is_member(), "a circle has a leader");
  return members_.front();
}

// members_ holds nobody that is not linked, so its first one lives.
void Council::remove(uint32_t peer) {
  offers_.erase(peer);
  const auto place = std::find(members_.begin(), members_.end(), peer);
  if (place == members_.end()) return;
  const bool led = place == members_.begin();
  members_.erase(place);
  --size_;
  if (!led || !is_member()) return;
  if (leader() == region_) {
    // Some may not know yet that they are members, having waited for the dead one's word.
    for (const uint32_t each : members_) {
      if (each != region_) say(each, hello());
    }
  } else if (own_offer_) {
    say(leader(), *own_offer_);
  } else {
    say(leader(), hello());
  }
}

void Council::linked(uint32_t peer) {
  linked_.insert(peer);
  if (!is_member()) {
    say(peer, join());
  } else {
    say(peer, hello());
    if (finished_) say(peer, Done{replica_.round()});
  }
}

void Council::lost(uint32_t peer) {
  linked_.erase(peer);
  joiners_.erase(peer);
  done_.erase(peer);
  remove(peer);
  // Who was to take us in may have been this one.
  if (!is_member()) ask_to_join();
  step();
}

void Council::heard(uint32_t peer, Message message) {
  if (!linked_.contains(peer)) return;
  std::visit([&](auto& each) { hear(peer, std::move(each)); }, message);
  step();
}

void Council::found_with(uint32_t regions_min) {
  regions_min_ = std::min(regions_min_, std::max(1u, regions_min));
  step();
}

void Council::remind() {
  if (!is_member()) return ask_to_join();
  for (const uint32_t each : waited_for()) say(each, hello());
}

void Council::offer(Offer own) {
  CHECK(is_member() && !own_offer_ && !finished_, "one offer at a time, by a member");
  own_offer_ = std::move(own);
  if (leader() != region_) say(leader(), *own_offer_);
  step();
}

void Council::finish() {
  finished_ = true;
  for (const uint32_t peer : linked_) say(peer, Done{replica_.round()});
  step();
}

std::vector<Outgoing> Council::take_outgoing() { return std::exchange(outgoing_, {}); }
bool Council::take_adopted() { return std::exchange(adopted_, false); }

bool Council::may_leave() const {
  if (!finished_) return false;
  return std::all_of(members_.begin(), members_.end(),
                     [&](uint32_t each) { return each == region_ || done_.contains(each); });
}

std::vector<uint32_t> Council::waited_for() const {
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

// -- what is heard

bool Council::outranks(const Hello& other) const {
  const auto rank = [](const Hello& hello) {
    return std::tuple(hello.finished, hello.members.size(), hello.round, regions_max - hello.members.front());
  };
  return rank(other) > rank(hello());
}

void Council::hear(uint32_t peer, const Hello& hello) {
  if (hello.members.empty()) return;
  const auto has = [&](uint32_t each) {
    return std::find(hello.members.begin(), hello.members.end(), each) != hello.members.end();
  };
  const bool with_us = has(region_);
  if (!is_member()) {
    // It counts on us, but whoever was to tell us is gone.
    if (with_us) say(peer, join());
    return;
  }
  // Leaders may differ for a moment in one circle, while some have seen the first one die and some not.
  const bool one_circle = hello.members.front() == leader() || !has(leader());
  if (with_us && is_member(peer) && one_circle) {
    // The peer saw a mean of which we shall not hear any more.
    if (hello.round > replica_.round()) return rejoin();
    // Our offer may have come to it before it knew that it leads.
    if (peer == leader() && own_offer_) say(peer, *own_offer_);
    return;
  }
  if (!with_us && peer == leader()) return rejoin();  // it goes on without us
  if (hello.members.front() == leader()) return;  // it was taken in, or left out, by a leader that we share
  if (is_member(peer)) remove(peer);
  if (outranks(hello)) {
    rejoin();
  } else {
    say(peer, this->hello());
  }
}

void Council::hear(uint32_t peer, const Join& join) {
  if (join.parameters != replica_.parameters().size()) {
    refuse(peer, "region " + std::to_string(region_) + " trains " +
                     std::to_string(replica_.parameters().size()) + " parameters, you " +
                     std::to_string(join.parameters));
    return;
  }
  remove(peer);
  done_.erase(peer);
  joiners_[peer] = join;
}

void Council::hear(uint32_t peer, Offer offer) {
  if (!is_member())  // it believes that we lead
    return say(peer, join());
  if (offer.gradient.size() != coded_bytes(offer.coding, replica_.parameters().size()) ||
      !std::isfinite(offer.weight) || offer.weight < 0) {
    refuse(peer, "the offer is not one of " + std::to_string(replica_.parameters().size()) + " numbers");
    return;
  }
  if (!is_member(peer)) {
    say(peer, hello());  // it counts itself among us, and may be right in a moment
    return;
  }
  // It may know sooner than we do that those before us are dead.
  offers_[peer] = std::move(offer);
}

void Council::hear(uint32_t peer, const Averaged& averaged) {
  if (!is_member() || peer != leader() || !own_offer_ || averaged.round != replica_.round() + 1) return;
  const auto applied = replica_.apply(averaged);
  if (!applied) return rejoin();
  own_offer_.reset();
  follow(averaged.members);
}

void Council::hear(uint32_t peer, const Snapshot& snapshot) {
  const bool wanted = !finished_ && (!is_member() || peer == leader());
  if (!wanted) return say(peer, hello());  // we are in another circle by now, or have all there is
  const bool knows_us =
      std::find(snapshot.members.begin(), snapshot.members.end(), region_) != snapshot.members.end();
  if (!knows_us) return;
  if (!is_member() || !replica_.equals(snapshot)) {
    if (!replica_.adopt(snapshot)) return;
    adopted_ = true;
    own_offer_.reset();
    offers_.clear();
  }
  follow(snapshot.members);
}

void Council::hear(uint32_t peer, const Refuse& refuse) {
  if (!is_member()) refused_ = "region " + std::to_string(peer) + " refuses us: " + refuse.why;
}

void Council::hear(uint32_t peer, const Done&) { done_.insert(peer); }

void Council::refuse(uint32_t peer, std::string why) {
  remove(peer);
  joiners_.erase(peer);
  say(peer, Refuse{std::move(why)});
}

// -- what follows

void Council::ask_to_join() {
  for (const uint32_t peer : linked_) say(peer, join());
}

void Council::rejoin() {
  offers_.clear();
  if (finished_) {  // what we have is final, and others may want it
    members_ = {region_};
    size_ = 1;
    return;
  }
  members_.clear();
  size_ = 0;
  own_offer_.reset();
  ask_to_join();
}

void Council::follow(const Members& members) {
  const Members before = std::exchange(members_, {});
  size_ = members.size();
  for (const uint32_t each : members) {
    if (each == region_ || linked_.contains(each)) members_.push_back(each);
    joiners_.erase(each);
  }
  if (!is_member(region_)) return rejoin();
  // Somebody whom the leader does not reach may believe that we go with it.
  for (const uint32_t each : before) {
    if (each != region_ && linked_.contains(each) && !is_member(each)) say(each, hello());
  }
}

void Council::step() {
  if (!is_member()) {
    found_if_possible();
  } else if (leader() == region_) {
    step_as_leader();
  }
}

void Council::found_if_possible() {
  // Who is here and does not want to join is in a circle, and will take us in.
  if (joiners_.size() + 1 < regions_min_ || joiners_.size() < linked_.size()) return;
  for (const auto& [peer, join] : joiners_) {
    if (std::tuple(join.round, regions_max - peer) > std::tuple(replica_.round(), regions_max - region_))
      return;
  }
  members_ = {region_};
  adopted_ = true;
  admit_joiners();
}

void Council::step_as_leader() {
  for (auto each = offers_.begin(); each != offers_.end();) {
    const auto& [peer, offer] = *each;
    if (offer.round > replica_.round() + 1) return rejoin();
    if (offer.round == replica_.round() + 1 && offer.digest == replica_.digest()) {
      ++each;
      continue;
    }
    Snapshot snapshot = replica_.snapshot(offer.digest);
    snapshot.members = members_;
    say(peer, std::move(snapshot));
    each = offers_.erase(each);
  }
  if (finished_) return admit_joiners();
  if (own_offer_ && offers_.size() + 1 == members_.size()) end_round();
}

void Council::end_round() {
  // In the order of regions, so that the sum does not depend on who came first.
  std::vector<Offer> offers;
  for (uint32_t each = 0; each < regions_; ++each) {
    if (each == region_) offers.push_back(*own_offer_);
    if (const auto offer = offers_.find(each); offer != offers_.end()) offers.push_back(offer->second);
  }
  auto averaged = replica_.average(offers);
  CHECK(averaged && replica_.apply(*averaged), "what was heard was looked at");
  own_offer_.reset();
  offers_.clear();
  const Members had_offers = members_;
  admit_joiners();
  averaged->members = members_;
  for (const uint32_t each : had_offers) {
    if (each != region_) say(each, *averaged);
  }
}

void Council::admit_joiners() {
  for (const auto& [peer, join] : joiners_) members_.push_back(peer);
  size_ = members_.size();
  for (const auto& [peer, join] : joiners_) {
    Snapshot snapshot = replica_.snapshot(join.digest);
    snapshot.members = members_;
    say(peer, std::move(snapshot));
  }
  joiners_.clear();
}

}  // namespace trainyard::local_sgd
