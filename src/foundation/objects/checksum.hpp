// Computes the checksums that S3 clients send: from streamed bytes, and for a whole object from the
// checksums of its parts.
//
// Algorithms have S3's names in lower case: "crc32", "crc32c", "crc64nvme", "sha1", "sha256"; and
// "md5", for ETags.
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
  // Returns the checksum's bytes, in the order of their base64 form (CRCs big-endian). Requires:
  // called once, at the end.
  virtual std::string finish() = 0;
};

Result<std::unique_ptr<Checksum>> make_checksum(std::string_view algorithm);
bool is_checksum(std::string_view algorithm);  // true for S3's checksums; false for md5
// Returns the checksum of `bytes`. Requires: a known algorithm.
std::string checksum_of(std::string_view algorithm, std::string_view bytes);

// Returns the CRC of the bytes of a followed by those of b, from both CRCs (as finish() returns
// them) and the length of b. Errors: invalid, for hashes.
Result<std::string> combine_checksums(std::string_view algorithm, std::string_view a,
                                      std::string_view b, uint64_t b_bytes);

// ContentCheck compares the bytes of a put with the length and the checksums that its request
// declared.
class ContentCheck {
 public:
  // Errors: invalid (unknown algorithm, malformed value).
  static Result<ContentCheck> make(const PutOptions& options);
  void add(std::span<const char> bytes);
  // Adds a declared checksum that arrives after the bytes (a trailer).
  void expect(std::string algorithm, std::string base64);

  struct Digests {
    uint64_t bytes = 0;
    std::string etag;                              // hex MD5
    std::map<std::string, std::string> checksums;  // base64
  };
  // Errors: corrupt (checksum_mismatch, length_mismatch), invalid (expect() was called for an
  // algorithm that the request did not declare).
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
