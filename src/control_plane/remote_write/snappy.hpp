// Compresses and decompresses bytes in Snappy's block format.
//
// A block consists of the uncompressed length as a varint, and elements: literals, and copies of
// earlier bytes. (https://github.com/google/snappy/blob/main/format_description.txt)
//
// Threads: pure functions. Errors: invalid (malformed), exhausted (more than `bytes_max`).
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::remote_write {

// Requires: fewer than 4 GiB.
std::string snappy_compress(std::string_view bytes);
// Allocates at most `bytes_max`, even if the header claims more.
Result<std::string> snappy_decompress(std::string_view block, size_t bytes_max);

}  // namespace trainyard::remote_write
