// A RegionGroup implements the membership rules of regions that train together: which regions take
// part in a round, which region leads it, and which regions need a snapshot. It has no sockets and
// no clock.
//
// A region is either joining or a member of a group. Members are ordered by seniority; the first
// reachable member leads.
//
//             all regions are linked (or the join timeout has expired): the region with most
//             rounds, then the one with the lowest number, forms a group
//       joining ────────────────────────────────────────────────────────────────────────► member
//          │  ▲     a snapshot from a leader                                                │
//          │  └─────────────────────────────────────────────────────────────────────────────┘
//          │           another group outranks this one, or a member is ahead of its leader
//
// In a round every member sends its offer to the leader. When the leader has the offers of all
// reachable members, it averages them, applies the mean to its replica, and sends the mean to the
// members, which apply it too. Joining regions then get a snapshot and take part from the next
// round on. Each region except the leader sends one coded gradient over the slow links and receives
// one:
//
//   bytes of a round = 2 (members - 1) * (coded_bytes(parameters) + some 60)
//
// If the leader is lost, the next member leads, and all others send their offers to it again. Each
// also sends its state to all linked regions, since those linked after the leader's last message
// are not among its members yet. If only some members have applied the last mean, a member that is
// behind gets a snapshot from the new leader, and a new leader that is behind joins a member that
// is ahead. The reachable regions therefore continue from the latest round that one of them has
// applied.
//
// Regions that cannot reach each other continue separately. When they are linked again, the smaller
// group (then the one that is behind, then the one whose leader has the higher number) drops its
// rounds and joins the other. A region that has finished keeps its result, and the others copy it.
//
// Threads: confined to one. Errors: none. A Join or an Offer that does not fit the replica is
// answered with Refuse, and its sender is removed from the members. An Averaged that does not fit
// makes this region join again.
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

// A message to send to the region `to`.
struct Outgoing {
  uint32_t to = 0;
  Message message;
};

class RegionGroup {
 public:
  // Forms a group when all `regions` regions are linked. Requires: region < regions <= kRegionsMax.
  RegionGroup(Replica& replica, uint32_t region, uint32_t regions);

  // -- events
  void linked(uint32_t peer);
  void lost(uint32_t peer);
  void received(uint32_t peer, Message message);
  // Lets `regions_min` regions, including this one, form a group from now on.
  void form_with(uint32_t regions_min);
  // Sends the state of this region again. The caller calls it if no message has arrived for a
  // while, since an interrupted link may have lost messages, or delivered them after a change.
  void resend_state();

  // -- actions
  // Sends the gradient of this region for the next round. Requires: is_member() and not offering().
  void offer(Offer own);
  // Declares that this region has finished its last round and sends no more offers.
  void finish();

  // -- results
  // Returns the messages to send, and removes them.
  std::vector<Outgoing> take_outgoing();
  bool is_member() const { return !members_.empty(); }
  // Returns true from offer() until the offer is averaged, or is dropped for a snapshot. Both
  // change the replica.
  bool offering() const { return own_offer_.has_value(); }
  // Returns true if the replica has been set to a snapshot since the last call.
  bool take_caught_up();
  // Returns true once this region and all reachable members have finished. Regions that are still
  // joining do not count.
  bool may_leave() const;
  // Returns the reason of the last Refuse that this region received while it was joining.
  const std::optional<std::string>& refused() const { return refused_; }

  // Returns the reachable members, including this region, ordered by seniority; empty while
  // joining.
  const Members& members() const { return members_; }
  // Returns the number of members, reachable or not, as far as this region knows.
  size_t size() const { return size_; }
  // Returns the number of members at the end of the last round. Regions may have left since then.
  size_t size_of_round() const { return size_of_round_; }
  bool is_linked(uint32_t peer) const { return linked_.contains(peer); }
  uint32_t leader() const;  // requires: is_member()
  // Returns the regions from which this region needs a message to continue.
  std::vector<uint32_t> waited_for() const;

 private:
  void handle(uint32_t peer, const Hello& hello);
  void handle(uint32_t peer, const Join& join);
  void handle(uint32_t peer, Offer offer);
  void handle(uint32_t peer, const Averaged& averaged);
  void handle(uint32_t peer, const Snapshot& snapshot);
  void handle(uint32_t peer, const Refuse& refuse);
  void handle(uint32_t peer, const Done& done);

  template <class M>
  void send(uint32_t to, M message) {
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
  void request_to_join();
  void rejoin();
  // Sets the list of members that the leader sent.
  void set_members(const Members& members);
  // Makes the transitions that are possible now: forms a group, sends snapshots, ends a round.
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
  Members members_;  // linked members and this region; empty while joining
  size_t size_ = 0;
  size_t size_of_round_ = 0;
  std::map<uint32_t, Join> joiners_;  // linked regions that want to join
  std::map<uint32_t, Offer> offers_;  // by peer
  std::optional<Offer> own_offer_;
  std::set<uint32_t> done_;
  bool finished_ = false;
  bool caught_up_ = false;
  std::optional<std::string> refused_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace trainyard::local_sgd
