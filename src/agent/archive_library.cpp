#include "agent/archive_library.hpp"

#include "host/late_library.hpp"

namespace trainyard::agent {

const ArchiveLibrary& libarchive() {
  static const ArchiveLibrary loaded = [] {
    const host::LateLibrary file("libarchive.so.13");
    ArchiveLibrary found{};
#define TRAINYARD_FIND(name) file.find(found.name, #name);
    TRAINYARD_ARCHIVE_FUNCTIONS(TRAINYARD_FIND)
#undef TRAINYARD_FIND
    return found;
  }();
  return loaded;
}

}  // namespace trainyard::agent
