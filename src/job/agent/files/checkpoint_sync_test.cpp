#include "agent/files/checkpoint_sync.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "base/testing/test_clock.hpp"
#include "base/thread_safety.hpp"
#include "objects/memory.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::agent {
namespace {

class RecordedNotices final : public Facts {
 public:
  void state(wire::StateFact) override {}
  void lines(std::vector<wire::LogLine>) override {}
  void points(std::vector<wire::MetricPoint>) override {}
  void say(const std::string& text) override {
    const MutexLock lock(mutex_);
    said_.push_back(text);
  }
  std::string said() {
    const MutexLock lock(mutex_);
    std::string all;
    for (const auto& text : said_) all += text + "\n";
    return all;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> said_ GUARDED_BY(mutex_);
};

class CheckpointSyncTest : public testing::Test {
 protected:
  CheckpointSyncTest() {
    EXPECT_TRUE(objects_->create_bucket("yard", "eu-west-1"));
    keys_.set({"id", "secret", "token", clock_.now() + 1h});
  }
  std::unique_ptr<CheckpointSync> sync(bool deletions = true, bool marks = true) {
    SyncSettings settings;
    settings.directory = "here";
    settings.place = "/opt/ml/checkpoints";
    settings.to = {"yard", "ckpt/"};
    settings.rules.deletions = deletions;
    settings.marks = marks;
    return std::make_unique<CheckpointSync>(settings, *Tree::open(directory_.path()), *objects_,
                                            keys_, notices_, clock_);
  }
  std::string path(const std::string& name) const { return directory_.path() + "/here/" + name; }
  void write(const std::string& name, const std::string& content) {
    const std::string file = path(name);
    ASSERT_TRUE(os::make_directories(file.substr(0, file.rfind('/'))));
    ASSERT_TRUE(os::write_file(file, content));
  }
  void put(const std::string& key, const std::string& content) {
    ASSERT_TRUE(objects::write_all(*objects_, "yard", key, content));
  }
  std::string get(const std::string& key) {
    const auto content = objects::read_all(*objects_, "yard", key, 1 << 20);
    return content ? *content : "(none)";
  }
  std::string keys() {
    std::string all;
    const auto page = objects_->list("yard", {});
    for (const auto& object : page->objects) all += object.key + " ";
    return all;
  }
  template <class Condition>
  bool soon(Condition condition) {
    const auto end = clock_.monotonic() + std::chrono::seconds(60);
    while (clock_.monotonic() < end) {
      if (condition()) return true;
      ::usleep(10'000);
    }
    return false;
  }

  os::MachineClock clock_;
  SeededRandom random_{1};
  os::TemporaryDirectory directory_;
  std::unique_ptr<objects::Objects> objects_ = objects::make_memory(clock_, random_);
  JobKeys keys_;
  RecordedNotices notices_;
  Interruption interruption_;
};

TEST_F(CheckpointSyncTest, CopiesWhileTheJobRuns) {
  const auto one = sync();
  ASSERT_TRUE(one->restore(interruption_));
  one->start();
  write("a/model", "1");
  EXPECT_TRUE(soon([&] { return get("ckpt/a/model") == "1"; }));
  EXPECT_TRUE(soon([&] { return os::exists(path("a/model.sagemaker-uploaded")); }));
  EXPECT_TRUE(soon([&] { return !os::exists(path("a/model.sagemaker-uploading")); }));
  write("tmp.sagemaker-ignore", "2");
  ASSERT_EQ(::rename(path("tmp.sagemaker-ignore").c_str(), path("a/model").c_str()), 0);
  EXPECT_TRUE(soon([&] { return get("ckpt/a/model") == "2"; }));
  ::unlink(path("a/model").c_str());
  EXPECT_TRUE(soon([&] { return keys().empty(); }));
  EXPECT_TRUE(soon([&] { return !os::exists(path("a/model.sagemaker-uploaded")); }));
  EXPECT_TRUE(one->finish(interruption_));
  EXPECT_EQ(notices_.said(), "");
}

TEST_F(CheckpointSyncTest, TheLastScanCopiesEverything) {
  const auto one = sync();
  ASSERT_TRUE(one->restore(interruption_));
  one->start();
  for (int i = 0; i < 20; ++i) write("d/" + std::to_string(i), std::to_string(i));
  write("half.sagemaker-ignore", "no");
  write("empty", "");
  ASSERT_TRUE(one->finish(interruption_));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(get("ckpt/d/" + std::to_string(i)), std::to_string(i));
  EXPECT_EQ(get("ckpt/empty"), "");
  EXPECT_EQ(keys().find("half"), std::string::npos);
  EXPECT_EQ(keys().find("sagemaker"), std::string::npos);
}

TEST_F(CheckpointSyncTest, RestoresTheContentOfTheStore) {
  put("ckpt/a/model", "1");
  put("ckpt/b", "2");
  put("ckpt/b.sagemaker-uploaded", "");
  put("ckpt/dir/", "");
  put("ckpt/x", "old");
  put("ckpt/x/y", "new");
  put("ckpt/../evil", "no");
  put("ckpt-2/other", "no");
  {
    const auto one = sync();
    ASSERT_TRUE(one->restore(interruption_));
    EXPECT_EQ(*os::read_file(path("a/model")), "1");
    EXPECT_EQ(*os::read_file(path("b")), "2");
    EXPECT_EQ(*os::read_file(path("x/y")), "new");
    EXPECT_FALSE(os::exists(path("b.sagemaker-uploaded")));
    EXPECT_NE(notices_.said().find("would lead out of its directory"), std::string::npos);
    struct stat status {};
    ASSERT_EQ(::stat(path("a/model").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0666u);
    EXPECT_EQ(status.st_mtim.tv_sec,
              to_milliseconds(objects_->head("yard", "ckpt/a/model")->modified) / 1000);
    ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0777u);
    // Nothing changed, so nothing is uploaded; deletions are copied as well.
    put("ckpt/a/model", "another host's");
    ::unlink(path("b").c_str());
    ASSERT_TRUE(one->finish(interruption_));
  }
  EXPECT_EQ(get("ckpt/a/model"), "another host's");
  EXPECT_EQ(get("ckpt/b"), "(none)");
  EXPECT_EQ(get("ckpt-2/other"), "no");
}

TEST_F(CheckpointSyncTest, LinksAreNotFollowedForFilesOrMarks) {
  ASSERT_TRUE(os::write_file(directory_.path() + "/secret", "secret"));
  const auto one = sync();
  ASSERT_TRUE(one->restore(interruption_));
  write("a", "1");
  ASSERT_EQ(::symlink("../secret", path("link").c_str()), 0);
  ASSERT_EQ(::symlink("../made", path("a.sagemaker-uploading").c_str()), 0);
  ASSERT_EQ(::symlink("../made", path("a.sagemaker-uploaded").c_str()), 0);
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0666), 0);
  ASSERT_TRUE(one->finish(interruption_));
  EXPECT_EQ(keys(), "ckpt/a ");
  EXPECT_FALSE(os::exists(directory_.path() + "/made"));
  EXPECT_NE(notices_.said().find(
                "/opt/ml/checkpoints/link is not copied to s3://yard/ckpt/: it is a link"),
            std::string::npos);
}

// Between two scans the job replaces the directory, or a parent of it, by a link to the machine's
// files.
TEST_F(CheckpointSyncTest, AReplacedDirectoryIsNotFollowed) {
  ASSERT_TRUE(os::make_directories(directory_.path() + "/machine"));
  ASSERT_TRUE(os::write_file(directory_.path() + "/machine/shadow", "secret"));
  const auto one = sync();
  ASSERT_TRUE(one->restore(interruption_));
  write("a", "1");
  ASSERT_TRUE(one->finish(interruption_));
  const std::string here = directory_.path() + "/here";
  ASSERT_EQ(::rename(here.c_str(), (here + "-moved").c_str()), 0);
  for (const char* target : {"machine", "/etc"}) {
    ASSERT_EQ(::symlink(target, here.c_str()), 0);
    const auto finished = one->finish(interruption_);
    ASSERT_FALSE(finished) << target;
    EXPECT_EQ(finished.error().kind, Kind::invalid) << target;
    EXPECT_EQ(finished.error().message, "here: leads through a link") << target;
    ::unlink(here.c_str());
  }
  ASSERT_TRUE(os::make_directories(here));
  ASSERT_EQ(
      ::mount((directory_.path() + "/machine").c_str(), here.c_str(), nullptr, MS_BIND, nullptr),
      0);
  EXPECT_TRUE(one->finish(interruption_)) << "what is mounted there is not seen";
  ASSERT_EQ(::umount2(here.c_str(), MNT_DETACH), 0);
  EXPECT_EQ(get("ckpt/shadow"), "(none)");
  EXPECT_EQ(os::list_directory(directory_.path() + "/machine")->size(), 1u);
}

TEST_F(CheckpointSyncTest, ReportsAReplacedDirectoryWhileTheJobRuns) {
  ASSERT_TRUE(os::make_directories(directory_.path() + "/machine"));
  ASSERT_TRUE(os::write_file(directory_.path() + "/machine/shadow", "secret"));
  const auto one = sync(false, false);
  ASSERT_TRUE(one->restore(interruption_));
  ASSERT_EQ(::rmdir(path("").c_str()), 0);
  ASSERT_EQ(::symlink("machine", (directory_.path() + "/here").c_str()), 0);
  one->start();
  EXPECT_TRUE(soon(
      [&] { return notices_.said().find("here: leads through a link") != std::string::npos; }));
  ASSERT_EQ(::unlink((directory_.path() + "/here").c_str()), 0);
  write("b", "2");
  EXPECT_TRUE(soon([&] { return get("ckpt/b") == "2"; }))
      << "a directory that was made again is meant";
  EXPECT_TRUE(one->finish(interruption_));
  EXPECT_EQ(keys(), "ckpt/b ");
}

// A job makes names that collide with files of the store before it is started again.
TEST_F(CheckpointSyncTest, NothingIsRestoredThroughLinks) {
  ASSERT_TRUE(os::make_directories(directory_.path() + "/machine"));
  put("ckpt/d/file", "1");
  ASSERT_TRUE(os::make_directories(path("")));
  ASSERT_EQ(::symlink("../machine", path("d").c_str()), 0);
  EXPECT_EQ(sync()->restore(interruption_).error().kind, Kind::invalid);
  ASSERT_TRUE(os::remove_all(directory_.path() + "/here"));
  ASSERT_EQ(::symlink("machine", (directory_.path() + "/here").c_str()), 0);
  EXPECT_EQ(sync()->restore(interruption_).error().kind, Kind::invalid);
  EXPECT_EQ(os::list_directory(directory_.path() + "/machine")->size(), 0u);
}

TEST_F(CheckpointSyncTest, DevicesAndMountsAreLeftOut) {
  const auto one = sync();
  ASSERT_TRUE(one->restore(interruption_));
  write("a", "1");
  ASSERT_EQ(::mknod(path("zero").c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  ASSERT_TRUE(os::write_file(directory_.path() + "/secret", "secret"));
  write("mounted", "2");
  ASSERT_EQ(::mount((directory_.path() + "/secret").c_str(), path("mounted").c_str(), nullptr,
                    MS_BIND, nullptr),
            0);
  // The content of a mount over the file is not visible.
  EXPECT_TRUE(one->finish(interruption_));
  ASSERT_EQ(::umount2(path("mounted").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(get("ckpt/a"), "1");
  EXPECT_EQ(get("ckpt/mounted"), "2");
  EXPECT_EQ(get("ckpt/zero"), "(none)");
}

TEST_F(CheckpointSyncTest, IntermediateOutputStaysInTheStore) {
  const auto one = sync(false, false);
  ASSERT_TRUE(one->restore(interruption_));
  write("a", "1");
  ASSERT_TRUE(one->finish(interruption_));
  ::unlink(path("a").c_str());
  ASSERT_TRUE(one->finish(interruption_));
  EXPECT_EQ(get("ckpt/a"), "1");
  EXPECT_EQ(os::list_directory(path(""))->size(), 0u);
}

TEST_F(CheckpointSyncTest, AnEventFileIsCopiedWhileItGrows) {
  SyncSettings settings;
  settings.directory = "here";
  settings.place = "/opt/ml/output/tensorboard";
  settings.to = {"yard", "board/"};
  settings.rules = {.deletions = false, .event_files = true};
  settings.marks = false;
  settings.interval = 10ms;
  CheckpointSync one(settings, *Tree::open(directory_.path()), *objects_, keys_, notices_, clock_);
  ASSERT_TRUE(one.make_directory());
  struct stat status {};
  ASSERT_EQ(::stat(path("").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0777u);
  one.start();
  const std::string key = "board/run/events.out.tfevents.1";
  ASSERT_TRUE(os::make_directories(path("run")));
  const os::File file(::open(path("run/events.out.tfevents.1").c_str(), O_CREAT | O_WRONLY, 0644));
  std::string written;
  // Never at rest: a record follows as soon as a part of those before it is in the store.
  for (size_t copied = 0; copied < 2000;) {
    ASSERT_TRUE(os::write_whole(file, "record-", "events"));
    written += "record-";
    const std::string content = get(key);
    if (content == "(none)") continue;
    ASSERT_TRUE(written.starts_with(content)) << content;
    EXPECT_GE(content.size(), copied);
    copied = content.size();
  }
  ASSERT_TRUE(one.finish(interruption_));
  EXPECT_EQ(get(key), written);
  ASSERT_EQ(::unlink(path("run/events.out.tfevents.1").c_str()), 0);
  ASSERT_TRUE(one.finish(interruption_));
  EXPECT_EQ(keys(), key + " ") << "output stays, and has no marks";
  EXPECT_TRUE(os::list_directory(path("run"))->empty());
  EXPECT_EQ(notices_.said(), "");
}

TEST_F(CheckpointSyncTest, ReportsAMissingBucket) {
  SyncSettings settings;
  settings.directory = "here/x";
  settings.place = "/opt/ml/checkpoints";
  settings.to = {"nowhere", "ckpt/"};
  CheckpointSync one(settings, *Tree::open(directory_.path()), *objects_, keys_, notices_, clock_);
  EXPECT_EQ(one.restore(interruption_).error().message,
            "bucket nowhere not found (s3://nowhere/ckpt/)");
  EXPECT_EQ(one.make_directory().error().message, "bucket nowhere not found (s3://nowhere/ckpt/)");
  one.start();
  ASSERT_TRUE(os::write_file(path("x/a"), "1"));
  EXPECT_TRUE(
      soon([&] { return notices_.said().find("cannot be copied to") != std::string::npos; }));
  EXPECT_FALSE(one.finish(interruption_));
}

TEST_F(CheckpointSyncTest, AnInterruptionEndsTheLastScan) {
  const auto one = sync();
  ASSERT_TRUE(one->restore(interruption_));
  write("a", "1");
  interruption_.order();
  EXPECT_EQ(one->finish(interruption_).error().kind, Kind::cancelled);
  EXPECT_EQ(keys(), "");
}

TEST(CheckpointSyncTime, AnObjectFromBefore1970IsRestored) {
  TestClock early(from_milliseconds(-1));
  SeededRandom random(1);
  const os::TemporaryDirectory directory;
  const auto store = objects::make_memory(early, random);
  ASSERT_TRUE(store->create_bucket("yard", "eu-west-1"));
  ASSERT_TRUE(objects::write_all(*store, "yard", "old", "1"));
  JobKeys keys;
  RecordedNotices notices;
  SyncSettings settings;
  settings.directory = "here";
  settings.to = {"yard", ""};
  const auto sync = std::make_unique<CheckpointSync>(settings, *Tree::open(directory.path()),
                                                     *store, keys, notices, early);
  const Interruption interruption;
  const auto restored = sync->restore(interruption);
  ASSERT_TRUE(restored) << restored.error().message;
  struct stat status {};
  ASSERT_EQ(::stat((directory.path() + "/here/old").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, -1);
  EXPECT_EQ(status.st_mtim.tv_nsec, 999'000'000);
}

}  // namespace
}  // namespace trainyard::agent
