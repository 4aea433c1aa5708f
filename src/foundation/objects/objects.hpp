// Objects stores blobs by key. Implementations: a directory (the disk of the embedded S3), memory
// (for tests), an S3 endpoint (client).
//
// Calls block; threads of the data plane make them, never a control loop. Readers and writers
// stream through the caller's buffer. A put becomes visible as a whole or not at all: after
// commit() returns it survives power loss; a writer that is destroyed without commit() leaves
// nothing.
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
  std::map<std::string, std::string> tags = {};  // empty for remote endpoints
};

// The header with the storage class of an object; most objects have none.
inline constexpr const char* kStorageClassHeader = "x-amz-storage-class";

struct ObjectInfo {
  std::string key;
  uint64_t bytes = 0;
  std::string etag;  // hex MD5, or "MD5-of-MD5s-parts" for multipart; without quotes
  Instant modified;
  std::string content_type;
  // Content-Encoding, Cache-Control .. as given at put, with lower-case names
  std::map<std::string, std::string> headers;
  std::map<std::string, std::string> metadata;   // x-amz-meta-*, without that prefix
  std::map<std::string, std::string> checksums;  // "crc32" -> base64, as given and verified at put
  std::string owner = {};  // as given at put; "": stored by an earlier version, or remote
  std::map<std::string, std::string> tags = {};  // empty for remote endpoints
};

// The details of errors (Error::detail).
enum class Fault {
  bucket_missing,     // not_found
  key_missing,        // not_found
  upload_missing,     // not_found
  bucket_exists,      // conflict
  bucket_not_empty,   // conflict
  key_exists,         // conflict, with only_if_absent
  etag_differs,       // conflict, with only_if_etag; unavailable, during a read
  bad_bucket_name,    // invalid
  key_too_long,       // invalid
  bad_range,          // invalid
  part_invalid,       // invalid: the part is missing or has another ETag
  part_order,         // invalid
  part_too_small,     // invalid
  part_missing,       // invalid: a Range names a part that the object does not have
  checksum_mismatch,  // corrupt, of a put
  bytes_damaged,      // corrupt, of a read: the bytes do not match the object's checksum
  length_mismatch,    // corrupt
  quota_exceeded,     // exhausted
};
std::string_view to_string(Fault fault);

inline constexpr size_t kKeyBytesMax = 1024;   // as S3
inline constexpr uint32_t kPartsMax = 10'000;  // as S3
inline constexpr size_t kTagsMax = 10;         // per object, as S3
inline constexpr size_t kBucketTagsMax = 50;   // as S3
inline constexpr size_t kTagKeyCharactersMax = 128, kTagValueCharactersMax = 256;  // as S3
inline constexpr uint64_t kPartBytesMin = 5 << 20;  // as S3; the last part may be smaller
// Limit of one object: 1 PiB, far above S3's 50 TB, and so small that the sum of thousands of
// objects fits in 64 bits.
inline constexpr uint64_t kObjectBytesMax = uint64_t(1) << 50;

// Selects bytes of an object: first..last inclusive, where `last` is limited to the end of the
// object. With `from_end`, the last from_end bytes instead (all bytes if the object is shorter).
// With `part`, the bytes of the part that was uploaded with this number; an object that was not
// uploaded in parts is its own part 1.
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
  std::map<std::string, std::string> checksums;  // in complete_upload(): compared if given
};

class Reader {
 public:
  virtual ~Reader() = default;
  virtual const ObjectInfo& info() const = 0;
  // Returns the bytes that are read: first..last of this object; last = first - 1 if it is empty.
  virtual Range range() const = 0;
  // Returns the parts in which the object was uploaded: number, etag and bytes. Empty if it was put
  // as a whole, if an earlier version joined its parts, or if it is remote.
  virtual std::vector<PartInfo> parts() const { return {}; }
  // Returns the checksums of one of parts(). Errors also: corrupt.
  virtual Result<std::map<std::string, std::string>> part_checksums(uint32_t number) {
    static_cast<void>(number);
    return std::map<std::string, std::string>();
  }
  // Reads at most buffer.size() bytes, and returns their number; 0 at the end. If the bytes of a
  // whole object or part do not match a stored checksum of all of them, the call that would return
  // the last one fails with corrupt (bytes_damaged) instead. After unavailable or denied,
  // another call continues at the same byte; unavailable (etag_differs): the object was replaced.
  virtual Result<size_t> read(std::span<char> buffer) = 0;
};

struct PutOptions {
  std::string content_type = "binary/octet-stream";
  std::map<std::string, std::string> headers;
  std::map<std::string, std::string> metadata;
  // the length, if it is known in advance; commit() fails with corrupt if it differs
  std::optional<uint64_t> bytes;
  std::optional<std::string> md5;  // base64; verified
  // "crc32", "crc32c", "crc64nvme", "sha1", "sha256" -> base64, verified. With "" the checksum is
  // computed and stored, and expect_checksum() may add the value to verify. In start_upload(): the
  // algorithms of the checksums of its parts.
  std::map<std::string, std::string> checksums;
  // in start_upload(): checksums cover the bytes of the whole object, not the checksums of its
  // parts
  bool checksum_of_whole = false;
  bool only_if_absent = false;  // If-None-Match: *
  // If-Match: the ETag that the replaced object must have, "*": any; "": no condition. For an
  // upload it is given in CompleteOptions.
  std::string only_if_etag = {};
  std::string owner = {};  // the user to whose quota the object counts; "": no quota
  std::map<std::string, std::string> tags = {};
};

