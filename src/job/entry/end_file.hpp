// Writes the result of a host's run to the file that SageMaker reads: output/success, or
// output/failure with the reason.
//
// The job's processes may have made links, FIFOs or devices there; nothing is written through them.
//
// Threads: callable from anywhere. Errors: those of os/beneath.hpp.
#pragma once

#include <string>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::entry {

// `base`: /opt/ml, opened before the first process of the user started.
Result<void> write_end(const os::File& base, int code, const std::string& failure);

}  // namespace trainyard::entry
