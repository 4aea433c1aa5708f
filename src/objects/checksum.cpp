#include "objects/checksum.hpp"

#include <openssl/evp.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::objects {
namespace {

// A reflected CRC of Word bits with all-ones at start and end, eight bytes a step: table[k][b] is the CRC of
// byte b followed by k zero bytes, so eight look-ups that do not wait for each other replace eight that do.
template <class Word, Word polynomial>
struct Crc {
  using Table = std::array<std::array<Word, 256>, 8>;

  static constexpr Table make_table() {
    Table table{};
    for (size_t byte = 0; byte < 256; ++byte) {
      Word sum = byte;
      for (int bit = 0; bit < 8; ++bit) sum = (sum & 1) ? (sum >> 1) ^ polynomial : sum >> 1;
      table[0][byte] = sum;
    }
    for (size_t byte = 0; byte < 256; ++byte)
      for (size_t k = 1; k < 8; ++k)
        table[k][byte] = (table[k - 1][byte] >> 8) ^ table[0][table[k - 1][byte] & 255];
    return table;
  }
  static const Table& table() {
    static const Table made = make_table();
    return made;
  }

  static Word run(Word sum, const char* at, size_t bytes) {
    static_assert(std::endian::native == std::endian::little);
    const Table& t = table();
    for (; bytes >= 8; at += 8, bytes -= 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      word ^= sum;
      sum = t[7][word & 255] ^ t[6][word >> 8 & 255] ^ t[5][word >> 16 & 255] ^ t[4][word >> 24 & 255] ^
            t[3][word >> 32 & 255] ^ t[2][word >> 40 & 255] ^ t[1][word >> 48 & 255] ^ t[0][word >> 56];
    }
    for (; bytes > 0; ++at, --bytes) sum = (sum >> 8) ^ t[0][(sum ^ uint8_t(*at)) & 255];
    return sum;
  }

  // The register as a polynomial over GF(2): a * b modulo the CRC's polynomial. In the reflected form the
  // highest bit is the coefficient of x^0.
  static Word multiply(Word a, Word b) {
    constexpr Word top = Word(1) << (sizeof(Word) * 8 - 1);
    Word product = 0;
    for (Word bit = top; bit != 0; bit >>= 1) {
      if (a & bit) product ^= b;
      b = (b & 1) ? (b >> 1) ^ polynomial : b >> 1;
    }
    return product;
  }

  // CRC(a b) = CRC(a) * x^(8 |b|) + CRC(b): all-ones at start and end cancel out.
  static Word combine(Word a, Word b, uint64_t b_bytes) {
    constexpr Word top = Word(1) << (sizeof(Word) * 8 - 1);
    Word power = top;        // x^0
    Word square = top >> 8;  // x^8
    for (; b_bytes != 0; b_bytes >>= 1) {
      if (b_bytes & 1) power = multiply(power, square);
      square = multiply(square, square);
    }
    return multiply(a, power) ^ b;
  }

  static std::string bytes_of(Word sum) {
    std::string bytes;
    for (int shift = sizeof(Word) * 8 - 8; shift >= 0; shift -= 8) bytes += char(sum >> shift & 255);
    return bytes;
  }
  static Word word_of(std::string_view bytes) {
    Word sum = 0;
    for (const char c : bytes) sum = Word(sum << 8) | uint8_t(c);
    return sum;
  }
};

using Crc32 = Crc<uint32_t, 0xedb88320>;
using Crc32c = Crc<uint32_t, 0x82f63b78>;
using Crc64Nvme = Crc<uint64_t, 0x9a6c9329ac4bc9b5>;

template <class Kind, class Word>
class RunningCrc final : public Checksum {
 public:
  void add(std::span<const char> bytes) override { sum_ = Kind::run(sum_, bytes.data(), bytes.size()); }
  std::string finish() override { return Kind::bytes_of(~sum_); }

 private:
  Word sum_ = ~Word(0);
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
  return corrupt(std::string(fault::kChecksumMismatch) + ": the " + std::string(algorithm) +
                 " of the bytes received is not the one given");
}

}  // namespace

