#include "mount/name_tree.hpp"

#include <algorithm>

#include "base/arithmetic.hpp"
#include "base/text.hpp"

namespace trainyard::mount {
namespace {

Error clash(const MountedObject& object) {
  return invalid("the key '" + shorten(to_utf8(object.key), 200) +
                 "' is the same file as another key, or a file where another key has a directory");
}

// Compares paths by their parts: "a/b" is directly below "a", before "a.csv".
bool before(const MountedObject& a, const MountedObject& b) {
  return std::ranges::lexicographical_compare(a.path, b.path, [](char x, char y) {
    const auto rank = [](char c) { return c == '/' ? 0 : 1 + int(uint8_t(c)); };
    return rank(x) < rank(y);
  });
}

}  // namespace

// Adds an object. Objects are added in the order of their paths, so a new node is the last child of
// its parent. `branch`: the nodes from the root to the previous file.
Result<void> NameTree::add(uint32_t index, std::vector<Number>& branch) {
  const std::string_view path = objects_[index].path;
  const auto parts = split(path, '/');
  size_t depth = 0;
  while (depth + 1 < branch.size() && depth < parts.size() &&
         nodes_[branch[depth + 1]].name == parts[depth])
    ++depth;
  if (depth == parts.size() || nodes_[branch[depth]].object) return clash(objects_[index]);
  branch.resize(depth + 1);
  for (; depth < parts.size(); ++depth) {
    const auto number = static_cast<Number>(nodes_.size());
    nodes_.push_back({parts[depth], branch.back(), {}, {}});
    nodes_[branch.back()].children.push_back(number);
    branch.push_back(number);
  }
  nodes_.back().object = index;
  bytes_ = saturating_add(bytes_, objects_[index].bytes);
  return {};
}

Result<NameTree> NameTree::make(std::vector<MountedObject> objects) {
  NameTree tree;
  tree.objects_ = std::move(objects);
  std::sort(tree.objects_.begin(), tree.objects_.end(), before);
  tree.nodes_.push_back({});
  std::vector<Number> branch{kRoot};
  for (uint32_t index = 0; index < tree.objects_.size(); ++index) TRY(tree.add(index, branch));
  return tree;
}

std::optional<NameTree::Number> NameTree::child(const Node& directory,
                                                std::string_view name) const {
  const auto& all = directory.children;
  const auto at = std::lower_bound(all.begin(), all.end(), name, [&](Number each, auto wanted) {
    return nodes_[each].name < wanted;
  });
  if (at == all.end() || nodes_[*at].name != name) return {};
  return *at;
}

}  // namespace trainyard::mount
