#include "schedule/free_capacity.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"
#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

std::vector<Share> totals(const std::vector<Machine>& machines) {
  std::vector<Share> shares;
  for (const Machine& machine : machines) shares.push_back(machine.total);
  return shares;
}
Gang gang(uint32_t hosts, double cpus) { return {{{share(cpus), hosts}}, hosts, hosts * cpus, ""}; }

// Two racks of four machines in each of two rows; box-0 .. box-15 have four vCPU each.
std::vector<Machine> two_rows() {
  std::vector<Machine> machines;
  for (int m = 0; m < 16; ++m)
    machines.push_back(machine("box-" + std::to_string(m), 4, 100, 0,
                               "row-" + std::to_string(m / 8) + "/rack-" + std::to_string(m / 4)));
  return machines;
}
struct Fixture {
  std::vector<Machine> machines = two_rows();
  Topology topology{machines};
  std::vector<Share> free = totals(machines);
  std::set<uint32_t> place(const Gang& gang) const {
    const auto layout = FreeCapacity(topology, free).place(gang);
    return layout ? std::set<uint32_t>(layout->begin(), layout->end()) : std::set<uint32_t>{};
  }
};
using Machines = std::set<uint32_t>;

TEST(FreeCapacity, PlacesAGangInTheFullestOfTheInnermostDomains) {
  Fixture cluster;
  cluster.free[5].cpus = cluster.free[8].cpus = cluster.free[9].cpus = 0;
  EXPECT_EQ(cluster.place(gang(2, 4)), (Machines{10, 11})) << "the rack with exactly this capacity";
  EXPECT_EQ(cluster.place(gang(3, 4)), (Machines{4, 6, 7}));
  EXPECT_EQ(cluster.place(gang(5, 4)).size(), 5u);
  EXPECT_GE(*cluster.place(gang(5, 4)).begin(), 8u)
      << "no rack holds it, so it is placed in the fuller row";
  EXPECT_EQ(cluster.place(gang(13, 4)).size(), 13u);
  EXPECT_TRUE(cluster.place(gang(14, 4)).empty());
}

TEST(FreeCapacity, PlacesAGangOnFewMachines) {
  Fixture cluster;
  cluster.free[3].cpus = 2;
  EXPECT_EQ(cluster.place(gang(2, 1)), Machines{3})
      << "one machine holds it; here the least is left";
  EXPECT_EQ(cluster.place(gang(4, 1)), Machines{0});
  EXPECT_EQ(cluster.place(gang(6, 1)), (Machines{0, 3}));
}

TEST(FreeCapacity, PlacesDifferentHostsInOneRack) {
  Fixture cluster;
  cluster.free[0].cpus = cluster.free[1].cpus = 1;
  EXPECT_EQ(cluster.place({{{share(4), 2}, {share(1), 2}}, 4, 10, ""}), (Machines{0, 1, 2, 3}));
}

TEST(FreeCapacity, EqualsANewInstanceAfterEachChange) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed);
    Fixture cluster;
    FreeCapacity capacity(cluster.topology, cluster.free);
    for (int step = 0; step < 50; ++step) {
      const Gang requested = gang(uint32_t(1 + random.below(8)), double(1 + random.below(4)));
      const auto kept = capacity.place(requested),
                 fresh = FreeCapacity(cluster.topology, capacity.all()).place(requested);
      ASSERT_EQ(kept, fresh) << "seed " << seed;
      int64_t could = 0;
      for (const Share& free : capacity.all())
        could += times_within(requested.groups[0].share, free);
      EXPECT_EQ(kept.has_value(), could >= requested.hosts) << "seed " << seed;
      EXPECT_EQ(capacity.capacity(requested.groups[0].share), could);
      const auto changed = uint32_t(random.below(16));
      capacity.set(changed, share(double(random.below(5)), 100));
    }
  }
}

TEST(Topology, IsATreeForAnyOrderOfMachines) {
  const std::vector<Machine> machines = {machine("a", 1, 1, 0, "x-y/z"),
                                         machine("b", 1, 1, 0, "x/z"), machine("c", 1, 1, 0, "x"),
                                         machine("d", 1), machine("e", 1, 1, 0, "x/z")};
  const Topology topology(machines);
  ASSERT_EQ(topology.all().size(), 5u) << "the root, x, x/z, x-y, x-y/z";
  EXPECT_EQ(topology.machines(Topology::kRoot).size(), 5u);
  EXPECT_EQ(topology.of(1), topology.of(4));
  EXPECT_EQ(topology.machines(topology.of(1)).size(), 2u);
  EXPECT_EQ(topology.machines(topology.of(2)).size(), 3u) << "x and the domains in it";
  EXPECT_EQ(topology.of(3), Topology::kRoot);
  EXPECT_EQ(topology.all()[topology.of(1)].parent, topology.of(2));
  EXPECT_EQ(topology.machines(topology.of(0)).size(), 1u);
}

}  // namespace
}  // namespace trainyard::schedule
