#include "containers/gpu/gpu_memory.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <thread>

#include "base/json_record.hpp"
#include "base/text.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace trainyard::containers {
namespace {

constexpr std::string_view kGpu = "/dev/nvidia";
constexpr const char* kDriverLibrary = "libcuda.so.1";
constexpr int kOutOfMemory = 2;                // CUDA_ERROR_OUT_OF_MEMORY
constexpr size_t kChunkBytesLeast = 64 << 10;  // the granularity of the driver
// limit of free memory that may stay unallocated, in gaps between pieces
constexpr size_t kLeftBytesMax = 64 << 20;
// limit of pieces; far more than repeated halving of the size makes
constexpr size_t kChunksMax = 1 << 16;
// a driver needs seconds to start, and less than a second to clear 100 GB at 500 GB/s
constexpr Duration kClearMax = 2min;
constexpr Duration kHeldMax = 10s;  // killed processes need some time to release their devices
constexpr Duration kHeldInterval = 50ms;
constexpr size_t kMarkBytesMax = 64 << 10;
constexpr size_t kMapsBytesMax = 64 << 20;  // for a process with many thousands of mappings
constexpr const char* kUsed = "used";
constexpr const char* kNotCleared = "not cleared";

Error driver_error(const char* doing, int code) {
  return unavailable(std::string("the CUDA driver: ") + doing + " failed with error " +
                     std::to_string(code));
}

#define TRY_CUDA(doing, call) \
  if (const int code = (call); code != 0) return driver_error(doing, code)

Result<CudaDriver> load_driver() {
  void* const library = ::dlopen(kDriverLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return not_found(std::string("the CUDA driver's library ") + kDriverLibrary +
                     " cannot be loaded: " + ::dlerror());
  CudaDriver driver = {};
  bool complete = true;
  const auto find = [&]<class Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    complete = complete && function;
  };
  find(driver.init, "cuInit");
  find(driver.count, "cuDeviceGetCount");
  find(driver.get, "cuDeviceGet");
  find(driver.bus, "cuDeviceGetPCIBusId");
  find(driver.create_context, "cuCtxCreate_v2");
  find(driver.destroy_context, "cuCtxDestroy_v2");
  find(driver.free_bytes, "cuMemGetInfo_v2");
  find(driver.allocate, "cuMemAlloc_v2");
  find(driver.release, "cuMemFree_v2");
  find(driver.fill, "cuMemsetD8_v2");
  find(driver.synchronize, "cuCtxSynchronize");
  if (!complete)
    return not_found(std::string(kDriverLibrary) +
                     " does not have all functions of the CUDA driver");
  return driver;
}

Result<int> find_device(const CudaDriver& driver, const std::string& bus, int number) {
  int count = 0, device = 0;
  TRY_CUDA("counting GPUs", driver.count(&count));
  if (bus.empty()) {
    if (number >= count)
      return not_found("finding a GPU: the CUDA driver has " + std::to_string(count) +
                       " GPUs, but not number " + std::to_string(number));
    TRY_CUDA("finding a GPU", driver.get(&device, number));
    return device;
  }
  for (int ordinal = 0; ordinal < count; ordinal++) {
    char text[32] = {};
    TRY_CUDA("finding a GPU", driver.get(&device, ordinal));
    TRY_CUDA("reading a GPU's address", driver.bus(text, sizeof text - 1, device));
    if (to_lower(text) == bus) return device;
  }
  return not_found("finding a GPU: the CUDA driver has none at " + bus);
}

// Allocates all free memory, the largest pieces first, and fills each piece.
Result<uint64_t> fill_free_memory(const CudaDriver& driver,
                                  std::vector<unsigned long long>& taken) {
  size_t free = 0, total = 0;
  TRY_CUDA("reading the free memory", driver.free_bytes(&free, &total));
  uint64_t cleared = 0;
  const auto whole = [](size_t bytes) { return bytes / kChunkBytesLeast * kChunkBytesLeast; };
  for (size_t chunk = whole(free); chunk >= kChunkBytesLeast && taken.size() < kChunksMax;) {
    unsigned long long address = 0;
    const int code = driver.allocate(&address, chunk);
    if (code == kOutOfMemory) {
      chunk = chunk == kChunkBytesLeast ? 0 : std::max(kChunkBytesLeast, whole(chunk / 2));
      continue;
    }
    if (code != 0) return driver_error("allocating memory", code);
    taken.push_back(address);
    TRY_CUDA("writing over memory", driver.fill(address, 0, chunk));
    cleared += chunk;
  }
  TRY_CUDA("writing over memory", driver.synchronize());
  TRY_CUDA("reading the free memory", driver.free_bytes(&free, &total));
  if (free > kLeftBytesMax)
    return unavailable(human_bytes(free) + " of " + human_bytes(total) +
                       " could not be allocated to be cleared");
  return cleared;
}

// Returns the PCI address of the GPU with that number, from the kernel's driver.
std::string bus_of(int number, const std::string& root) {
  const std::string driver = root + "/proc/driver/nvidia/gpus";
  const auto buses = os::list_directory(driver);
  if (!buses) return "";
  for (const auto& bus : *buses) {
    const auto driver_text = os::read_file(driver + "/" + bus + "/information", kMarkBytesMax);
    if (!driver_text) continue;
    for (const auto line : split(*driver_text, '\n')) {
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos || trim(line.substr(0, colon)) != "Device Minor")
        continue;
      const auto minor_number = parse_int(trim(line.substr(colon + 1)));
      if (minor_number && *minor_number == number) return to_lower(bus);
    }
  }
  return "";
}

