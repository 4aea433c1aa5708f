#include "agent/files/fetch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "agent/files/key_paths.hpp"
#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "objects/verifier.hpp"
#include "os/parallel.hpp"

namespace trainyard::agent {
namespace {

constexpr size_t kFetchBufferBytes = 256 << 10;

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

// Fetches the downloads of one call of fetch_all().
class Fetches {
 public:
  Fetches(objects::Objects& objects, const std::vector<Download>& downloads, const Tree& directory,
          const Interruption& interruption)
      : objects_(objects),
        downloads_(downloads),
        directory_(directory),
        interruption_(interruption) {}

  Result<void> run() {
    TRY(prepare());
    TRY(read_checksums());
    TRY(fetch_pieces(pieces_));
    std::vector<Piece> again;
    for (const auto& [number, verifier] : verifiers_) {
      const auto matches = named(number, verifier->finish());
      if (matches) continue;
      if (!objects::is_damaged(matches.error())) return matches.error();
      for (uint64_t first = 0; first < downloads_[number].bytes; first += kPieceBytes)
        again.push_back({number, first});
    }
    TRY(fetch_pieces(again));
    for (const auto& [number, verifier] : verifiers_) TRY(named(number, verifier->finish()));
    return {};
  }

 private:
  struct Piece {
    size_t download;
    std::optional<uint64_t> first;  // byte of a piece; nothing: the whole object
  };

  // Makes directories, and files that are written in pieces, at their full length.
  Result<void> prepare() {
    std::set<std::string> parents;
    for (size_t i = 0; i < downloads_.size(); ++i) {
      const auto& download = downloads_[i];
      const size_t slash = download.path.rfind('/');
      if (slash != std::string::npos && parents.insert(download.path.substr(0, slash)).second) {
        TRY(directory_.make(download.path.substr(0, slash)));
      }
      if (download.bytes <= kPieceBytes || download.etag.empty()) {
        pieces_.push_back({i, {}});
        continue;
      }
      const auto file = TRY(directory_.create_file(download.path, os::IfThere::truncate));
      if (::ftruncate(file.descriptor(), static_cast<off_t>(download.bytes)) != 0)
        return from_errno("writing " + download.path);
      verifiers_.emplace_back(i, std::nullopt);
      for (uint64_t first = 0; first < download.bytes; first += kPieceBytes)
        pieces_.push_back({i, first});
    }
    return {};
  }

  // Reads the checksums of the objects that are fetched in pieces: stores send none with a range.
  // Keeps the verifiers of those that have a CRC of all their bytes.
  Result<void> read_checksums() {
    TRY(os::for_each_in_parallel(verifiers_.size(), kFetchesMax, [&](size_t i) -> Result<void> {
      auto& [number, verifier] = verifiers_[i];
      const auto& download = downloads_[number];
      TRY(interruption_.check());
      const auto info = TRY(named(number, objects_.head(download.bucket, download.key)));
      TRY(named(number, check_version(download, info)));
      if (info.bytes == download.bytes) verifier = objects::RangedVerifier::make(info, kPieceBytes);
      return {};
    }));
    std::erase_if(verifiers_, [](const auto& each) { return !each.second; });
    return {};
  }

  Result<void> fetch_pieces(const std::vector<Piece>& pieces) {
    return os::for_each_in_parallel(pieces.size(), kFetchesMax, [&](size_t i) {
      const Piece piece = pieces[i];
      return named(piece.download, piece.first ? fetch_piece(piece.download, *piece.first)
                                               : objects::repeat_if_damaged(
                                                     [&] { return fetch_whole(piece.download); }));
    });
  }

  Result<void> fetch_whole(size_t number) {
    const auto& download = downloads_[number];
    const auto reader = TRY(objects_.get(download.bucket, download.key));
    const auto file = TRY(directory_.create_file(download.path, os::IfThere::truncate));
    return copy(*reader, file, 0, download.path, nullptr);
  }

  Result<void> fetch_piece(size_t number, uint64_t first) {
    const auto& download = downloads_[number];
    const objects::Range range{first, std::min(first + kPieceBytes, download.bytes) - 1, {}};
    const auto reader = TRY(objects_.get(download.bucket, download.key, range));
    TRY(check_version(download, reader->info()));
    const auto file = TRY(directory_.create_file(download.path, os::IfThere::keep_content));
    const auto verifier =
        std::lower_bound(verifiers_.begin(), verifiers_.end(), number,
                         [](const auto& each, size_t n) { return each.first < n; });
    if (verifier == verifiers_.end() || verifier->first != number)
      return copy(*reader, file, first, download.path, nullptr);
    const auto sum = verifier->second->start();
    TRY(copy(*reader, file, first, download.path, sum.get()));
    verifier->second->set(first / kPieceBytes, sum->finish());
    return {};
  }

  // Copies all bytes into the file, from `offset` on, and adds them to `sum`, unless it is nullptr.
  Result<void> copy(objects::Reader& reader, const os::File& file, uint64_t offset,
                    const std::string& path, objects::Checksum* sum) {
    std::vector<char> buffer(kFetchBufferBytes);
    for (;;) {
      TRY(interruption_.check());
      const size_t got = TRY(reader.read(buffer));
      if (got == 0) return {};
      const auto bytes = std::span<const char>(buffer).first(got);
      if (sum != nullptr) sum->add(bytes);
      TRY(write_at(file, bytes, offset, path));
      offset += got;
    }
  }

  static Result<void> check_version(const Download& download, const objects::ObjectInfo& info) {
    if (info.etag == download.etag) return {};
    return unavailable("it was replaced while it was being fetched");
  }
  template <class T>
  Result<T> named(size_t number, Result<T> result) const {
    return std::move(result).in("key " + in_quotes(downloads_[number].key));
  }

  objects::Objects& objects_;
  const std::vector<Download>& downloads_;
  const Tree& directory_;
  const Interruption& interruption_;
  std::vector<Piece> pieces_;
  // Downloads that are fetched in pieces, by their numbers.
  std::vector<std::pair<size_t, std::optional<objects::RangedVerifier>>> verifiers_;
};

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
  return Fetches(objects, downloads, directory, interruption).run();
}

}  // namespace trainyard::agent
