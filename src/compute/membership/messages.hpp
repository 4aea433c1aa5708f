// What the members of an elastic training and the service that seats them say to each other, after hello and proof
// (transport/tcp/frame.hpp): each message a frame of kind data.
//
//   member -> service   came, done
//   service -> member   seated, changed, lost, dismissed
//
// Threads: pure functions. Errors: corrupt, naming message and field.
// Limits: message_bytes_max, so that a peer's word makes nobody allocate much.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "membership/membership.hpp"

namespace trainyard::membership {

inline constexpr size_t message_bytes_max = size_t{4} << 20;  // ten thousand seats

namespace messages {
struct Came {
  Applicant applicant;
  bool operator==(const Came&) const = default;
};
struct Done {
  bool operator==(const Done&) const = default;
};
struct Seated {
  uint32_t rank = 0;
  Generation generation;
  bool operator==(const Seated&) const = default;
};
}  // namespace messages
using Message = std::variant<messages::Came, messages::Done, messages::Seated, actions::Changed,
                             actions::Lost, actions::Dismissed>;

std::string encode(const Message& message);
Result<Message> decode_message(std::string_view bytes);

}  // namespace trainyard::membership
