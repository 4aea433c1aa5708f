#include "log_routing/gzip.hpp"

#include <zlib.h>

#include "base/check.hpp"

namespace trainyard::log_routing {
namespace {

constexpr int kGzip = 15 + 16;  // zlib's largest window, with the header of gzip

}  // namespace

std::string gzip(const std::string& text) {
  z_stream stream{};
  CHECK(::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK,
        "zlib starts");
  std::string out(::deflateBound(&stream, uLong(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = uInt(out.size());
  CHECK(::deflate(&stream, Z_FINISH) == Z_STREAM_END, "the bound is large enough");
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

}  // namespace trainyard::log_routing
