// Reads the rows of a channel into a Table, from the files below its directory or from its FIFO.
//
// A channel that is sharded by object has different rows on each host. A channel that is the same
// on all hosts is either divided among them, row by row, or read whole on each.
//
// Threads: confined to one. Errors: those of files and rows, naming the file and its line; invalid,
// for a channel without rows. After `stop` is set, reading ends as at the end of the data.
#pragma once

#include <atomic>
#include <string>

#include "base/result.hpp"
#include "boosting/rows/table.hpp"
#include "boosting/rows/table_decoder.hpp"

namespace trainyard::boosting {

struct ChannelSource {
  std::string data;  // /opt/ml/input/data
  std::string name;
  bool is_pipe = false;
};

// Reads regular files at most kFolderDepthMax folders deep, as SageMaker does. Skips paths with a
// part that begins with '.' or '_'.
inline constexpr int kFolderDepthMax = 3;

Result<Table> read_table(const ChannelSource& source, const DecoderOptions& options,
                         const std::atomic<bool>& stop);

}  // namespace trainyard::boosting
