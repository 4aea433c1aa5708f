#include "agent/files/fetch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <span>

#include "agent/files/key_paths.hpp"
#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "os/parallel.hpp"

namespace trainyard::agent {
namespace {

constexpr size_t kFetchBufferBytes = 256 << 10;

struct Piece {
  size_t download;
  std::optional<objects::Range> range;  // nothing: the whole object
};

Result<void> write_at(const os::File& file, std::span<const char> bytes, uint64_t offset,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t now =
        ::pwrite(file.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return from_errno("writing " + path);
    offset += static_cast<uint64_t>(now);
    bytes = bytes.subspan(static_cast<size_t>(now));
  }
  return {};
}

Result<void> fetch(objects::Objects& objects, const Download& download,
                   const std::optional<objects::Range>& range, const Tree& directory,
                   const Interruption& interruption) {
  const auto reader = TRY(objects.get(download.bucket, download.key, range));
  if (range && reader->info().etag != download.etag)
    return unavailable("it was replaced while it was being fetched");
  const auto there = range ? os::IfThere::keep_content : os::IfThere::truncate;
  const auto file = TRY(directory.create_file(download.path, there));
  std::vector<char> buffer(kFetchBufferBytes);
  for (uint64_t offset = range ? range->first : 0;;) {
    TRY(interruption.check());
    const size_t got = TRY(reader->read(buffer));
    if (got == 0) return {};
    TRY(write_at(file, std::span<const char>(buffer).first(got), offset, download.path));
    offset += got;
  }
}

// Makes directories, and files that are written in parts, at their full length.
Result<std::vector<Piece>> prepare(const std::vector<Download>& downloads, const Tree& directory) {
  std::vector<Piece> pieces;
  std::set<std::string> parents;
  for (size_t i = 0; i < downloads.size(); ++i) {
    const auto& download = downloads[i];
    const size_t slash = download.path.rfind('/');
    if (slash != std::string::npos && parents.insert(download.path.substr(0, slash)).second) {
      TRY(directory.make(download.path.substr(0, slash)));
    }
    if (download.bytes <= kPieceBytes || download.etag.empty()) {
      pieces.push_back({i, {}});
      continue;
    }
    const auto file = TRY(directory.create_file(download.path, os::IfThere::truncate));
    if (::ftruncate(file.descriptor(), static_cast<off_t>(download.bytes)) != 0)
      return from_errno("writing " + download.path);
    for (uint64_t first = 0; first < download.bytes; first += kPieceBytes) {
      const uint64_t last = std::min(first + kPieceBytes, download.bytes) - 1;
      pieces.push_back({i, objects::Range{first, last, {}}});
    }
  }
  return pieces;
}

}  // namespace

Result<void> check_disk_space(const std::vector<Download>& downloads, uint64_t free_bytes,
                              const std::string& what) {
  uint64_t bytes = 0;
  for (const auto& download : downloads) {
    if (download.bytes > objects::kObjectBytesMax)
      return exhausted("key " + in_quotes(download.key) + " has a declared length of " +
                       human_bytes(download.bytes) + "; an object has at most " +
                       human_bytes(objects::kObjectBytesMax));
    // The sum of a million declared lengths may exceed 64 bits.
    bytes = saturating_add(bytes, download.bytes);
  }
  if (bytes <= free_bytes) return {};
  return exhausted("the disk is too small: " + what + " has " + human_bytes(bytes) + ", and " +
                   human_bytes(free_bytes) +
                   " are free; raise the size of the job's volume, or free space on the machine");
}

Result<void> fetch_all(objects::Objects& objects, const std::vector<Download>& downloads,
                       const Tree& directory, const Interruption& interruption) {
  const auto pieces = TRY(prepare(downloads, directory));
  return os::for_each_in_parallel(pieces.size(), kFetchesMax, [&](size_t i) {
    const auto& download = downloads[pieces[i].download];
    return fetch(objects, download, pieces[i].range, directory, interruption)
        .in("key " + in_quotes(download.key));
  });
}

}  // namespace trainyard::agent
