// Implements `trainyard cache`: shows this machine's cache of objects' blocks, fills it, and pins
// blocks. It uses the agents' directory with the rights of the caller, which must be the server's
// Unix user.
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/layout.hpp"
#include "os/terminal.hpp"

namespace trainyard::apps {

struct CacheOptions {
  std::string data_directory;
  std::string action;   // ls, warm, pin, drop
  std::string uri;      // "s3://bucket/prefix"; "": everything
  bool pin = false;     // warm
  bool remove = false;  // pin
  bool all = false;     // drop
  bool json = false;    // ls
};

// `style` and `error_style`: the properties of standard output and of standard error, which shows
// the progress. Errors also: cancelled (Ctrl-C).
Result<void> cache_command(const CacheOptions& options, os::Terminal& terminal,
                           const cli::OutputStyle& style, const cli::OutputStyle& error_style,
                           Clock& clock);

}  // namespace trainyard::apps
