#include "os/start_memory.hpp"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace trainyard::os {
namespace {

// Unmaps the read-only segments of one object, whose pages equal those of its file.
int unmap_constants(dl_phdr_info* object, size_t, void*) {
  static const auto page = ElfW(Addr)(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
    const ElfW(Addr) begin = (object->dlpi_addr + part.p_vaddr) & ~(page - 1),
                     end =
                         (object->dlpi_addr + part.p_vaddr + part.p_memsz + page - 1) & ~(page - 1);
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void release_start_memory() {
  ::malloc_trim(0);
  ::dl_iterate_phdr(unmap_constants, nullptr);
}

}  // namespace trainyard::os
