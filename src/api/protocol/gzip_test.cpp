#include "protocol/gzip.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

namespace trainyard::api {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = uInt(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Gzip, UnpacksUpToItsLimit) {
  for (const std::string& text :
       {std::string(), std::string("{\"a\": 1}"), std::string(300'000, 'x')}) {
    EXPECT_EQ(*gunzip(gzip(text), 300'000), text);
    if (!text.empty()) {
      EXPECT_EQ(gunzip(gzip(text), text.size() - 1).error().kind, Kind::exhausted);
    }
  }
}

TEST(Gzip, RejectsIncompleteOrCorruptData) {
  const std::string packed = gzip("some text to pack");
  for (size_t length = 0; length < packed.size(); ++length)
    EXPECT_EQ(gunzip(packed.substr(0, length), 1000).error().kind, Kind::invalid) << length;
  EXPECT_EQ(gunzip(packed + "x", 1000).error().kind, Kind::invalid);
  EXPECT_EQ(gunzip("{\"a\": 1}", 1000).error().kind, Kind::invalid);
  std::string spoilt = packed;
  spoilt[spoilt.size() - 6] ^= 1;
  EXPECT_EQ(gunzip(spoilt, 1000).error().kind, Kind::invalid) << "its checksum is wrong";
}

}  // namespace
}  // namespace trainyard::api
