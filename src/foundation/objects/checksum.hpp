// Computes the checksums that S3 clients send: over streamed bytes, and of a whole from the sums of
// its parts.
//
// Names are S3's in lower case: "crc32", "crc32c", "crc64nvme", "sha1", "sha256"; and "md5", for
// ETags.
//
// Threads: a Checksum is confined to one thread; the rest is pure. Errors: invalid (unknown
// algorithm).
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
  // The sum's bytes, in the order of their base64 form (CRCs big-endian). Requires: once, at the
  // end.
  virtual std::string finish() = 0;
};

Result<std::unique_ptr<Checksum>> make_checksum(std::string_view algorithm);
bool is_checksum(std::string_view algorithm);  // true for S3's checksums; false for md5
// Returns the sum of a text. Requires: a known algorithm.
std::string checksum_of(std::string_view algorithm, std::string_view bytes);

// Returns the CRC of a followed by b, from both CRCs (of finish()) and b's length. Errors: invalid,
// for hashes.
Result<std::string> combine_checksums(std::string_view algorithm, std::string_view a,
                                      std::string_view b, uint64_t b_bytes);

// Compares the bytes of one put with everything that the request declared about them.
class ContentCheck {
 public:
  // Errors: invalid (unknown algorithm, malformed value).
  static Result<ContentCheck> make(const PutOptions& options);
  void add(std::span<const char> bytes);
  void expect(std::string algorithm, std::string base64);

  struct Digests {
    uint64_t bytes = 0;
    std::string etag;                              // hex MD5
    std::map<std::string, std::string> checksums;  // base64
  };
  // Errors: corrupt (checksum_mismatch, length_mismatch), invalid (a checksum that was not
  // declared).
  Result<Digests> finish();

 private:
  std::optional<uint64_t> bytes_declared_;
  std::optional<std::string> md5_declared_;
  std::map<std::string, std::string> declared_;  // base64; "" = only computed
  std::map<std::string, std::unique_ptr<Checksum>> running_;
  std::unique_ptr<Checksum> md5_;
  uint64_t bytes_ = 0;
};

}  // namespace trainyard::objects
