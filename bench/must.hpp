// Unwraps a Result in a program of the bench: returns its value, or prints the error and exits.
//
// Threads: any.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/result.hpp"

namespace trainyard::bench {

inline void must(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "bench: %s\n", result.error().message.c_str());
  std::_Exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result) must(Result<void>(result.error()));
  return std::move(result).value();
}

}  // namespace trainyard::bench
