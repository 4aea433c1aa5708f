// Any bytes as a chunked upload: the first byte says whether it is signed and in what pieces it arrives.
// decoder: src/signing/chunks.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "signing/chunks.hpp"

using namespace trainyard;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  signing::Claim claim;
  claim.date = "20130524";
  claim.scope = {"us-east-1", "s3"};
  claim.signature = std::string(64, '0');
  claim.signed_at = *parse_basic_iso8601("20130524T000000Z");
  const std::string key = signing::signing_key("secret", claim.date, claim.scope);
  const auto seal = data[0] & 1 ? signing::ChunkSeal::chunks : signing::ChunkSeal::none;
  const size_t piece = 1 + (data[0] >> 1);
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  signing::ChunkReader reader(seal, claim, key);
  std::string out;
  for (size_t at = 0; at < body.size(); at += piece)
    if (!reader.feed(body.substr(at, piece), out)) return 0;
  CHECK(out.size() <= body.size(), "framing only ever takes away");

  // What the signer frames, the reader takes.
  std::string previous = claim.signature;
  const std::string framed = signing::sign_chunk(body, claim, key, previous);
  signing::ChunkReader own(signing::ChunkSeal::chunks, claim, key);
  std::string again;
  CHECK(bool(own.feed(framed, again)) && again == body, "a signed chunk is read back");
  return 0;
}
