#include "protocol/gzip.hpp"

#include <zlib.h>

#include <algorithm>

namespace trainyard::api {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, with a gzip header
// The bytes inflated at a time; small, so that a gzip bomb is detected early.
constexpr size_t kStepBytes = 64 << 10;

struct Inflater {
  z_stream stream{};
  ~Inflater() { inflateEnd(&stream); }
};

}  // namespace

Result<std::string> gunzip(std::string_view bytes, size_t bytes_max) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return internal("zlib cannot be initialised");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  std::string out;
  for (;;) {
    const size_t done = out.size();
    out.resize(std::min(done + kStepBytes, bytes_max + 1));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = uInt(out.size() - done);
    const int code = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (out.size() > bytes_max)
      return exhausted("the body unpacks to more than " + std::to_string(bytes_max) + " bytes");
    if (code == Z_STREAM_END) break;
    if (code != Z_OK) return invalid("the body is not gzip, as its Content-Encoding says");
  }
  if (stream.avail_in != 0) return invalid("the gzip body has bytes after its end");
  return out;
}

}  // namespace trainyard::api
