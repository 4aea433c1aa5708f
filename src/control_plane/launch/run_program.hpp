// RunProgram runs another program and waits for its end. It is a parameter of the launchers, so
// that their tests need no programs.
//
// Threads: as the caller's. Errors: those of os::run().
#pragma once

#include <functional>

#include "base/result.hpp"
#include "os/process.hpp"

namespace trainyard::launch {

// Runs a program to its end: os::run(), or a fake in tests.
using RunProgram = std::function<Result<os::Outcome>(const os::Command&)>;

}  // namespace trainyard::launch
