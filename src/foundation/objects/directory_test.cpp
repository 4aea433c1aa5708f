#include "objects/directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "base/random.hpp"
#include "objects/directory/key_path.hpp"
#include "objects/directory/record.hpp"
#include "objects/testing/directory_fixture.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::objects {
namespace {

TEST_F(DirectoryTest, KeepsObjectsAndUploadsAcrossOpenings) {
  open();
  ASSERT_TRUE(objects_->create_bucket("bucket", "eu-west-1"));
  PutOptions options;
  options.metadata["name"] = "value";
  ASSERT_TRUE(write_all(*objects_, "bucket", "a/b", "hello", options));
  const std::string upload = *objects_->start_upload("bucket", "big");
  open();
  EXPECT_EQ(objects_->head_bucket("bucket")->region, "eu-west-1");
  EXPECT_EQ(*read_all(*objects_, "bucket", "a/b", 100), "hello");
  EXPECT_EQ(objects_->head("bucket", "a/b")->metadata.at("name"), "value");
  ASSERT_EQ(objects_->list_uploads("bucket", "")->size(), 1u);
  EXPECT_EQ((*objects_->list_uploads("bucket", ""))[0].upload_id, upload);
}

TEST_F(DirectoryTest, RemoveUnchangedRemovesOnlyTheSeenObject) {
  open();
  ASSERT_TRUE(objects_->create_bucket("bucket", "eu-west-1"));
  const ObjectInfo again = *write_all(*objects_, "bucket", "a/b", "old");
  ObjectInfo seen = again;  // before it was written again
  seen.modified -= 1s;
  const auto refused = objects_->remove_unchanged("bucket", "a/b", seen);
  ASSERT_FALSE(refused) << "written again with the same content";
  EXPECT_TRUE(refused.error().is(Fault::etag_differs));
  ASSERT_TRUE(write_all(*objects_, "bucket", "a/b", "new"));
  EXPECT_FALSE(objects_->remove_unchanged("bucket", "a/b", again));
  EXPECT_EQ(*read_all(*objects_, "bucket", "a/b", 100), "new");
  ASSERT_TRUE(objects_->set_tags("bucket", "a/b", {{"scratch", "yes"}}));
  const ObjectInfo scratch = *objects_->head("bucket", "a/b");
  ASSERT_TRUE(objects_->set_tags("bucket", "a/b", {{"scratch", "no"}}));
  const auto retagged = objects_->remove_unchanged("bucket", "a/b", scratch);
  ASSERT_FALSE(retagged);
  EXPECT_TRUE(retagged.error().is(Fault::etag_differs));
  ASSERT_TRUE(objects_->remove_unchanged("bucket", "a/b", *objects_->head("bucket", "a/b")));
  EXPECT_FALSE(objects_->head("bucket", "a/b"));
  EXPECT_TRUE(objects_->remove_unchanged("bucket", "a/b", seen))
      << "an absent object is not an error";
}

TEST_F(DirectoryTest, RejectsASecondProcess) {
  open();
  const auto second = open_directory(path(), clock_, random_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, Kind::conflict);
}

TEST_F(DirectoryTest, RejectsANewerFormat) {
  open();
  objects_.reset();
  ASSERT_TRUE(os::write_file_durably(path() + "/format", "trainyard objects 3\n"));
  const auto opened = open_directory(path(), clock_, random_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Kind::invalid);
  EXPECT_NE(opened.error().message.find("trainyard objects 3"), std::string::npos);
}

TEST_F(DirectoryTest, UpgradesThePreviousFormat) {
  open();
  objects_.reset();
  ASSERT_TRUE(os::write_file_durably(path() + "/format", "trainyard objects 1\n"));
  open();
  EXPECT_EQ(*os::read_file(path() + "/format"), "trainyard objects 2\n");
}

TEST_F(DirectoryTest, OpeningRemovesFilesThatACrashLeft) {
  open();
  ASSERT_TRUE(objects_->create_bucket("bucket", "r"));
  objects_.reset();
  ASSERT_TRUE(os::write_file(path() + "/temporary/17", "half a put"));
  ASSERT_TRUE(os::make_directories(path() + "/temporary/18/keys"));
  open();
  EXPECT_TRUE(std::filesystem::is_empty(path() + "/temporary"));
  EXPECT_TRUE(objects_->head_bucket("bucket"));
}

TEST_F(DirectoryTest, LeavesNoFileBehind) {
  open();
  ASSERT_TRUE(objects_->create_bucket("bucket", "r"));
  ASSERT_TRUE(write_all(*objects_, "bucket", "a/b/c", "x"));
  ASSERT_TRUE(write_all(*objects_, "bucket", "a/b/c", "y"));
  { auto dropped = objects_->put("bucket", "a/b/d"); }
  const std::string upload = *objects_->start_upload("bucket", "big");
  EXPECT_EQ(files_in("buckets/bucket/keys"), 1u);
  ASSERT_TRUE(objects_->abort_upload("bucket", "big", upload));
  ASSERT_TRUE(objects_->remove("bucket", "a/b/c"));
  EXPECT_TRUE(std::filesystem::is_empty(path() + "/buckets/bucket/keys"))
      << "empty directories are removed too";
  EXPECT_TRUE(std::filesystem::is_empty(path() + "/buckets/bucket/uploads"));
  EXPECT_TRUE(std::filesystem::is_empty(path() + "/temporary"));
}

TEST_F(DirectoryTest, ReportsADamagedFileAsCorruptWithItsKey) {
  open();
  ASSERT_TRUE(objects_->create_bucket("bucket", "r"));
  ASSERT_TRUE(write_all(*objects_, "bucket", "key", std::string(5000, 'x')));
  const auto whole = *os::read_file(file_of("key"));
  const auto damaged = [&](const std::string& bytes) {
    EXPECT_TRUE(os::write_file(file_of("key"), bytes));
    EXPECT_EQ(truncate(file_of("key").c_str(), off_t(bytes.size())), 0);
    const auto read = objects_->get("bucket", "key");
    return !read && read.error().kind == Kind::corrupt &&
           read.error().message.find("okey") != std::string::npos;
  };
  EXPECT_TRUE(damaged(""));
  EXPECT_TRUE(damaged(whole.substr(0, 100)));
  EXPECT_TRUE(damaged(whole.substr(0, whole.size() - 1)));
  EXPECT_TRUE(damaged(whole.substr(1)));
  for (const size_t at : {whole.size() - 1, whole.size() - 10, whole.size() - 14, whole.size() - 22,
                          whole.size() - 30}) {
    std::string flipped = whole;
    flipped[at] = char(flipped[at] ^ 4);
    EXPECT_TRUE(damaged(flipped)) << at;
  }
}

TEST_F(DirectoryTest, ReadingAWholeObjectDetectsAChangedByte) {
  open();
  ASSERT_TRUE(objects_->create_bucket("bucket", "r"));
  PutOptions with_crc;
  with_crc.checksums["crc32c"] = "";
  for (const auto& options : {PutOptions(), with_crc}) {
    ASSERT_TRUE(write_all(*objects_, "bucket", "key", std::string(5000, 'x'), options));
    std::string bytes = *os::read_file(file_of("key"));
    bytes[4321] = 'y';
    ASSERT_TRUE(os::write_file(file_of("key"), bytes));
    const auto whole = read_all(*objects_, "bucket", "key", 10'000);
    ASSERT_FALSE(whole);
    EXPECT_EQ(whole.error().kind, Kind::corrupt);
    const auto reader = objects_->get("bucket", "key", Range{0, 4999, {}});
    std::vector<char> buffer(6000);
    EXPECT_FALSE((*reader)->read(buffer)) << "a range of all bytes is verified too";
  }
}

TEST_F(DirectoryTest, ListsAndOpensDespiteBrokenFiles) {
  open();
  for (const char* bucket : {"bucket", "second"}) ASSERT_TRUE(objects_->create_bucket(bucket, "r"));
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(write_all(*objects_, "bucket", key, "bytes"));
  const std::string upload = *objects_->start_upload("bucket", "big"),
                    broken = *objects_->start_upload("bucket", "bad");
  ASSERT_EQ(truncate(file_of("b").c_str(), 3), 0);
  ASSERT_TRUE(os::write_file_durably(path() + "/buckets/second/bucket", "{"));
  ASSERT_TRUE(
      os::write_file_durably(path() + "/buckets/bucket/uploads/" + broken + "/upload", "{"));
  open();
  const auto page = objects_->list("bucket", {});
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->objects.size(), 3u);
  EXPECT_EQ(page->objects[1].key, "b");
  EXPECT_EQ(objects_->get("bucket", "b").error().kind, Kind::corrupt);
  EXPECT_EQ(*read_all(*objects_, "bucket", "c", 100), "bytes");
  EXPECT_EQ(objects_->list_buckets()->size(), 2u);
  EXPECT_TRUE(write_all(*objects_, "second", "key", "x"));
  const auto uploads = objects_->list_uploads("bucket", "");
  ASSERT_TRUE(uploads) << uploads.error().message;
  EXPECT_EQ(uploads->size(), 1u);
  EXPECT_TRUE(objects_->remove("bucket", "b")) << "it can be removed";
  EXPECT_TRUE(write_all(*objects_, "bucket", "b", "anew"));
}

TEST_F(DirectoryTest, BelowTheReserveRejectsPutsButAllowsRemovals) {
  uint64_t free = 2000 << 20;
  const DiskReserve reserve(100 << 20, [&] { return Result<uint64_t>(free); });
  objects_ = *open_directory(path(), clock_, random_,
                             {.check_disk_space = [&] { return reserve.check(); }});
  ASSERT_TRUE(objects_->create_bucket("bucket", "r"));
  ASSERT_TRUE(write_all(*objects_, "bucket", "first", "x"));
  auto writer = *objects_->put("bucket", "large");
  const std::string megabyte(1 << 20, 'x');
  ASSERT_TRUE(writer->write(megabyte));
  free = 99 << 20;
  Result<void> written = ok();
  int megabytes = 0;
  while (written && megabytes < 100) written = writer->write(megabyte), ++megabytes;
  ASSERT_FALSE(written) << "a running put fails too";
  EXPECT_EQ(written.error().kind, Kind::exhausted);
  EXPECT_LE(uint64_t(megabytes) << 20, kSpaceCheckBytes);
  writer.reset();
  const auto put = write_all(*objects_, "bucket", "second", "x");
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().kind, Kind::exhausted);
  EXPECT_NE(put.error().message.find("99.0 MiB left, and 100 MiB"), std::string::npos)
      << put.error().message;
  EXPECT_FALSE(objects_->start_upload("bucket", "big"));
  EXPECT_EQ(*read_all(*objects_, "bucket", "first", 9), "x");
  EXPECT_TRUE(objects_->remove("bucket", "first"));
}

