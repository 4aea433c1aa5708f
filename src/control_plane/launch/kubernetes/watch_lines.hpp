// WatchLines splits the bytes of a watch into lines, each of which has one JSON object.
//
// It keeps the begun line only. A connection may end in the middle of a line, which is then
// dropped with the WatchLines: the watch is resumed after the last whole line.
//
// Threads: confined to one. Errors: exhausted (a longer line), and those of the function that
// receives the lines.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::launch {

// etcd holds objects of at most 1.5 MiB, which are some times as long in JSON.
inline constexpr size_t kWatchLineBytesMax = 8 << 20;

class WatchLines {
 public:
  // Calls `take` with each line that the bytes complete, without its end. Stops at its first error.
  template <class Take>
  Result<void> append(std::string_view bytes, const Take& take) {
    for (;;) {
      const size_t end = bytes.find('\n');
      if (begun_.size() + std::min(end, bytes.size()) > kWatchLineBytesMax)
        return exhausted("a line of the watch has more than " +
                         std::to_string(kWatchLineBytesMax >> 20) + " MiB");
      begun_ += bytes.substr(0, end);
      if (end == std::string_view::npos) return {};
      bytes.remove_prefix(end + 1);
      const std::string line = std::move(begun_);
      begun_.clear();
      if (!line.empty()) TRY(take(std::string_view(line)));
    }
  }

 private:
  std::string begun_;
};

}  // namespace trainyard::launch
