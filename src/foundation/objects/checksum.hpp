// The checksums that S3 clients send: running sums over streamed bytes, and how sums of parts become one of
// the whole.
//
// Names are S3's in lower case: "crc32", "crc32c", "crc64nvme", "sha1", "sha256"; "md5" is here too, for
// ETags.
//
// Threads: a Checksum is confined to one thread; the rest is pure. Errors: invalid (unknown algorithm).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

class Checksum {
 public:
  virtual ~Checksum() = default;
  virtual void add(std::span<const char> bytes) = 0;
  // The sum's bytes, as they go into base64 (CRCs big-endian). Requires: once, at the end.
  virtual std::string finish() = 0;
};

Result<std::unique_ptr<Checksum>> make_checksum(std::string_view algorithm);
bool is_checksum(std::string_view algorithm);  // of those that S3 clients send; md5 is not one
// The sum of text at hand. Requires: the algorithm is known.
std::string checksum_of(std::string_view algorithm, std::string_view bytes);

// The CRC of a followed by b, from both CRCs (as finish() gives them) and b's length. Errors: invalid, for
// hashes.
Result<std::string> combine_checksums(std::string_view algorithm, std::string_view a, std::string_view b,
                                      uint64_t b_bytes);

// Everything one put promises about its bytes, watched while they stream past.
class Promises {
 public:
  // Errors: invalid (unknown algorithm, malformed value).
  static Result<Promises> make(const PutOptions& options);
  void add(std::span<const char> bytes);
  void expect(std::string algorithm, std::string base64);

  struct Kept {
    uint64_t bytes = 0;
    std::string etag;                              // hex MD5
    std::map<std::string, std::string> checksums;  // base64
  };
  // Errors: corrupt (checksum_mismatch, length_mismatch), invalid (a checksum that was not announced).
  Result<Kept> finish();

 private:
  std::optional<uint64_t> bytes_promised_;
  std::optional<std::string> md5_promised_;
  std::map<std::string, std::string> promised_;  // base64; "" = only computed
  std::map<std::string, std::unique_ptr<Checksum>> running_;
  std::unique_ptr<Checksum> md5_;
  uint64_t bytes_ = 0;
};

}  // namespace trainyard::objects
