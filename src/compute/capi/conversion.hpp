// Declares the helpers of the C API: the struct of a trainyard_group, and the conversion of errors,
// texts and options.
//
// Threads: plain functions. Errors: none.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "capi/trainyard_collectives.h"
#include "collectives/group.hpp"

struct trainyard_group {
  std::unique_ptr<trainyard::collectives::Group> group;
};

namespace trainyard::capi {

// Copies the message to `message`, truncated to TRAINYARD_ERROR_BYTES, and returns the kind.
inline trainyard_kind report(const Error& error, char* message) {
  if (message) {
    const size_t length = std::min<size_t>(error.message.size(), TRAINYARD_ERROR_BYTES - 1);
    std::memcpy(message, error.message.data(), length);
    message[length] = '\0';
  }
  return trainyard_kind(int(error.kind) + 1);
}

inline trainyard_kind report(const Result<void>& result, char* message) {
  return result ? TRAINYARD_OK : report(result.error(), message);
}

inline Error wrong_size(const char* type) {
  return invalid(std::string(type) +
                 ".size is wrong: the program was compiled for another version of the library");
}

// Checks the size of a struct that the caller filled.
template <typename Struct>
Result<void> check_size(const Struct* given, const char* type) {
  return given && given->size == sizeof *given ? ok() : Result<void>(wrong_size(type));
}

// Returns "" for null.
inline std::string text_from(const char* text) { return text ? text : ""; }

// Returns a copy for trainyard_text_free.
inline char* text_for_c(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

// Checks the size of `join`, and returns it with all members. Programs that were compiled for an
// older version pass it without the newer members.
Result<trainyard_join> whole(const trainyard_join* join);

// Converts the members of `join`, except those with the positions of the ranks.
collectives::TcpOptions options_from(const trainyard_join& join);

}  // namespace trainyard::capi
