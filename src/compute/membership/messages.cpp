#include "membership/messages.hpp"

#include <type_traits>

#include "base/bytes/fields.hpp"

namespace trainyard::membership {
namespace {

constexpr size_t kSlotBytesMin = 3 * 4 + 3 * 4;  // three empty texts and three numbers
constexpr const char* kNames[] = {"came", "done", "assigned", "changed", "lost", "dismissed"};

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
  } else if constexpr (std::is_same_v<T, messages::Assigned>) {
    side("rank", m.rank);
    side("generation", m.generation.number);
    side("reason", m.generation.reason);
    side.list("slots", m.generation.slots, kSlotBytesMin, [&](auto& slot) {
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

constexpr auto kDescribe = [](auto& side, auto& message) { fields(side, message); };

}  // namespace

std::string encode(const Message& message) { return encode_kind(message, kDescribe); }

Result<Message> decode_message(std::string_view bytes) {
  auto message = TRY(decode_kind<Message>(bytes, kNames, kDescribe));
  if (const auto* assigned = std::get_if<messages::Assigned>(&message)) {
    if (assigned->rank >= assigned->generation.slots.size())
      return corrupt("invalid assigned.rank " + std::to_string(assigned->rank) + " of " +
                     std::to_string(assigned->generation.slots.size()) + " ranks");
  }
  return message;
}

}  // namespace trainyard::membership
