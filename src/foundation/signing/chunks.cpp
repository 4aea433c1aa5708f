#include "signing/chunks.hpp"

#include <algorithm>
#include <array>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "signing/asymmetric.hpp"

namespace trainyard::signing {
namespace {

// limit of a line; clients write at most 170 bytes: 16 digits and a signature of 144
constexpr size_t kSizeLineBytesMax = 200;
// limit of all trailers; a checksum and its signature have 280 bytes
constexpr size_t kTrailerBytesMax = 8 << 10;
constexpr size_t kSizeDigitsMax = 15;  // 2^60 bytes
// The DER of a P-256 signature has at most 72 bytes, in hex.
constexpr size_t kEcdsaSignatureBytes = 144;
constexpr char kPadding = '*';
constexpr std::string_view kSignatureField = ";chunk-signature=";
constexpr std::string_view kTrailerSignature = "x-amz-trailer-signature";

std::string scope_of(const Claim& claim) {
  const std::string region = claim.algorithm == Algorithm::hmac ? "/" + claim.scope.region : "";
  return claim.date + region + "/" + claim.scope.service + "/aws4_request";
}

// Returns the start of the string to sign; hashes of the signed data follow.
std::string opening(Algorithm algorithm, std::string_view kind, std::string_view time,
                    std::string_view scope, std::string_view previous) {
  std::string text = algorithm == Algorithm::hmac ? "AWS4-HMAC-SHA256-" : "AWS4-ECDSA-P256-SHA256-";
  text.append(kind).append("\n").append(time).append("\n").append(scope).append("\n");
  return text.append(previous).append("\n");
}

std::string chunk_text(Algorithm algorithm, std::string_view time, std::string_view scope,
                       std::string_view previous, std::string_view chunk_sha256) {
  return opening(algorithm, "PAYLOAD", time, scope, previous)
      .append(sha256_hex(""))
      .append("\n")
      .append(chunk_sha256);
}

std::string trailer_text(Algorithm algorithm, std::string_view time, std::string_view scope,
                         std::string_view previous,
                         const std::map<std::string, std::string>& trailers) {
  std::string lines;
  for (const auto& [name, value] : trailers)
    lines.append(name).append(":").append(value).append("\n");
  return opening(algorithm, "TRAILER", time, scope, previous).append(sha256_hex(lines));
}

Error invalid_size() {
  return invalid("invalid size of a chunk: must be 1 to " + std::to_string(kSizeDigitsMax) +
                 " hex digits");
}

// Moves bytes up to the end of the line into `line`. Returns true if the line is complete; its CRLF
// is removed.
Result<bool> gather(std::string& line, std::string_view& bytes, size_t bytes_max) {
  const auto end = bytes.find('\n');
  const size_t count = end == std::string_view::npos ? bytes.size() : end + 1;
  if (line.size() + count > bytes_max)
    return invalid("a line of the chunked body exceeds " + std::to_string(bytes_max) + " bytes");
  line.append(bytes.substr(0, count));
  bytes.remove_prefix(count);
  if (end == std::string_view::npos) return false;
  if (!line.ends_with("\r\n")) return invalid("a line of the chunked body does not end in CRLF");
  line.resize(line.size() - 2);
  return true;
}

}  // namespace

ChunkReader::ChunkReader(ChunkSeal seal, const Claim& claim, std::string verification_key)
    : seal_(seal),
      algorithm_(claim.algorithm),
      scope_(scope_of(claim)),
      time_(to_basic_iso8601(claim.signed_at)),
      verification_key_(std::move(verification_key)),
      previous_signature_(claim.signature) {}

Result<void> ChunkReader::feed(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    switch (state_) {
      case State::size_line:
        if (TRY(gather(line_, bytes, kSizeLineBytesMax))) TRY(take_size_line());
        break;
      case State::bytes: {
        const auto part = bytes.substr(0, std::min<uint64_t>(left_, bytes.size()));
        if (seal_ != ChunkSeal::none) chunk_hash_.add(part);
        out.append(part);
        bytes.remove_prefix(part.size());
        left_ -= part.size();
        if (left_ == 0) state_ = State::after_bytes;
        break;
      }
      case State::after_bytes:
        if (TRY(gather(line_, bytes, 2))) {
          line_.clear();
          TRY(check_chunk());
          state_ = State::size_line;
        }
        break;
      case State::trailer_line:
        if (TRY(gather(line_, bytes, kTrailerBytesMax - trailer_bytes_))) TRY(take_trailer_line());
        break;
      case State::finished:
        return invalid("bytes after the end of the chunked body");
    }
  }
  return ok();
}

