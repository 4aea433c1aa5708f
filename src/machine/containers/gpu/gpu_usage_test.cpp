#include "containers/gpu/gpu_usage.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "containers/testing/fake_nvml.hpp"
#include "os/files.hpp"

namespace trainyard::containers {
namespace {

using Usages = std::vector<GpuUsage>;

// A GPU of the table of functions. `codes`: of get, number, utilization and memory.
struct NvmlGpu {
  unsigned number = 0;
  NvmlUtilization utilization = {};
  NvmlMemory memory = {};
  int get_code = 0, number_code = 0, utilization_code = 0, memory_code = 0;
};

struct NvmlDriver {
  std::vector<NvmlGpu> gpus;
  unsigned count = 0;
  int init_code = 0, count_code = 0, started = 0, handles = 0;
};

NvmlDriver* nvml_driver = nullptr;

NvmlGpu& nvml_gpu(NvmlDevice device) { return *static_cast<NvmlGpu*>(device); }

Nvml nvml_table() {
  Nvml nvml = {};
  nvml.init = [] {
    nvml_driver->started += nvml_driver->init_code == 0;
    return nvml_driver->init_code;
  };
  nvml.shutdown = [] { return nvml_driver->started--, 0; };
  nvml.count = [](unsigned* devices) {
    return *devices = nvml_driver->count, nvml_driver->count_code;
  };
  nvml.get = [](unsigned index, NvmlDevice* device) {
    nvml_driver->handles++;
    if (index >= nvml_driver->gpus.size()) return 2;
    *device = &nvml_driver->gpus[index];
    return nvml_driver->gpus[index].get_code;
  };
  nvml.number = [](NvmlDevice device, unsigned* number) {
    return *number = nvml_gpu(device).number, nvml_gpu(device).number_code;
  };
  nvml.utilization = [](NvmlDevice device, NvmlUtilization* utilization) {
    return *utilization = nvml_gpu(device).utilization, nvml_gpu(device).utilization_code;
  };
  nvml.memory = [](NvmlDevice device, NvmlMemory* memory) {
    return *memory = nvml_gpu(device).memory, nvml_gpu(device).memory_code;
  };
  return nvml;
}

class GpuUsageTest : public testing::Test {
 protected:
  void SetUp() override { nvml_driver = &driver_; }
  void TearDown() override { nvml_driver = nullptr; }
  void add(NvmlGpu gpu) {
    driver_.gpus.push_back(gpu);
    driver_.count++;
  }
  NvmlDriver driver_;
};

TEST_F(GpuUsageTest, BelongsToTheGpusWithTheseNumbers) {
  add({7, {87, 12}, {80'000, 60'000, 20'000}});
  add({3, {50, 0}, {80'000, 0, 80'000}});
  add({0, {0, 0}, {80'000, 80'000, 0}});
  // NVML sorts by the bus, not by the numbers.
  EXPECT_EQ(*read_gpus(nvml_table(), {0, 7}), (Usages{{87, 25}, {0, 0}}));
  driver_.handles = 0;
  EXPECT_EQ(read_gpus(nvml_table(), {7})->size(), 1u);
  EXPECT_EQ(driver_.handles, 1) << "GPUs of others are not opened once ours are read";
}

TEST_F(GpuUsageTest, OfAGpuInMigModeIsItsMemoryOnly) {
  add({0, {}, {80, 60, 20}, 0, 0, kNvmlNotSupported});
  EXPECT_EQ(*read_gpus(nvml_table(), {0}), (Usages{{{}, 25}}));
  driver_.gpus[0].memory_code = kNvmlNotSupported;
  EXPECT_EQ(*read_gpus(nvml_table(), {0}), (Usages{{{}, {}}}));
}

TEST_F(GpuUsageTest, ValuesOutsideOfTheirRangesAreClamped) {
  add({0, {4'294'967'295u, 0}, {80, 0, 90}});
  add({1, {101, 0}, {0, 0, 90}});
  add({2, {100, 0}, {~0ull, 0, ~0ull}});
  add({2, {100, 0}, {1, 1, 1}});
  EXPECT_EQ(*read_gpus(nvml_table(), {0, 1, 2}), (Usages{{100, 100}, {100, {}}, {100, 100}}))
      << "and two GPUs with one number count once";
}

TEST_F(GpuUsageTest, ACountOfTheDriverIsBounded) {
  add({0, {1, 0}, {80, 0, 8}});
  driver_.count = 4'000'000'000u;
  EXPECT_EQ(read_gpus(nvml_table(), {0, 1})->size(), 1u);
  EXPECT_EQ(driver_.handles, int(kGpusMax));
}

TEST_F(GpuUsageTest, AFailedGpuIsLeftOutUnlessAllFail) {
  add({0, {1, 0}, {80, 0, 8}});
  add({1, {2, 0}, {80, 0, 8}});
  for (int NvmlGpu::*code : {&NvmlGpu::get_code, &NvmlGpu::number_code, &NvmlGpu::utilization_code,
                             &NvmlGpu::memory_code}) {
    driver_.gpus[0].*code = 15;
    EXPECT_EQ(*read_gpus(nvml_table(), {0, 1}), (Usages{{2, 10}}));
    const auto none = read_gpus(nvml_table(), {0});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind, Kind::unavailable);
    EXPECT_NE(none.error().message.find("error 15"), std::string::npos) << none.error().message;
    driver_.gpus[0].*code = 0;
  }
  EXPECT_EQ(read_gpus(nvml_table(), {5}).error().kind, Kind::not_found);
  driver_.count_code = 999;
  EXPECT_EQ(read_gpus(nvml_table(), {0}).error().kind, Kind::unavailable);
}

TEST_F(GpuUsageTest, IsReportedUntilTheOtherSideCloses) {
  add({0, {40, 0}, {80, 0, 8}});
  auto [reader, writer] = *os::PacketSocket::pair();
  std::thread reporter([socket = os::PacketSocket(std::move(writer))] {
    report_gpus(nvml_table(), {0}, socket, 1ms);
  });
  for (int i = 0; i < 3; i++) {
    const auto packet = reader.receive(10s);
    ASSERT_TRUE(packet && *packet);
    EXPECT_EQ(parse_gpu_report((*packet)->bytes)->gpus, (Usages{{40, 10}}));
  }
  { const os::PacketSocket closed = std::move(reader); }
  reporter.join();
  EXPECT_EQ(driver_.started, 0) << "it was shut down";
}

std::string error_of(const os::PacketSocket& reader) {
  const auto packet = reader.receive(10s);
  return packet && *packet ? parse_gpu_report((*packet)->bytes)->error : "no report";
}

TEST_F(GpuUsageTest, TheLastReportHasTheError) {
  auto [reader, writer] = *os::PacketSocket::pair();
  const os::PacketSocket socket(std::move(writer));
  driver_.init_code = 9;
  report_gpus(nvml_table(), {0}, socket, 1ms);
  EXPECT_EQ(error_of(reader),
            "starting NVML failed with NVML's error 9; run nvidia-smi to see the state of the "
            "driver");
  driver_.init_code = 0;
  report_gpus(nvml_table(), {0}, socket, 1ms);
  EXPECT_NE(error_of(reader).find("NVML has 0 GPUs"), std::string::npos);
  EXPECT_EQ(driver_.started, 0);
}

// A library of the tests, opened as that of a driver is.
class LoadedNvml : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fake_.compiled()); }
  FakeNvml fake_;
};

TEST_F(LoadedNvml, ReadsItsGpus) {
  fake_.set("0 87 20 80\n3 - 40 80\n4 lost 0 80\n");
  const auto nvml = load_nvml(fake_.library());
  ASSERT_TRUE(nvml) << nvml.error().message;
  EXPECT_EQ(read_gpus(*nvml, {0}).error().kind, Kind::unavailable) << "it was not started";
  ASSERT_EQ(nvml->init(), kNvmlSuccess);
  EXPECT_EQ(*read_gpus(*nvml, {0, 3, 4}), (Usages{{87, 25}, {{}, 50}}));
  fake_.remove();
  EXPECT_EQ(read_gpus(*nvml, {0}).error().kind, Kind::unavailable) << "the driver is gone";
  EXPECT_EQ(nvml->shutdown(), kNvmlSuccess);
}

TEST_F(LoadedNvml, IsReportedFromDeviceFiles) {
  fake_.set("0 87 20 80\n3 - 40 80\n");
  auto [reader, writer] = *os::PacketSocket::pair();
  std::thread reporter([&, socket = os::PacketSocket(std::move(writer))] {
    report_gpus(fake_.library(), {"/dev/nvidia3", "/dev/nvidiactl"}, socket, 1ms);
  });
  const auto packet = reader.receive(10s);
  { const os::PacketSocket closed = std::move(reader); }
  reporter.join();
  ASSERT_TRUE(packet && *packet);
  EXPECT_EQ(parse_gpu_report((*packet)->bytes)->gpus, (Usages{{{}, 50}}));
}

TEST(MissingNvml, IsReported) {
  auto [reader, writer] = *os::PacketSocket::pair();
  report_gpus("/no/such/libnvidia-ml.so.1", {"/dev/nvidia0"}, os::PacketSocket(std::move(writer)),
              1ms);
  const std::string error = error_of(reader);
  EXPECT_TRUE(error.starts_with("loading NVML: /no/such/libnvidia-ml.so.1: ")) << error;
  EXPECT_TRUE(error.ends_with("(Debian: libnvidia-ml1)")) << error;
  const auto other = load_nvml("libc.so.6");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, Kind::not_found);
  EXPECT_NE(other.error().message.find("libc.so.6 lacks the function nvml"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::containers
