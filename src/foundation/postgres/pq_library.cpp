#include "postgres/pq_library.hpp"

#include "os/shared_library.hpp"

namespace trainyard::postgres {

const PqFunctions& pq() {
  static const PqFunctions loaded = [] {
    const os::SharedLibrary file("libpq.so.5");
    PqFunctions found{};
#define TRAINYARD_FIND(name) file.find(found.name, #name);
    TRAINYARD_PQ_FUNCTIONS(TRAINYARD_FIND)
#undef TRAINYARD_FIND
    return found;
  }();
  return loaded;
}

}  // namespace trainyard::postgres
