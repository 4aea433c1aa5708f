#include "cache/pins.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/arithmetic.hpp"
#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::cache {
namespace {

constexpr std::string_view kHeld = "held-", kKept = "kept-";
// Files occupy whole pages.
constexpr uint64_t kPageBytes = 4096;
std::atomic<uint64_t> pins_of_this_process = 0;

void order(std::vector<PinnedBlock>& blocks) {
  std::sort(blocks.begin(), blocks.end());
  const auto same = [](const auto& a, const auto& b) { return a.hash == b.hash; };
  blocks.erase(std::unique(blocks.begin(), blocks.end(), same), blocks.end());
}

uint64_t on_disk(const PinnedBlock& block) {
  return (block.bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

std::vector<PinnedBlock> all_blocks(const std::vector<FoundPin>& pins) {
  std::vector<PinnedBlock> all;
  for (const auto& each : pins)
    all.insert(all.end(), each.pin.blocks.begin(), each.pin.blocks.end());
  order(all);
  return all;
}

uint64_t bytes_of(const std::vector<PinnedBlock>& blocks) {
  uint64_t bytes = 0;
  for (const auto& each : blocks) bytes = saturating_add(bytes, on_disk(each));
  return bytes;
}

bool contains(const std::vector<PinnedBlock>& ordered, const Digest& hash) {
  return std::binary_search(ordered.begin(), ordered.end(), PinnedBlock{hash, 0});
}

HeldPin::~HeldPin() { ::unlink(path_.c_str()); }

Result<std::vector<FoundPin>> Pins::read() {
  std::vector<FoundPin> found;
  auto names = os::list_directory(directory_);
  if (!names && names.error().kind == Kind::not_found) return found;
  for (const auto& name : TRY(std::move(names))) {
    const std::string path = directory_ + "/" + name;
    const bool held = name.starts_with(kHeld);
    // A holder takes its lock before it releases the cache's lock, so no holder is missed.
    if ((held && !os::FileLock::held(path)) || name.starts_with(os::kNeighbourPrefix)) {
      ::unlink(path.c_str());
      continue;
    }
    if (!held && !name.starts_with(kKept)) continue;
    const auto file = os::read_file(path, kPinFileBytesMax);
    // The holder has released the pin meanwhile.
    if (!file && file.error().kind == Kind::not_found) continue;
    if (!file) return file.error();
    auto pin = decode_pin(*file);
    if (!pin)
      return std::move(pin).error().in("reading the pin " + path +
                                       " (remove it, so that blocks can be removed again)");
    found.push_back({*std::move(pin), held});
  }
  return found;
}

Result<std::unique_ptr<HeldPin>> Pins::hold(const std::string& name,
                                            std::vector<PinnedBlock> wanted,
                                            uint64_t own_bytes_max) {
  const auto others = all_blocks(TRY(read()));
  const uint64_t bytes_of_others = bytes_of(others);
  uint64_t bytes_wanted = 0, bytes_pinned = 0, shared = 0;
  std::vector<PinnedBlock> pinned;
  bool full = false;
  for (const auto& each : wanted) {
    const uint64_t bytes = on_disk(each);
    bytes_wanted = saturating_add(bytes_wanted, bytes);
    const bool is_shared = contains(others, each.hash);
    const uint64_t total = saturating_add(bytes_of_others, bytes_pinned - shared);
    full = full || pinned.size() == kPinBlocksMax ||
           saturating_add(bytes_pinned, bytes) > own_bytes_max ||
           (!is_shared && saturating_add(total, bytes) > bytes_max_);
    if (full) continue;
    pinned.push_back(each);
    bytes_pinned += bytes;
    if (is_shared) shared += bytes;
  }
  order(pinned);
  TRY(disk_.make_directories(directory_, 0700));
  // Skips held names: a process in another PID namespace may have the same number.
  std::string path;
  do
    path = directory_ + "/" + std::string(kHeld) + std::to_string(::getpid()) + "-" +
           std::to_string(++pins_of_this_process);
  while (os::FileLock::held(path));
  auto lock = TRY(os::SharedLock::take(path));
  auto held = std::make_unique<HeldPin>(path, std::move(lock));
  // Not durable: the pin ends with a restart of the machine in any case.
  const auto file = TRY(disk_.create(path, O_WRONLY | O_TRUNC));
  TRY(disk_.write(file, encode_pin({shorten(name, kPinNameBytesMax), std::move(pinned)}), path));
  held->bytes_wanted = bytes_wanted, held->bytes_pinned = bytes_pinned;
  held->bytes_of_others = bytes_of_others - shared, held->bytes_max = bytes_max_;
  return held;
}

std::string Pins::path_of_kept(const std::string& name) const {
  return directory_ + "/" + std::string(kKept) + to_hex(trainyard::bytes_of(sha256(name)));
}

Result<void> Pins::keep(Pin pin) {
  if (pin.name.size() > kPinNameBytesMax)
    return invalid("the name of a pin has " + std::to_string(pin.name.size()) + " bytes, at most " +
                   std::to_string(kPinNameBytesMax) + " are allowed");
  if (pin.blocks.size() > kPinBlocksMax)
    return exhausted("a pin of " + std::to_string(pin.blocks.size()) + " blocks exceeds " +
                     std::to_string(kPinBlocksMax));
  order(pin.blocks);
  auto others = TRY(read());
  std::erase_if(others, [&](const auto& each) { return !each.held && each.pin.name == pin.name; });
  const uint64_t bytes_before = bytes_of(all_blocks(others));
  const std::string path = path_of_kept(pin.name);
  const std::string bytes = encode_pin(pin);
  others.push_back({std::move(pin), false});
  const uint64_t bytes_after = bytes_of(all_blocks(others));
  if (bytes_after > bytes_max_)
    return exhausted("the cache pins at most " + human_bytes(bytes_max_) + ": " +
                     human_bytes(bytes_before) + " are pinned, and this pin needs " +
                     human_bytes(bytes_after - bytes_before) + " more");
  TRY(disk_.make_directories(directory_, 0700));
  return disk_.write_file_durably(path, bytes);
}

Result<bool> Pins::remove(const std::string& name) {
  const std::string path = path_of_kept(name);
  if (!os::exists(path)) return false;
  TRY(disk_.remove(path));
  TRY(disk_.sync_directory(directory_));
  return true;
}

}  // namespace trainyard::cache
