#include "mount/fuse_library.hpp"

#include "os/shared_library.hpp"

namespace trainyard::mount {
namespace {

constexpr const char* kLibrary = "libfuse3.so.3";

}  // namespace

bool has_libfuse() {
  static const bool has = os::SharedLibrary::is_available(kLibrary);
  return has;
}

const FuseLibrary& libfuse() {
  static const FuseLibrary loaded = [] {
    const os::SharedLibrary file(kLibrary);
    FuseLibrary found{};
#define TRAINYARD_FIND(name) file.find(found.name, #name);
    TRAINYARD_FUSE_FUNCTIONS(TRAINYARD_FIND)
#undef TRAINYARD_FIND
    return found;
  }();
  return loaded;
}

}  // namespace trainyard::mount
