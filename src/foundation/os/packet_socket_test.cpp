#include "os/packet_socket.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace trainyard::os {
namespace {

TEST(PacketSocket, TransfersWholePacketsWithDescriptors) {
  auto made = PacketSocket::pair();
  ASSERT_TRUE(made);
  const PacketSocket theirs(std::move(made->second));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const File reading(ends[0]);
  File writing(ends[1]);
  ASSERT_TRUE(made->first.send("one", writing.descriptor()));
  writing.close();
  ASSERT_TRUE(made->first.send("two"));
  auto first = theirs.receive(1s);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->bytes, "one");
  ASSERT_EQ(::write((*first)->descriptor.descriptor(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(reading.descriptor(), &byte, 1), 1);
  const auto second = theirs.receive(1s);
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->bytes, "two");
  EXPECT_FALSE((*second)->descriptor);
  const auto none = theirs.receive(0ms);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(PacketSocket, ReportsTooLongPacketsAndAClosedPeer) {
  auto made = PacketSocket::pair();
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->first.send(std::string(kPacketBytesMax, 'x')));
  EXPECT_EQ(made->first.send(std::string(kPacketBytesMax + 1, 'x')).error().kind, Kind::exhausted);
  {
    const PacketSocket theirs(std::move(made->second));
    const auto whole = theirs.receive(1s);
    ASSERT_TRUE(whole && *whole);
    EXPECT_EQ((*whole)->bytes.size(), kPacketBytesMax);
  }
  EXPECT_EQ(made->first.receive(1s).error().kind, Kind::cancelled);
  EXPECT_EQ(made->first.send("x").error().kind, Kind::cancelled);
}

}  // namespace
}  // namespace trainyard::os
