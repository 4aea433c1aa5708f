#include "collectives/transport/tcp/frame.hpp"

#include <cstring>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::collectives {
namespace {

constexpr uint32_t kMagic = 0x34525954;  // "TYR4"

template <class Number>
void put(std::byte* bytes, Number number) {
  for (size_t i = 0; i < sizeof(Number); ++i) bytes[i] = std::byte(uint8_t(number >> (8 * i)));
}

template <class Number>
Number get(const std::byte* bytes) {
  Number number = 0;
  for (size_t i = 0; i < sizeof(Number); ++i)
    number = Number(number | Number(uint8_t(bytes[i])) << (8 * i));
  return number;
}

uint32_t number_at(std::string_view payload, size_t offset) {
  return get<uint32_t>(reinterpret_cast<const std::byte*>(payload.data()) + offset);
}

std::string frame(FrameKind kind, std::initializer_list<uint32_t> numbers, std::string_view text) {
  const size_t length = numbers.size() * sizeof(uint32_t) + text.size();
  CHECK(length <= kControlPayloadBytesMax, "control frames are within the limit");
  const HeaderBytes header = encode({kind, {}, length});
  std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
  for (const uint32_t number : numbers) {
    std::byte encoded[sizeof number];
    put(encoded, number);
    bytes.append(reinterpret_cast<const char*>(encoded), sizeof encoded);
  }
  return bytes.append(text);
}

}  // namespace

HeaderBytes encode(const FrameHeader& header) {
  HeaderBytes bytes{};
  put(&bytes[0], kMagic);
  bytes[4] = std::byte(header.kind);
  put(&bytes[8], header.tag.operation);
  put(&bytes[16], header.tag.label);
  put(&bytes[24], header.length);
  return bytes;
}

Result<FrameHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  if (const auto magic = get<uint32_t>(&bytes[0]); magic != kMagic)
    return corrupt("unknown frame: it begins with " + std::to_string(magic) + " instead of " +
                   std::to_string(kMagic));
  const auto kind = uint8_t(bytes[4]);
  if (kind < uint8_t(FrameKind::hello) || kind > uint8_t(FrameKind::waiting)) {
    return corrupt("unknown kind of frame: " + std::to_string(kind));
  }
  if (bytes[5] != std::byte{} || bytes[6] != std::byte{} || bytes[7] != std::byte{}) {
    return corrupt("a frame's reserved bytes are not zero");
  }
  const FrameHeader header{FrameKind(kind),
                           {get<uint64_t>(&bytes[8]), get<uint64_t>(&bytes[16])},
                           get<uint64_t>(&bytes[24])};
  if (header.kind == FrameKind::data) return header;
  const bool names_a_rank = header.kind == FrameKind::waiting;
  if (header.tag != Tag{names_a_rank ? header.tag.operation : 0, 0})
    return corrupt("a control frame names an operation");
  if (header.length > kControlPayloadBytesMax) {
    return corrupt("a frame of " + std::to_string(header.length) +
                   " bytes, too long for a control frame");
  }
  if (header.kind == FrameKind::goodbye && header.length != 0)
    return corrupt("a goodbye frame with a payload");
  if (names_a_rank && header.length != 0) return corrupt("a waiting frame with a payload");
  return header;
}

std::string encode(const Hello& hello) {
  return frame(FrameKind::hello, {hello.rank, hello.ranks, hello.socket, hello.sockets},
               {reinterpret_cast<const char*>(hello.nonce.data()), hello.nonce.size()});
}

std::string encode_proof(const Digest& proof) {
  return frame(FrameKind::proof, {}, {reinterpret_cast<const char*>(proof.data()), proof.size()});
}

std::string encode(const Failed& failed) {
  return frame(FrameKind::failed, {failed.rank},
               shorten(failed.why, kControlPayloadBytesMax - sizeof(uint32_t)));
}

Result<Hello> decode_hello(std::string_view payload) {
  Hello hello;
  if (payload.size() != 4 * sizeof(uint32_t) + hello.nonce.size())
    return corrupt("a hello frame of " + std::to_string(payload.size()) + " bytes");
  hello.rank = number_at(payload, 0);
  hello.ranks = number_at(payload, 4);
  hello.socket = number_at(payload, 8);
  hello.sockets = number_at(payload, 12);
  std::memcpy(hello.nonce.data(), payload.data() + 16, hello.nonce.size());
  if (hello.rank >= hello.ranks)
    return corrupt("a hello frame of rank " + std::to_string(hello.rank) + " of " +
                   std::to_string(hello.ranks));
  if (hello.socket >= hello.sockets)
    return corrupt("a hello frame on socket " + std::to_string(hello.socket) + " of " +
                   std::to_string(hello.sockets));
  return hello;
}

Result<Digest> decode_proof(std::string_view payload) {
  Digest proof;
  if (payload.size() != proof.size())
    return corrupt("a proof frame of " + std::to_string(payload.size()) + " bytes");
  std::memcpy(proof.data(), payload.data(), proof.size());
  return proof;
}

Digest prove(std::string_view secret, const Hello& prover, const Hello& verifier) {
  return hmac_sha256(secret, "trainyard rank" + encode(prover) + encode(verifier));
}

Result<Failed> decode_failed(std::string_view payload) {
  if (payload.size() < sizeof(uint32_t))
    return corrupt("truncated FAILED frame: its payload has " + std::to_string(payload.size()) +
                   " bytes, at least 4 are needed");
  return Failed{number_at(payload, 0), to_utf8(payload.substr(4))};
}

}  // namespace trainyard::collectives
