// FreeCapacity places gangs on free capacity. It groups machines in classes of equal free share, so
// that a placement costs as many steps as there are classes, not machines.
//
// A single host goes where it leaves the least unused. A gang goes onto one machine if one holds
// it, else into the innermost topology domain that holds it, the fullest of equals, and there on as
// few machines as hold it. Among equal machines the first of the snapshot is taken.
//
// A gang of equal hosts is placed whenever that is possible. A gang of unlike hosts is placed host
// by host, the largest first; if that fails, all layouts are searched, within kLayoutStepsMax.
//
// Threads: confined to one. Private to this module.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "schedule/gang.hpp"
#include "schedule/topology.hpp"

namespace trainyard::schedule {

class FreeCapacity {
 public:
  // Requires: `topology` outlives it.
  FreeCapacity(const Topology& topology, std::vector<Share> free);

  const Share& free(uint32_t machine) const { return free_[machine]; }
  const std::vector<Share>& all() const { return free_; }
  void set(uint32_t machine, const Share& free);

  std::optional<Layout> place(const Gang& gang);
  // Returns the number of single hosts of this share that fit.
  int64_t capacity(const Share& share) const;

 private:
  struct Class {
    Share free;
    std::vector<uint32_t> machines;  // ascending
  };
  // How many hosts of one share fit into each domain. Kept up to date, since most gangs have the
  // request of an earlier one.
  struct Capacity {
    Share share;
    std::vector<int64_t> by_node;
  };
  // Machines that hold the same number of hosts.
  struct Bin {
    int64_t times = 0;
    double size = 0;  // the free capacity of each
    std::vector<uint32_t>::const_iterator begin, end;
  };
  struct HashOfShare {
    size_t operator()(const Share& share) const;
  };
  struct SameShare {
    bool operator()(const Share& a, const Share& b) const { return same(a, b); }
  };
  static constexpr size_t kCapacitiesMax = 16;
  static constexpr size_t kDomainsTriedMax = 16;  // for a gang of unlike hosts

  Class& class_of(const Share& free);
  std::optional<uint32_t> best_for(const Share& share, int64_t times) const;
  const Capacity& capacities(const Share& share);
  std::optional<Layout> place_even(const Share& share, uint32_t hosts);
  std::optional<Layout> place_unlike(const Gang& gang);
  std::vector<uint32_t> nearest(const Gang& gang);
  static Layout pack(std::vector<Bin> bins, uint32_t hosts);
  std::optional<Layout> lay(const Gang& gang, const std::vector<uint32_t>& machines) const;
  std::vector<uint32_t> first_of_each_class(uint32_t count) const;

  const Topology& topology_;
  std::vector<Share> free_;  // by machine
  std::vector<Class> classes_;
  std::vector<uint32_t> class_of_machine_;
  std::unordered_map<Share, uint32_t, HashOfShare, SameShare> known_;
  std::vector<Capacity> capacities_;
};

}  // namespace trainyard::schedule
