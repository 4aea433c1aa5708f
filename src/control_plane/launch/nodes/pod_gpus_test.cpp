#include "launch/nodes/pod_gpus.hpp"

#include <gtest/gtest.h>

namespace trainyard::launch {
namespace {

const std::vector<DriverGpu> kDriversGpus = {{"GPU-a", "1"}, {"GPU-b", "0"}, {"GPU-c", "2"}};

TEST(PodGpus, AreFoundByUuidOrIndex) {
  EXPECT_EQ(*pod_gpus("GPU-b", kDriversGpus), "0");
  EXPECT_EQ(*pod_gpus("GPU-c, GPU-a", kDriversGpus), "2,1");
  EXPECT_EQ(*pod_gpus("0,2", kDriversGpus), "1,2");
  EXPECT_EQ(*pod_gpus("all", kDriversGpus), "1,0,2");
  EXPECT_EQ(*pod_gpus("0,3", {}), "0,3");
}

TEST(PodGpus, HaveAReasonIfTheyAreNotFound) {
  for (const auto& [visible, reason] :
       {std::pair("", "no GPU is visible"),
        {"void", "no GPU is visible"},
        {"none", "no GPU is visible"},
        {",", "no GPU is visible"},
        {"GPU-d", "'GPU-d' is not among"},
        {"3", "the driver has 3"},
        {"99999", "is not among"},
        {"-1", "is not among"},
        {"MIG-1", "parts of GPUs"},
        {"/var/run/nvidia-container-devices", "deviceListStrategy"}}) {
    const auto found = pod_gpus(visible, kDriversGpus);
    ASSERT_FALSE(found) << visible;
    EXPECT_NE(found.error().message.find(reason), std::string::npos) << found.error().message;
  }
}

TEST(PodGpus, AreReadFromTheDriversInformation) {
  const auto gpu = read_driver_gpu(
      "Model: \t\t NVIDIA H200\nIRQ:   \t\t 92\nGPU UUID: \t GPU-5d3c\nBus Location: \t "
      "0000:0a:00.0\nDevice Minor: \t 3\nGPU Excluded:\t No\n");
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(gpu->uuid, "GPU-5d3c");
  EXPECT_EQ(gpu->minor, "3");
  EXPECT_FALSE(read_driver_gpu(""));
  EXPECT_FALSE(read_driver_gpu("GPU UUID: GPU-1\nDevice Minor: ../sda\n"));
}

}  // namespace
}  // namespace trainyard::launch