Result<void> ChunkReader::take_size_line() {
  std::string_view digits = line_;
  chunk_signature_.clear();
  if (const auto field = digits.find(';'); field != std::string_view::npos) {
    if (digits.substr(field).starts_with(kSignatureField))
      chunk_signature_ = digits.substr(field + kSignatureField.size());
    digits = digits.substr(0, field);
  }
  if (digits.empty() || digits.size() > kSizeDigitsMax) return invalid_size();
  left_ = 0;
  for (const char c : digits) {
    uint64_t digit = 16;
    if (c >= '0' && c <= '9')
      digit = uint64_t(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = uint64_t(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F')
      digit = uint64_t(c - 'A' + 10);
    if (digit == 16) return invalid_size();
    left_ = left_ << 4 | digit;
  }
  line_.clear();
  chunk_hash_ = Sha256();
  if (left_ > 0) {
    if (small_chunk_) return exhausted("a chunk other than the last one has fewer than 8192 bytes");
    small_chunk_ =
        seal_ != ChunkSeal::none && algorithm_ == Algorithm::ecdsa && left_ < kEcdsaChunkBytesMin;
    state_ = State::bytes;
    return ok();
  }
  TRY(check_chunk());
  state_ = State::trailer_line;
  return ok();
}

// Checks that `given` is a signature of the text, and stores it as the previous signature.
bool ChunkReader::take_signature(const std::string& text, std::string_view given) {
  if (algorithm_ == Algorithm::hmac) {
    if (!equal_in_constant_time(to_hex(hmac_sha256(verification_key_, text)), given)) return false;
  } else {
    if (given.size() != kEcdsaSignatureBytes) return false;
    given = given.substr(0, given.find_last_not_of(kPadding) + 1);
    const auto signature = from_hex(given);
    if (!signature || !verify_ecdsa(verification_key_, text, *signature)) return false;
  }
  previous_signature_ = given;
  return true;
}

Result<void> ChunkReader::check_chunk() {
  if (seal_ == ChunkSeal::none) return ok();
  const std::string text =
      chunk_text(algorithm_, time_, scope_, previous_signature_, chunk_hash_.finish_hex());
  if (!take_signature(text, chunk_signature_)) return denied("a chunk's signature is wrong");
  return ok();
}

Result<void> ChunkReader::take_trailer_line() {
  trailer_bytes_ += line_.size() + 2;
  if (line_.empty()) {
    // Trailers of a signed body must be signed: otherwise an attacker on the connection could
    // change or drop a checksum.
    const bool must_be_signed = seal_ == ChunkSeal::chunks_and_trailers ||
                                (seal_ == ChunkSeal::chunks && !trailers_.empty());
    if (must_be_signed && !trailers_signed_) return denied("the trailers are not signed");
    state_ = State::finished;
    return ok();
  }
  const auto colon = line_.find(':');
  if (colon == std::string::npos || colon == 0) return invalid("invalid trailer: it has no name");
  const std::string name = to_lower(trim(std::string_view(line_).substr(0, colon)));
  const std::string value(trim(std::string_view(line_).substr(colon + 1)));
  line_.clear();
  if (seal_ != ChunkSeal::none && name == kTrailerSignature) {
    const std::string text =
        trailer_text(algorithm_, time_, scope_, previous_signature_, trailers_);
    if (!take_signature(text, value)) return denied("the trailers' signature is wrong");
    trailers_signed_ = true;
    return ok();
  }
  if (!trailers_.emplace(name, value).second)
    return invalid("duplicate trailer " + shorten(name, 60));
  trailers_signed_ = false;
  return ok();
}

namespace {

// Returns the signature in the transmitted form, and sets `previous` to the signature without
// padding.
std::string sign(std::string_view text, Algorithm algorithm, std::string_view signing_key,
                 std::string& previous) {
  if (algorithm == Algorithm::hmac) return previous = to_hex(hmac_sha256(signing_key, text));
  previous = to_hex(sign_ecdsa(signing_key, text));
  return previous + std::string(kEcdsaSignatureBytes - previous.size(), kPadding);
}

}  // namespace

std::string sign_chunk(std::string_view chunk, const Claim& claim, std::string_view signing_key,
                       std::string& previous) {
  const std::string text = chunk_text(claim.algorithm, to_basic_iso8601(claim.signed_at),
                                      scope_of(claim), previous, sha256_hex(chunk));
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string size;
  for (uint64_t left = chunk.size(); left > 0 || size.empty(); left >>= 4)
    size.insert(0, 1, kDigits[left & 15]);
  std::string out = size.append(kSignatureField);
  out.append(sign(text, claim.algorithm, signing_key, previous)).append("\r\n");
  if (!chunk.empty()) out.append(chunk).append("\r\n");
  return out;
}

std::string sign_trailers(const std::map<std::string, std::string>& trailers, const Claim& claim,
                          std::string_view signing_key, std::string& previous) {
  const std::string text = trailer_text(claim.algorithm, to_basic_iso8601(claim.signed_at),
                                        scope_of(claim), previous, trailers);
  std::string out;
  for (const auto& [name, value] : trailers)
    out.append(name).append(":").append(value).append("\r\n");
  out.append(kTrailerSignature).append(":");
  return out.append(sign(text, claim.algorithm, signing_key, previous)).append("\r\n\r\n");
}

}  // namespace trainyard::signing
