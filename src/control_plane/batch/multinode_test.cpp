#include "batch/multinode.hpp"

#include <gtest/gtest.h>

namespace trainyard::batch {

using namespace domain;

namespace {

TEST(NodeRanges, AreReadOrRejected) {
  struct Row {
    std::string_view text;
    uint32_t first;
    std::optional<uint32_t> last;
  };
  for (const Row& row : {Row{"0:3", 0, 3}, Row{":3", 0, 3}, Row{"4:", 4, {}}, Row{":", 0, {}},
                         Row{"2", 2, 2}, Row{"0:19", 0, 19}, Row{"7:7", 7, 7}}) {
    const auto range = parse_node_range(row.text);
    ASSERT_TRUE(range) << row.text;
    EXPECT_EQ(range->first, row.first) << row.text;
    EXPECT_EQ(range->last, row.last) << row.text;
  }
  for (const char* text :
       {"", "a", "3:1", "-1:2", "0:1:2", "0:1000", "1000:", "0: 3", "+1:2", "0x1:2"}) {
    const auto range = parse_node_range(text);
    ASSERT_FALSE(range) << text;
    EXPECT_NE(range.error().message.find("targetNodes '"), std::string::npos);
  }
}

TEST(NodeRanges, MustCoverAllNodesAndTheNarrowerOneApplies) {
  struct Row {
    std::vector<const char*> ranges;
    uint32_t nodes;
    std::vector<size_t> by_node;  // empty: rejected
    std::string_view why;
  };
  const Row rows[] = {
      {{"0:3"}, 4, {0, 0, 0, 0}, ""},
      {{"0:"}, 3, {0, 0, 0}, ""},
      {{":1", "2:"}, 4, {0, 0, 1, 1}, ""},
      {{"0:5", "1:4", "2:2"}, 6, {0, 1, 2, 1, 1, 0}, ""},
      {{"2", "0:"}, 4, {1, 1, 0, 1}, ""},
      {{"0:2"}, 4, {}, "node 3 of 4 is in no range"},
      {{"1:3"}, 4, {}, "node 0 of 4 is in no range"},
      {{"0:4"}, 4, {}, "targetNodes '0:4' goes beyond the last of 4 nodes, which is 3"},
      {{"0:1"}, 1, {}, "targetNodes '0:1' goes beyond the last of 1 node, which is 0"},
      {{"0:3", "4:"}, 4, {}, "targetNodes '4:' goes beyond"},
      {{"0:2", "1:3"}, 4, {}, "targetNodes '0:2' and '1:3' overlap"},
      {{"0:3", ":"}, 4, {}, "are the same nodes"},
      {{}, 1, {}, "node 0 of 1 is in no range"},
      {{"0:"}, 0, {}, "numNodes must be between 1 and 1000"},
      {{"0:"}, 1001, {}, "numNodes must be between 1 and 1000"},
  };
  for (size_t i = 0; i < std::size(rows); ++i) {
    std::vector<NodeRange> ranges;
    for (const char* text : rows[i].ranges) ranges.push_back(*parse_node_range(text));
    const auto by_node = nodes_by_range(ranges, rows[i].nodes);
    ASSERT_EQ(bool(by_node), !rows[i].by_node.empty()) << "row " << i;
    if (by_node)
      EXPECT_EQ(*by_node, rows[i].by_node) << "row " << i;
    else
      EXPECT_NE(by_node.error().message.find(rows[i].why), std::string::npos)
          << by_node.error().message;
  }
}

TEST(NodeIds, ConsistOfAJobAndANode) {
  EXPECT_EQ(node_id("4b7d", 3), "4b7d#3");
  using Split = std::pair<std::string, std::optional<HostIndex>>;
  EXPECT_EQ(split_node_id("4b7d#3"), Split("4b7d", 3));
  EXPECT_EQ(split_node_id("4b7d"), Split("4b7d", {}));
  EXPECT_EQ(split_node_id("4b7d#x"), Split("4b7d", kNodesMax)) << "an invalid node";
}

TEST(Nodes, OnlyTheMainHostDecidesTheJob) {
  JobSpec spec;
  spec.groups = {{"0:1", "1 vCPU, 64 MiB", 2}};
  EXPECT_TRUE(spec.decides(0) && spec.decides(1));
  spec.queue.emplace();
  spec.contract = Contract::plain;
  EXPECT_TRUE(spec.decides(0) && spec.decides(1));
  spec.main_node = 1;
  EXPECT_EQ(spec.main_host(), 1u);
  EXPECT_FALSE(spec.decides(0));
  EXPECT_TRUE(spec.decides(1));
}

TEST(Nodes, HaveEqualProgramsAndContainerOptionsAfterWritingAndReading) {
  JobSpec spec;
  spec.queue.emplace();
  spec.contract = Contract::plain;
  spec.main_node = 2;
  InstanceGroup group{"0:2", "1 vCPU, 64 MiB", 3};
  group.program = Program{"machine", {"echo", "a"}, {{"A", "1"}}};
  ContainerOptions& container_options = group.container_options;
  container_options.volumes = {{VolumeKind::shared, "/fsx", "resized", "/data", true, 0},
                               {VolumeKind::own, "scratch", "", "/scratch", false, 0},
                               {VolumeKind::memory, "", "", "/run/small", false, 1 << 20}};
  container_options.limits = {{"nofile", 1024, 4096}};
  container_options.devices = {"/dev/fuse"};
  container_options.shared_memory_bytes = 64 << 20;
  container_options.user = "nobody";
  container_options.read_only_root = true;
  container_options.init = false;
  container_options.log_group = "group";
  container_options.log_prefix = "prefix";
  spec.groups = {group, {"3", "1 vCPU, 64 MiB", 1}};
  const auto read = job_spec_from_json(to_json(spec));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), to_json(spec));
  EXPECT_EQ(read->groups[0].container_options.volumes[0].path, "resized");
  EXPECT_EQ(read->groups[0].program->environment.at("A"), "1");
  EXPECT_EQ(read->groups[0].container_options.init, false);
  EXPECT_EQ(read->groups[1].container_options.init, std::nullopt);
  EXPECT_FALSE(read->groups[1].program);
  EXPECT_EQ(read->main_host(), 2u);
}

TEST(Nodes, LimitsHaveTheKernelsNames) {
  EXPECT_TRUE(is_process_limit("nofile"));
  EXPECT_FALSE(is_process_limit("NOFILE"));
  EXPECT_FALSE(is_process_limit(""));
}

}  // namespace
}  // namespace trainyard::batch
