// Decodes blocks of the cache: files that a crash or a broken disk may have changed.
// decoder: src/job/cache/block.cpp
#include <string_view>

#include "cache/block.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::cache;
  const BlockId id{"http://e", "b", "k", "etag", 3};
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto content = decode_block(id, file);
  // A block that is accepted has exactly the bytes that would be written.
  if (content && encode_block(id, *content) != file) __builtin_trap();
  // An identity that is accepted is the only text of its block.
  const auto other = parse_identity(file);
  if (other && identity_of(*other) != file) __builtin_trap();
  const auto declared = declared_id(file);
  if (content && (!declared || identity_of(*declared) != identity_of(id))) __builtin_trap();
  if (*decode_block(id, encode_block(id, file)) != file) __builtin_trap();
  if (content && file_bytes_of(id, content->size()) != file.size()) __builtin_trap();
  // The name of a block's file is two digits, a slash, and all digits of its hash.
  if (other && path_of(hash_of(*other)).size() != 2 + 1 + 64) __builtin_trap();
  return 0;
}
