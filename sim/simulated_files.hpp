// SimulatedFiles is a file system in memory that is full at times, fails, and loses power. A
// process that writes to it may die in the middle of any change.
//
// When a process ends, all of its completed changes remain, and any beginning of the change in
// progress. After a power failure all synced data remains, and any part of the rest, in any order:
// writes are torn, and the names of new and renamed files are lost unless their directory was
// synced. Directories themselves are never lost.
//
// Threads: one. Lifetime: the world outlives it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "sim/torn_writes.hpp"
#include "sim/world.hpp"

namespace trainyard::sim {

// Thrown when a process is killed in the middle of a change of its files.
struct ProcessKilled {
  std::string where;
};

class SimulatedFiles final : public Files {
 public:
  // Called before each change; true kills the process during the change.
  using Dies = std::function<bool()>;
  SimulatedFiles(World& world, Dies dies) : world_(world), dies_(std::move(dies)) {}

  // While true, nothing fails and no process dies.
  bool reliable = false;
  // While true, every change fails: the process that would make it is dead.
  bool halted = false;
  // Files on a bad disk cannot be read at times.
  bool reads_fail = false;
  // Discards what a power failure destroys. Requires: no process that uses the files is alive.
  void lose_power();

  Result<std::unique_ptr<AppendFile>> open_append(const std::string& path, unsigned mode) override;
  Result<void> write(const std::string& path, std::string_view bytes, unsigned mode) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> remove_all(const std::string& path) override;
  Result<void> make_directories(const std::string& path, unsigned mode) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<std::string> read(const std::string& path, size_t bytes_max) override;
  Result<std::string> read_at(const std::string& path, uint64_t offset, size_t bytes) override;
  Result<std::vector<std::string>> list_directory(const std::string& path) override;
  bool exists(const std::string& path) override;

 private:
  struct Node {
    std::string now;     // as programs see it
    std::string synced;  // as of the last sync
    std::vector<FileChange> unsynced;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;  // by path; shared with the Appenders
  // A file got a name, lost a name, or both.
  struct NameChange {
    std::string removed;  // "": none
    std::string added;    // "": none
    std::shared_ptr<Node> node;
  };
  class Appender;

  // Returns 0, or the errno with which a change fails.
  int fault();
  bool dies() { return !reliable && !halted && dies_ && dies_(); }
  void change_name(NameChange change);
  static void make(const NameChange& change, Names& names);
  Result<Node*> find(const std::string& path);
  Result<std::shared_ptr<Node>> create(const std::string& path);
  Result<void> append(Node& node, std::string_view bytes, const std::string& path);

  World& world_;
  const Dies dies_;
  Names names_, synced_names_;
  std::vector<NameChange> unsynced_names_;
  std::set<std::string> directories_ = {"/"};
};

}  // namespace trainyard::sim
