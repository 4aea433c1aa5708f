// The framing of uploads whose length or signature is not known ahead ("aws-chunked"): chunks with a size in
// hex, each with its own signature when they are signed, and trailers with checksums at the end.
//
//   body    := chunk* last trailer* CRLF
//   chunk   := size [";chunk-signature=" hex64] CRLF bytes CRLF
//   last    := "0" [";chunk-signature=" hex64] CRLF
//   trailer := name ":" value CRLF          the last of a signed body's is x-amz-trailer-signature
//
// A signature covers the one before it, the first one the request's own; so chunks can be neither changed nor
// swapped, dropped or added. Bytes are passed on before their chunk's signature was seen; finished() is true
// only when all were right, so what is made of them must not be kept before that.
//
// Threads: confined to one at a time. Errors: invalid (framing), denied (a signature is wrong).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "signing/signing.hpp"

namespace trainyard::signing {

enum class ChunkSeal {
  none,
  chunks
};  // STREAMING-UNSIGNED-PAYLOAD-TRAILER; STREAMING-AWS4-HMAC-SHA256-PAYLOAD[-TRAILER]

class ChunkReader {
 public:
  // Of signed ones: `claim` is the request's, verified; `signing_key` the one that verified it.
  ChunkReader(ChunkSeal seal, const Claim& claim, std::string signing_key);

  // Takes the next bytes of the body, appends those of the object to `out`. Requires: not finished().
  Result<void> feed(std::string_view bytes, std::string& out);
  bool finished() const { return state_ == State::finished; }
  // Names in lower case. Requires: finished().
  const std::map<std::string, std::string>& trailers() const { return trailers_; }

 private:
  enum class State { size_line, bytes, after_bytes, trailer_line, finished };

  Result<void> take_size_line();
  Result<void> take_trailer_line();
  Result<void> check_chunk();

  const ChunkSeal seal_;
  const std::string scope_, time_, signing_key_;
  std::string previous_signature_;
  State state_ = State::size_line;
  std::string line_;   // of size or trailer, so far
  uint64_t left_ = 0;  // bytes of this chunk to come
  std::string chunk_signature_;
  Sha256 chunk_hash_;
  std::string signed_trailers_;
  size_t trailer_bytes_ = 0;
  std::map<std::string, std::string> trailers_;
};

// What a signer appends. `previous` is the signature before, and becomes this one's.
std::string sign_chunk(std::string_view chunk, const Claim& claim, std::string_view signing_key,
                       std::string& previous);

}  // namespace trainyard::signing
