// PowerSaving adds and releases machines by Slurm's power saving, which starts a node by Slurm's
// ResumeProgram and stops it by its SuspendProgram.
//
// It remembers each request until Slurm's answer shows it: a node that is requested counts as
// coming, and one that is released is offered no longer.
//
// Threads: confined to one. Errors: those of Slurm.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launch/launcher.hpp"
#include "launch/slurm/node_kinds.hpp"
#include "launch/slurm/slurm.hpp"
#include "launch/slurm/slurm_view.hpp"

namespace trainyard::launch {

// More are powered up by later calls: slurmrestd takes a request for each.
inline constexpr size_t kNodesPoweredAtOnceMax = 100;

class PowerSaving {
 public:
  // `partitions`: nodes outside of them are not used; empty: all are. `note_change`: as
  // SlurmView's.
  PowerSaving(std::vector<SlurmNodeKind> kinds, std::vector<std::string> partitions,
              std::function<uint64_t()> note_change)
      : kinds_(std::move(kinds)),
        partitions_(std::move(partitions)),
        note_change_(std::move(note_change)) {}

  // Applies Slurm's answer. Sets the kinds of the machines that are offered, and leaves out those
  // that are released.
  std::vector<Machine> offer(const SlurmAnswer& answer, std::vector<Machine> machines);
  // Returns the kinds by the last answer. The smallest node of a kind gives its size.
  std::vector<MachineKind> kinds() const;
  // As Launcher's. Nodes that are powering down are powered up later, by a repeated call.
  Result<void> grow(Slurm& slurm, const std::string& kind, uint32_t machines);
  // As Launcher's. Does nothing while the node has jobs of others.
  Result<void> shrink(Slurm& slurm, const std::string& machine);

 private:
  struct Node {
    std::string name;
    NodePower power = NodePower::on;
    bool allocated = false;  // to any job
  };
  struct Known {
    MachineKind shown;
    std::vector<Node> nodes;
    uint32_t offered = 0;  // machines
  };
  struct Request {
    NodePower power = NodePower::on;
    uint64_t change = 0;
  };

  void add(const SlurmNode& node);
  void count(Known& known, uint32_t nodes_max) const;

  const std::vector<SlurmNodeKind> kinds_;
  const std::vector<std::string> partitions_;
  const std::function<uint64_t()> note_change_;
  std::vector<Known> known_;  // by kind, from the last answer
  std::map<std::string, Request> requests_;
};

}  // namespace trainyard::launch
