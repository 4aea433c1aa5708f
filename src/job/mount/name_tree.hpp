// NameTree is the tree of a mount's names: directories, and files that are one version of an object
// each.
//
// Threads: immutable once made. Errors: invalid: two objects are one file, or a file is another's
// directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::mount {

struct MountedObject {
  std::string bucket;
  std::string key;
  std::string path;  // below the mount: "a/b.csv", without empty parts, "." and ".."
  uint64_t bytes = 0;
  std::string etag;  // the version that is read
  int64_t modified_seconds = 0;
};

class NameTree {
 public:
  using Number = uint32_t;
  static constexpr Number kRoot = 0;

  struct Node {
    std::string_view name;  // a part of an object's path
    Number parent = kRoot;
    std::optional<uint32_t> object;  // of a file; nullopt: a directory
    std::vector<Number> children;    // ordered by name
  };

  // Requires: paths as above.
  static Result<NameTree> make(std::vector<MountedObject> objects);
  NameTree(NameTree&&) = default;

  // Returns nullptr if the number is not in the tree.
  const Node* find(uint64_t number) const {
    return number < nodes_.size() ? &nodes_[number] : nullptr;
  }
  std::optional<Number> child(const Node& directory, std::string_view name) const;
  const MountedObject& object(uint32_t index) const { return objects_[index]; }
  const std::vector<MountedObject>& objects() const { return objects_; }  // ordered by path
  size_t size() const { return nodes_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  NameTree() = default;
  Result<void> add(uint32_t index, std::vector<Number>& branch);

  std::vector<MountedObject> objects_;  // ordered by path
  std::vector<Node> nodes_;
  uint64_t bytes_ = 0;
};

}  // namespace trainyard::mount
