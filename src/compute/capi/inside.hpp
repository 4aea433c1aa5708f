// What the C interface's files share: what stands behind a group, and how an error is said.
//
// Threads: plain functions. Errors: none.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/result.hpp"
#include "capi/trainyard_collectives.h"
#include "collectives/group.hpp"

struct trainyard_group {
  std::unique_ptr<trainyard::collectives::Group> group;
};

namespace trainyard::capi {

inline trainyard_kind say(const Error& error, char* why) {
  if (why) {
    const size_t length = std::min<size_t>(error.message.size(), TRAINYARD_ERROR_BYTES - 1);
    std::memcpy(why, error.message.data(), length);
    why[length] = '\0';
  }
  return trainyard_kind(int(error.kind) + 1);
}

inline trainyard_kind say(const Result<void>& result, char* why) {
  return result ? TRAINYARD_OK : say(result.error(), why);
}

}  // namespace trainyard::capi
