// Who takes part in a round, who leads it, and who must be told everything: the rules of a circle of regions, without a
// socket or a clock.
//
// A region is joining, or a member of a circle. Members are kept by seniority; the first that lives leads.
//
//                 all are here (or patience is over): the furthest, then the lowest, region founds
//       joining ────────────────────────────────────────────────────────────────────────► member
//          │  ▲     a snapshot from a leader                                                │
//          │  └─────────────────────────────────────────────────────────────────────────────┘
//          │           another circle outranks ours, or somebody we lead is further than we are
//
// A round: every member sends its offer to the leader. When all that live have, the leader averages, moves its replica,
// and sends the mean to them, who move theirs; whoever wants to join gets a snapshot then, and takes part from the next
// round on. On the slow links that is one coded gradient there and one back for each region but the leader:
//
//   bytes of a round = 2 (members - 1) * (coded_bytes(parameters) + some 60)
//
// When the leader dies, the next member leads and everyone offers to it again. Some may have had the dead one's mean and
// some not: who is behind gets a snapshot from the new leader; a new leader that is behind joins again under the member
// that is ahead. So all that live continue from the furthest round that one of them has seen.
//
// Regions that cannot reach each other go on apart. When they hear each other again, the smaller circle (then the one that
// is behind, then the one whose leader has the higher number) gives up what it did meanwhile and joins the other. One that
// has finished stays as it is, and the others take over what it has.
//
// Threads: confined to one. Errors: none; what a peer says that makes no sense is answered with a refusal, and it is no
// member any more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "local_sgd/messages.hpp"
#include "local_sgd/replica.hpp"

namespace trainyard::local_sgd {

struct Outgoing {
  uint32_t to = 0;
  Message message;
};

class Council {
 public:
  // Founds when `regions` are here. Requires: region < regions <= regions_max.
  Council(Replica& replica, uint32_t region, uint32_t regions);

  // -- what happens
  void linked(uint32_t peer);
  void lost(uint32_t peer);
  void heard(uint32_t peer, Message message);
  // From now on `regions_min` are enough to found a circle, ourselves included.
  void found_with(uint32_t regions_min);
  // Nothing has come for a while: say once more who we are and what we wait for. What was said on links that broke
  // and healed may have crossed with what changed meanwhile.
  void remind();

  // -- what we want
  // Our part of the next round. Requires: is_member() and not offering().
  void offer(Offer own);
  // No offers will follow: the last round is over.
  void finish();

  // -- what follows
  std::vector<Outgoing> take_outgoing();
  bool is_member() const { return !members_.empty(); }
  // While true, the replica may change; then the offer was used, or dropped for a snapshot.
  bool offering() const { return own_offer_.has_value(); }
  // Whether the replica has taken somebody's snapshot since it was asked last.
  bool take_adopted();
  // After finish(): everyone who lives has seen the last round.
  bool may_leave() const;
  // Why we cannot be a member at all, once somebody has said so.
  const std::optional<std::string>& refused() const { return refused_; }

  // Those that we reach, ourselves included, by seniority; empty while joining.
  const Members& members() const { return members_; }
  // All in the circle, as far as we have heard.
  size_t size() const { return size_; }
  bool is_linked(uint32_t peer) const { return linked_.contains(peer); }
  uint32_t leader() const;  // requires: is_member()
  // The regions that we cannot go on without as long as they are linked.
  std::vector<uint32_t> waited_for() const;

 private:
  void hear(uint32_t peer, const Hello& hello);
  void hear(uint32_t peer, const Join& join);
  void hear(uint32_t peer, Offer offer);
  void hear(uint32_t peer, const Averaged& averaged);
  void hear(uint32_t peer, const Snapshot& snapshot);
  void hear(uint32_t peer, const Refuse& refuse);
  void hear(uint32_t peer, const Done& done);

  template <class M>
  void say(uint32_t to, M message) {
    Outgoing& outgoing = outgoing_.emplace_back();
    outgoing.to = to;
    outgoing.message.emplace<M>(std::move(message));
  }
  void refuse(uint32_t peer, std::string why);
  bool is_member(uint32_t peer) const;
  Hello hello() const { return {replica_.round(), finished_, members_}; }
  Join join() const { return {replica_.round(), replica_.digest(), replica_.parameters().size()}; }
  bool outranks(const Hello& other) const;
  void remove(uint32_t peer);
  void ask_to_join();
  void rejoin();
  // The members as a leader of ours has them.
  void follow(const Members& members);
  // What is possible now: found, send snapshots, end a round.
  void step();
  void step_as_leader();
  void found_if_possible();
  void end_round();
  void admit_joiners();

  Replica& replica_;
  const uint32_t region_;
  const uint32_t regions_;
  uint32_t regions_min_;
  std::set<uint32_t> linked_;
  Members members_;  // empty while joining; nobody that is not linked
  size_t size_ = 0;
  std::map<uint32_t, Join> joiners_;  // linked, and no members as far as we know
  std::map<uint32_t, Offer> offers_;  // of peers
  std::optional<Offer> own_offer_;
  std::set<uint32_t> done_;
  bool finished_ = false;
  bool adopted_ = false;
  std::optional<std::string> refused_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace trainyard::local_sgd
