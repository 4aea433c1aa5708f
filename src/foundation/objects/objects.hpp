// Stores blobs by key, behind one interface: a directory (the disk of the embedded S3), memory
// (tests), an S3 endpoint (client).
//
// Calls block; the data plane's threads make them, never a control loop. Readers and writers stream
// with the caller's buffer. A put becomes visible as a whole or not at all: after commit() returns
// it survives power loss; a writer that is destroyed without commit() leaves nothing.
//
// Threads: Objects is callable from anywhere; one reader or writer is confined to one thread at a
// time.
// Errors: not_found (bucket, key, upload), conflict (bucket exists, is not empty), exhausted (disk
// full), invalid (name, range, parts), unavailable and denied (remote endpoints), corrupt (content
// does not match the declared checksum or length). Where a kind alone is ambiguous, the error has a
// Fault as its detail.
// Lifetime: readers and writers must not outlive their Objects.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::objects {

struct BucketInfo {
  std::string name;
  std::string region;
  Instant created;
  std::map<std::string, std::string> tags = {};  // empty of remote endpoints
};

// The header with an object's storage class, which most objects do not have.
inline constexpr const char* kStorageClassHeader = "x-amz-storage-class";

struct ObjectInfo {
  std::string key;
  uint64_t bytes = 0;
  std::string etag;  // hex MD5, or "MD5-of-MD5s-parts" for multipart; without quotes
  Instant modified;
  std::string content_type;
  std::map<std::string, std::string>
      headers;  // Content-Encoding, Cache-Control .. given at put, lower-case names
  std::map<std::string, std::string> metadata;   // x-amz-meta-*, without that prefix
  std::map<std::string, std::string> checksums;  // "crc32" -> base64, as given and verified at put
  std::string owner = {};  // as given at put; "" of earlier versions, and of remote endpoints
  std::map<std::string, std::string> tags = {};  // empty of remote endpoints
};

// The details of errors (Error::detail).
enum class Fault {
  bucket_missing,     // not_found
  key_missing,        // not_found
  upload_missing,     // not_found
  bucket_exists,      // conflict
  bucket_not_empty,   // conflict
  key_exists,         // conflict, with only_if_absent
  etag_differs,       // conflict, with only_if_etag
  bad_bucket_name,    // invalid
  key_too_long,       // invalid
  bad_range,          // invalid
  part_invalid,       // invalid: missing, or another ETag
  part_order,         // invalid
  part_too_small,     // invalid
  part_missing,       // invalid: a Range names a part that the object does not have
  checksum_mismatch,  // corrupt
  length_mismatch,    // corrupt
  quota_exceeded,     // exhausted
};
std::string_view to_string(Fault fault);

inline constexpr size_t kKeyBytesMax = 1024;   // as S3
inline constexpr uint32_t kPartsMax = 10'000;  // as S3
inline constexpr size_t kTagsMax = 10;         // of an object, as S3
inline constexpr size_t kBucketTagsMax = 50;   // as S3
inline constexpr size_t kTagKeyCharactersMax = 128, kTagValueCharactersMax = 256;  // as S3
inline constexpr uint64_t kPartBytesMin = 5 << 20;  // as S3; the last part may be smaller
// Limit of one object: 1 PiB, far above S3's 50 TB, and little enough that the sum of thousands
// fits in 64 bits.
inline constexpr uint64_t kObjectBytesMax = uint64_t(1) << 50;

// Bytes first..last inclusive; last is clamped to the object's end. With `from_end`, the last so
// many bytes instead (all of them when the object is shorter). With `part`, the bytes of the part
// that was uploaded with this number; an object that was not uploaded in parts is its own part 1.
struct Range {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
  std::optional<uint64_t> from_end = {};
  std::optional<uint32_t> part = {};
};

struct PartInfo {
  uint32_t number = 0;
  std::string etag;
  uint64_t bytes = 0;
  Instant modified;
  std::map<std::string, std::string> checksums;  // at complete: compared when given
};

