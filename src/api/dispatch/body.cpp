#include "dispatch/body.hpp"

#include <algorithm>
#include <cstring>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "signing/chunks.hpp"

namespace trainyard::api {
namespace {

constexpr size_t kFramedReadBytes = 64 << 10;  // one read of a chunked body: a client's usual chunk

const std::map<std::string, std::string>& no_trailers() {
  static const std::map<std::string, std::string> none;
  return none;
}

// Reads a body without framing, and checks its hash if the head has one.
class PlainBody final : public Body {
 public:
  PlainBody(net::Stream& stream, std::string sha256)
      : stream_(stream), wanted_(std::move(sha256)) {}

  Result<size_t> read(std::span<char> buffer) override {
    if (failure_) return denied(failure_->message);
    auto count = stream_.read(buffer);
    if (!count || wanted_.empty()) return count;
    if (*count > 0) {
      hash_.add({buffer.data(), *count});
    } else if (!ended_) {
      ended_ = true;
      if (!equal_in_constant_time(hash_.finish_hex(), wanted_)) {
        failure_ =
            Failure{400, "XAmzContentSHA256Mismatch",
                    "The provided 'x-amz-content-sha256' header does not match what was computed."};
        return denied(failure_->message);
      }
    }
    return count;
  }
  std::optional<uint64_t> bytes() const override { return stream_.head().content_length; }
  const std::map<std::string, std::string>& trailers() const override { return no_trailers(); }
  const std::optional<Failure>& failure() const override { return failure_; }

 private:
  net::Stream& stream_;
  const std::string wanted_;  // "" = not checked
  signing::Sha256 hash_;
  bool ended_ = false;
  std::optional<Failure> failure_;
};

// Reads a body that is framed in chunks (signing/chunks.hpp).
class ChunkedBody final : public Body {
 public:
  ChunkedBody(net::Stream& stream, signing::ChunkSeal seal, const Signer& signer,
              std::optional<uint64_t> bytes)
      : stream_(stream),
        reader_(seal, signer.claim, signer.signing_key),
        bytes_(bytes),
        framed_(kFramedReadBytes, '\0') {}

  Result<size_t> read(std::span<char> buffer) override {
    if (failure_) return invalid(failure_->message);
    while (taken_ == decoded_.size()) {
      decoded_.clear();
      taken_ = 0;
      const size_t count = TRY(stream_.read({framed_.data(), framed_.size()}));
      if (count == 0) return end();
      if (auto fed = reader_.feed({framed_.data(), count}, decoded_); !fed)
        return fail(fed.error());
      given_ += decoded_.size();
      if (bytes_ && given_ > *bytes_)
        return fail(invalid("the body has more than the " + std::to_string(*bytes_) +
                            " bytes of x-amz-decoded-content-length"));
    }
    const size_t count = std::min(buffer.size(), decoded_.size() - taken_);
    std::memcpy(buffer.data(), decoded_.data() + taken_, count);
    taken_ += count;
    return count;
  }
  std::optional<uint64_t> bytes() const override { return bytes_; }
  const std::map<std::string, std::string>& trailers() const override { return reader_.trailers(); }
  const std::optional<Failure>& failure() const override { return failure_; }

 private:
  Result<size_t> end() {
    if (!reader_.finished()) return fail(invalid("the chunked body ends before its last chunk"));
    if (bytes_ && given_ != *bytes_)
      return fail(invalid("the body has " + std::to_string(given_) +
                          " bytes, and x-amz-decoded-content-length is " +
                          std::to_string(*bytes_)));
    for (const auto& [name, value] : reader_.trailers())
      if (!announced(name)) {
        failure_ = s3_failure(
            400, "MalformedTrailerError",
            "The request contained trailing data that was not well-formed or did not conform to "
            "our published schema.");
        return invalid(failure_->message);
      }
    return size_t(0);
  }

  // Returns whether the head, which is signed, announces the trailer. The trailer itself may be
  // unsigned.
  bool announced(std::string_view trailer) const {
    if (trailer == "x-amz-trailer-signature") return true;
    const std::string_view names = stream_.head().headers.get("x-amz-trailer");
    for (const auto name : split(names, ','))
      if (equals_ignoring_case(trim(name), trailer)) return true;
    return false;
  }

