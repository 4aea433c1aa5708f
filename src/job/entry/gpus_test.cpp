#include "entry/gpus.hpp"

#include <gtest/gtest.h>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::entry {
namespace {

// Simulates a machine with GPUs by the files of the kernel and NVIDIA's driver.
struct Machine {
  os::TemporaryDirectory directory;
  std::string root() const { return directory.path(); }
  void file(const std::string& path, const std::string& text) const {
    const std::string whole = root() + path;
    ASSERT_TRUE(os::make_directories(whole.substr(0, whole.rfind('/'))));
    ASSERT_TRUE(os::write_file(whole, text));
  }
  void device(int number) const { file("/dev/nvidia" + std::to_string(number), ""); }
  void gpu(const std::string& bus, int number, const std::string& sysfs,
           const std::string& cpus) const {
    file("/proc/driver/nvidia/gpus/" + bus + "/information",
         "Model: \t\t NVIDIA H200\nIRQ:   \t\t 120\nDevice Minor: \t " + std::to_string(number) +
             "\n");
    file("/sys/bus/pci/devices/" + sysfs + "/local_cpulist", cpus + "\n");
  }
};

TEST(Gpus, FindsTheContainersGpusInTheOrderOfTheirBuses) {
  const Machine machine;
  machine.device(2);
  machine.device(3);
  machine.gpu("0000:1B:00.0", 0, "0000:1b:00.0", "0-3");  // another job's
  machine.gpu("0000:DB:00.0", 2, "0000:db:00.0", "4-7");
  machine.gpu("0000:3B:00.0", 3, "0000:3b:00.0", "0-2,8");
  const auto gpus = find_gpus(machine.root());
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].device, 3);
  EXPECT_EQ(gpus[0].bus, "0000:3b:00.0");
  EXPECT_EQ(gpus[0].cpus, (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(gpus[1].device, 2);
  EXPECT_EQ(gpus[1].cpus, (std::vector<int>{4, 5, 6, 7}));
}

TEST(Gpus, CountsGpusWithoutTheDriversFiles) {
  const Machine machine;
  EXPECT_TRUE(find_gpus(machine.root()).empty());
  machine.device(0);
  machine.device(10);
  machine.device(2);
  const auto gpus = find_gpus(machine.root());
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(gpus[2].device, 10);
  EXPECT_TRUE(gpus[0].bus.empty() && gpus[0].cpus.empty());
}

TEST(Gpus, RejectsInvalidCpuLists) {
  EXPECT_EQ(parse_cpu_list("0-2,8,10-11\n"), (std::vector<int>{0, 1, 2, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list("7"), std::vector<int>{7});
  for (const char* text : {"", "\n", "a", "3-1", "0-99999999", "-1", "1,,2", "1-"})
    EXPECT_TRUE(parse_cpu_list(text).empty()) << text;
}

}  // namespace
}  // namespace trainyard::entry
