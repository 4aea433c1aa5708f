// tar streams, written and read through callbacks: nothing lies on disk in between.
//
// What is read is hostile: only files, directories and links with names that stay below the archive's root
// are handed on; anything else is corrupt.
//
// Threads: confined to one. Errors: corrupt (not a tar; a name or type that must not be there), those of
// source and sink, internal (libarchive's words).
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

// Takes bytes on.
using Sink = std::function<Result<void>(std::span<const char>)>;
// At most as many bytes as the buffer has; 0 at the end.
using Source = std::function<Result<size_t>(std::span<char>)>;

// Of one file of an archive that is read: as an object, which it may become.
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
  // `content` is asked for entry.bytes bytes; what it lacks is filled with zeros, what it has more is left
  // out.
  virtual Result<void> add(const TarEntry& entry, const Source& content) = 0;
  virtual Result<void> finish() = 0;
};

enum class Compression { none, gzip };  // gzip at its fastest level
// Lifetime: the sink is called until finish() or destruction.
Result<std::unique_ptr<TarWriter>> write_tar(Compression compression, Sink sink);

class TarReader {
 public:
  virtual ~TarReader() = default;
  virtual Result<std::optional<TarEntry>> next() = 0;       // nothing at the end
  virtual Result<size_t> read(std::span<char> buffer) = 0;  // of the present entry's content; 0 at its end
};
// With gzip, a plain tar is read as well. The root's own entry ("./") is left out.
Result<std::unique_ptr<TarReader>> read_tar(Source source, Compression compression = Compression::none);

// "a//b/./c" -> "a/b/c". Errors: corrupt, for an absolute name, one with "..", one that is empty or holds a
// NUL.
Result<std::string> clean_name(std::string_view name);
// Where a link at `name` leads, relative to the archive's root, if it stays inside: nothing when it leaves,
// is absolute or empty.
bool link_stays_inside(std::string_view name, std::string_view target);

}  // namespace trainyard::agent
