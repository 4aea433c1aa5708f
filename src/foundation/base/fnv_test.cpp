#include "base/fnv.hpp"

#include <gtest/gtest.h>

#include <array>

namespace trainyard {
namespace {

// Test vectors published by the authors.
TEST(Fnv1a, MatchesPublishedVectors) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

TEST(Fnv1a, HashesTextInParts) {
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
  EXPECT_EQ(fnv1a(std::as_bytes(std::span(std::string_view("foobar")))), fnv1a("foobar"));
}

}  // namespace
}  // namespace trainyard