ino_t namespace_of(const std::string& process) {
  struct stat status = {};
  return ::stat((process + "/ns/pid").c_str(), &status) == 0 ? status.st_ino : 0;
}

bool has_open(const std::string& process, dev_t device) {
  const auto files = os::list_directory(process + "/fd");
  if (!files) return false;
  return std::any_of(files->begin(), files->end(), [&](const std::string& name) {
    struct stat status = {};
    return ::stat((process + "/fd/" + name).c_str(), &status) == 0 && S_ISCHR(status.st_mode) &&
           status.st_rdev == device;
  });
}

bool has_mapped(const std::string& process, const std::string& device) {
  const auto maps = os::read_file(process + "/maps", kMapsBytesMax);
  if (!maps) return false;
  const auto lines = split(*maps, '\n');
  return std::any_of(lines.begin(), lines.end(),
                     [&](std::string_view line) { return line.ends_with(" " + device); });
}

}  // namespace

bool is_gpu(const std::string& device) {
  if (!device.starts_with(kGpu)) return false;
  const auto number = parse_int(std::string_view(device).substr(kGpu.size()));
  return number && *number >= 0 && *number <= INT_MAX;
}

Result<uint64_t> clear_memory(const CudaDriver& driver, const std::string& bus, int number) {
  TRY_CUDA("starting", driver.init(0));
  const int device = TRY(find_device(driver, bus, number));
  void* context = nullptr;
  TRY_CUDA("making a context", driver.create_context(&context, 0, device));
  std::vector<unsigned long long> taken;
  auto cleared = fill_free_memory(driver, taken);
  for (const auto address : taken) (void)driver.release(address);
  (void)driver.destroy_context(context);
  return cleared;
}

Result<uint64_t> clear_gpu(const std::string& device, const std::string& root) {
  if (!is_gpu(device)) return invalid("invalid GPU device file '" + device + "'");
  const int number = int(*parse_int(std::string_view(device).substr(kGpu.size())));
  // If the kernel's driver provides no addresses, uses the order of the kernel's numbers.
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  const auto driver = TRY(load_driver());
  return clear_memory(driver, bus_of(number, root), number);
}

std::vector<pid_t> holders_of(const std::string& device) {
  std::vector<pid_t> holders;
  struct stat status = {};
  if (::stat(device.c_str(), &status) != 0) return holders;
  const auto processes = os::list_directory("/proc");
  if (!processes) return holders;
  const ino_t ours = namespace_of("/proc/self");
  for (const auto& name : *processes) {
    const auto number = parse_int(name);
    const std::string process = "/proc/" + name;
    if (!number || namespace_of(process) == ours) continue;
    if (has_open(process, status.st_rdev) || has_mapped(process, device))
      holders.push_back(pid_t(*number));
  }
  return holders;
}

Result<void> clear_gpu_by(const std::string& program, const std::string& device) {
  const auto deadline = std::chrono::steady_clock::now() + kHeldMax;
  for (auto holders = holders_of(device); !holders.empty(); holders = holders_of(device)) {
    if (std::chrono::steady_clock::now() >= deadline)
      return unavailable("clearing " + device + ": process " + std::to_string(holders.front()) +
                         " still holds it");
    std::this_thread::sleep_for(kHeldInterval);
  }
  os::Command command;
  command.arguments = {program, "--clear-gpu", device};
  command.at_most = kClearMax;
  TRY(os::run_or_fail(command));
  return ok();
}

// -- marks ----------------------------------------------------------------------------------------

std::string GpuMarks::mark_of(const std::string& device) const {
  std::string name = device;
  std::replace(name.begin(), name.end(), '/', '!');  // as the kernel does for such names in /sys
  return directory_ + "/" + name;
}

namespace {

struct Mark {
  std::string device, state, reason;
};

constexpr auto kMark = json_record<Mark>("GPU mark", [](auto& side, auto& mark) {
  side("device", mark.device);
  side("state", mark.state);
  side("reason", mark.reason);
});

Result<void> write_mark(const std::string& path, const std::string& device, const char* state,
                        const std::string& reason) {
  return os::write_file_durably(path, dump(kMark.write({device, state, to_utf8(reason)})), 0600);
}

Result<Mark> read_mark(const std::string& path) {
  return kMark.read(TRY(parse_json(TRY(os::read_file(path, kMarkBytesMax)))));
}

}  // namespace

Result<void> GpuMarks::clear(const std::string& device) const {
  auto cleared = clear_(device);
  if (cleared) return os::remove_all(mark_of(device));
  if (auto kept = write_mark(mark_of(device), device, kNotCleared, cleared.error().message); !kept)
    return kept;
  return cleared;
}

Result<void> GpuMarks::claim(const std::string& device) const {
  TRY(os::make_directories(directory_, 0700));
  if (os::exists(mark_of(device))) TRY(clear(device).in("clearing " + device));
  return write_mark(mark_of(device), device, kUsed, "");
}

Result<void> GpuMarks::release(const std::string& device) const {
  if (!os::exists(mark_of(device))) return ok();
  return clear(device).in("clearing " + device);
}

std::vector<UnclearedGpu> uncleared_gpus(const std::string& directory) {
  std::vector<UnclearedGpu> all;
  const auto names = os::list_directory(directory);
  if (!names) return all;
  for (const auto& name : *names) {
    const std::string path = directory + "/" + name;
    if (auto mark = read_mark(path); mark && mark->state == kNotCleared)
      all.push_back({std::move(mark->device), std::move(mark->reason), path});
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.device < b.device; });
  return all;
}

}  // namespace trainyard::containers
