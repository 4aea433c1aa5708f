#include "cli/source_archive.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.hpp"

namespace trainyard::cli {
namespace {

constexpr size_t kBlockBytes = 512;
constexpr size_t kHeaderNameMax = 100;  // of a header; longer names have a pax header before it
constexpr size_t kPathBytesMax = 4096;
constexpr int64_t kTarFileBytesMax = 077777777777;  // eleven octal digits
constexpr int kGzip = 16;  // added to zlib's window bits: gzip's header instead of zlib's
constexpr int kWindowBits = 15;
constexpr int kMemoryLevel = 8;  // zlib's default

// A header of the ustar format; docs/formats of POSIX name its fields.
std::string header_of(const std::string& name, uint32_t mode, int64_t bytes, int64_t modified,
                      char type) {
  std::array<char, kBlockBytes> block{};
  // The byte after the digits stays zero.
  const auto octal = [&](size_t at, size_t digits, int64_t number) {
    for (; digits > 0; number /= 8) block[at + --digits] = char('0' + number % 8);
  };
  name.copy(block.data(), kHeaderNameMax);
  octal(100, 7, mode & 07777);
  octal(108, 7, 0);  // owner and group: root, as the SDK's archives have after extraction
  octal(116, 7, 0);
  octal(124, 11, bytes);
  octal(136, 11, std::clamp<int64_t>(modified, 0, kTarFileBytesMax));
  block[156] = type;
  std::memcpy(block.data() + 257, "ustar\00000", 8);
  // The checksum counts its own field as blanks.
  std::memset(block.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  octal(148, 6, sum);
  block[154] = '\0';
  return {block.data(), block.size()};
}

std::string padding_of(int64_t bytes) {
  return std::string(size_t((kBlockBytes - size_t(bytes) % kBlockBytes) % kBlockBytes), '\0');
}

// "27 path=src/train.py\n", where 27 is the length of the whole record.
std::string pax_record(const std::string& name) {
  const std::string rest = " path=" + name + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length)
    length = std::to_string(length).size() + rest.size();
  return std::to_string(length) + rest;
}

class GzippedTar final : public SourceArchive {
 public:
  explicit GzippedTar(Sink sink) : sink_(std::move(sink)) {
    CHECK(deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowBits + kGzip,
                       kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK,
          "the parameters are valid");
  }
  ~GzippedTar() override { deflateEnd(&stream_); }

  Result<void> add(const PackedFile& file) override {
    CHECK(left_ == 0, "the previous file is complete");
    if (file.name.empty() || file.name.size() > kPathBytesMax)
      return invalid("the path of a source file has 1 to " + std::to_string(kPathBytesMax) +
                     " bytes: " + file.name.substr(0, kHeaderNameMax));
    if (file.bytes > kTarFileBytesMax)
      return invalid(file.name + " is too large for an archive: at most " +
                     std::to_string(kTarFileBytesMax) + " bytes");
    TRY(end_of_file());
    if (file.name.size() > kHeaderNameMax) {
      const std::string record = pax_record(file.name);
      TRY(put(header_of("pax", 0644, int64_t(record.size()), 0, 'x') + record +
              padding_of(int64_t(record.size()))));
    }
    left_ = last_bytes_ = file.bytes;
    return put(header_of(file.name, file.mode, file.bytes, file.modified, '0'));
  }

  Result<void> write(std::string_view bytes) override {
    CHECK(int64_t(bytes.size()) <= left_, "the file has at most the bytes of its header");
    left_ -= int64_t(bytes.size());
    return put(bytes);
  }

  Result<void> finish() override {
    CHECK(left_ == 0, "the last file is complete");
    TRY(end_of_file());
    TRY(put(std::string(2 * kBlockBytes, '\0')));
    return compress({}, Z_FINISH);
  }

 private:
  Result<void> end_of_file() {
    const std::string padding = padding_of(last_bytes_);
    last_bytes_ = 0;
    return put(padding);
  }
  Result<void> put(std::string_view bytes) { return compress(bytes, Z_NO_FLUSH); }

  Result<void> compress(std::string_view bytes, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = uInt(bytes.size());
    std::array<char, 64 << 10> out;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out.data());
      stream_.avail_out = uInt(out.size());
      const int status = deflate(&stream_, flush);
      CHECK(status != Z_STREAM_ERROR, "the stream is consistent");
      const size_t made = out.size() - stream_.avail_out;
      if (made > 0) TRY(sink_({out.data(), made}));
    } while (stream_.avail_out == 0);
    return {};
  }

  Sink sink_;
  z_stream stream_{};
  int64_t left_ = 0;        // of the current file's content
  int64_t last_bytes_ = 0;  // of the current file, for its padding
};

}  // namespace

std::unique_ptr<SourceArchive> SourceArchive::open(Sink sink) {
  return std::make_unique<GzippedTar>(std::move(sink));
}

}  // namespace trainyard::cli
