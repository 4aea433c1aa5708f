#include "containers/gpu/gpu_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::containers {
namespace {

// A fake of the driver's interface: one piece of memory, parts of which are in use.
struct SimulatedGpu {
  static constexpr size_t kBytes = 48 << 20;
  std::string memory = std::string(kBytes, 'x');  // data of a job
  std::map<size_t, size_t> allocated;             // address -> bytes
  int filled = 0, contexts = 0, fill_answers = 0;
  size_t never_given = 0;  // free bytes that cannot be allocated

  size_t free_bytes() const {
    size_t taken = 0;
    for (const auto& [at, bytes] : allocated) taken += bytes;
    return kBytes + never_given - taken;
  }
  // Returns the first hole that is large enough.
  size_t find(size_t bytes) const {
    size_t at = 0;
    for (const auto& [begin, taken] : allocated) {
      if (begin - at >= bytes) return at;
      at = begin + taken;
    }
    return kBytes - at >= bytes ? at : kBytes;
  }
};

SimulatedGpu* gpu = nullptr;
constexpr unsigned long long kBase = 1ull << 40;  // no address is zero

CudaDriver simulated() {
  CudaDriver driver = {};
  driver.init = [](unsigned) { return 0; };
  driver.count = [](int* devices) { return *devices = 2, 0; };
  driver.get = [](int* device, int ordinal) { return *device = ordinal + 10, 0; };
  driver.bus = [](char* text, int bytes, int device) {
    std::strncpy(text, device == 11 ? "0000:3B:00.0" : "0000:1A:00.0", size_t(bytes));
    return 0;
  };
  driver.create_context = [](void** context, unsigned, int device) {
    gpu->contexts += device == 11 ? 1 : 100;
    *context = gpu;
    return 0;
  };
  driver.destroy_context = [](void*) { return gpu->contexts -= 1, 0; };
  driver.free_bytes = [](size_t* free, size_t* total) {
    *free = gpu->free_bytes();
    *total = SimulatedGpu::kBytes;
    return 0;
  };
  driver.allocate = [](unsigned long long* address, size_t bytes) {
    const size_t at = gpu->find(bytes);
    if (at == SimulatedGpu::kBytes) return 2;
    gpu->allocated[at] = bytes;
    *address = kBase + at;
    return 0;
  };
  driver.release = [](unsigned long long address) {
    return gpu->allocated.erase(address - kBase) == 1 ? 0 : 1;
  };
  driver.fill = [](unsigned long long address, unsigned char value, size_t bytes) {
    gpu->filled++;
    std::memset(gpu->memory.data() + (address - kBase), value, bytes);
    return gpu->fill_answers;
  };
  driver.synchronize = [] { return 0; };
  return driver;
}

class GpuMemory : public testing::Test {
 protected:
  void SetUp() override { gpu = &gpu_; }
  void TearDown() override { gpu = nullptr; }
  SimulatedGpu gpu_;
};

TEST_F(GpuMemory, IsOverwrittenAndReleased) {
  const auto cleared = clear_memory(simulated(), "0000:3b:00.0", 7);
  ASSERT_TRUE(cleared) << cleared.error().message;
  EXPECT_EQ(*cleared, SimulatedGpu::kBytes);
  EXPECT_TRUE(gpu_.memory == std::string(SimulatedGpu::kBytes, '\0'));
  EXPECT_TRUE(gpu_.allocated.empty());
  EXPECT_EQ(gpu_.contexts, 0);
}

TEST_F(GpuMemory, IsOverwrittenBetweenAllocationsInUse) {
  // Three pieces that the driver uses, with holes between them whose sizes are not powers of two.
  const std::map<size_t, size_t> in_use = {
      {5 << 20, 1 << 20}, {17 << 20, 3 << 20}, {40 << 20, 64 << 10}};
  gpu_.allocated = in_use;
  const auto cleared = clear_memory(simulated(), "", 1);
  ASSERT_TRUE(cleared) << cleared.error().message;
  size_t expected = SimulatedGpu::kBytes;
  for (const auto& [at, bytes] : in_use) {
    EXPECT_TRUE(gpu_.memory.substr(at, bytes) == std::string(bytes, 'x'));
    gpu_.memory.replace(at, bytes, bytes, '\0');
    expected -= bytes;
  }
  EXPECT_EQ(*cleared, expected);
  EXPECT_TRUE(gpu_.memory == std::string(SimulatedGpu::kBytes, '\0'));
  EXPECT_EQ(gpu_.allocated, in_use);
  EXPECT_GT(gpu_.filled, 4);
}

TEST_F(GpuMemory, ReportsFailuresOfTheDriver) {
  gpu_.fill_answers = 700;
  const auto failed = clear_memory(simulated(), "0000:3b:00.0", 0);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, Kind::unavailable);
  EXPECT_NE(failed.error().message.find("700"), std::string::npos);
  EXPECT_TRUE(gpu_.allocated.empty());
  EXPECT_EQ(gpu_.contexts, 0);
}

