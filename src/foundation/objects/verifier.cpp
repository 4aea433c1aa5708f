#include "objects/verifier.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace trainyard::objects {
namespace {

constexpr size_t kMd5HexDigits = 32;

std::unique_ptr<Checksum> start_checksum(const std::string& algorithm) {
  auto sum = make_checksum(algorithm);
  CHECK(sum, "the algorithm is known");
  return *std::move(sum);
}

Result<void> compare(const WholeChecksum& expected, const std::string& received) {
  if (received == expected.value) return ok();
  return corrupt("the bytes do not match the object's checksum (" + expected.algorithm + " " +
                     shorten(to_base64(expected.value), 100) + ", received " + to_base64(received) +
                     "); read the object again, and if the error repeats, upload it again",
                 Fault::bytes_damaged);
}

class VerifyingReader final : public Reader {
 public:
  VerifyingReader(std::unique_ptr<Reader> reader, WholeChecksum expected, std::string doing)
      : reader_(std::move(reader)), verifier_(std::move(expected)), doing_(std::move(doing)) {
    const Range range = reader_->range();
    left_ = range.last + 1 - range.first;
  }
  const ObjectInfo& info() const override { return reader_->info(); }
  Range range() const override { return reader_->range(); }
  std::vector<PartInfo> parts() const override { return reader_->parts(); }
  Result<std::map<std::string, std::string>> part_checksums(uint32_t number) override {
    return reader_->part_checksums(number);
  }
  Result<size_t> read(std::span<char> buffer) override {
    if (failure_) return *failure_;
    if (left_ == 0) return size_t(0);
    const size_t bytes = TRY(reader_->read(buffer.first(std::min<uint64_t>(buffer.size(), left_))));
    verifier_.add(buffer.first(bytes));
    left_ -= bytes;
    if (left_ > 0 || bytes == 0) return bytes;
    auto matches = verifier_.finish().in(doing_);
    if (matches) return bytes;
    failure_ = std::move(matches).error();
    return *failure_;
  }

 private:
  const std::unique_ptr<Reader> reader_;
  Verifier verifier_;
  const std::string doing_;
  uint64_t left_;
  std::optional<Error> failure_;
};

}  // namespace

std::optional<WholeChecksum> cheapest_checksum(const ObjectInfo& info, EtagUse etag) {
  const auto stored = [&](const char* algorithm) -> std::optional<WholeChecksum> {
    const auto found = info.checksums.find(algorithm);
    if (found == info.checksums.end() || found->second.find('-') != std::string::npos)
      return std::nullopt;
    auto value = from_base64(found->second);
    if (!value) return std::nullopt;
    return WholeChecksum{algorithm, *std::move(value)};
  };
  for (const char* crc : {"crc64nvme", "crc32c", "crc32"})
    if (auto found = stored(crc)) return found;
  if (etag == EtagUse::compare && info.etag.size() == kMd5HexDigits)
    if (auto md5 = from_hex(info.etag)) return WholeChecksum{"md5", *std::move(md5)};
  for (const char* hash : {"sha1", "sha256"})
    if (auto found = stored(hash)) return found;
  return std::nullopt;
}

Verifier::Verifier(std::optional<WholeChecksum> expected) : expected_(std::move(expected)) {
  if (expected_) sum_ = start_checksum(expected_->algorithm);
}

Result<void> Verifier::finish() {
  if (!sum_) return ok();
  return compare(*expected_, sum_->finish());
}

RangedVerifier::RangedVerifier(WholeChecksum expected, uint64_t bytes, uint64_t range_bytes)
    : expected_(std::move(expected)),
      bytes_(bytes),
      range_bytes_(range_bytes),
      sums_(bytes / range_bytes + (bytes % range_bytes != 0)) {}

std::optional<RangedVerifier> RangedVerifier::make(const ObjectInfo& info, uint64_t range_bytes) {
  auto expected = cheapest_checksum(info, EtagUse::ignore);
  if (!expected || !expected->algorithm.starts_with("crc")) return std::nullopt;
  if (info.bytes == 0 || info.bytes / range_bytes >= kRangesMax) return std::nullopt;
  return RangedVerifier(*std::move(expected), info.bytes, range_bytes);
}

std::unique_ptr<Checksum> RangedVerifier::start() const {
  return start_checksum(expected_.algorithm);
}

Result<void> RangedVerifier::finish() const {
  std::string whole = sums_.front();
  for (size_t i = 1; i < sums_.size(); ++i) {
    const uint64_t bytes = std::min(range_bytes_, bytes_ - i * range_bytes_);
    whole = TRY(combine_checksums(expected_.algorithm, whole, sums_[i], bytes));
  }
  return compare(expected_, whole);
}

std::unique_ptr<Reader> verified(std::unique_ptr<Reader> reader, std::string doing) {
  auto expected = cheapest_checksum(reader->info(), EtagUse::ignore);
  if (!expected) return reader;
  return std::make_unique<VerifyingReader>(std::move(reader), *std::move(expected),
                                           std::move(doing));
}

bool is_damaged(const Error& error) {
  if (!error.is(Fault::bytes_damaged)) return false;
  log(Level::warning, "objects", "received damaged bytes", {{"why", error.message}});
  return true;
}

}  // namespace trainyard::objects
