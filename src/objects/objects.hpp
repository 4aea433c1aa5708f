// Blobs by key, behind one interface: a directory (the embedded S3's disk), memory (tests), an S3 endpoint (client).
//
// Calls block; the data plane's threads make them, never a control loop. Readers and writers stream with the caller's
// buffer. A put is seen whole or not at all: after commit() returns it survives power loss; a writer that is destroyed
// without commit() leaves nothing.
//
// Threads: Objects is callable from anywhere; one reader or writer is confined to one thread at a time.
// Errors: not_found (bucket or key; `bucket_missing` in the message says which), conflict (bucket exists, is not
//         empty), exhausted (disk full), invalid (name, part order), unavailable and denied (remote endpoints), corrupt
//         (content does not match the checksum or length given).
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
};

struct ObjectInfo {
  std::string key;
  uint64_t bytes = 0;
  std::string etag;  // hex MD5, or "MD5-of-MD5s-parts" for multipart; without quotes
  Instant modified;
  std::string content_type;
  std::map<std::string, std::string> headers;   // Content-Encoding, Cache-Control .. given at put, lower-case names
  std::map<std::string, std::string> metadata;  // x-amz-meta-*, without that prefix
  std::map<std::string, std::string> checksums; // "crc32" -> base64, as given and verified at put
};

// Bytes first..last inclusive; last is clamped to the object's end.
struct Range {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
};

class Reader {
 public:
  virtual ~Reader() = default;
  virtual const ObjectInfo& info() const = 0;
  // At most buffer.size() bytes; 0 at the end.
  virtual Result<size_t> read(std::span<char> buffer) = 0;
};

struct PutOptions {
  std::string content_type = "binary/octet-stream";
  std::map<std::string, std::string> headers;
  std::map<std::string, std::string> metadata;
  std::optional<uint64_t> bytes;       // when known ahead: commit() fails with corrupt if it differs
  std::optional<std::string> md5;      // base64; verified
  std::map<std::string, std::string> checksums;  // verified: "crc32", "crc32c", "sha1", "sha256" -> base64
  bool only_if_absent = false;         // If-None-Match: *
};

class Writer {
 public:
  virtual ~Writer() = default;
  virtual Result<void> write(std::span<const char> bytes) = 0;
  // A checksum that became known at the end (a trailer). Requires: before commit().
  virtual void expect_checksum(std::string algorithm, std::string base64) = 0;
  // Makes the object visible and durable. Errors also: conflict (only_if_absent and it is there).
  virtual Result<ObjectInfo> commit() = 0;
};

struct ListQuery {
  std::string prefix;
  std::string delimiter;    // "" or one string; keys that hold it after the prefix are rolled up
  std::string start_after;  // exclusive
  size_t keys_max = 1000;   // objects and rolled-up prefixes together
};

struct ListPage {
  std::vector<ObjectInfo> objects;    // ordered by key bytes; key, bytes, etag, modified are set
  std::vector<std::string> prefixes;
  std::string next;                   // start_after of the next page; "" when this is the last
};

struct PartInfo {
  uint32_t number = 0;
  std::string etag;
  uint64_t bytes = 0;
  Instant modified;
};

struct UploadInfo {
  std::string key;
  std::string upload_id;
  Instant started;
};

class Objects {
 public:
  virtual ~Objects() = default;

  virtual Result<void> create_bucket(const std::string& bucket, const std::string& region) = 0;
  virtual Result<void> delete_bucket(const std::string& bucket) = 0;  // conflict when not empty
  virtual Result<BucketInfo> head_bucket(const std::string& bucket) = 0;
  virtual Result<std::vector<BucketInfo>> list_buckets() = 0;

  virtual Result<std::unique_ptr<Reader>> get(const std::string& bucket, const std::string& key,
                                              std::optional<Range> range = {}) = 0;
  virtual Result<ObjectInfo> head(const std::string& bucket, const std::string& key) = 0;
  virtual Result<std::unique_ptr<Writer>> put(const std::string& bucket, const std::string& key,
                                              const PutOptions& options = {}) = 0;
  virtual Result<void> remove(const std::string& bucket, const std::string& key) = 0;  // harmless when absent
  virtual Result<ListPage> list(const std::string& bucket, const ListQuery& query) = 0;

  virtual Result<std::string> start_upload(const std::string& bucket, const std::string& key,
                                           const PutOptions& options = {}) = 0;
  virtual Result<std::unique_ptr<Writer>> put_part(const std::string& bucket, const std::string& key,
                                                   const std::string& upload_id, uint32_t part,
                                                   const PutOptions& options = {}) = 0;
  virtual Result<ObjectInfo> complete_upload(const std::string& bucket, const std::string& key,
                                             const std::string& upload_id, const std::vector<PartInfo>& parts) = 0;
  virtual Result<void> abort_upload(const std::string& bucket, const std::string& key, const std::string& upload_id) = 0;
  virtual Result<std::vector<PartInfo>> list_parts(const std::string& bucket, const std::string& key,
                                                   const std::string& upload_id) = 0;
  virtual Result<std::vector<UploadInfo>> list_uploads(const std::string& bucket, const std::string& prefix) = 0;
};

// "s3://bucket/some/key" -> {"bucket", "some/key"}. Errors: invalid.
struct Location {
  std::string bucket;
  std::string key;
};
Result<Location> parse_s3_uri(std::string_view uri);

// Reads the whole object. Requires: it is small. Errors also: exhausted, past bytes_max.
Result<std::string> read_all(Objects& objects, const std::string& bucket, const std::string& key, size_t bytes_max);
Result<ObjectInfo> write_all(Objects& objects, const std::string& bucket, const std::string& key, std::string_view bytes,
                             const PutOptions& options = {});

}  // namespace trainyard::objects
