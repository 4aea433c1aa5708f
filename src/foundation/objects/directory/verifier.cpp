#include "objects/directory/verifier.hpp"

#include "base/text.hpp"

namespace trainyard::objects {
namespace {

constexpr size_t kMd5HexDigits = 32;

}  // namespace

Verifier::Verifier(const ObjectInfo& info) {
  const auto use = [&](const std::string& algorithm, Result<std::string> expected) {
    auto sum = make_checksum(algorithm);
    if (!expected || !sum) return false;
    algorithm_ = algorithm;
    expected_ = *std::move(expected);
    sum_ = *std::move(sum);
    return true;
  };
  // A checksum with a dash was computed from the checksums of the parts, not from the bytes.
  const auto use_stored = [&](const char* algorithm) {
    const auto kept = info.checksums.find(algorithm);
    return kept != info.checksums.end() && kept->second.find('-') == std::string::npos &&
           use(algorithm, from_base64(kept->second));
  };
  if (use_stored("crc64nvme") || use_stored("crc32c") || use_stored("crc32")) return;
  if (info.etag.size() == kMd5HexDigits && use("md5", from_hex(info.etag))) return;
  static_cast<void>(use_stored("sha1") || use_stored("sha256"));
}

Result<void> Verifier::finish() {
  if (!sum_ || sum_->finish() == expected_) return ok();
  return corrupt("its bytes do not match their " + algorithm_ + " checksum");
}

}  // namespace trainyard::objects
