#include "signing/chunks.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace trainyard::signing {
namespace {

constexpr size_t kSizeLineBytesMax = 200;     // 16 digits and a signature of 64: clients write about 90
constexpr size_t kTrailerBytesMax = 8 << 10;  // all of them: a checksum and its signature are 200
constexpr size_t kSizeDigitsMax = 15;         // 2^60 bytes
constexpr std::string_view kSignatureField = ";chunk-signature=";
constexpr std::string_view kTrailerSignature = "x-amz-trailer-signature";

std::string scope_of(const Claim& claim) {
  return claim.date + "/" + claim.scope.region + "/" + claim.scope.service + "/aws4_request";
}

std::string chunk_signature(std::string_view key, std::string_view time, std::string_view scope,
                            std::string_view previous, std::string_view chunk_sha256) {
  std::string text = "AWS4-HMAC-SHA256-PAYLOAD\n";
  text.append(time).append("\n").append(scope).append("\n").append(previous).append("\n");
  text.append(sha256_hex("")).append("\n").append(chunk_sha256);
  return to_hex(hmac_sha256(key, text));
}

std::string trailer_signature(std::string_view key, std::string_view time, std::string_view scope,
                              std::string_view previous, std::string_view trailers) {
  std::string text = "AWS4-HMAC-SHA256-TRAILER\n";
  text.append(time).append("\n").append(scope).append("\n").append(previous).append("\n").append(
      sha256_hex(trailers));
  return to_hex(hmac_sha256(key, text));
}

// Moves bytes up to the line's end into `line`. True when the line is whole (without its CRLF).
Result<bool> gather(std::string& line, std::string_view& bytes, size_t bytes_max) {
  const auto end = bytes.find('\n');
  const size_t count = end == std::string_view::npos ? bytes.size() : end + 1;
  if (line.size() + count > bytes_max) return invalid("a line of the chunked body is too long");
  line.append(bytes.substr(0, count));
  bytes.remove_prefix(count);
  if (end == std::string_view::npos) return false;
  if (!line.ends_with("\r\n")) return invalid("a line of the chunked body does not end in CRLF");
  line.resize(line.size() - 2);
  return true;
}

}  // namespace

ChunkReader::ChunkReader(ChunkSeal seal, const Claim& claim, std::string signing_key)
    : seal_(seal),
      scope_(scope_of(claim)),
      time_(to_basic_iso8601(claim.signed_at)),
      signing_key_(std::move(signing_key)),
      previous_signature_(claim.signature) {}

Result<void> ChunkReader::feed(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    switch (state_) {
      case State::size_line:
        if (TRY(gather(line_, bytes, kSizeLineBytesMax))) TRY(take_size_line());
        break;
      case State::bytes: {
        const auto part = bytes.substr(0, std::min<uint64_t>(left_, bytes.size()));
        if (seal_ == ChunkSeal::chunks) chunk_hash_.add(part);
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
  if (digits.empty() || digits.size() > kSizeDigitsMax) return invalid("a chunk's size is no number");
  left_ = 0;
  for (const char c : digits) {
    uint64_t digit = 16;
    if (c >= '0' && c <= '9')
      digit = uint64_t(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = uint64_t(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F')
      digit = uint64_t(c - 'A' + 10);
    if (digit == 16) return invalid("a chunk's size is no number");
    left_ = left_ << 4 | digit;
  }
  line_.clear();
  chunk_hash_ = Sha256();
  if (left_ > 0) {
    state_ = State::bytes;
    return ok();
  }
  TRY(check_chunk());
  state_ = State::trailer_line;
  return ok();
}

Result<void> ChunkReader::check_chunk() {
  if (seal_ == ChunkSeal::none) return ok();
  const std::string wanted =
      chunk_signature(signing_key_, time_, scope_, previous_signature_, chunk_hash_.finish_hex());
  if (!equal_in_constant_time(wanted, chunk_signature_)) return denied("a chunk's signature is wrong");
  previous_signature_ = wanted;
  return ok();
}

Result<void> ChunkReader::take_trailer_line() {
  trailer_bytes_ += line_.size() + 2;
  if (line_.empty()) {
    // Trailers of a signed body are signed: without that, whoever holds the connection could change a
    // checksum.
    if (seal_ == ChunkSeal::chunks && !signed_trailers_.empty()) return denied("the trailers are not signed");
    state_ = State::finished;
    return ok();
  }
  const auto colon = line_.find(':');
  if (colon == std::string::npos || colon == 0) return invalid("a trailer without a name");
  const std::string name = to_lower(trim(std::string_view(line_).substr(0, colon)));
  const std::string value(trim(std::string_view(line_).substr(colon + 1)));
  line_.clear();
  if (seal_ == ChunkSeal::chunks && name == kTrailerSignature) {
    const std::string wanted =
        trailer_signature(signing_key_, time_, scope_, previous_signature_, signed_trailers_);
    if (!equal_in_constant_time(wanted, value)) return denied("the trailers' signature is wrong");
    signed_trailers_.clear();
    return ok();
  }
  signed_trailers_ += name + ":" + value + "\n";
  trailers_.insert_or_assign(name, value);
  return ok();
}

std::string sign_chunk(std::string_view chunk, const Claim& claim, std::string_view signing_key,
                       std::string& previous) {
  previous = chunk_signature(signing_key, to_basic_iso8601(claim.signed_at), scope_of(claim), previous,
                             sha256_hex(chunk));
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string size;
  for (uint64_t left = chunk.size(); left > 0 || size.empty(); left >>= 4)
    size.insert(0, 1, kDigits[left & 15]);
  std::string out = size + std::string(kSignatureField) + previous + "\r\n";
  if (!chunk.empty()) out.append(chunk).append("\r\n");
  return out;
}

}  // namespace trainyard::signing
