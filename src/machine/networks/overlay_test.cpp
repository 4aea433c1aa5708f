#include "networks/overlay.hpp"

#include <gtest/gtest.h>

namespace trainyard::networks {
namespace {

TEST(Overlay, FramesWithHeadersFitInAnEthernetPacket) {
  Overlay overlay;
  overlay.name = "tx3fa91c0010";
  overlay.bridge = "ty3fa91c0010";
  overlay.id = 17;
  overlay.own_address = *parse_address("10.0.0.1");
  overlay.links = {"tv3fa91c0012"};
  EXPECT_EQ(overlay_text(overlay),
            "link add tx3fa91c0010 mtu 1450 type vxlan id 17 local 10.0.0.1 dstport 4789\n"
            "link set tv3fa91c0012 mtu 1450\n"
            "link set tx3fa91c0010 master ty3fa91c0010 up\n");
}

TEST(ResolveAddress, ResolvesNamesAndAddresses) {
  EXPECT_EQ(*resolve_address("10.0.0.7"), *parse_address("10.0.0.7"));
  EXPECT_EQ(*resolve_address("localhost"), *parse_address("127.0.0.1"));
  EXPECT_EQ(resolve_address("no-such-machine.invalid").error().kind, Kind::not_found);
}

}  // namespace
}  // namespace trainyard::networks