class Reader {
 public:
  virtual ~Reader() = default;
  virtual const ObjectInfo& info() const = 0;
  // The bytes to read, resolved: first..last of this object; last = first - 1 when it is empty.
  virtual Range range() const = 0;
  // The parts in which the object was uploaded: number, etag and bytes. None: it was put as a
  // whole, an earlier version joined its parts, or it is remote.
  virtual std::vector<PartInfo> parts() const { return {}; }
  // The checksums of one of parts(). Errors also: corrupt.
  virtual Result<std::map<std::string, std::string>> part_checksums(uint32_t number) {
    static_cast<void>(number);
    return std::map<std::string, std::string>();
  }
  // Reads at most buffer.size() bytes; 0 at the end.
  virtual Result<size_t> read(std::span<char> buffer) = 0;
};

struct PutOptions {
  std::string content_type = "binary/octet-stream";
  std::map<std::string, std::string> headers;
  std::map<std::string, std::string> metadata;
  // when known in advance: commit() fails with corrupt if it differs
  std::optional<uint64_t> bytes;
  std::optional<std::string> md5;  // base64; verified
  // "crc32", "crc32c", "crc64nvme", "sha1", "sha256" -> base64, verified. With "" it is computed
  // and stored, and expect_checksum() may still add the value to verify. For an upload: the
  // algorithms of its parts' checksums.
  std::map<std::string, std::string> checksums;
  // of an upload: over the whole object, not over its parts' checksums
  bool checksum_of_whole = false;
  bool only_if_absent = false;  // If-None-Match: *
  // If-Match: the ETag of the object that is replaced, "*" for any; "": no condition. Of an upload:
  // see CompleteOptions.
  std::string only_if_etag = {};
  std::string owner = {};  // the user whose quota it counts against; "": no quota
  std::map<std::string, std::string> tags = {};
};

class Writer {
 public:
  virtual ~Writer() = default;
  virtual Result<void> write(std::span<const char> bytes) = 0;
  // Adds a checksum that is known only at the end (a trailer), of an algorithm that
  // PutOptions.checksums has with ""; for another one, commit() fails with invalid. Requires:
  // before commit().
  virtual void expect_checksum(std::string algorithm, std::string base64) = 0;
  // Makes the object visible and durable. Errors also: conflict (key_exists, etag_differs), and
  // with only_if_etag not_found (key_missing).
  virtual Result<ObjectInfo> commit() = 0;
};

struct ListQuery {
  std::string prefix;
  std::string delimiter;    // "" or one string; keys that contain it after the prefix are rolled up
  std::string start_after;  // exclusive
  size_t keys_max = 1000;   // objects and rolled-up prefixes together
};

struct ListPage {
  // Ordered by key bytes; key, bytes, etag, modified and the header kStorageClassHeader are set.
  std::vector<ObjectInfo> objects;
  std::vector<std::string> prefixes;
  std::string next;  // start_after of the next page; "" when this is the last
};

struct UploadInfo {
  std::string key;
  std::string upload_id;
  Instant started;
};

// Properties that a complete_upload declares besides its parts.
struct CompleteOptions {
  bool only_if_absent = false;
  std::string only_if_etag = {};
  std::optional<uint64_t> bytes;  // of the whole: verified
  // of the whole, of the upload's algorithms: verified
  std::map<std::string, std::string> checksums;
};

struct StoredAmount {
  uint64_t bytes = 0;
  uint64_t objects = 0;  // without parts of running uploads
};

// Statistics for the operator.
struct ObjectStatistics {
  std::map<std::string, StoredAmount> buckets;  // with running writes and parts of running uploads
  // since the start: reads of objects that failed with corrupt
  uint64_t broken_reads = 0;
};

class Objects {
 public:
  virtual ~Objects() = default;

