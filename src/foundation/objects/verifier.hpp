// Compares the bytes of a whole object, or of one of its parts, with a checksum that is stored with
// it.
//
// Verifier takes the bytes in order, RangedVerifier the CRCs of ranges that together are the whole
// object, and verified() makes any reader compare what it reads.
//
// Only checksums of all bytes are compared. A composite checksum ("SUM-3": a checksum of the
// checksums of three parts) is not: S3 does not tell a reader of the whole object where its parts
// end. A part that is read by its number has its own checksum.
//
// Threads: confined to one, except where stated.
// Errors: corrupt (bytes_damaged), with the algorithm and both values.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "objects/checksum.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

// A checksum of all bytes of an object or a part.
struct WholeChecksum {
  std::string algorithm;
  std::string value;  // its bytes, as Checksum::finish() returns them
};

// An ETag of a remote store may be anything; one of this server is the MD5 of the bytes, unless the
// object has parts.
enum class EtagUse { compare, ignore };

// Returns the stored checksum that is computed fastest; nullopt if none covers all bytes. An object
// whose parts an early version joined, and many remote objects, have none.
std::optional<WholeChecksum> cheapest_checksum(const ObjectInfo& info, EtagUse etag);

class Verifier {
 public:
  // Without a checksum, nothing is compared.
  explicit Verifier(std::optional<WholeChecksum> expected);
  void add(std::span<const char> bytes) {
    if (sum_) sum_->add(bytes);
  }
  // Requires: called once, after the last byte.
  Result<void> finish();

 private:
  std::optional<WholeChecksum> expected_;
  std::unique_ptr<Checksum> sum_;
};

// RangedVerifier compares an object that is read in ranges of equal length, of which the last may
// be shorter.
class RangedVerifier {
 public:
  // Limit of the ranges of one object, and so of this object's memory (64 MiB).
  static constexpr uint64_t kRangesMax = 1 << 20;

  // Returns nullopt if nothing can be compared: the object has no CRC of all its bytes (hashes of
  // ranges cannot be combined), or has more than kRangesMax ranges. Requires: range_bytes > 0.
  static std::optional<RangedVerifier> make(const ObjectInfo& info, uint64_t range_bytes);

  // Returns a checksum to which the bytes of one range are added.
  std::unique_ptr<Checksum> start() const;
  // Sets or replaces the checksum of a range: what finish() of its Checksum returned. Threads: may
  // be called for different ranges at the same time.
  void set(size_t number, std::string sum) { sums_.at(number) = std::move(sum); }
  // Requires: set() was called for all ranges, and no such call is running.
  Result<void> finish() const;

 private:
  RangedVerifier(WholeChecksum expected, uint64_t bytes, uint64_t range_bytes);

  WholeChecksum expected_;
  uint64_t bytes_, range_bytes_;
  std::vector<std::string> sums_;
};

// Returns a reader of the same bytes that fails instead of returning the last one if they do not
// match their checksum. `doing` describes the read in that error. After an error of `reader`, a
// further read continues to compare. Requires: `reader` reads all bytes to which the checksums of
// its info() belong.
std::unique_ptr<Reader> verified(std::unique_ptr<Reader> reader, std::string doing);

// Returns true if bytes did not match their checksum, and writes a line to the log: they may have
// been damaged on their way, so another read may succeed.
bool is_damaged(const Error& error);

// Calls `read`, and once more if it fails with damaged bytes.
template <class Read>
auto repeat_if_damaged(const Read& read) {
  auto result = read();
  if (result || !is_damaged(result.error())) return result;
  return read();
}

}  // namespace trainyard::objects
