// KeyWalk walks the key tree of a bucket in key order, for listings.
//
// Threads: confined to one. Errors: those of reading directories; describe(): also corrupt.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "objects/directory/names.hpp"
#include "objects/listing.hpp"

namespace trainyard::objects {

class KeyWalk final : public Cursor {
 public:
  using Describe = std::function<Result<std::optional<ObjectInfo>>(const std::string& key)>;

  KeyWalk(std::string root, NamesCache& names, Describe describe)
      : root_(std::move(root)), names_(names), describe_(std::move(describe)) {}

  Result<std::optional<std::string>> at_or_after(const std::string& bound,
                                                 const RollsUp& rolls_up) override;
  Result<std::optional<ObjectInfo>> describe(const std::string& key) override {
    return describe_(key);
  }

 private:
  // A directory on the current path.
  struct Level {
    std::string path;
    std::string prefix;  // common prefix of all keys below it
    std::shared_ptr<const Names> names;
    size_t at = 0;  // index of the next name
  };
  Result<void> descend(std::string path, std::string prefix);

  const std::string root_;
  NamesCache& names_;
  const Describe describe_;
  std::vector<Level> levels_;
};

}  // namespace trainyard::objects
