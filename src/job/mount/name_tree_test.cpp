#include "mount/name_tree.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "base/text.hpp"

namespace trainyard::mount {
namespace {

MountedObject object(const std::string& path) { return {"b", "in/" + path, path, 1, "v1", 0}; }

// All paths, with a '/' behind directories.
std::set<std::string> walk(const NameTree& tree, NameTree::Number number = 0,
                           const std::string& above = "") {
  std::set<std::string> all;
  for (const auto child : tree.find(number)->children) {
    const auto* node = tree.find(child);
    EXPECT_EQ(node->parent, number);
    EXPECT_EQ(tree.child(*tree.find(number), node->name), child);
    const std::string path = above + std::string(node->name);
    all.insert(node->object ? path : path + "/");
    if (node->object) {
      EXPECT_EQ(tree.object(*node->object).path, path);
    }
    all.merge(walk(tree, child, path + "/"));
  }
  return all;
}

TEST(NameTree, HasDirectoriesAndFiles) {
  const auto tree = *NameTree::make(
      {object("b"), object("a/x"), object("a.csv"), object("a/y/z"), object("a-b")});
  EXPECT_EQ(walk(tree), (std::set<std::string>{"a/", "a/x", "a/y/", "a/y/z", "a.csv", "a-b", "b"}));
  EXPECT_FALSE(tree.child(*tree.find(0), "a/x"));
  EXPECT_FALSE(tree.child(*tree.find(0), ""));
  EXPECT_EQ(tree.find(tree.size()), nullptr);
  EXPECT_TRUE(walk(*NameTree::make({})).empty());
}

TEST(NameTree, RejectsAFileAndADirectoryOfOneName) {
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"a", "a/b"}, {"a/b", "a/b/c/d"}, {"a", "a"}, {"a/b", "a/b"}}) {
    EXPECT_FALSE(NameTree::make({object(one), object("a.0"), object(other)}));
    EXPECT_FALSE(NameTree::make({object(other), object("a-0"), object(one)}));
  }
}

// The slow, obvious model: sets of paths.
TEST(NameTree, RandomNamesMatchTheModel) {
  std::mt19937 random(16);
  const std::vector<std::string> names{"a", "b", "a.", "a-", "\x01", "\xff\xfe", "aa", "ab c"};
  size_t made = 0;
  for (int history = 0; history < 3000; ++history) {
    std::vector<MountedObject> objects;
    std::set<std::string> files, wanted;
    bool clash = false;
    for (size_t i = random() % 7; i > 0; --i) {
      std::string path = names[random() % names.size()];
      for (size_t depth = random() % 3; depth > 0; --depth)
        path += "/" + names[random() % names.size()];
      clash = clash || !files.insert(path).second;
      objects.push_back(object(path));
    }
    wanted = files;
    for (const auto& path : files)
      for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
        clash = clash || files.contains(path.substr(0, at));
        wanted.insert(path.substr(0, at + 1));
      }
    const auto tree = NameTree::make(objects);
    ASSERT_EQ(static_cast<bool>(tree), !clash);
    if (!tree) continue;
    ++made;
    EXPECT_EQ(walk(*tree), wanted);
    EXPECT_EQ(tree->bytes(), files.size());
  }
  EXPECT_GT(made, 1000u);
}

}  // namespace
}  // namespace trainyard::mount
