#include "objects/directory/verifier.hpp"

#include "base/text.hpp"

namespace trainyard::objects {
namespace {

constexpr size_t kMd5HexDigits = 32;

}  // namespace

Verifier::Verifier(const ObjectInfo& info) {
  const auto take = [&](const std::string& algorithm, Result<std::string> expected) {
    auto sum = make_checksum(algorithm);
    if (!expected || !sum) return false;
    algorithm_ = algorithm;
    expected_ = *std::move(expected);
    sum_ = *std::move(sum);
    return true;
  };
  // Base64 with a dash is a checksum of the parts' checksums.
  const auto take_kept = [&](const char* algorithm) {
    const auto kept = info.checksums.find(algorithm);
    return kept != info.checksums.end() && kept->second.find('-') == std::string::npos &&
           take(algorithm, from_base64(kept->second));
  };
  if (take_kept("crc64nvme") || take_kept("crc32c") || take_kept("crc32")) return;
  if (info.etag.size() == kMd5HexDigits && take("md5", from_hex(info.etag))) return;
  static_cast<void>(take_kept("sha1") || take_kept("sha256"));
}

Result<void> Verifier::finish() {
  if (!sum_ || sum_->finish() == expected_) return ok();
  return corrupt("its bytes do not match their " + algorithm_ + " checksum");
}

}  // namespace trainyard::objects
