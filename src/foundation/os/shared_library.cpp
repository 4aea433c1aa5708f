#include "os/shared_library.hpp"

#include <dlfcn.h>

#include <string>

#include "base/check.hpp"

namespace trainyard::os {

SharedLibrary::SharedLibrary(const char* name)
    : name_(name), handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  CHECK(handle_ != nullptr, ("this machine has the library " + std::string(name_)).c_str());
}

bool SharedLibrary::is_available(const char* name) {
  return ::dlopen(name, RTLD_NOW | RTLD_LOCAL) != nullptr;
}

void* SharedLibrary::address_of(const char* symbol) const {
  void* const address = ::dlsym(handle_, symbol);
  CHECK(address != nullptr, (std::string(name_) + " has " + symbol).c_str());
  return address;
}

}  // namespace trainyard::os
