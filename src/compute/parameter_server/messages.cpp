#include "parameter_server/messages.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

#include "base/bytes/fields.hpp"
#include "base/check.hpp"

namespace trainyard::parameter_server {

static_assert(std::endian::native == std::endian::little,
              "values are sent in memory order, which must be little-endian");

namespace {

constexpr const char* kRequestNames[] = {"assign", "push", "pull", "tick", "leave"};
constexpr const char* kAnswerNames[] = {"values", "proceed", "refused"};

// Describes each message once, for encoding and decoding.
struct Describe {
  template <class Side, class M>
  void operator()(Side& side, M& m) const {
    using T = std::remove_const_t<M>;
    if constexpr (std::is_same_v<T, Assign> || std::is_same_v<T, Push>) {
      rows(side, m.rows);
      side("values", m.values);
    } else if constexpr (std::is_same_v<T, Pull>) {
      rows(side, m.rows);
    } else if constexpr (std::is_same_v<T, Tick> || std::is_same_v<T, Proceed>) {
      side("round", m.round);
    } else if constexpr (std::is_same_v<T, Leave>) {
      side("version", m.version);
    } else if constexpr (std::is_same_v<T, Values>) {
      side("values", m.values);
    } else {
      side("why", m.why);
    }
  }
  template <class Side, class R>
  static void rows(Side& side, R& rows) {
    side("table", rows.table);
    side("begin", rows.begin);
    side("count", rows.count);
    side.list("rows", rows.named, sizeof(uint64_t), [&side](auto& each) { side("row", each); });
  }
};

}  // namespace

std::string encode(const Request& request) { return encode_kind(request, Describe{}); }
std::string encode(const Answer& answer) { return encode_kind(answer, Describe{}); }
Result<Request> decode_request(std::string_view bytes) {
  return decode_kind<Request>(bytes, kRequestNames, Describe{});
}
Result<Answer> decode_answer(std::string_view bytes) {
  return decode_kind<Answer>(bytes, kAnswerNames, Describe{});
}

std::string bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

void read_values(std::string_view bytes, std::span<float> values) {
  CHECK(bytes.size() == values.size_bytes(), "bytes must hold four bytes for each value");
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

}  // namespace trainyard::parameter_server
