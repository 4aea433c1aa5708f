// Decodes uploads whose length or signature is not known in advance ("aws-chunked"): chunks that
// start with a size in hex, in signed uploads with a signature for each chunk, and trailers with
// checksums at the end.
//
//   body    := chunk* last trailer* CRLF
//   chunk   := size [";chunk-signature=" signature] CRLF bytes CRLF
//   last    := "0" [";chunk-signature=" signature] CRLF
//   trailer := name ":" value CRLF          in a signed body the last is x-amz-trailer-signature
//   signature: SigV4: 64 hex digits; SigV4a: DER in hex, padded with '*' to 144 characters
//
// Each signature covers the previous one (without its '*'), and the first covers the signature of
// the request, so chunks cannot be changed, swapped, dropped or added. Bytes are returned before
// the signature of their chunk is checked. finished() is true only if all signatures were valid, so
// the caller must not store the result before.
//
// Threads: confined to one at a time. Errors: invalid (framing), denied (invalid signature),
// exhausted (chunks signed with SigV4a that are smaller than kEcdsaChunkBytesMin).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "signing/signing.hpp"

namespace trainyard::signing {

// The kinds of chunked bodies, by the value of x-amz-content-sha256. The claim has the algorithm of
// the signatures.
enum class ChunkSeal {
  none,  // STREAMING-UNSIGNED-PAYLOAD-TRAILER
  // STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD
  chunks,
  // the same names with -TRAILER: the body ends with a signature of its trailers
  chunks_and_trailers
};

// Minimum size of chunks signed with SigV4a, except the last one: as S3, because each costs a
// verification of about 0.1 ms.
inline constexpr uint64_t kEcdsaChunkBytesMin = 8192;

class ChunkReader {
 public:
  // For signed bodies, `claim` is the verified claim of the request, and `verification_key` the key
  // that verified it.
  ChunkReader(ChunkSeal seal, const Claim& claim, std::string verification_key);

  // Decodes the next bytes of the body and appends those of the object to `out`. Requires: not
  // finished().
  Result<void> feed(std::string_view bytes, std::string& out);
  bool finished() const { return state_ == State::finished; }
  // Returns the trailers, with names in lower case. Requires: finished().
  const std::map<std::string, std::string>& trailers() const { return trailers_; }

 private:
  enum class State { size_line, bytes, after_bytes, trailer_line, finished };

  Result<void> take_size_line();
  Result<void> take_trailer_line();
  Result<void> check_chunk();
  bool take_signature(const std::string& text, std::string_view given);

  const ChunkSeal seal_;
  const Algorithm algorithm_;
  const std::string scope_, time_, verification_key_;
  std::string previous_signature_;
  State state_ = State::size_line;
  std::string line_;          // incomplete line with a size or a trailer
  uint64_t left_ = 0;         // missing bytes of this chunk
  bool small_chunk_ = false;  // a chunk was too small, so only the last chunk may follow
  std::string chunk_signature_;
  Sha256 chunk_hash_;
  bool trailers_signed_ = false;
  size_t trailer_bytes_ = 0;
  std::map<std::string, std::string> trailers_;
};

// Encode and sign a body: sign_chunk() a chunk, sign_trailers() the trailers and the end of the
// body, after the last chunk. `previous` is the previous signature, and is set to the new one. For
// SigV4a, `signing_key` is derive_private_key().
std::string sign_chunk(std::string_view chunk, const Claim& claim, std::string_view signing_key,
                       std::string& previous);
std::string sign_trailers(const std::map<std::string, std::string>& trailers, const Claim& claim,
                          std::string_view signing_key, std::string& previous);

}  // namespace trainyard::signing
