// Reads mounted objects through the kernel. Without root and /dev/fuse these tests are skipped.
#include "mount/read_only_mount.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>

#include "objects/memory.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/mounts.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::mount {
namespace {

class Lines {
 public:
  void add(const std::string& line) {
    const MutexLock lock(mutex_);
    all_ += line + "\n";
  }
  std::string all() {
    const MutexLock lock(mutex_);
    return all_;
  }

 private:
  Mutex mutex_;
  std::string all_ GUARDED_BY(mutex_);
};

std::string random_bytes(uint64_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (auto& each : bytes) each = static_cast<char>(random());
  return bytes;
}

class MountTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !os::File(::open("/dev/fuse", O_RDWR | O_CLOEXEC)))
      GTEST_SKIP() << "needs root and /dev/fuse";
    ASSERT_TRUE(objects_->create_bucket("data", "eu-west-1"));
  }
  void put(const std::string& path, const std::string& content) {
    ASSERT_TRUE(objects::write_all(*objects_, "data", "in/" + path, content));
  }
  void mount(bool with_cache = true, MountModes modes = {}) {
    std::vector<MountedObject> objects;
    const auto page = objects_->list("data", {"in/", "", "", 1000});
    for (const auto& each : page->objects)
      objects.push_back({"data", each.key, each.key.substr(3), each.bytes, each.etag, 1000});
    mount_.reset();
    source_.reset();
    cache_ = *cache::BlockCache::open({directory_.path() + "/blocks", 1 << 30, 0});
    source_ = std::make_unique<BlockSource>(*objects_, with_cache ? cache_.get() : nullptr, clock_,
                                            SourceSettings{"http://e", 4, Duration(0), Duration(0)},
                                            [this](const std::string& line) { lines_.add(line); });
    auto made = ReadOnlyMount::make(
        directory_.path() + "/mount", "train", *NameTree::make(std::move(objects)), *source_,
        [this](const std::string& line) { lines_.add(line); }, modes);
    ASSERT_TRUE(made) << made.error().message;
    mount_ = *std::move(made);
  }
  std::string path(const std::string& name) const { return directory_.path() + "/mount/" + name; }
  // Returns the content, or the error's text.
  std::string read(const std::string& name) const {
    const os::File file(::open(path(name).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::strerror(errno);
    std::string all;
    std::array<char, 100'000> buffer;
    for (;;) {
      const ssize_t got = ::read(file.descriptor(), buffer.data(), buffer.size());
      if (got < 0) return std::strerror(errno);
      if (got == 0) return all;
      all.append(buffer.data(), size_t(got));
    }
  }

  os::TemporaryDirectory directory_;
  os::MachineClock clock_;
  os::MachineRandom random_;
  std::unique_ptr<objects::Objects> objects_ = objects::make_memory(clock_, random_);
  Lines lines_;
  std::unique_ptr<cache::BlockCache> cache_;
  std::unique_ptr<BlockSource> source_;
  std::unique_ptr<ReadOnlyMount> mount_;
};

TEST_F(MountTest, ShowsTheListedFilesReadOnly) {
  const auto large = random_bytes(2 * cache::kBlockBytes + 777, 1);
  put("a/small", "content");
  put("a/empty", "");
  put("large", large);
  mount();
  EXPECT_EQ(read("a/small"), "content");
  EXPECT_EQ(read("a/empty"), "");
  EXPECT_TRUE(read("large") == large);
  EXPECT_EQ(*os::list_directory(path("")), (std::vector<std::string>{"a", "large"}));
  EXPECT_EQ(*os::list_directory(path("a")), (std::vector<std::string>{"empty", "small"}));
  EXPECT_EQ(read("b"), "No such file or directory");
  EXPECT_LT(::open(path("new").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 0);
  EXPECT_EQ(errno, EROFS);
  mount_.reset();
  EXPECT_TRUE(os::list_directory(path(""))->empty());
}

TEST_F(MountTest, ASecondMountReadsFromTheCache) {
  const auto large = random_bytes(cache::kBlockBytes + 1, 2);
  put("large", large);
  mount();
  EXPECT_TRUE(read("large") == large);
  mount();
  EXPECT_TRUE(read("large") == large);
  EXPECT_EQ(cache_->counts().hits, 2u);
  EXPECT_EQ(cache_->counts().kept, 0u);
}

TEST_F(MountTest, AReadOfAReplacedObjectFailsAndIsLogged) {
  put("a", "old");
  put("gone", "old");
  mount(false);
  put("a", "new");
  ASSERT_TRUE(objects_->remove("data", "in/gone"));
  EXPECT_EQ(read("a"), "Input/output error");
  EXPECT_EQ(read("gone"), "Input/output error");
  EXPECT_NE(
      lines_.all().find("cannot read train/a (s3://data/in/a): the object was replaced since"),
      std::string::npos)
      << lines_.all();
  EXPECT_NE(lines_.all().find("cannot read train/gone (s3://data/in/gone): "), std::string::npos)
      << lines_.all();
}

TEST_F(MountTest, ACachedVersionOutlivesItsReplacement) {
  put("a", "old");
  mount();
  EXPECT_EQ(read("a"), "old");
  put("a", "new");
  EXPECT_EQ(read("a"), "old");
}

TEST_F(MountTest, ACachedBlockIsReadOnlyAfterTheStoreAllowedIt) {
  put("a", "of another job");
  mount();
  EXPECT_EQ(read("a"), "of another job");
  mount();
  ASSERT_TRUE(objects_->remove("data", "in/a"));
  EXPECT_EQ(read("a"), "Input/output error");
  EXPECT_GE(cache_->counts().hits, 1u) << "the block is there";
}

TEST_F(MountTest, RandomReadsMatchTheObjects) {
  std::mt19937 random(16);
  std::map<std::string, std::string> model;
  for (int i = 0; i < 6; ++i) {
    const std::string name = "d" + std::to_string(i % 2) + "/f" + std::to_string(i);
    model[name] = random_bytes(random() % (3 * cache::kBlockBytes), unsigned(i));
    put(name, model[name]);
  }
  mount();
  std::vector<std::thread> readers;
  std::atomic<int> wrong = 0;
  for (unsigned seed = 0; seed < 4; ++seed)
    readers.emplace_back([&, seed] {
      std::mt19937 own(seed);
      std::string buffer(300'000, '\0');
      for (int step = 0; step < 200; ++step) {
        const auto& [name, content] = *std::next(model.begin(), long(own() % model.size()));
        const os::File file(::open(path(name).c_str(), O_RDONLY | O_CLOEXEC));
        const uint64_t offset = own() % (content.size() + 1000);
        const size_t size = own() % buffer.size();
        const ssize_t got = ::pread(file.descriptor(), buffer.data(), size, off_t(offset));
        const auto wanted = offset < content.size() ? content.substr(offset, size) : "";
        if (got < 0 || std::string_view(buffer).substr(0, size_t(got)) != wanted) ++wrong;
      }
    });
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(lines_.all(), "");
}

TEST_F(MountTest, ShowsTheOwnerAndTheModesThatAreSet) {
  put("a/b", "content");
  mount(true, {0644, 0755});
  mount_->set_owner(1234, 1235);
  const std::pair<const char*, unsigned> expected[] = {
      {"", S_IFDIR | 0755}, {"a", S_IFDIR | 0755}, {"a/b", S_IFREG | 0644}};
  for (const auto& [name, mode] : expected) {
    struct stat status {};
    ASSERT_EQ(::stat(path(name).c_str(), &status), 0) << name;
    EXPECT_EQ(status.st_mode, mode) << name;
    EXPECT_EQ(status.st_uid, 1234u) << name;
    EXPECT_EQ(status.st_gid, 1235u) << name;
  }
}

TEST_F(MountTest, AWritableLayerDoesNotChangeTheObjects) {
  const auto large = random_bytes(cache::kBlockBytes + 1, 4);
  put("d/large", large);
  put("d/small", "content");
  mount(true, {0644, 0755});
  const std::string target = directory_.path() + "/target";
  const auto made =
      os::mount_overlay(directory_.path() + "/mount", directory_.path() + "/layer", target, false);
  if (!made) GTEST_SKIP() << made.error().message;
  EXPECT_EQ(*os::read_file(target + "/d/small"), "content");
  {
    const os::File file(::open((target + "/d/large").c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::pwrite(file.descriptor(), "new", 3, off_t(cache::kBlockBytes)), 3);
  }
  ASSERT_EQ(::unlink((target + "/d/small").c_str()), 0);
  ASSERT_EQ(::rename((target + "/d").c_str(), (target + "/e").c_str()), 0);
  EXPECT_TRUE(*os::read_file(target + "/e/large") ==
              large.substr(0, cache::kBlockBytes) + std::string("new"));
  EXPECT_EQ(*os::list_directory(target + "/e"), (std::vector<std::string>{"large"}));
  EXPECT_EQ(read("d/small"), "content");
  EXPECT_TRUE(read("d/large") == large);
  EXPECT_TRUE(os::unmount_below(target));
}

TEST_F(MountTest, FilesCanBeMapped) {
  const auto content = random_bytes(cache::kBlockBytes + 5000, 3);
  put("a", content);
  mount();
  const os::File file(::open(path("a").c_str(), O_RDONLY | O_CLOEXEC));
  void* const mapped = ::mmap(nullptr, content.size(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(std::memcmp(mapped, content.data(), content.size()), 0);
  ::munmap(mapped, content.size());
}

}  // namespace
}  // namespace trainyard::mount