class Writer {
 public:
  virtual ~Writer() = default;
  virtual Result<void> write(std::span<const char> bytes) = 0;
  // Adds the value of a checksum that is known only at the end (a trailer). PutOptions.checksums
  // must contain its algorithm with ""; otherwise commit() fails with invalid. Requires: called
  // before commit().
  virtual void expect_checksum(std::string algorithm, std::string base64) = 0;
  // Makes the object visible and durable. Errors also: conflict (key_exists, etag_differs), and
  // with only_if_etag not_found (key_missing).
  virtual Result<ObjectInfo> commit() = 0;
};

struct ListQuery {
  std::string prefix;
  std::string delimiter;    // keys that contain it after the prefix are rolled up; "": none
  std::string start_after;  // exclusive
  size_t keys_max = 1000;   // limit of objects and common prefixes together
};

struct ListPage {
  // Ordered by key bytes; key, bytes, etag, modified and the header kStorageClassHeader are set.
  std::vector<ObjectInfo> objects;
  std::vector<std::string> prefixes;
  std::string next;  // start_after of the next page; "": this is the last page
};

struct UploadInfo {
  std::string key;
  std::string upload_id;
  Instant started;
};

// Properties and conditions that complete_upload() declares in addition to its parts.
struct CompleteOptions {
  bool only_if_absent = false;
  std::string only_if_etag = {};
  std::optional<uint64_t> bytes;  // length of the whole object; verified
  // checksums of the whole object, of the upload's algorithms; verified
  std::map<std::string, std::string> checksums;
};

struct StoredAmount {
  uint64_t bytes = 0;
  uint64_t objects = 0;  // parts of running uploads are not counted
};

// Statistics for operators.
struct ObjectStatistics {
  std::map<std::string, StoredAmount> buckets;  // with running writes and uploads
  // number of reads that failed with corrupt since the start
  uint64_t broken_reads = 0;
};

class Objects {
 public:
  virtual ~Objects() = default;

  virtual Result<void> create_bucket(const std::string& bucket, const std::string& region) = 0;
  // Errors also: conflict (bucket_not_empty).
  virtual Result<void> delete_bucket(const std::string& bucket) = 0;
  virtual Result<BucketInfo> head_bucket(const std::string& bucket) = 0;
  virtual Result<std::vector<BucketInfo>> list_buckets() = 0;
  virtual Result<void> set_bucket_tags(const std::string& bucket,
                                       const std::map<std::string, std::string>& tags) = 0;

  // Errors also: invalid: bad_range, if the range contains no byte of the object; part_missing.
  virtual Result<std::unique_ptr<Reader>> get(const std::string& bucket, const std::string& key,
                                              std::optional<Range> range = {}) = 0;
  virtual Result<ObjectInfo> head(const std::string& bucket, const std::string& key) = 0;
  virtual Result<std::unique_ptr<Writer>> put(const std::string& bucket, const std::string& key,
                                              const PutOptions& options = {}) = 0;
  // Replaces the tags of the object. Nothing else changes, not even its time of modification.
  virtual Result<void> set_tags(const std::string& bucket, const std::string& key,
                                const std::map<std::string, std::string>& tags) = 0;
  // Removes the object. Does nothing if it is absent.
  virtual Result<void> remove(const std::string& bucket, const std::string& key) = 0;
  // Removes the object if it is unchanged: its ETag, its time of modification and, if `seen` has
  // tags, its tags equal those of `seen`. Does nothing if it is absent. Errors also: conflict
  // (etag_differs); invalid, if the store is remote.
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
  // Makes the object from the upload. `parts` are ordered by number; other parts of the upload are
  // removed. If it is repeated after a success, it returns the same result while the object is
  // unchanged.
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

  // Returns nullopt if this implementation does not count usage.
  virtual std::optional<ObjectStatistics> statistics() const { return std::nullopt; }

  // Removes uploads that were started longer than `upload_lifetime` ago, and files that a crash
  // left. Must be called regularly.
  virtual Result<void> clean_up(Instant now, Duration upload_lifetime) {
    static_cast<void>(now), static_cast<void>(upload_lifetime);
    return ok();
  }
};

// The bucket and the key of "s3://bucket/some/key".
struct Location {
  std::string bucket;
  std::string key;
};
// Errors: invalid.
Result<Location> parse_s3_uri(std::string_view uri);

// Reads a whole small object, and once more if its bytes were damaged. Errors also: exhausted, if
// it is larger than bytes_max.
Result<std::string> read_all(Objects& objects, const std::string& bucket, const std::string& key,
                             size_t bytes_max);
Result<ObjectInfo> write_all(Objects& objects, const std::string& bucket, const std::string& key,
                             std::string_view bytes, const PutOptions& options = {});

}  // namespace trainyard::objects
