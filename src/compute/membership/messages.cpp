#include "membership/messages.hpp"

#include <type_traits>

#include "base/fields.hpp"

namespace trainyard::membership {
namespace {

constexpr size_t seat_bytes_min = 3 * 4 + 3 * 4;  // three texts that are empty, three numbers
constexpr const char* names[] = {"came", "done", "seated", "changed", "lost", "dismissed"};

template <class Side, class E>
void endpoint(Side& side, E& each) {
  side("address", each.host);
  uint32_t port = each.port;
  side("port", port);
  if constexpr (!std::is_const_v<E>) each.port = uint16_t(port);
}

template <class Side, class M>
void fields(Side& side, M& m) {
  using T = std::remove_const_t<M>;
  if constexpr (std::is_same_v<T, messages::Came>) {
    side("name", m.applicant.name);
    side("host", m.applicant.host);
    endpoint(side, m.applicant.endpoint);
    side("wanted_rank", m.applicant.wanted_rank);
    side("complaint", m.applicant.complaint);
  } else if constexpr (std::is_same_v<T, messages::Seated>) {
    side("rank", m.rank);
    side("generation", m.generation.number);
    side("reason", m.generation.reason);
    side.list("seats", m.generation.slots, seat_bytes_min, [&](auto& slot) {
      side("name", slot.name);
      side("host", slot.host);
      endpoint(side, slot.endpoint);
      side("local_rank", slot.local_rank);
      side("local_ranks", slot.local_ranks);
    });
  } else if constexpr (std::is_same_v<T, actions::Changed>) {
    side("added", m.added);
    side("removed", m.removed);
  } else if constexpr (!std::is_same_v<T, messages::Done>) {
    side("name", m.name);
    side("why", m.why);
  }
}

const auto describe = [](auto& side, auto& message) { fields(side, message); };

}  // namespace

std::string encode(const Message& message) { return encode_kind(message, describe); }

Result<Message> decode_message(std::string_view bytes) {
  auto message = TRY(decode_kind<Message>(bytes, names, describe));
  if (const auto* seated = std::get_if<messages::Seated>(&message)) {
    if (seated->rank >= seated->generation.slots.size())
      return corrupt("seated.rank is " + std::to_string(seated->rank) + " of " +
                     std::to_string(seated->generation.slots.size()));
  }
  return message;
}

}  // namespace trainyard::membership
