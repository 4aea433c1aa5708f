#include "local_sgd/messages.hpp"

#include <type_traits>

#include "base/bytes/fields.hpp"

namespace trainyard::local_sgd {
namespace {

constexpr const char* kNames[] = {"hello",    "join",   "offer", "averaged",
                                  "snapshot", "refuse", "done"};

// Describes each message once, for encoding and decoding.
struct Describe {
  template <class Side, class M>
  void operator()(Side& side, M& m) const {
    using T = std::remove_const_t<M>;
    const auto members = [&side](auto& of) {
      side.list("members", of, sizeof(uint32_t), [&side](auto& each) { side("region", each); });
    };
    if constexpr (std::is_same_v<T, Hello>) {
      side("round", m.round);
      side("finished", m.finished);
      members(m.members);
    } else if constexpr (std::is_same_v<T, Join>) {
      side("round", m.round);
      side("digest", m.digest);
      side("parameters", m.parameters);
    } else if constexpr (std::is_same_v<T, Offer>) {
      side("round", m.round);
      side("digest", m.digest);
      side("weight", m.weight);
      side.choice("coding", m.coding, kCodingLast);
      side("gradient", m.gradient);
    } else if constexpr (std::is_same_v<T, Averaged>) {
      side("round", m.round);
      members(m.members);
      side.choice("coding", m.coding, kCodingLast);
      side("gradient", m.gradient);
    } else if constexpr (std::is_same_v<T, Snapshot>) {
      side("round", m.round);
      members(m.members);
      side("charter", m.charter);
      side("parameters", m.parameters);
      side("velocity", m.velocity);
    } else if constexpr (std::is_same_v<T, Refuse>) {
      side("why", m.why);
    } else {
      side("round", m.round);
    }
  }
};

}  // namespace

std::string encode(const Message& message) { return encode_kind(message, Describe{}); }

Result<Message> decode_message(std::string_view bytes) {
  return decode_kind<Message>(bytes, kNames, Describe{});
}

size_t message_bytes_max(size_t parameters) {
  constexpr size_t fields = 256;  // kind, numbers and lengths of the largest message, rounded up
  return 2 * sizeof(float) * parameters + kCharterBytesMax + sizeof(uint32_t) * kRegionsMax +
         fields;
}

}  // namespace trainyard::local_sgd
