// Defines the frames that ranks send each other over TCP: a header of 32 bytes, then `length` bytes
// of payload.
//
//   offset  size  field (little-endian)
//        0     4  magic        "TYR4": trainyard ranks, version 4 of this layout
//        4     1  kind         1 hello, 2 data, 3 failed, 4 goodbye, 5 proof, 6 waiting
//        5     3  zero
//        8     8  operation    data: the operation's number in the life of the group; waiting: a
//                              rank; else 0
//      16     8  label        data: a digest of the operation and of the position of the message in
//                             it; else 0
//
//   hello    u32 rank, u32 ranks, u32 socket, u32 sockets, 16 random bytes: the first frame on a
//            connection, in both directions; `socket` is the index of this connection among the
//            `sockets` between the two ranks
//   proof    32 bytes that prove that the sender knows the secret (prove()); the second frame, in
//            both directions
//   data     elements in memory order: all ranks of a group have the same byte order
//   failed   u32 rank at fault, then the reason as text; the last frame of the sender
//   goodbye  empty: the sender is done and closes the connection
//   waiting  empty: the sender waits, and would blame the rank in `operation` (timeout.hpp)
//
// Threads: pure functions. Errors: corrupt, naming the field.
// Limits: kControlPayloadBytesMax for all frames except data; the receiver compares the length of a
// data frame with the length that it expects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/sha256.hpp"
#include "collectives/transport.hpp"

namespace trainyard::collectives {

enum class FrameKind : uint8_t {
  hello = 1,
  data = 2,
  failed = 3,
  goodbye = 4,
  proof = 5,
  waiting = 6
};

inline constexpr size_t kFrameHeaderBytes = 32;
inline constexpr size_t kControlPayloadBytesMax = 1024;  // more than an error message needs

struct FrameHeader {
  FrameKind kind = FrameKind::goodbye;
  Tag tag;
  uint64_t length = 0;
};

// different on every connection, so that no proof can be replayed
using Nonce = std::array<uint8_t, 16>;

struct Hello {
  uint32_t rank = 0;
  uint32_t ranks = 0;
  Nonce nonce{};
  uint32_t socket = 0;
  uint32_t sockets = 1;
};

struct Failed {
  uint32_t rank = 0;
  std::string why;
};

using HeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

HeaderBytes encode(const FrameHeader& header);
Result<FrameHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes);

// Return the whole frame, header and payload.
std::string encode(const Hello& hello);
std::string encode(const Failed& failed);  // `why` is shortened to fit
std::string encode_proof(const Digest& proof);
// Decode a payload, without the header.
Result<Hello> decode_hello(std::string_view payload);
Result<Failed> decode_failed(std::string_view payload);
Result<Digest> decode_proof(std::string_view payload);

// Returns the proof that the sender knows the secret, for this connection. It covers both hellos,
// the prover's first, so it cannot be replayed on another connection or to the prover itself.
Digest prove(std::string_view secret, const Hello& prover, const Hello& verifier);

}  // namespace trainyard::collectives
