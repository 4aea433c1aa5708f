// Writes and reads tar streams through callbacks, without temporary files.
//
// Archives that are read may be hostile: the reader returns only files, directories and links with
// names below the archive's root; anything else is the error corrupt.
//
// Threads: confined to one. Errors: corrupt (not a tar; a forbidden name or type), those of source
// and sink, internal (libarchive's message).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::agent {

// Consumes bytes.
using Sink = std::function<Result<void>(std::span<const char>)>;
// Reads bytes into the buffer and returns their number; 0 at the end.
using Source = std::function<Result<size_t>(std::span<char>)>;

// The limit of one file in an archive, equal to that of an object: files are uploaded as objects.
inline constexpr uint64_t kTarFileBytesMax = uint64_t(1) << 50;

struct TarEntry {
  enum class Type { file, directory, link };
  std::string name;  // "a/b", no slash at its ends
  Type type = Type::file;
  uint32_t mode = 0644;     // permission bits
  int64_t modified = 0;     // seconds since 1970
  uint64_t bytes = 0;       // of files
  std::string link_target;  // of links
};

class TarWriter {
 public:
  virtual ~TarWriter() = default;
  // Reads entry.bytes bytes of `content`. Missing bytes are written as zeros, further ones ignored.
  virtual Result<void> add(const TarEntry& entry, const Source& content) = 0;
  virtual Result<void> finish() = 0;
};

enum class Compression { none, gzip };  // gzip at its fastest level
// Lifetime: the sink is called until finish() or destruction.
Result<std::unique_ptr<TarWriter>> write_tar(Compression compression, Sink sink);

class TarReader {
 public:
  virtual ~TarReader() = default;
  virtual Result<std::optional<TarEntry>> next() = 0;  // nullopt at the end
  // Reads the content of the current entry; 0 at its end.
  virtual Result<size_t> read(std::span<char> buffer) = 0;
};
// With Compression::gzip a plain tar is accepted as well. The entry of the root ("./") is left out.
Result<std::unique_ptr<TarReader>> read_tar(Source source,
                                            Compression compression = Compression::none);

// Returns "a/b/c" for "a//b/./c". Errors: corrupt: the name is empty or absolute, or contains ".."
// or NUL.
Result<std::string> clean_name(std::string_view name);
// Returns true if a link at `name` leads to a path below the archive's root; false for an absolute
// or empty target.
bool link_stays_inside(std::string_view name, std::string_view target);

}  // namespace trainyard::agent
