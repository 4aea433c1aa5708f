// Decodes uploads whose length or signature is not known in advance ("aws-chunked"): chunks with a
// size in hex, each with its own signature when they are signed, and trailers with checksums at the
// end.
//
//   body    := chunk* last trailer* CRLF
//   chunk   := size [";chunk-signature=" signature] CRLF bytes CRLF
//   last    := "0" [";chunk-signature=" signature] CRLF
//   trailer := name ":" value CRLF          the last of a signed body's is x-amz-trailer-signature
//   signature: of SigV4 64 hex digits; of SigV4a DER in hex, filled up with '*' to 144 characters
//
// A signature covers the one before it (without its '*'), the first one the request's own; so
// chunks cannot be changed, swapped, dropped or added. Bytes are returned before their chunk's
// signature was checked; finished() is true only if all were right, so results must not be kept
// before that.
//
// Threads: confined to one at a time. Errors: invalid (framing), denied (a signature is wrong),
// exhausted (chunks smaller than kEcdsaChunkBytesMin, signed with SigV4a).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "signing/signing.hpp"

namespace trainyard::signing {

// The values of x-amz-content-sha256; the claim tells the algorithm of the chunks' signatures.
enum class ChunkSeal {
  none,  // STREAMING-UNSIGNED-PAYLOAD-TRAILER
  // STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD
  chunks,
  chunks_and_trailers  // likewise with -TRAILER: a signature of the trailers ends the body
};

// The minimum for chunks signed with SigV4a, except the last: as S3, since each costs a
// verification, some 0.1 ms.
inline constexpr uint64_t kEcdsaChunkBytesMin = 8192;

class ChunkReader {
 public:
  // For signed ones: `claim` is the request's, verified; `verification_key` is the key that
  // verified it.
  ChunkReader(ChunkSeal seal, const Claim& claim, std::string verification_key);

  // Decodes the next bytes of the body and appends those of the object to `out`. Requires: not
  // finished().
  Result<void> feed(std::string_view bytes, std::string& out);
  bool finished() const { return state_ == State::finished; }
  // Names in lower case. Requires: finished().
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
  std::string line_;          // incomplete line of size or trailer
  uint64_t left_ = 0;         // missing bytes of this chunk
  bool small_chunk_ = false;  // there was one: only the last chunk may follow
  std::string chunk_signature_;
  Sha256 chunk_hash_;
  bool trailers_signed_ = false;
  size_t trailer_bytes_ = 0;
  std::map<std::string, std::string> trailers_;
};

// Make a signer's output: a chunk, or behind the last chunk the trailers with their signature and
// the end of the body. `previous` is the previous signature, and becomes this one. `signing_key`
// for SigV4a: derive_private_key().
std::string sign_chunk(std::string_view chunk, const Claim& claim, std::string_view signing_key,
                       std::string& previous);
std::string sign_trailers(const std::map<std::string, std::string>& trailers, const Claim& claim,
                          std::string_view signing_key, std::string& previous);

}  // namespace trainyard::signing
