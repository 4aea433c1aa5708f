#include "remote_write/write_request.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/text.hpp"

namespace trainyard::remote_write {
namespace {

TEST(WriteRequest, IsEncodedAsProtobuf) {
  const std::vector<TimeSeries> one{{{{"__name__", "up"}}, {{1.5, 300}}}};
  EXPECT_EQ(to_hex(encode(one)),
            "0a1e"
            "0a0e0a085f5f6e616d655f5f12027570"
            "120c09000000000000f83f10ac02");
}

TEST(WriteRequest, RoundTrips) {
  const std::vector<TimeSeries> all{
      {{{"__name__", "a"}, {"b", ""}, {"c", "é"}},
       {{0, 0}, {-1e300, -5}, {std::numeric_limits<double>::infinity(), INT64_MAX}}},
      {},
      {{{"x", "y"}}, {}}};
  const auto back = decode(encode(all), {});
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, all);
}

TEST(WriteRequest, SkipsUnknownFields) {
  // Metadata (3), and a varint, a fixed32 and a fixed64 with unknown field numbers.
  const std::string more = *from_hex(
      "1a03616263"
      "5005"
      "5d01020304"
      "610102030405060708");
  const std::vector<TimeSeries> one{{{{"__name__", "up"}}, {{1, 2}}}};
  EXPECT_EQ(*decode(more + encode(one) + more, {}), one);
}

TEST(WriteRequest, RejectsMalformedMessages) {
  for (const char* hex : {"0a", "0a05", "0a0100", "0b", "0a020a05", "00", "0a040a02ffff",
                          "0a060a040a02fffe", "ffffffffffffffffffffff"})
    EXPECT_EQ(decode(*from_hex(hex), {}).error().kind, Kind::invalid) << hex;
}

TEST(WriteRequest, RejectsMessagesBeyondTheLimits) {
  const TimeSeries one{{{"a", "b"}, {"c", "d"}}, {{1, 1}, {2, 2}}};
  const std::string message = encode({one, one});
  EXPECT_TRUE(decode(message, {2, 4, 2, 1}));
  EXPECT_EQ(decode(message, {1, 4, 2, 1}).error().kind, Kind::exhausted);
  EXPECT_EQ(decode(message, {2, 3, 2, 1}).error().kind, Kind::exhausted);
  EXPECT_EQ(decode(message, {2, 4, 1, 1}).error().kind, Kind::exhausted);
  EXPECT_EQ(decode(message, {2, 4, 2, 0}).error().kind, Kind::exhausted);
}

}  // namespace
}  // namespace trainyard::remote_write
