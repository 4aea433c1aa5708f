// FakeNvml is a library that a test opens in place of NVIDIA's, compiled from tests/fake_nvml.c,
// and the file that describes its GPUs.
//
// Threads: confined to one. It sets an environment variable, which the library reads.
// Lifetime: the library stays loaded when its file is removed, with the last FakeNvml.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "os/files.hpp"
#include "os/process.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::containers {

class FakeNvml {
 public:
  FakeNvml() {
    ::setenv("TRAINYARD_TEST_NVML", (directory_.path() + "/gpus").c_str(), 1);
    // Tests run in the folder of their module.
    compiled_ = bool(os::run_or_fail({{"cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o",
                                       library(), "../../../tests/fake_nvml.c"}}));
  }
  ~FakeNvml() { ::unsetenv("TRAINYARD_TEST_NVML"); }
  FakeNvml(const FakeNvml&) = delete;

  bool compiled() const { return compiled_; }
  std::string library() const { return directory_.path() + "/libnvidia-ml.so.1"; }
  // A line for each GPU, as tests/fake_nvml.c reads it.
  void set(const std::string& gpus) {
    (void)os::write_file(directory_.path() + "/gpus.new", gpus);
    std::filesystem::rename(directory_.path() + "/gpus.new", directory_.path() + "/gpus");
  }
  // As if the driver was removed.
  void remove() { (void)os::remove_all(directory_.path() + "/gpus"); }

 private:
  const os::TemporaryDirectory directory_;
  bool compiled_ = false;
};

}  // namespace trainyard::containers
