// Reads archives for tar.hpp.

#include <cerrno>
#include <vector>

#include "agent/files/archive_library.hpp"
#include "agent/files/tar.hpp"
#include "base/text.hpp"

namespace trainyard::agent {
namespace {

constexpr size_t kReadBufferBytes = 256 << 10;

struct ReadArchiveCloser {
  void operator()(struct archive* archive) const { libarchive().archive_free(archive); }
};

class Reader final : public TarReader {
 public:
  explicit Reader(Source source)
      : source_(std::move(source)), archive_(libarchive().archive_read_new()) {}

  Result<void> open(Compression compression) {
    libarchive().archive_read_support_format_tar(archive_.get());
    if (compression == Compression::gzip)
      libarchive().archive_read_support_filter_gzip(archive_.get());
    libarchive().archive_read_support_format_empty(archive_.get());
    return check(libarchive().archive_read_open(archive_.get(), this, nullptr,
                                                &Reader::read_callback, nullptr));
  }

  Result<std::optional<TarEntry>> next() override {
    struct archive_entry* header = nullptr;
    const char* name = nullptr;
    do {
      const int code = libarchive().archive_read_next_header(archive_.get(), &header);
      if (code == ARCHIVE_EOF) return std::optional<TarEntry>();
      TRY(check(code));
      name = libarchive().archive_entry_pathname(header);
    } while (is_root(name, libarchive().archive_entry_filetype(header)));
    TarEntry entry;
    entry.name = TRY(clean_name(name != nullptr ? name : ""));
    entry.mode = libarchive().archive_entry_perm(header) & 0777;
    entry.modified = libarchive().archive_entry_mtime(header);
    if (libarchive().archive_entry_hardlink(header) != nullptr)
      return corrupt("'" + shorten(entry.name, 200) + "' is a hard link");
    switch (libarchive().archive_entry_filetype(header)) {
      case AE_IFREG: {
        const int64_t bytes = libarchive().archive_entry_size(header);
        if (bytes < 0)
          return corrupt("the entry '" + shorten(entry.name, 200) + "' has an invalid size of " +
                         std::to_string(bytes) + " bytes");
        if (static_cast<uint64_t>(bytes) > kTarFileBytesMax)
          return corrupt("'" + shorten(entry.name, 200) + "' has a declared length of " +
                         human_bytes(static_cast<uint64_t>(bytes)) + "; a file has at most " +
                         human_bytes(kTarFileBytesMax));
        entry.bytes = static_cast<uint64_t>(bytes);
        break;
      }
      case AE_IFDIR:
        entry.type = TarEntry::Type::directory;
        break;
      case AE_IFLNK: {
        entry.type = TarEntry::Type::link;
        const char* target = libarchive().archive_entry_symlink(header);
        entry.link_target = target != nullptr ? target : "";
        if (!link_stays_inside(entry.name, entry.link_target)) {
          return corrupt("'" + shorten(entry.name, 200) +
                         "' is a link that leads out of the archive");
        }
        break;
      }
      default:
        return corrupt("'" + shorten(entry.name, 200) + "' is neither file nor directory nor link");
    }
    return std::optional<TarEntry>(std::move(entry));
  }

  Result<size_t> read(std::span<char> buffer) override {
    const la_ssize_t got =
        libarchive().archive_read_data(archive_.get(), buffer.data(), buffer.size());
    if (got < 0) {
      TRY(check(ARCHIVE_FATAL));
      return internal("reading a tar: libarchive returned " + std::to_string(got));
    }
    return static_cast<size_t>(got);
  }

 private:
  static bool is_root(const char* name, unsigned type) {
    const std::string_view text = name != nullptr ? name : "";
    return type == AE_IFDIR && (text == "." || text == "./");
  }

  std::string message() const {
    const char* message = libarchive().archive_error_string(archive_.get());
    return message != nullptr ? message : "no reason given";
  }

  static la_ssize_t read_callback(struct archive* archive, void* self, const void** bytes) {
    auto& reader = *static_cast<Reader*>(self);
    auto got = reader.source_(reader.buffer_);
    if (!got) {
      libarchive().archive_set_error(archive, EIO, "%s", got.error().message.c_str());
      if (!reader.source_error_) reader.source_error_ = got.error();
      return -1;
    }
    *bytes = reader.buffer_.data();
    return static_cast<la_ssize_t>(*got);
  }

  Result<void> check(int code) {
    if (source_error_) return *source_error_;
    if (code >= ARCHIVE_WARN) return {};
    return corrupt("reading a tar: " + message());
  }

  const Source source_;
  std::optional<Error> source_error_;
  std::vector<char> buffer_ = std::vector<char>(kReadBufferBytes);
  std::unique_ptr<struct archive, ReadArchiveCloser> archive_;
};

}  // namespace

Result<std::unique_ptr<TarReader>> read_tar(Source source, Compression compression) {
  auto reader = std::make_unique<Reader>(std::move(source));
  TRY(reader->open(compression));
  return std::unique_ptr<TarReader>(std::move(reader));
}

Result<std::string> clean_name(std::string_view name) {
  if (name.starts_with('/')) return corrupt("the name '" + shorten(name, 200) + "' is absolute");
  if (name.find('\0') != std::string_view::npos)
    return corrupt("reading a tar: the name of an entry contains NUL");
  std::string clean;
  for (const auto part : split(name, '/')) {
    if (part == "..")
      return corrupt("the name '" + shorten(name, 200) + "' leads out of the archive");
    if (part.empty() || part == ".") continue;
    if (!clean.empty()) clean += '/';
    clean += part;
  }
  if (clean.empty()) return corrupt("reading a tar: the name of an entry is empty");
  return clean;
}

bool link_stays_inside(std::string_view name, std::string_view target) {
  if (target.empty() || target.starts_with('/')) return false;
  // `depth` is the depth of the link's folder, then of the path along its target. Going up through
  // another link could leave the root, so ".." is allowed only at the start of the target.
  int depth = 0;
  for (const auto part : split(name, '/')) depth += part.empty() || part == "." ? 0 : 1;
  --depth;
  bool descended = false;
  for (const auto part : split(target, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (descended || --depth < 0) return false;
    } else {
      descended = true;
    }
  }
  return true;
}

}  // namespace trainyard::agent
