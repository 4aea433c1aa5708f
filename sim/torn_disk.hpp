// TornDisk is a disk in memory beneath SQLite that may lose power: any part of the unsynced writes
// survives, in any order, and a write may be torn between sectors. Synced data survives completely.
//
// While it exists, it is the default file system of SQLite, so the real ledger runs on it with its
// own journal. After lose_power(), programs continue without noticing, but their writes have no
// effect: the surviving data is fixed, and visible after power_on().
//
// Threads: one. Lifetime: outlives all connections; one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/torn_writes.hpp"
#include "sim/world.hpp"

namespace trainyard::sim {

class TornDisk {
 public:
  explicit TornDisk(World& world);
  ~TornDisk();
  TornDisk(const TornDisk&) = delete;

  void lose_power();
  // Loses power at the steps-th write, sync or truncation from now on; 0: never.
  void lose_power_after(uint64_t steps) { steps_left_ = steps; }
  bool power_lost() const { return power_lost_; }
  // Requires: no file is open.
  void power_on();

  struct Hooks;  // the interface to SQLite, in torn_disk.cpp

 private:
  struct File;

  void step();

  World& world_;
  // Shared with the connections that have the files open.
  std::map<std::string, std::shared_ptr<File>> files_;
  std::map<std::string, std::string> survivors_;  // the files after the power failure
  bool power_lost_ = false;
  uint64_t steps_left_ = 0;
  std::unique_ptr<Hooks> hooks_;
};

}  // namespace trainyard::sim
