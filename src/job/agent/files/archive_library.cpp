#include "agent/files/archive_library.hpp"

#include "os/shared_library.hpp"

namespace trainyard::agent {

const ArchiveLibrary& libarchive() {
  static const ArchiveLibrary loaded = [] {
    const os::SharedLibrary file("libarchive.so.13");
    ArchiveLibrary found{};
#define TRAINYARD_FIND(name) file.find(found.name, #name);
    TRAINYARD_ARCHIVE_FUNCTIONS(TRAINYARD_FIND)
#undef TRAINYARD_FIND
    return found;
  }();
  return loaded;
}

}  // namespace trainyard::agent
