#include "sim/simulated_files.hpp"

#include <algorithm>
#include <cerrno>

namespace trainyard::sim {
namespace {

constexpr uint64_t kUnreadableOneIn = 30;
constexpr uint64_t kFaultOneIn = 80;  // often enough that some agents of each cluster see one

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

class SimulatedFiles::Appender final : public AppendFile {
 public:
  Appender(SimulatedFiles& files, std::shared_ptr<Node> node, std::string path)
      : files_(files), node_(std::move(node)), path_(std::move(path)) {}

  Result<void> append(std::string_view bytes) override {
    return files_.append(*node_, bytes, path_);
  }
  Result<void> truncate(uint64_t bytes) override {
    if (files_.dies()) throw ProcessKilled{"before it cuts off " + path_};
    if (const int failed = files_.fault()) return from_errno("cutting " + path_, failed);
    FileChange change{bytes, "", true};
    apply_change(change, node_->now);
    node_->unsynced.push_back(std::move(change));
    return {};
  }
  Result<void> sync() override {
    if (files_.dies()) throw ProcessKilled{"before it syncs " + path_};
    if (const int failed = files_.fault()) return from_errno("syncing " + path_, failed);
    for (const FileChange& change : node_->unsynced) apply_change(change, node_->synced);
    node_->unsynced.clear();
    return {};
  }

 private:
  SimulatedFiles& files_;
  const std::shared_ptr<Node> node_;  // shared with the names of the file
  const std::string path_;
};

int SimulatedFiles::fault() {
  if (halted) return EIO;
  if (reliable || !world_.fault(kFaultOneIn)) return 0;
  return world_.random.chance(2) ? ENOSPC : EIO;
}

void SimulatedFiles::make(const NameChange& change, Names& names) {
  if (!change.removed.empty()) names.erase(change.removed);
  if (!change.added.empty()) names[change.added] = change.node;
}

void SimulatedFiles::change_name(NameChange change) {
  make(change, names_);
  unsynced_names_.push_back(std::move(change));
}

void SimulatedFiles::lose_power() {
  Names survivors = synced_names_;
  for (const NameChange& change : unsynced_names_)
    if (world_.random.chance(2)) make(change, survivors);
  unsynced_names_.clear();
  for (auto& [path, node] : survivors) {
    auto survivor = std::make_shared<Node>();
    survivor->synced = survivor->now = survivor_of(world_, node->synced, node->unsynced);
    node = std::move(survivor);
    for (size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1))
      directories_.insert(path.substr(0, slash));
  }
  names_ = synced_names_ = std::move(survivors);
}

Result<SimulatedFiles::Node*> SimulatedFiles::find(const std::string& path) {
  const auto found = names_.find(path);
  if (found == names_.end()) return from_errno("opening " + path, ENOENT);
  return found->second.get();
}

Result<std::shared_ptr<SimulatedFiles::Node>> SimulatedFiles::create(const std::string& path) {
  if (const auto found = names_.find(path); found != names_.end()) return found->second;
  if (!directories_.contains(directory_of(path))) return from_errno("making " + path, ENOENT);
  if (dies()) throw ProcessKilled{"before it makes " + path};
  if (const int failed = fault()) return from_errno("making " + path, failed);
  auto node = std::make_shared<Node>();
  change_name({"", path, node});
  return node;
}

Result<void> SimulatedFiles::append(Node& node, std::string_view bytes, const std::string& path) {
  const bool killed = dies();
  const int failed = killed ? 0 : fault();
  const auto written = killed || failed != 0 ? world_.random.below(bytes.size() + 1) : bytes.size();
  if (written > 0) {
    FileChange change{node.now.size(), std::string(bytes.substr(0, written))};
    apply_change(change, node.now);
    node.unsynced.push_back(std::move(change));
  }
  if (killed) throw ProcessKilled{"while it writes " + path};
  if (failed != 0) return from_errno("writing " + path, failed);
  return {};
}

Result<std::unique_ptr<AppendFile>> SimulatedFiles::open_append(const std::string& path, unsigned) {
  return std::unique_ptr<AppendFile>(std::make_unique<Appender>(*this, TRY(create(path)), path));
}

Result<void> SimulatedFiles::write(const std::string& path, std::string_view bytes, unsigned) {
  const auto node = TRY(create(path));
  FileChange change{0, "", true};
  apply_change(change, node->now);
  node->unsynced.push_back(std::move(change));
  return append(*node, bytes, path);
}

Result<void> SimulatedFiles::rename(const std::string& from, const std::string& to) {
  const auto found = names_.find(from);
  if (found == names_.end()) return from_errno("renaming to " + to, ENOENT);
  if (dies()) throw ProcessKilled{"before it renames " + from};
  if (const int failed = fault()) return from_errno("renaming to " + to, failed);
  change_name({from, to, found->second});
  return {};
}

Result<void> SimulatedFiles::remove(const std::string& path) {
  if (!names_.contains(path) && !halted) return {};
  if (dies()) throw ProcessKilled{"before it removes " + path};
  if (const int failed = fault()) return from_errno("removing " + path, failed);
  change_name({path, "", nullptr});
  return {};
}

Result<void> SimulatedFiles::remove_all(const std::string& path) {
  TRY(remove(path));
  const std::string below = path + "/";
  for (;;) {
    const auto found = names_.lower_bound(below);
    if (found == names_.end() || !found->first.starts_with(below)) break;
    TRY(remove(std::string(found->first)));
  }
  std::erase_if(directories_,
                [&](const auto& each) { return each == path || each.starts_with(below); });
  return {};
}

Result<void> SimulatedFiles::make_directories(const std::string& path, unsigned) {
  if (directories_.contains(path)) return {};
  if (dies()) throw ProcessKilled{"before it makes directory " + path};
  if (const int failed = fault()) return from_errno("making directory " + path, failed);
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    directories_.insert(path.substr(0, slash));
    if (slash == std::string::npos) return {};
  }
}

