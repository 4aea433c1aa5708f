// Encodes and decodes one block of the cache: a piece of one version of one object.
//
// A file is: magic (8 bytes), CRC-32C of all that follows (4), the bytes of the identity (4), the
// identity, the content. Numbers are little-endian. docs/formats/cache.md has the grammar.
//
// Threads: pure. Errors: corrupt: the file is not a block, is truncated, has flipped bits, or has
// another identity.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/sha256.hpp"

namespace trainyard::cache {

// The bytes of a block; the last block of an object may be shorter. Large enough that the latency
// of a request matters little, small enough that a read of a few bytes does not wait long.
inline constexpr uint64_t kBlockBytes = 4 << 20;
// Limit of an identity: a key, a bucket, an endpoint and an ETag.
inline constexpr size_t kIdentityBytesMax = 8 << 10;

struct BlockId {
  std::string endpoint;
  std::string bucket;
  std::string key;
  std::string etag;  // distinguishes versions of an object
  uint64_t number = 0;
};

// Returns a text that is equal exactly for equal ids.
std::string identity_of(const BlockId& id);
// Parses the text of identity_of(). Errors: corrupt.
Result<BlockId> parse_identity(std::string_view text);
Digest hash_of(const BlockId& id);
// Returns the path of a block's file below the cache's directory: "ab/abcd..".
std::string path_of(const Digest& hash);
inline std::string path_of(const BlockId& id) { return path_of(hash_of(id)); }

std::string encode_block(const BlockId& id, std::string_view content);
// Returns the content, a view of a part of `file`.
Result<std::string_view> decode_block(const BlockId& id, std::string_view file);
// Returns the identity that the first bytes of a file declare, without verifying the checksum.
// Requires: at least kIdentityBytesMax + 16 bytes, unless the file is shorter.
Result<BlockId> declared_id(std::string_view start_of_file);
// Returns the size of a block's file.
uint64_t file_bytes_of(const BlockId& id, uint64_t content_bytes);

}  // namespace trainyard::cache
