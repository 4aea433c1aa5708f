#include "objects/checksum.hpp"

#include <openssl/evp.h>

#include "base/bytes/crc.hpp"
#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::objects {
namespace {

// S3 writes checksums big-endian.
template <class Word>
std::string bytes_of(Word sum) {
  std::string bytes;
  for (int shift = sizeof(Word) * 8 - 8; shift >= 0; shift -= 8) bytes += char(sum >> shift & 255);
  return bytes;
}

template <class Word>
Word word_of(std::string_view bytes) {
  Word sum = 0;
  for (const char c : bytes) sum = Word(sum << 8) | uint8_t(c);
  return sum;
}

template <class Kind>
class RunningCrc final : public Checksum {
 public:
  void add(std::span<const char> bytes) override {
    sum_ = Kind::run(sum_, {bytes.data(), bytes.size()});
  }
  std::string finish() override { return bytes_of(typename Kind::Word(~sum_)); }

 private:
  typename Kind::Word sum_ = ~typename Kind::Word(0);
};

class Hash final : public Checksum {
 public:
  explicit Hash(const EVP_MD* kind) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    CHECK(context_ && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1,
          "OpenSSL must have MD5, SHA-1 and SHA-256");
  }
  void add(std::span<const char> bytes) override {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  std::string finish() override {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_DigestFinal_ex(context_.get(), bytes, &length);
    return std::string(reinterpret_cast<char*>(bytes), length);
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

Error mismatch(std::string_view algorithm) {
  return corrupt("the received bytes do not match the declared " + std::string(algorithm),
                 Fault::checksum_mismatch);
}

}  // namespace

Result<std::unique_ptr<Checksum>> make_checksum(std::string_view algorithm) {
  std::unique_ptr<Checksum> made;
  if (algorithm == "crc32") made = std::make_unique<RunningCrc<Crc32>>();
  if (algorithm == "crc32c") made = std::make_unique<RunningCrc<Crc32c>>();
  if (algorithm == "crc64nvme") made = std::make_unique<RunningCrc<Crc64Nvme>>();
  if (algorithm == "sha1") made = std::make_unique<Hash>(EVP_sha1());
  if (algorithm == "sha256") made = std::make_unique<Hash>(EVP_sha256());
  if (algorithm == "md5") made = std::make_unique<Hash>(EVP_md5());
  if (!made) return invalid("unknown checksum algorithm '" + shorten(algorithm, 40) + "'");
  return made;
}

bool is_checksum(std::string_view algorithm) {
  return algorithm == "crc32" || algorithm == "crc32c" || algorithm == "crc64nvme" ||
         algorithm == "sha1" || algorithm == "sha256";
}

std::string checksum_of(std::string_view algorithm, std::string_view bytes) {
  auto checksum = make_checksum(algorithm);
  CHECK(checksum, "the algorithm is known");
  (*checksum)->add(bytes);
  return (*checksum)->finish();
}

Result<std::string> combine_checksums(std::string_view algorithm, std::string_view a,
                                      std::string_view b, uint64_t b_bytes) {
  const auto combined = [&]<class Kind>(Kind) {
    using Word = typename Kind::Word;
    return bytes_of(Kind::combine(word_of<Word>(a), word_of<Word>(b), b_bytes));
  };
  if (algorithm == "crc32") return combined(Crc32{});
  if (algorithm == "crc32c") return combined(Crc32c{});
  if (algorithm == "crc64nvme") return combined(Crc64Nvme{});
  return invalid("checksums of " + std::string(algorithm) +
                 " cannot be combined into one of the whole object");
}

Result<ContentCheck> ContentCheck::make(const PutOptions& options) {
  ContentCheck check;
  check.bytes_declared_ = options.bytes;
  check.md5_declared_ = options.md5;
  check.declared_ = options.checksums;
  check.md5_ = TRY(make_checksum("md5"));
  if (options.md5) {
    const auto decoded = from_base64(*options.md5);
    if (!decoded || decoded->size() != 16)
      return invalid("invalid Content-MD5: it must be the base64 of 16 bytes");
  }
  for (const auto& [algorithm, base64] : options.checksums) {
    if (!is_checksum(algorithm))
      return invalid("unknown checksum algorithm '" + shorten(algorithm, 40) + "'");
    check.running_[algorithm] = TRY(make_checksum(algorithm));
  }
  return check;
}

void ContentCheck::add(std::span<const char> bytes) {
  bytes_ += bytes.size();
  md5_->add(bytes);
  for (auto& [algorithm, checksum] : running_) checksum->add(bytes);
}

void ContentCheck::expect(std::string algorithm, std::string base64) {
  declared_[std::move(algorithm)] = std::move(base64);
}

Result<ContentCheck::Digests> ContentCheck::finish() {
  if (bytes_declared_ && *bytes_declared_ != bytes_)
    return corrupt("received " + std::to_string(bytes_) + " bytes, but the request declared " +
                       std::to_string(*bytes_declared_),
                   Fault::length_mismatch);
  Digests kept;
  kept.bytes = bytes_;
  const std::string md5 = md5_->finish();
  if (md5_declared_ && *md5_declared_ != to_base64(md5)) return mismatch("Content-MD5");
  kept.etag = to_hex(md5);
  for (const auto& [algorithm, base64] : declared_) {
    const auto running = running_.find(algorithm);
    if (running == running_.end())
      return invalid("unexpected checksum '" + shorten(algorithm, 40) +
                     "': the request did not declare it");
    const std::string sum = to_base64(running->second->finish());
    if (!base64.empty() && base64 != sum) return mismatch(algorithm);
    kept.checksums[algorithm] = sum;
  }
  return kept;
}

}  // namespace trainyard::objects
