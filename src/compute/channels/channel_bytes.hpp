// Reads the bytes of a channel in pieces, from the files below its directory, or from its FIFO in
// Pipe mode.
//
// Files are read in the order of their paths. Names that begin with a dot are skipped. The bytes of
// a FIFO count as one file named "pipe".
//
// Threads: confined to one. Errors: those of files and of the callbacks, naming the file. `stop` is
// not an error: reading ends without a call of finish().
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::channels {

inline constexpr size_t kFilesMax = 1'000'000;
inline constexpr size_t kFileNameShown = 200;  // bytes of a name that an error shows

struct ChannelFiles {
  std::string data;  // /opt/ml/input/data
  std::string name;  // name of the channel
};

// Returns the paths of the regular files below the channel's directory, relative to it, in order.
// Errors: exhausted: more than kFilesMax.
Result<std::vector<std::string>> list_files(const ChannelFiles& channel);

// Callbacks for the bytes of one file. `finish` is called at its end.
struct FileCallbacks {
  std::function<Result<void>(std::string_view piece)> push;
  std::function<Result<void>()> finish;
};

// Reads one file. `file` is a path from list_files. Symbolic links are not followed.
Result<void> read_file(const ChannelFiles& channel, const std::string& file,
                       const std::atomic<bool>& stop, const FileCallbacks& take);
// Reads the FIFO of the channel until its writer closes it.
Result<void> read_pipe(const ChannelFiles& channel, const std::atomic<bool>& stop,
                       const FileCallbacks& take);

}  // namespace trainyard::channels
