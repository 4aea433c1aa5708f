// Reads the rows of a channel: the files below its directory, or its FIFO in Pipe mode.
//
// A row is identified by the hash of its file's path in the channel and its number in the file, so
// its identity does not depend on which host reads it. A pipe has no names: its rows are identified
// by the host's rank and their number in the stream.
//
// A channel that all hosts have is divided among them: by files if there are as many, else by rows.
//
// Threads: confined to one. Errors: of files and rows, naming the file; cancelled never: after
// `stop` reading ends as at the end of the data, and the result says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "forest/rows/row_decoder.hpp"
#include "forest/trees/keys.hpp"

namespace trainyard::forest {

struct ChannelOptions {
  std::string data;  // /opt/ml/input/data
  std::string name;
  bool is_pipe = false;
  bool is_sharded = false;  // each host has rows of its own
  int rank = 0;
  int ranks = 1;
  RowFormat format;
  size_t dimensions = 1;
};

struct ChannelEnd {
  uint64_t rows = 0;   // that this host has, those of other hosts included
  uint64_t taken = 0;  // by this host
  bool stopped = false;
};

using TakeIdentifiedRow = std::function<Result<void>(RowId id, std::span<const float> features,
                                                     std::optional<double> label)>;

Result<ChannelEnd> read_channel(const ChannelOptions& options, const std::atomic<bool>& stop,
                                const TakeIdentifiedRow& take);

}  // namespace trainyard::forest
