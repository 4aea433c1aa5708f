// Defines the messages between the leaders of regions, and their encoding.
//
// A message is the payload of a data frame (transport/tcp/frame.hpp, operation and label 0): a kind
// byte, then the fields in order (base/bytes/fields.hpp). Rounds count completed averaging rounds.
// docs/formats/local-sgd.md has the table.
//
// Threads: plain values, pure functions. Errors: corrupt, naming message and field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "local_sgd/coding.hpp"

namespace trainyard::local_sgd {

// Regions in the order of seniority. The first reachable one leads.
using Members = std::vector<uint32_t>;

// States that the sender is a member of this group. Sent to every newly linked region, and to a
// leader that may not know it.
struct Hello {
  uint64_t round = 0;
  bool finished = false;
  Members members;
};
// States that the sender wants to become a member.
struct Join {
  uint64_t round = 0;
  uint64_t digest = 0;  // digest of charter, round, parameters and outer state
  uint64_t parameters = 0;
};
// The outer gradient of a region, for the leader.
struct Offer {
  uint64_t round = 0;   // the round to which it belongs: completed rounds + 1
  uint64_t digest = 0;  // digest of the parameters from which it was computed
  double weight = 0;
  Coding coding = Coding::f32;
  std::string gradient;
};
// The mean of all offers, from the leader to the members.
struct Averaged {
  uint64_t round = 0;
  Members members;
  Coding coding = Coding::f32;
  std::string gradient;
};
// The complete state, for a region that joins or is behind. The three texts are empty if the region
// already has this state, as its digest shows.
struct Snapshot {
  uint64_t round = 0;
  Members members;
  std::string charter;
  std::string parameters;  // f32
  std::string velocity;    // f32
};
// States that the receiver cannot be a member.
struct Refuse {
  std::string why;
};
// States that the sender has the last round, and stays until the receiver has it.
struct Done {
  uint64_t round = 0;
};

using Message = std::variant<Hello, Join, Offer, Averaged, Snapshot, Refuse, Done>;

std::string encode(const Message& message);
Result<Message> decode_message(std::string_view bytes);

// Returns the maximum size of a message of a group with `parameters` parameters.
size_t message_bytes_max(size_t parameters);
// a leader handles their offers one after the other
inline constexpr size_t kRegionsMax = 64;
inline constexpr size_t kCharterBytesMax = 64 * 1024;  // a page of settings

}  // namespace trainyard::local_sgd