Result<std::unique_ptr<Checksum>> make_checksum(std::string_view algorithm) {
  std::unique_ptr<Checksum> made;
  if (algorithm == "crc32") made = std::make_unique<RunningCrc<Crc32, uint32_t>>();
  if (algorithm == "crc32c") made = std::make_unique<RunningCrc<Crc32c, uint32_t>>();
  if (algorithm == "crc64nvme") made = std::make_unique<RunningCrc<Crc64Nvme, uint64_t>>();
  if (algorithm == "sha1") made = std::make_unique<Hash>(EVP_sha1());
  if (algorithm == "sha256") made = std::make_unique<Hash>(EVP_sha256());
  if (algorithm == "md5") made = std::make_unique<Hash>(EVP_md5());
  if (!made) return invalid("'" + shorten(algorithm, 40) + "' is not a checksum algorithm known here");
  return made;
}

bool is_checksum(std::string_view algorithm) {
  return algorithm == "crc32" || algorithm == "crc32c" || algorithm == "crc64nvme" || algorithm == "sha1" ||
         algorithm == "sha256";
}

std::string checksum_of(std::string_view algorithm, std::string_view bytes) {
  auto checksum = make_checksum(algorithm);
  CHECK(checksum, "the algorithm is known");
  (*checksum)->add(bytes);
  return (*checksum)->finish();
}

Result<std::string> combine_checksums(std::string_view algorithm, std::string_view a, std::string_view b,
                                      uint64_t b_bytes) {
  const auto combined = [&]<class Kind>(Kind) {
    return Kind::bytes_of(Kind::combine(Kind::word_of(a), Kind::word_of(b), b_bytes));
  };
  if (algorithm == "crc32") return combined(Crc32{});
  if (algorithm == "crc32c") return combined(Crc32c{});
  if (algorithm == "crc64nvme") return combined(Crc64Nvme{});
  return invalid("checksums of " + std::string(algorithm) +
                 " cannot be combined into one of the whole object");
}

Result<Promises> Promises::make(const PutOptions& options) {
  Promises promises;
  promises.bytes_promised_ = options.bytes;
  promises.md5_promised_ = options.md5;
  promises.promised_ = options.checksums;
  promises.md5_ = TRY(make_checksum("md5"));
  if (options.md5) {
    const auto decoded = from_base64(*options.md5);
    if (!decoded || decoded->size() != 16)
      return invalid("the Content-MD5 given is not the base64 of 16 bytes");
  }
  for (const auto& [algorithm, base64] : options.checksums) {
    if (!is_checksum(algorithm))
      return invalid("'" + shorten(algorithm, 40) + "' is not a checksum algorithm known here");
    promises.running_[algorithm] = TRY(make_checksum(algorithm));
  }
  return promises;
}

void Promises::add(std::span<const char> bytes) {
  bytes_ += bytes.size();
  md5_->add(bytes);
  for (auto& [algorithm, checksum] : running_) checksum->add(bytes);
}

void Promises::expect(std::string algorithm, std::string base64) {
  promised_[std::move(algorithm)] = std::move(base64);
}

Result<Promises::Kept> Promises::finish() {
  if (bytes_promised_ && *bytes_promised_ != bytes_)
    return corrupt(std::string(fault::kLengthMismatch) + ": " + std::to_string(*bytes_promised_) +
                   " bytes were announced, " + std::to_string(bytes_) + " came");
  Kept kept;
  kept.bytes = bytes_;
  const std::string md5 = md5_->finish();
  if (md5_promised_ && *md5_promised_ != to_base64(md5)) return mismatch("Content-MD5");
  kept.etag = to_hex(md5);
  for (const auto& [algorithm, base64] : promised_) {
    const auto running = running_.find(algorithm);
    if (running == running_.end())
      return invalid("a checksum '" + shorten(algorithm, 40) + "' came that was not announced");
    const std::string sum = to_base64(running->second->finish());
    if (!base64.empty() && base64 != sum) return mismatch(algorithm);
    kept.checksums[algorithm] = sum;
  }
  return kept;
}

}  // namespace trainyard::objects
