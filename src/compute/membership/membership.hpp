// Who trains together when ranks may come and go: generations of ranks, one after another.
//
//   expected --came--> waiting --seated--> running --came--> waiting ..
//       |                 |                   |
//       +-----------------+--------gone-------+--> (forgotten)
//
// A member that wants to be in the next generation comes; so does one of the running generation, when an operation
// failed or when it was told that hosts changed. The next generation is formed when
//   - nobody runs any more in the present one (those who do not come back in settle_max are dismissed),
//   - at least ranks_min wait (fewer wait as long as it takes),
//   - and those who were started and are expected have come, or settle_max is over.
// Those who stay keep their order, so rank 0, from which state is told, is one who has it; new ones come after.
//
// When one is done, those who never had a rank are dismissed: they would begin anew.
//
// Pure: events and the time go in, what is to be said comes out; equal inputs give equal outputs.
//
// Threads: confined to one. Errors: none; an event of someone unknown is nothing.
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
  // How long the rest of a generation may take to come back, and those who were started to come. A checkpoint may
  // be written and a model loaded in it.
  Duration settle_max = 10min;
  int generations_max = 0;  // of a training that never holds; 0: any number
};

inline bool operator==(const collectives::Endpoint& a, const collectives::Endpoint& b) {
  return a.host == b.host && a.port == b.port;
}

// One process that wants a rank.
struct Applicant {
  std::string name;                // its own for the whole training: "algo-2/1 #3"
  std::string host;                // those of one host share local ranks
  collectives::Endpoint endpoint;  // where it listens for the others of its generation
  int wanted_rank = -1;            // for launchers that have decided already
  std::string complaint;           // why it left the generation before; empty: nothing failed
  bool operator==(const Applicant&) const = default;
};

// A place in a generation; its rank is its place in the list.
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
  std::string reason;  // why there is a new one: who was lost, who came
  bool operator==(const Generation&) const = default;
};

namespace events {
struct Expected {  // it was started
  std::string name;
};
struct Came {
  Applicant applicant;
};
struct Gone {  // it ended, was killed or cannot be reached
  std::string name;
  std::string why;  // empty: it is done, and nothing is wrong
};
struct HostLeaves {  // its members are to end when they next can
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
struct Seated {
  Generation generation;
};
struct Changed {  // to all who run: someone waits to be let in, or someone is to leave
  bool added = false;
  bool removed = false;
  bool operator==(const Changed&) const = default;
};
struct Lost {  // to all who run: do not wait for it
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
using Action = std::variant<actions::Seated, actions::Changed, actions::Lost, actions::Dismissed>;

class Membership {
 public:
  explicit Membership(Limits limits) : limits_(limits) {}

  std::vector<Action> on(const Event& event, Instant now);

  uint64_t generation() const { return generation_; }
  std::vector<std::string> running() const;  // by rank
  size_t waiting() const;
  // What is waited for, in words; empty when nothing is.
  std::string missing() const;

 private:
  enum class State : uint8_t { expected, waiting, running };
  struct Member {
    State state = State::expected;
    Applicant applicant;
    int rank = -1;         // in the last generation that it was in
    uint64_t arrival = 0;  // counts comings of new members
  };

  void came(const Applicant& applicant, Instant now);
  void gone(const std::string& name, const std::string& why);
  void host_leaves(const std::string& host);
  void dismiss(const std::string& name, const std::string& why);
  void dismiss_the_slow(Instant now);
  void form(Instant now);
  bool leaving(const std::string& host) const;
  size_t count(State state) const;
  std::vector<std::string> in_order() const;  // those who wait
  void note(const std::string& why);

  const Limits limits_;
  std::map<std::string, Member> members_;
  std::vector<std::string> leaving_hosts_;
  bool done_ = false;  // someone has trained to the end
  uint64_t generation_ = 0;
  uint64_t arrivals_ = 0;
  std::optional<Instant> returned_since_;  // the first one of the generation came back
  std::optional<Instant> idle_since_;      // nobody runs, and someone waits
  actions::Changed told_;                  // what those who run know already
  std::string reason_;
  std::vector<Action> actions_;
};

}  // namespace trainyard::membership