Result<void> SimulatedFiles::sync_directory(const std::string& path) {
  if (dies()) throw ProcessKilled{"before it syncs " + path};
  if (const int failed = fault()) return from_errno("syncing " + path, failed);
  std::vector<NameChange> others;
  for (NameChange& change : unsynced_names_) {
    const std::string& name = change.added.empty() ? change.removed : change.added;
    if (directory_of(name) == path)
      make(change, synced_names_);
    else
      others.push_back(std::move(change));
  }
  unsynced_names_ = std::move(others);
  return {};
}

Result<std::string> SimulatedFiles::read(const std::string& path, size_t bytes_max) {
  const Node* node = TRY(find(path));
  if (reads_fail && !reliable && world_.fault(kUnreadableOneIn))
    return from_errno("reading " + path, EIO);
  if (node->now.size() > bytes_max) return exhausted("reading " + path + ": larger than the limit");
  return node->now;
}

Result<std::string> SimulatedFiles::read_at(const std::string& path, uint64_t offset,
                                            size_t bytes) {
  const Node* node = TRY(find(path));
  if (offset >= node->now.size()) return std::string();
  return node->now.substr(offset, bytes);
}

Result<std::vector<std::string>> SimulatedFiles::list_directory(const std::string& path) {
  if (!directories_.contains(path)) return from_errno("listing " + path, ENOENT);
  std::set<std::string> names;
  const auto note = [&](const std::string& each) {
    if (each != "/" && directory_of(each) == path) names.insert(each.substr(each.rfind('/') + 1));
  };
  for (const auto& [name, node] : names_) note(name);
  for (const auto& directory : directories_) note(directory);
  return std::vector<std::string>(names.begin(), names.end());
}

bool SimulatedFiles::exists(const std::string& path) {
  return names_.contains(path) || directories_.contains(path);
}

}  // namespace trainyard::sim
