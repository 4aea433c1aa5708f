// Decodes any bytes as a stream of frames, as a peer or an unauthenticated client may send them.
// Decoded frames encode to the same bytes.
// decoder: src/compute/collectives/transport/tcp/frame.cpp
#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "collectives/transport/tcp/frame.hpp"

using namespace trainyard;
using namespace trainyard::collectives;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view stream(reinterpret_cast<const char*>(data), size);
  while (stream.size() >= kFrameHeaderBytes) {
    HeaderBytes bytes;
    std::memcpy(bytes.data(), stream.data(), bytes.size());
    const auto header = decode_header(bytes);
    if (!header) return 0;
    CHECK(encode(*header) == bytes, "a decoded header encodes to the same bytes");
    const std::string_view payload = stream.substr(kFrameHeaderBytes, header->length);
    if (header->kind == FrameKind::hello) {
      if (const auto hello = decode_hello(payload)) {
        CHECK(hello->rank < hello->ranks, "a rank is one of the ranks");
        CHECK(hello->socket < hello->sockets, "a socket is one of the sockets");
        CHECK(std::string_view(encode(*hello)).substr(kFrameHeaderBytes) == payload,
              "a decoded hello encodes to the same bytes");
      }
    } else if (header->kind == FrameKind::proof) {
      if (const auto proof = decode_proof(payload))
        CHECK(std::string_view(encode_proof(*proof)).substr(kFrameHeaderBytes) == payload,
              "a decoded proof encodes to the same bytes");
    } else if (header->kind == FrameKind::failed) {
      if (const auto failed = decode_failed(payload)) {
        CHECK(decode_failed(std::string_view(encode(*failed)).substr(kFrameHeaderBytes))->rank ==
                  failed->rank,
              "a decoded failure names the same rank after encoding");
      }
    }
    stream.remove_prefix(std::min<uint64_t>(stream.size(), kFrameHeaderBytes + payload.size()));
  }
  return 0;
}
