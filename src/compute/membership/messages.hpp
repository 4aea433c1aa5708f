// Defines the messages between the members of an elastic training and the membership service, after
// hello and proof (transport/tcp/frame.hpp). Each message is a frame of kind data.
//
//   member -> service   came, done
//   service -> member   assigned, changed, lost, dismissed
//
// Threads: pure functions. Errors: corrupt, naming message and field.
// Limits: kMessageBytesMax limits the memory that a peer can make the receiver allocate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "membership/membership.hpp"

namespace trainyard::membership {

inline constexpr size_t kMessageBytesMax = size_t{4} << 20;  // ten thousand slots

namespace messages {
struct Came {
  Applicant applicant;
  bool operator==(const Came&) const = default;
};
struct Done {
  bool operator==(const Done&) const = default;
};
struct Assigned {
  uint32_t rank = 0;
  Generation generation;
  bool operator==(const Assigned&) const = default;
};
}  // namespace messages
using Message = std::variant<messages::Came, messages::Done, messages::Assigned, actions::Changed,
                             actions::Lost, actions::Dismissed>;

std::string encode(const Message& message);
Result<Message> decode_message(std::string_view bytes);

}  // namespace trainyard::membership
