#include "transfer/curl_library.hpp"

#include "os/shared_library.hpp"

namespace trainyard::transfer {

const CurlFunctions& curl() {
  static const CurlFunctions loaded = [] {
    const os::SharedLibrary file("libcurl.so.4");
    CurlFunctions found{};
#define TRAINYARD_FIND(name) file.find(found.name, #name);
    TRAINYARD_CURL_FUNCTIONS(TRAINYARD_FIND)
#undef TRAINYARD_FIND
    found.started = found.curl_global_init(CURL_GLOBAL_DEFAULT);
    return found;
  }();
  return loaded;
}

}  // namespace trainyard::transfer
