// Reads the staged files of other hosts: a tar from a bucket to which others may write. For any
// content, the returned names stay below the archive's root.
// decoder: src/job/agent/files/tar_reader.cpp
#include <algorithm>
#include <array>

#include "agent/files/artifact.hpp"
#include "base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::agent;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  size_t at = 0;
  auto reader = read_tar([&](std::span<char> buffer) -> trainyard::Result<size_t> {
    const size_t taken = std::min(buffer.size(), bytes.size() - at);
    std::copy_n(bytes.data() + at, taken, buffer.data());
    at += taken;
    return taken;
  });
  if (!reader) return 0;
  UnionNames names;
  std::array<char, 4096> buffer;
  for (int entries = 0; entries < 1000; ++entries) {
    const auto entry = (*reader)->next();
    if (!entry || !*entry) break;
    CHECK(clean_name((*entry)->name), "names are clean");
    (void)names.place((*entry)->name, (*entry)->type == TarEntry::Type::directory, "algo-2");
    for (int reads = 0; reads < 64; ++reads) {
      const auto got = (*reader)->read(buffer);
      if (!got || *got == 0) break;
    }
  }
  return 0;
}
