// Declares what the files of the C interface share: the struct behind a trainyard_group, and the
// conversion of errors.
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

// Copies the message to `why`, truncated to TRAINYARD_ERROR_BYTES, and returns the kind.
inline trainyard_kind report(const Error& error, char* why) {
  if (why) {
    const size_t length = std::min<size_t>(error.message.size(), TRAINYARD_ERROR_BYTES - 1);
    std::memcpy(why, error.message.data(), length);
    why[length] = '\0';
  }
  return trainyard_kind(int(error.kind) + 1);
}

inline trainyard_kind report(const Result<void>& result, char* why) {
  return result ? TRAINYARD_OK : report(result.error(), why);
}

}  // namespace trainyard::capi
