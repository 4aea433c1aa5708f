#include "agent/files/tar.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "agent/files/archive_library.hpp"
#include "base/text.hpp"

namespace trainyard::agent {
namespace {

constexpr size_t kBufferBytes = 256 << 10;

struct ArchiveCloser {
  void operator()(struct archive* archive) const { libarchive().archive_free(archive); }
};
struct EntryCloser {
  void operator()(struct archive_entry* entry) const { libarchive().archive_entry_free(entry); }
};
using Archive = std::unique_ptr<struct archive, ArchiveCloser>;
using ArchiveEntry = std::unique_ptr<struct archive_entry, EntryCloser>;

std::string error_text_of(struct archive* archive) {
  const char* message = libarchive().archive_error_string(archive);
  return message != nullptr ? message : "no reason given";
}

class Writer final : public TarWriter {
 public:
  explicit Writer(Sink sink) : sink_(std::move(sink)), archive_(libarchive().archive_write_new()) {}
  ~Writer() override {
    // Freeing the archive would write its end, and an incomplete archive would look complete.
    closed_ = true;
  }

  Result<void> open(Compression compression) {
    auto* archive = archive_.get();
    // The GNU format stores names as bytes, in any locale; libarchive's pax writer fails on names
    // that it cannot translate.
    libarchive().archive_write_set_format_gnutar(archive);
    if (compression == Compression::gzip) {
      libarchive().archive_write_add_filter_gzip(archive);
      libarchive().archive_write_set_filter_option(archive, "gzip", "compression-level", "1");
      libarchive().archive_write_set_filter_option(archive, "gzip", "timestamp",
                                                   nullptr);  // equal files, equal bytes
    }
    libarchive().archive_write_set_bytes_per_block(archive, static_cast<int>(kBufferBytes));
    libarchive().archive_write_set_bytes_in_last_block(archive, 1);
    return answer(
        libarchive().archive_write_open(archive, this, nullptr, &Writer::on_bytes, nullptr));
  }

  Result<void> add(const TarEntry& entry, const Source& content) override {
    const ArchiveEntry header(libarchive().archive_entry_new());
    libarchive().archive_entry_set_pathname(header.get(), entry.name.c_str());
    libarchive().archive_entry_set_mtime(header.get(), entry.modified, 0);
    libarchive().archive_entry_set_perm(header.get(), entry.mode & 0777);
    switch (entry.type) {
      case TarEntry::Type::file:
        libarchive().archive_entry_set_filetype(header.get(), AE_IFREG);
        libarchive().archive_entry_set_size(header.get(), static_cast<int64_t>(entry.bytes));
        break;
      case TarEntry::Type::directory:
        libarchive().archive_entry_set_filetype(header.get(), AE_IFDIR);
        break;
      case TarEntry::Type::link:
        libarchive().archive_entry_set_filetype(header.get(), AE_IFLNK);
        libarchive().archive_entry_set_symlink(header.get(), entry.link_target.c_str());
        break;
    }
    TRY(answer(libarchive().archive_write_header(archive_.get(), header.get())));
    if (entry.type == TarEntry::Type::file) {
      uint64_t rest = entry.bytes;
      while (rest > 0) {
        const size_t wanted = static_cast<size_t>(std::min<uint64_t>(rest, buffer_.size()));
        const size_t got = TRY(content(std::span(buffer_.data(), wanted)));
        if (got == 0) break;  // the file became shorter: the rest is zeros
        if (libarchive().archive_write_data(archive_.get(), buffer_.data(), got) < 0)
          return answer(ARCHIVE_FATAL);
        rest -= got;
      }
    }
    return answer(libarchive().archive_write_finish_entry(archive_.get()));
  }

  Result<void> finish() override {
    return answer(libarchive().archive_write_close(archive_.get()));
  }

 private:
  static la_ssize_t on_bytes(struct archive* archive, void* self, const void* bytes, size_t size) {
    auto& writer = *static_cast<Writer*>(self);
    if (writer.closed_) return static_cast<la_ssize_t>(size);
    auto taken = writer.sink_({static_cast<const char*>(bytes), size});
    if (taken) return static_cast<la_ssize_t>(size);
    libarchive().archive_set_error(archive, EIO, "%s", taken.error().message.c_str());
    if (!writer.sink_error_) writer.sink_error_ = taken.error();
    return -1;
  }

  Result<void> answer(int code) {
    if (sink_error_) return *sink_error_;
    if (code >= ARCHIVE_WARN) return {};
    return internal("writing a tar: " + error_text_of(archive_.get()));
  }

  const Sink sink_;
  std::optional<Error> sink_error_;
  bool closed_ = false;
  std::vector<char> buffer_ = std::vector<char>(kBufferBytes);
  Archive archive_;
};

}  // namespace

Result<std::unique_ptr<TarWriter>> write_tar(Compression compression, Sink sink) {
  auto writer = std::make_unique<Writer>(std::move(sink));
  TRY(writer->open(compression));
  return std::unique_ptr<TarWriter>(std::move(writer));
}

}  // namespace trainyard::agent
