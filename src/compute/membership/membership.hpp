// Membership decides which ranks train together if ranks may join and leave. It forms generations
// of ranks, one after another.
//
//   expected --came--> waiting --formed--> running --came--> waiting ..
//       |                 |                   |
//       +-----------------+--------gone-------+--> (removed)
//
// A member that wants to be in the next generation sends Came. So does a member of the running
// generation when an operation has failed or when it was notified that hosts have changed. The next
// generation is formed when
//   - no member of the current one is running (members that do not return within settle_max are
//     dismissed),
//   - at least ranks_min members wait (fewer members wait without a time limit),
//   - and all started members have applied, or settle_max is over.
// Members that stay keep their order, and new members come after them. So rank 0, which broadcasts
// the state, has the state.
//
// When a member is done, members that never had a rank are dismissed, since they would train from
// the beginning.
//
// It does no I/O: its input are events and the time, and its output are actions; equal inputs give
// equal outputs.
//
// Threads: confined to one. Errors: none; events of unknown members are ignored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "collectives/group.hpp"

namespace trainyard::membership {

struct Limits {
  int ranks_min = 1;
  int ranks_max = 1 << 20;
  // Time for the other members of a generation to return, and for started members to apply. Long
  // enough to write a checkpoint and to load a model.
  Duration settle_max = 10min;
  int generations_max = 0;  // ends a training that always fails; 0: no limit
};

inline bool operator==(const collectives::Endpoint& a, const collectives::Endpoint& b) {
  return a.host == b.host && a.port == b.port;
}

// An Applicant is a process that wants a rank.
struct Applicant {
  std::string name;                // unique in the training: "algo-2/1 #3"
  std::string host;                // members of one host are its local ranks
  collectives::Endpoint endpoint;  // where it listens for the other ranks of its generation
  int wanted_rank = -1;            // for launchers that assign ranks themselves
  std::string complaint;           // why it left the previous generation; empty: nothing failed
  bool operator==(const Applicant&) const = default;
};

// A slot of a generation. Its index in Generation::slots is its rank.
struct Slot {
  std::string name;
  std::string host;
  collectives::Endpoint endpoint;
  int local_rank = 0;
  int local_ranks = 0;
  bool operator==(const Slot&) const = default;
};

struct Generation {
  uint64_t number = 0;
  std::vector<Slot> slots;
  std::string reason;  // why it was formed: which members were lost or new
  bool operator==(const Generation&) const = default;
};

namespace events {
struct Expected {  // the process was started
  std::string name;
};
struct Came {
  Applicant applicant;
};
struct Gone {  // the process ended, was killed or cannot be reached
  std::string name;
  std::string why;  // empty: the process ended successfully
};
struct HostLeaves {  // its members must end at the next opportunity
  std::string host;
};
struct HostReturns {
  std::string host;
};
struct TimePasses {};
}  // namespace events
using Event = std::variant<events::Expected, events::Came, events::Gone, events::HostLeaves,
                           events::HostReturns, events::TimePasses>;

namespace actions {
struct Formed {
  Generation generation;
};
struct Changed {  // to all running members: new members wait, or members must leave
  bool added = false;
  bool removed = false;
  bool operator==(const Changed&) const = default;
};
struct Lost {  // to all running members: do not wait for this member
  std::string name;
  std::string why;
  bool operator==(const Lost&) const = default;
};
struct Dismissed {
  std::string name;
  std::string why;
  bool operator==(const Dismissed&) const = default;
};
}  // namespace actions
using Action = std::variant<actions::Formed, actions::Changed, actions::Lost, actions::Dismissed>;

class Membership {
 public:
  explicit Membership(Limits limits) : limits_(limits) {}

  // Applies an event and returns the actions that follow.
  std::vector<Action> on(const Event& event, Instant now);

  uint64_t generation() const { return generation_; }
  std::vector<std::string> running() const;  // by rank
  size_t waiting() const;
  // Describes for what the next generation waits; empty if it waits for nothing.
  std::string missing() const;

 private:
  enum class State : uint8_t { expected, waiting, running };
  struct Member {
    State state = State::expected;
    Applicant applicant;
    int rank = -1;         // rank in its last generation
    uint64_t arrival = 0;  // order of arrival among new members
  };

  void came(const Applicant& applicant, Instant now);
  void gone(const std::string& name, const std::string& why);
  void host_leaves(const std::string& host);
  void dismiss(const std::string& name, const std::string& why);
  void dismiss_late_members(Instant now);
  void form(Instant now);
  bool leaving(const std::string& host) const;
  size_t count(State state) const;
  std::vector<std::string> in_order() const;  // the waiting members
  void note(const std::string& why);

  const Limits limits_;
  std::map<std::string, Member> members_;
  std::vector<std::string> leaving_hosts_;
  bool done_ = false;  // a member has completed the training
  uint64_t generation_ = 0;
  uint64_t arrivals_ = 0;
  // the time when the first member of the generation returned
  std::optional<Instant> returned_since_;
  std::optional<Instant> idle_since_;  // the time since which members wait and none is running
  actions::Changed announced_;         // the changes that running members know
  std::string reason_;
  std::vector<Action> actions_;
};

}  // namespace trainyard::membership
