// Opens logs whose names and definitions are read and written through a sqlite::FileWatch, so that
// a test can make each of these operations fail.
//
// Threads and errors: as open_logs() (logs.hpp). Lifetime: the watch outlives the logs.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "observe/logs.hpp"

namespace trainyard::observe {

// `files` is the name of the watch; "": the operating system's files.
Result<std::unique_ptr<Logs>> open_watched_logs(const std::string& directory, Clock& clock,
                                                const LogSettings& settings,
                                                const std::string& files);

}  // namespace trainyard::observe
