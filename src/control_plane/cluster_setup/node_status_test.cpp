#include "cluster_setup/node_status.hpp"

#include <gtest/gtest.h>

namespace trainyard::cluster_setup {
namespace {

TEST(NodeStatus, IsReadFromSinfo) {
  const auto nodes = read_node_status(
      "ws1|idle|8|30000|(null)|22.05.8|none\n"
      "ws2|drained*|16|60000|gpu:t4:2(S:0),gpu:a100:1|N/A|fan|broken\n"
      "ws2|drained*|16|60000|gpu:t4:2(S:0),gpu:a100:1|N/A|fan|broken\n");
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(*nodes,
            (std::vector<NodeStatus>{{"ws1", "idle", 8, 30'000, 0, "22.05.8", ""},
                                     {"ws2", "drained*", 16, 60'000, 3, "", "fan|broken"}}));
}

TEST(NodeStatus, RefusesOtherLines) {
  for (const char* bad : {"ws1|idle", "a b|idle|8|1|x|y|z", "ws1|idle|-8|1|x|y|z",
                          "ws1|idle|8|99999999999999|x|y|z", "sinfo: error"})
    EXPECT_FALSE(read_node_status(bad)) << bad;
}

TEST(NodeStatus, CountsNoMoreGpusThanThereCanBe) {
  const auto nodes = read_node_status("ws1|idle|8|1|gpu:9223372036854775807,gpu:-4,nic:2|x|none");
  ASSERT_TRUE(nodes);
  EXPECT_EQ(nodes->front().gpus, 0);
}

}  // namespace
}  // namespace trainyard::cluster_setup
