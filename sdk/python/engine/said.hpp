// What the C functions here share: the words of the last failure of this thread, and how a member
// of a training that may grow and shrink joins.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "collectives/group.hpp"

namespace trainyard::sdk {

inline std::string& last_said() {
  thread_local std::string words;
  return words;
}

// -1: what a C function gives when it fails.
inline int32_t say(const Error& error) {
  last_said() = error.message;
  return -1;
}

// `member`: of engine/elastic.h.
Result<std::unique_ptr<collectives::Group>> join_generation(void* member,
                                                            collectives::TcpOptions options);

}  // namespace trainyard::sdk