  Error fail(const Error& error) {
    switch (error.kind) {
      case Kind::denied:
        failure_ = s3_failure(
            403, "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided: " +
                error.message);
        break;
      case Kind::exhausted:
        failure_ = s3_failure(403, "InvalidChunkSizeError",
                              "Only the last chunk is allowed to have a size less than 8192 bytes");
        break;
      default:
        failure_ = s3_failure(400, "IncompleteBody",
                              "The request body terminated unexpectedly: " + error.message);
    }
    return error;
  }

  net::Stream& stream_;
  signing::ChunkReader reader_;
  const std::optional<uint64_t> bytes_;
  std::string framed_, decoded_;
  size_t taken_ = 0;
  uint64_t given_ = 0;
  std::optional<Failure> failure_;
};

Error body_too_large(size_t bytes_max) {
  return exhausted("the body exceeds " + std::to_string(bytes_max) + " bytes");
}

template <class Read>
Result<std::string> gather(size_t bytes_max, const Read& read) {
  std::string out;
  char buffer[16 << 10];
  while (true) {
    const size_t count = TRY(read(std::span<char>(buffer)));
    if (count == 0) return out;
    if (out.size() + count > bytes_max) return body_too_large(bytes_max);
    out.append(buffer, count);
  }
}

}  // namespace

Result<std::unique_ptr<Body>> Body::open(net::Stream& stream, const Signer& signer) {
  const std::string& payload = signer.claim.payload_sha256;
  if (payload == signing::kUnsignedPayload) return std::unique_ptr<Body>(new PlainBody(stream, ""));
  if (is_hex_digest(payload)) return std::unique_ptr<Body>(new PlainBody(stream, payload));
  std::optional<uint64_t> bytes;
  if (const auto stated = stream.head().headers.get("x-amz-decoded-content-length");
      !stated.empty()) {
    const auto number = parse_int(stated);
    if (!number || *number < 0)
      return invalid("invalid x-amz-decoded-content-length '" + shorten(to_utf8(stated), 40) +
                     "': must be a number of bytes");
    bytes = static_cast<uint64_t>(*number);
  }
  if (payload == "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
    return std::unique_ptr<Body>(new ChunkedBody(stream, signing::ChunkSeal::none, signer, bytes));
  // Chunks must have the algorithm of their request. SigV4a's verification key is public: as an
  // HMAC key any client could use it.
  const std::string signed_chunks = signer.claim.algorithm == signing::Algorithm::hmac
                                        ? "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
                                        : "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD";
  if (payload == signed_chunks)
    return std::unique_ptr<Body>(
        new ChunkedBody(stream, signing::ChunkSeal::chunks, signer, bytes));
  if (payload == signed_chunks + "-TRAILER")
    return std::unique_ptr<Body>(
        new ChunkedBody(stream, signing::ChunkSeal::chunks_and_trailers, signer, bytes));
  return invalid(
      "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a known STREAMING- word, or a valid sha256 "
      "value.");
}

Result<std::string> Body::read_whole(size_t bytes_max) {
  if (bytes().value_or(0) > bytes_max) return body_too_large(bytes_max);
  return gather(bytes_max, [&](std::span<char> buffer) { return read(buffer); });
}

Result<std::string> read_whole(net::Stream& stream, size_t bytes_max) {
  if (stream.head().content_length.value_or(0) > bytes_max) return body_too_large(bytes_max);
  return gather(bytes_max, [&](std::span<char> buffer) { return stream.read(buffer); });
}

std::vector<std::pair<std::string, std::string>> without_chunked_encoding(
    const std::vector<std::pair<std::string, std::string>>& headers) {
  auto out = headers;
  for (auto& [name, value] : out) {
    if (!equals_ignoring_case(name, "content-encoding")) continue;
    std::string kept;
    for (const auto part : split(value, ',')) {
      if (equals_ignoring_case(trim(part), "aws-chunked")) continue;
      if (!kept.empty()) kept += ',';
      kept += trim(part);
    }
    value = kept;
  }
  std::erase_if(out, [](const auto& field) {
    return equals_ignoring_case(field.first, "content-encoding") && field.second.empty();
  });
  return out;
}

}  // namespace trainyard::api
