// Decodes any bytes as a chunked upload: the first byte selects the kind of signature, the second
// the sizes of the pieces.
// decoder: src/foundation/signing/chunks.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "signing/asymmetric.hpp"
#include "signing/chunks.hpp"

using namespace trainyard;

namespace {

constexpr signing::ChunkSeal kSeals[] = {signing::ChunkSeal::none, signing::ChunkSeal::chunks,
                                         signing::ChunkSeal::chunks_and_trailers};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const std::string private_key = signing::derive_private_key("AKID", "secret");
  static const std::string public_key = signing::public_key_of(private_key);
  const bool ecdsa = data[0] % 6 >= 3;
  const signing::ChunkSeal seal = kSeals[data[0] % 3];
  signing::Claim claim;
  claim.algorithm = ecdsa ? signing::Algorithm::ecdsa : signing::Algorithm::hmac;
  claim.date = "20130524";
  claim.scope = {"us-east-1", "s3"};
  claim.signature = std::string(64, '0');
  claim.signed_at = *parse_basic_iso8601("20130524T000000Z");
  static const std::string hmac_key = signing::signing_key("secret", claim.date, claim.scope);
  const std::string& signing_key = ecdsa ? private_key : hmac_key;
  const std::string& verification_key = ecdsa ? public_key : hmac_key;
  const size_t piece = 1 + data[1];
  const std::string_view body(reinterpret_cast<const char*>(data + 2), size - 2);
  signing::ChunkReader reader(seal, claim, verification_key);
  std::string out;
  for (size_t at = 0; at < body.size(); at += piece)
    if (!reader.feed(body.substr(at, piece), out)) return 0;
  CHECK(out.size() <= body.size(), "decoding never adds bytes");

  // The reader accepts bodies that the signer makes.
  std::string previous = claim.signature;
  std::string framed = signing::sign_chunk(body, claim, signing_key, previous);
  if (!body.empty()) framed += signing::sign_chunk("", claim, signing_key, previous);
  framed +=
      signing::sign_trailers({{"x-amz-checksum-crc32", "AAAAAA=="}}, claim, signing_key, previous);
  signing::ChunkReader own(signing::ChunkSeal::chunks_and_trailers, claim, verification_key);
  std::string again;
  CHECK(own.feed(framed, again) && own.finished() && again == body,
        "a signed body is decoded to its bytes");
  return 0;
}