  virtual Result<void> create_bucket(const std::string& bucket, const std::string& region) = 0;
  virtual Result<void> delete_bucket(const std::string& bucket) = 0;  // conflict when not empty
  virtual Result<BucketInfo> head_bucket(const std::string& bucket) = 0;
  virtual Result<std::vector<BucketInfo>> list_buckets() = 0;
  virtual Result<void> set_bucket_tags(const std::string& bucket,
                                       const std::map<std::string, std::string>& tags) = 0;

  // Errors also: invalid (bad_range) when the range contains no byte of the object, and
  // (part_missing).
  virtual Result<std::unique_ptr<Reader>> get(const std::string& bucket, const std::string& key,
                                              std::optional<Range> range = {}) = 0;
  virtual Result<ObjectInfo> head(const std::string& bucket, const std::string& key) = 0;
  virtual Result<std::unique_ptr<Writer>> put(const std::string& bucket, const std::string& key,
                                              const PutOptions& options = {}) = 0;
  // Replaces the object's tags. It is modified in no other way, and its time of modification stays.
  virtual Result<void> set_tags(const std::string& bucket, const std::string& key,
                                const std::map<std::string, std::string>& tags) = 0;
  // harmless when absent
  virtual Result<void> remove(const std::string& bucket, const std::string& key) = 0;
  // Removes the object if its ETag, its time of modification and, if `seen` has some, its tags are
  // those of `seen`; harmless when absent. Errors also: conflict (etag_differs), invalid: remote.
  virtual Result<void> remove_unchanged(const std::string& bucket, const std::string& key,
                                        const ObjectInfo& seen) {
    static_cast<void>(bucket), static_cast<void>(key), static_cast<void>(seen);
    return invalid("this object store cannot remove an object on a condition");
  }
  virtual Result<ListPage> list(const std::string& bucket, const ListQuery& query) = 0;

  virtual Result<std::string> start_upload(const std::string& bucket, const std::string& key,
                                           const PutOptions& options = {}) = 0;
  virtual Result<std::unique_ptr<Writer>> put_part(const std::string& bucket,
                                                   const std::string& key,
                                                   const std::string& upload_id, uint32_t part,
                                                   const PutOptions& options = {}) = 0;
  // Turns the upload into the object. `parts` are ordered by number; other parts of the upload are
  // dropped. Repeating it after success returns the same result while the object is unchanged.
  virtual Result<ObjectInfo> complete_upload(const std::string& bucket, const std::string& key,
                                             const std::string& upload_id,
                                             const std::vector<PartInfo>& parts,
                                             const CompleteOptions& options = {}) = 0;
  virtual Result<void> abort_upload(const std::string& bucket, const std::string& key,
                                    const std::string& upload_id) = 0;
  virtual Result<std::vector<PartInfo>> list_parts(const std::string& bucket,
                                                   const std::string& key,
                                                   const std::string& upload_id) = 0;
  virtual Result<std::vector<UploadInfo>> list_uploads(const std::string& bucket,
                                                       const std::string& prefix) = 0;

  // Nothing: this implementation does not count usage.
  virtual std::optional<ObjectStatistics> statistics() const { return std::nullopt; }

  // Removes uploads that were started longer ago than this, and what a crash left. To be called
  // regularly.
  virtual Result<void> keep_up(Instant now, Duration upload_lifetime) {
    static_cast<void>(now), static_cast<void>(upload_lifetime);
    return ok();
  }
};

// "s3://bucket/some/key" -> {"bucket", "some/key"}. Errors: invalid.
struct Location {
  std::string bucket;
  std::string key;
};
Result<Location> parse_s3_uri(std::string_view uri);

// Reads a whole small object. Errors also: exhausted, past bytes_max.
Result<std::string> read_all(Objects& objects, const std::string& bucket, const std::string& key,
                             size_t bytes_max);
Result<ObjectInfo> write_all(Objects& objects, const std::string& bucket, const std::string& key,
                             std::string_view bytes, const PutOptions& options = {});

}  // namespace trainyard::objects
