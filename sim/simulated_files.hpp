// SimulatedFiles is a file system in memory that is full at times, fails, and loses power; a process that writes to it may
// die in the middle of any change.
//
// After the end of a process all of its completed changes are there, and any beginning of the one under way. After a
// power failure there is what was synced, and of the rest any part, in any order: writes are torn, and names of new and
// renamed files are lost unless their directory was synced. Directories themselves are never lost.
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

// A process ended in the middle of a change of its files.
struct ProcessKilled {
  std::string where;
};

class SimulatedFiles final : public Files {
 public:
  // Asked before each change: true kills the process within it.
  using Dies = std::function<bool()>;
  SimulatedFiles(World& world, Dies dies) : world_(world), dies_(std::move(dies)) {}

  // While it is true no change fails and no process dies.
  bool reliable = false;
  // Leaves what survives. Requires: no process that uses the files lives.
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
  // A file got a name, or lost one, or both.
  struct NameChange {
    std::string removed;  // "": none
    std::string added;    // "": none
    std::shared_ptr<Node> node;
  };
  class Appender;

  // 0, or the errno that a change fails with.
  int fault();
  bool dies() { return !reliable && dies_ && dies_(); }
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
