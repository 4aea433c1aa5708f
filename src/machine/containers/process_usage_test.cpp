#include "containers/process_usage.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace trainyard::containers {
namespace {

// A child process with a name and some memory, which the destructor ends.
class Child {
 public:
  Child(const char* name, size_t bytes) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_NAME, name);
      volatile char* memory = static_cast<char*>(::malloc(bytes));
      for (size_t i = 0; i < bytes; i += 1024) memory[i] = 1;
      (void)!::write(ready[1], "r", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  int process() const { return process_; }

 private:
  pid_t process_ = 0;
};

TEST(ProcessUsage, ReturnsTheLargestProcessesFirst) {
  const Child small("small", 1 << 20), large(
                                           "a) \x01\xff"
                                           "b",
                                           64 << 20);
  const auto found = largest({small.process(), 0, -1, INT32_MAX, large.process()}, 2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "a) ??b");
  EXPECT_GE(found[0].bytes, 64 << 20);
  EXPECT_EQ(found[1].name, "small");
  EXPECT_EQ(largest({small.process(), large.process()}, 1).size(), 1u);
  EXPECT_TRUE(largest({}, 3).empty());
}

}  // namespace
}  // namespace trainyard::containers
