// What the leaders of regions say to each other, and as which bytes.
//
// A message is the payload of a data frame (transport/tcp/frame.hpp, operation and label 0): a kind byte, then the fields in
// order (base/fields.hpp). Rounds count the meetings that are over. docs/formats/local-sgd.md has the table.
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

// Regions by seniority: the first that lives leads.
using Members = std::vector<uint32_t>;

// "I am a member of this circle": said to whoever appears, and to a leader that may not know.
struct Hello {
  uint64_t round = 0;
  bool finished = false;
  Members members;
};
// "I take no part yet and want to."
struct Join {
  uint64_t round = 0;
  uint64_t digest = 0;  // of parameters, outer state and charter
  uint64_t parameters = 0;
};
// A region's outer gradient, for the leader.
struct Offer {
  uint64_t round = 0;   // that it is part of: one more than are over
  uint64_t digest = 0;  // of what it starts from
  double weight = 0;
  Coding coding = Coding::f32;
  std::string gradient;
};
// What the leader made of all offers, for those who made them.
struct Averaged {
  uint64_t round = 0;
  Members members;
  Coding coding = Coding::f32;
  std::string gradient;
};
// Everything, for a region that joins or is behind. The three texts are empty when the digest that it said is right.
struct Snapshot {
  uint64_t round = 0;
  Members members;
  std::string charter;
  std::string parameters;  // f32
  std::string velocity;    // f32
};
// "You cannot be one of us."
struct Refuse {
  std::string why;
};
// "I have seen the last round, and stay until you have."
struct Done {
  uint64_t round = 0;
};

using Message = std::variant<Hello, Join, Offer, Averaged, Snapshot, Refuse, Done>;

std::string encode(const Message& message);
Result<Message> decode_message(std::string_view bytes);

// A bound on what a message of a circle with so many parameters may have: what a link reads at most.
size_t message_bytes_max(size_t parameters);
inline constexpr size_t regions_max = 64;               // a leader hears them all, one after the other
inline constexpr size_t charter_bytes_max = 64 * 1024;  // a page of settings

}  // namespace trainyard::local_sgd