TEST(KeyPath, MapsKeysToPathsAndBack) {
  EXPECT_EQ(path_of("a"), "oa");
  EXPECT_EQ(path_of("a/b"), "da/ob");
  EXPECT_EQ(path_of("a/"), "da/o");
  EXPECT_EQ(path_of("../.."), "d../o..");
  EXPECT_EQ(path_of(std::string(200, 'x')), "c" + std::string(200, 'x') + "/o");
  EXPECT_EQ(path_of(std::string(450, 'x') + "/y"), "c" + std::string(200, 'x') + "/c" +
                                                       std::string(200, 'x') + "/d" +
                                                       std::string(50, 'x') + "/oy");
  for (const std::string name : {"oa", "o", "da", "d"})
    EXPECT_EQ(file_name_of(key_bytes_of(name)), name);
}

// A child puts objects as fast as it can, reports each acknowledgement through a pipe, and is
// killed at a random moment. All acknowledged objects must exist, unbroken, and no others except
// that of the last operation. Puts objects until it is killed, and writes a line "key version"
// after each.
[[noreturn]] void put_until_killed(const std::string& path, Clock& clock, Random& random, int round,
                                   int acknowledgements) {
  auto opened = open_directory(path, clock, random);
  if (!opened) _exit(1);
  SeededRandom choices(uint64_t(round) + 100);
  for (int version = round * 100'000; version < (round + 1) * 100'000; ++version) {
    const std::string key =
        "k/" + std::to_string(choices.below(5)) + "/" + std::to_string(choices.below(10));
    const std::string bytes =
        std::to_string(version) + ":" + std::string(choices.below(30'000), 'x');
    if (!write_all(**opened, "bucket", key, bytes + ":" + std::to_string(version))) _exit(2);
    const std::string line = key + " " + std::to_string(version) + "\n";
    if (write(acknowledgements, line.data(), line.size()) != ssize_t(line.size())) _exit(3);
  }
  _exit(4);
}

// Returns the versions of the bucket's objects, and checks that each object is unbroken.
std::map<std::string, int> versions_in(Objects& objects) {
  std::map<std::string, int> found;
  const auto page = objects.list("bucket", {});
  EXPECT_TRUE(page) << page.error().message;
  for (const auto& object : page->objects) {
    const std::string bytes = *read_all(objects, "bucket", object.key, 1 << 20);
    const std::string first = bytes.substr(0, bytes.find(':')),
                      last = bytes.substr(bytes.rfind(':') + 1);
    EXPECT_EQ(first, last) << object.key << " is broken";
    found[object.key] = std::stoi(first);
  }
  return found;
}

TEST_F(DirectoryTest, LosesNothingAcknowledgedWhenKilled) {
  open();
  ASSERT_TRUE(objects_->create_bucket("bucket", "r"));
  SeededRandom moments(21);
  std::map<std::string, int> acknowledged;  // key -> version
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    objects_.reset();
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) put_until_killed(path(), clock_, random_, round, ends[1]);
    close(ends[1]);
    std::string output;
    char buffer[4096];
    const size_t lines = 1 + moments.below(25);
    const auto count = [&] { return size_t(std::count(output.begin(), output.end(), '\n')); };
    while (count() < lines) {
      const ssize_t got = read(ends[0], buffer, sizeof buffer);
      if (got <= 0) break;
      output.append(buffer, size_t(got));
    }
    for (uint64_t spin = moments.below(200'000); spin > 0; --spin)
      asm volatile("");  // waits for a moment within the next put
    kill(child, SIGKILL);
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
      output.append(buffer, size_t(got));
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << WEXITSTATUS(status);

    std::istringstream acks(output);
    for (std::string key, version; acks >> key >> version;) acknowledged[key] = std::stoi(version);
    open();
    const auto found = versions_in(*objects_);
    int under_way = 0;
    for (const auto& [key, version] : found)
      under_way += !acknowledged.contains(key) || acknowledged[key] != version;
    EXPECT_LE(under_way, 1) << "at most one put was running";
    for (const auto& [key, version] : acknowledged) EXPECT_GE(found.at(key), version) << key;
    EXPECT_TRUE(std::filesystem::is_empty(path() + "/temporary"));
    acknowledged = found;
  }
}

// Runs on a file system of 1 MiB, which a child mounts in its own mount namespace.
TEST_F(DirectoryTest, FullDiskFailsPutsAndLeavesNoPartialObject) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr int kSkipped = 77;
    if (unshare(CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) _exit(kSkipped);
    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    mkdir(path().c_str(), 0700);
    if (mount("tmpfs", path().c_str(), "tmpfs", 0, "size=1m") != 0) _exit(kSkipped);
    auto opened = open_directory(path(), clock_, random_);
    if (!opened || !(*opened)->create_bucket("bucket", "r")) _exit(1);
    Objects& objects = **opened;
    const std::string bytes(300 << 10, 'x');
    int stored = 0;
    Result<ObjectInfo> put = write_all(objects, "bucket", "0", bytes);
    for (; put && stored < 100; put = write_all(objects, "bucket", std::to_string(stored), bytes))
      ++stored;
    if (put || put.error().kind != Kind::exhausted) _exit(2);
    const auto page = objects.list("bucket", {});
    if (!page || int(page->objects.size()) != stored) _exit(3);
    for (const auto& object : page->objects)
      if (*read_all(objects, "bucket", object.key, 1 << 20) != bytes) _exit(4);
    if (!objects.remove("bucket", "0") || !write_all(objects, "bucket", "0", bytes)) _exit(5);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(DirectoryTest, ListsAllPagesOfALargeDirectory) {
  open();
  ASSERT_TRUE(objects_->create_bucket("bucket", "r"));
  // Makes the files directly, without syncs, because only the listing is tested.
  ASSERT_TRUE(write_all(*objects_, "bucket", "p/seed", "x"));
  const std::string file = *os::read_file(file_of("p/seed"));
  constexpr int kKeys = 3000;
  for (int i = 0; i < kKeys; ++i)
    ASSERT_TRUE(os::write_file(file_of("p/" + std::to_string(100'000 + i)), file));
  open();
  size_t listed = 0;
  ListQuery query{.prefix = "p/", .delimiter = "/", .keys_max = 700};
  for (int page_number = 0; page_number < 10; ++page_number) {
    const auto page = objects_->list("bucket", query);
    ASSERT_TRUE(page);
    for (const auto& object : page->objects) EXPECT_GT(object.key, query.start_after);
    listed += page->objects.size();
    query.start_after = page->next;
    if (page->next.empty()) break;
    // A change after this page is visible in the next one, although the names are cached.
    if (page_number == 1) {
      ASSERT_TRUE(write_all(*objects_, "bucket", "p/zzz", "x"));
    }
    if (page_number == 2) {
      ASSERT_TRUE(objects_->remove("bucket", "p/seed"));
    }
  }
  EXPECT_EQ(listed, kKeys + 1u);
}

}  // namespace
}  // namespace trainyard::objects
