#include "entry/frames.hpp"

#include <iterator>
#include <type_traits>

#include "base/bytes/fields.hpp"
#include "base/bytes/little_endian.hpp"
#include "base/sha256.hpp"

namespace trainyard::entry {
namespace {

template <class Side, class M>
void fields(Side& side, M& m) {
  using T = std::remove_const_t<M>;
  if constexpr (std::is_same_v<T, Challenge>) {
    side("version", m.version);
    side("nonce", m.nonce);
  } else if constexpr (std::is_same_v<T, Join>) {
    side("nonce", m.nonce);
    side("host", m.host);
    side("proof", m.proof);
  } else if constexpr (std::is_same_v<T, Failed>) {
    side("rank", m.rank);
    side("code", m.code);
    side("text", m.text);
  } else if constexpr (std::is_same_v<T, End>) {
    side("code", m.code);
    side("host", m.host);
    side("text", m.text);
  } else if constexpr (std::is_same_v<T, Run>) {
    side("number", m.number);
    side("line", m.line);
  } else if constexpr (std::is_same_v<T, Ended>) {
    side("number", m.number);
    side("code", m.code);
  } else if constexpr (std::is_same_v<T, RunOn>) {
    side("host", m.host);
    side("line", m.line);
  } else if constexpr (std::is_same_v<T, Rank>) {
    side("rank", m.rank);
  } else {
    static_assert(std::is_same_v<T, Go> || std::is_same_v<T, Done>, "every message is described");
  }
}

constexpr const char* kNames[] = {"Challenge", "Join", "Go",    "Done",  "Failed",
                                  "End",       "Run",  "Ended", "RunOn", "Rank"};
static_assert(std::size(kNames) == std::variant_size_v<Message>);

constexpr auto kDescribe = [](auto& side, auto& message) { fields(side, message); };

std::string seal_of(const std::string& key, char direction, uint64_t place,
                    std::string_view payload) {
  std::string sealed(1, direction);
  append_little_endian(sealed, place, 8);
  sealed += payload;
  return bytes_of(hmac_sha256(key, sealed)).substr(0, kSealBytes);
}

}  // namespace

std::string encode(const Message& message) { return encode_kind(message, kDescribe); }

Result<Message> decode(std::string_view payload) {
  return decode_kind<Message>(payload, kNames, kDescribe);
}

std::string proof_of_host(std::string_view secret, std::string_view challenge_nonce,
                          const Join& join) {
  return bytes_of(hmac_sha256(
      secret, "trainyard gang join\n" + std::string(challenge_nonce) + join.nonce + join.host));
}

std::string session_key(std::string_view secret, std::string_view challenge_nonce,
                        std::string_view join_nonce) {
  return bytes_of(hmac_sha256(
      secret, "trainyard gang session\n" + std::string(challenge_nonce) + std::string(join_nonce)));
}

std::string Sealer::seal(const Message& message) {
  const std::string payload = encode(message);
  std::string frame;
  append_little_endian(frame, payload.size(), 4);
  frame += payload;
  if (!key_.empty()) frame += seal_of(key_, direction_, sent_, payload);
  ++sent_;
  return frame;
}

void Opener::expect_seals(std::string key, char direction) {
  key_ = std::move(key);
  direction_ = direction;
  received_ = 0;
}

Result<std::optional<Message>> Opener::next() {
  if (pending_.size() < 4) return std::optional<Message>();
  const size_t size = little_endian_u32(pending_);
  if (size > kFrameBytesMax) return corrupt("a frame of " + std::to_string(size) + " bytes");
  const size_t whole = 4 + size + (key_.empty() ? 0 : kSealBytes);
  if (pending_.size() < whole) return std::optional<Message>();
  const std::string payload = pending_.substr(4, size);
  if (!key_.empty()) {
    const auto seal = std::string_view(pending_).substr(4 + size, kSealBytes);
    if (!equal_in_constant_time(seal, seal_of(key_, direction_, received_, payload)))
      return corrupt("invalid seal of a frame");
  }
  pending_.erase(0, whole);
  ++received_;
  return std::optional<Message>(TRY(decode(payload)));
}

}  // namespace trainyard::entry