TEST_F(GpuMemory, FailsIfMuchMemoryCannotBeAllocated) {
  gpu_.never_given = 100 << 20;
  const auto failed = clear_memory(simulated(), "0000:3b:00.0", 0);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("100 MiB of"), std::string::npos) << failed.error().message;
}

TEST_F(GpuMemory, ClearsTheNamedGpu) {
  EXPECT_EQ(clear_memory(simulated(), "0000:99:00.0", 0).error().kind, Kind::not_found);
  EXPECT_EQ(clear_memory(simulated(), "", 2).error().kind, Kind::not_found);
  EXPECT_EQ(clear_gpu("/dev/null").error().kind, Kind::invalid);
  for (const char* device : {"/dev/nvidia0", "/dev/nvidia15"})
    EXPECT_TRUE(is_gpu(device)) << device;
  for (const char* device :
       {"/dev/nvidiactl", "/dev/nvidia", "/dev/nvidia-uvm", "/dev/nvidia-1", "/dev/dri/card0"})
    EXPECT_FALSE(is_gpu(device)) << device;
}

// Uses a process in its own PID namespace that has /dev/full open.
TEST(HoldersOf, ReturnsProcessesOfOtherNamespaces) {
  if (::geteuid() != 0) GTEST_SKIP() << "namespaces need root";
  const os::File ours(::open("/dev/full", O_RDONLY | O_CLOEXEC));
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(1);
    const pid_t child = ::fork();
    if (child == 0) {
      const int device = ::open("/dev/full", O_RDONLY);
      (void)!::write(ready[1], device >= 0 ? "y" : "n", 1);
      for (;;) ::pause();
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::_exit(0);
  }
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  ASSERT_EQ(said, 'y');
  const auto holders = holders_of("/dev/full");
  ASSERT_EQ(holders.size(), 1u);
  EXPECT_NE(holders[0], ::getpid());
  ::kill(holders[0], SIGKILL);
  ::waitpid(parent, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_TRUE(holders_of("/dev/full").empty());
}

class Marks : public testing::Test {
 protected:
  Result<void> clear(const std::string& device) {
    cleared_.push_back(device);
    if (fails_) return unavailable("the driver is gone");
    return ok();
  }
  const os::TemporaryDirectory directory_;
  const std::string at_ = directory_.path() + "/gpus";
  const GpuMarks marks_{at_, [this](const std::string& device) { return clear(device); }};
  std::vector<std::string> cleared_;
  bool fails_ = false;
  using Devices = std::vector<std::string>;
};

TEST_F(Marks, ExistWhileAJobHasTheGpu) {
  ASSERT_TRUE(marks_.claim("/dev/nvidia0"));
  EXPECT_EQ(cleared_, Devices{}) << "nothing is left there";
  EXPECT_TRUE(os::exists(at_ + "/!dev!nvidia0"));
  ASSERT_TRUE(marks_.release("/dev/nvidia0"));
  EXPECT_EQ(cleared_, Devices{"/dev/nvidia0"});
  EXPECT_FALSE(os::exists(at_ + "/!dev!nvidia0"));
  ASSERT_TRUE(marks_.release("/dev/nvidia0")) << "harmless again";
  EXPECT_EQ(cleared_.size(), 1u);
  EXPECT_TRUE(uncleared_gpus(at_).empty());
}

TEST_F(Marks, OfADeadAgentMakeTheNextAgentClearTheGpu) {
  ASSERT_TRUE(marks_.claim("/dev/nvidia0"));
  EXPECT_TRUE(uncleared_gpus(at_).empty());
  ASSERT_TRUE(marks_.claim("/dev/nvidia0"));
  EXPECT_EQ(cleared_, Devices{"/dev/nvidia0"});
}

TEST_F(Marks, NameUnclearedGpus) {
  ASSERT_TRUE(marks_.claim("/dev/nvidia1"));
  fails_ = true;
  const auto failed = marks_.release("/dev/nvidia1");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "clearing /dev/nvidia1: the driver is gone");
  const auto uncleared = uncleared_gpus(at_);
  ASSERT_EQ(uncleared.size(), 1u);
  EXPECT_EQ(uncleared[0].device, "/dev/nvidia1");
  EXPECT_EQ(uncleared[0].reason, "the driver is gone");
  EXPECT_EQ(*os::read_file(at_ + "/!dev!nvidia1"),
            R"({"device":"/dev/nvidia1","reason":"the driver is gone","state":"not cleared"})");
  EXPECT_FALSE(marks_.claim("/dev/nvidia1")) << "no job gets it";
  fails_ = false;
  ASSERT_TRUE(marks_.claim("/dev/nvidia1")) << "cleared after all";
  EXPECT_TRUE(uncleared_gpus(at_).empty());
}

}  // namespace
}  // namespace trainyard::containers
