#include "base/bytes/little_endian.hpp"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(LittleEndian, WritesTheLowByteFirst) {
  std::string bytes = "x";
  append_little_endian(bytes, 0x8001020304, 4);
  EXPECT_EQ(bytes, std::string("x\x04\x03\x02\x01"));
}

TEST(LittleEndian, ReadsWrittenValues) {
  for (const uint64_t value : {uint64_t(0), uint64_t(255), uint64_t(1) << 31, ~uint64_t(0)}) {
    std::string bytes;
    append_little_endian(bytes, value, 8);
    EXPECT_EQ(little_endian(bytes), value);
  }
  EXPECT_EQ(little_endian(""), 0u);
  EXPECT_EQ(little_endian_u32(std::string_view("\x04\x03\x02\x01\xff", 5)), 0x01020304u);
}

}  // namespace
}  // namespace trainyard
