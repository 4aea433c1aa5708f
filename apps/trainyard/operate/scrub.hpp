// Implements `trainyard scrub`: reads every object of the data directory and compares it with its
// checksum.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/layout.hpp"
#include "os/terminal.hpp"

namespace trainyard::apps {

struct ScrubOptions {
  std::string data_directory;
  std::string bucket;             // "": all
  uint64_t bytes_per_second = 0;  // 0: no limit
  bool json = false;
};

// Returns true if no object is broken. A server may run meanwhile. `style` and `error_style`: the
// properties of standard output and of standard error, which shows the progress. Errors also:
// cancelled (Ctrl-C).
Result<bool> scrub(const ScrubOptions& options, os::Terminal& terminal,
                   const cli::OutputStyle& style, const cli::OutputStyle& error_style,
                   Clock& clock);

// The counts of the last complete scrub of all buckets.
struct LastScrub {
  Instant at;
  uint64_t objects = 0;
  uint64_t broken = 0;
};
// Returns nullopt if no scrub was completed, or if its file cannot be read.
std::optional<LastScrub> last_scrub(const std::string& data_directory);

}  // namespace trainyard::apps
