#include "data/pipe.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/thread_safety.hpp"
#include "data/contents.hpp"
#include "objects/memory.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::data {
namespace {

class PipeTest : public testing::Test {
 protected:
  PipeTest() {
    ::signal(SIGPIPE, SIG_IGN);
    EXPECT_TRUE(objects_->create_bucket("data", "eu-west-1"));
  }
  void put(const std::string& key, const std::string& content) {
    ASSERT_TRUE(objects::write_all(*objects_, "data", key, content));
    keys_.push_back({"data", key});
  }
  void start(std::optional<int64_t> seed = {}) {
    contents_.emplace(keys_);
    pipe_.emplace(
        directory_.path(), "train",
        [this, seed](uint64_t epoch) {
          return std::make_unique<Feed>(*objects_, clock_, Form{},
                                        contents_->epoch(epoch, {seed, false, 0, 1}));
        },
        [this](Error error) {
          const MutexLock lock(mutex_);
          failure_ = error.message;
        });
    ASSERT_TRUE(pipe_->start());
  }
  // Opens as a program does: retrying while it does not exist.
  int open_epoch(int epoch) {
    for (int i = 0; i < 6000; ++i) {
      const int descriptor = ::open(path(epoch).c_str(), O_RDONLY | O_CLOEXEC);
      if (descriptor >= 0) return descriptor;
      ::usleep(10'000);
    }
    ADD_FAILURE() << "no FIFO for epoch " << epoch;
    return -1;
  }
  std::string read_epoch(int epoch) {
    const os::File fifo(open_epoch(epoch));
    std::string all;
    char buffer[4096];
    for (ssize_t got; (got = ::read(fifo.descriptor(), buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<size_t>(got));
    return all;
  }
  std::string path(int epoch) const {
    return directory_.path() + "/train_" + std::to_string(epoch);
  }
  std::string failure() {
    const MutexLock lock(mutex_);
    return failure_;
  }

  os::MachineClock clock_;
  SeededRandom random_{1};
  os::TemporaryDirectory directory_;
  std::unique_ptr<objects::Objects> objects_ = objects::make_memory(clock_, random_);
  std::vector<objects::Location> keys_;
  std::optional<Contents> contents_;
  Mutex mutex_;
  std::string failure_ GUARDED_BY(mutex_);
  std::optional<Pipe> pipe_;
};

TEST_F(PipeTest, ServesEachEpochThroughAFifo) {
  put("a", "one ");
  put("b", "two ");
  start();
  struct stat status {};
  ASSERT_EQ(::stat(path(0).c_str(), &status), 0) << "there before the job is";
  EXPECT_EQ(status.st_mode, S_IFIFO | 0666u);
  EXPECT_FALSE(os::exists(path(1)));
  for (int epoch = 0; epoch < 5; ++epoch) {
    EXPECT_EQ(read_epoch(epoch), "one two ");
    EXPECT_TRUE(os::exists(path(epoch + 1))) << "before the reader met the end";
    EXPECT_FALSE(os::exists(path(epoch)));
  }
  EXPECT_EQ(failure(), "");
}

TEST_F(PipeTest, AReaderThatClosesEarlyGetsTheNextEpochFromItsBeginning) {
  put("a", "begin");
  put("b", std::string(30'000'000, 'x'));
  start();
  for (int epoch = 0; epoch < 3; ++epoch) {
    const os::File fifo(open_epoch(epoch));
    char buffer[5];
    ASSERT_EQ(::read(fifo.descriptor(), buffer, 5), 5);
    EXPECT_EQ(std::string(buffer, 5), "begin");
  }
  EXPECT_EQ(read_epoch(3).size(), 30'000'005u);
}

TEST_F(PipeTest, EpochsAreShuffledDifferently) {
  for (char key = 'a'; key < 'k'; ++key) put(std::string(1, key), std::string(1, key));
  start(5);
  const auto first = read_epoch(0), second = read_epoch(1);
  EXPECT_NE(first, second);
  EXPECT_EQ(first.size(), 10u);
}

// The reader gets no end, which would look like the epoch's, and the failure is reported.
TEST_F(PipeTest, AFailureIsReportedAndTheReaderGetsNoEnd) {
  put("a", "one");
  keys_.push_back({"data", "gone"});
  start();
  const os::File fifo(open_epoch(0));
  char buffer[8];
  ASSERT_EQ(::read(fifo.descriptor(), buffer, 8), 3);
  for (int i = 0; i < 6000 && failure().empty(); ++i) ::usleep(10'000);
  EXPECT_EQ(failure().find("s3://data/gone: "), 0u) << failure();
  ASSERT_EQ(::fcntl(fifo.descriptor(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(::read(fifo.descriptor(), buffer, 8), -1);
  EXPECT_EQ(errno, EAGAIN);
  pipe_->stop();
  EXPECT_EQ(::read(fifo.descriptor(), buffer, 8), 0);
}

TEST_F(PipeTest, DoesNotWriteToAFileInPlaceOfTheFifo) {
  put("a", "one");
  ASSERT_TRUE(os::write_file(directory_.path() + "/victim", "precious"));
  start();
  ::unlink(path(0).c_str());
  ASSERT_EQ(::symlink((directory_.path() + "/victim").c_str(), path(0).c_str()), 0);
  for (int i = 0; i < 6000 && failure().empty(); ++i) ::usleep(10'000);
  EXPECT_NE(failure(), "");
  pipe_->stop();
  EXPECT_EQ(*os::read_file(directory_.path() + "/victim"), "precious");
}

TEST_F(PipeTest, DoesNotOpenADeviceInPlaceOfTheFifo) {
  put("a", "one");
  start();
  ASSERT_EQ(::mknod((directory_.path() + "/zero").c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  ASSERT_EQ(::rename((directory_.path() + "/zero").c_str(), path(0).c_str()), 0);
  for (int i = 0; i < 6000 && failure().empty(); ++i) ::usleep(10'000);
  EXPECT_NE(failure().find("not a FIFO"), std::string::npos) << failure();
}

// FIFOs of later epochs are made in the directory that was opened before the job ran.
TEST_F(PipeTest, AReplacedDirectoryIsNotFollowed) {
  put("a", "one");
  start();
  ASSERT_TRUE(os::make_directories(directory_.path() + ".machine"));
  ASSERT_EQ(::rename(directory_.path().c_str(), (directory_.path() + ".moved").c_str()), 0);
  ASSERT_EQ(::symlink((directory_.path() + ".machine").c_str(), directory_.path().c_str()), 0);
  const os::File fifo(::open((directory_.path() + ".moved/train_0").c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[8];
  ASSERT_EQ(::read(fifo.descriptor(), buffer, 8), 3);
  EXPECT_EQ(::read(fifo.descriptor(), buffer, 8), 0);
  EXPECT_TRUE(os::exists(directory_.path() + ".moved/train_1"));
  pipe_->stop();
  EXPECT_EQ(os::list_directory(directory_.path() + ".machine")->size(), 0u);
  for (const char* made : {"", ".moved", ".machine"})
    EXPECT_TRUE(os::remove_all(directory_.path() + made));
}

TEST_F(PipeTest, StopsWithoutAReaderOrWithASlowReader) {
  put("a", std::string(30'000'000, 'x'));
  start();
  pipe_->stop();
  pipe_.reset();
  start();
  const os::File fifo(open_epoch(0));
  pipe_->stop();
}

}  // namespace
}  // namespace trainyard::data
