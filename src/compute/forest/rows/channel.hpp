// Reads the rows of a channel from the files below its directory, or from its FIFO in Pipe mode.
//
// A row is identified by the hash of its file's path in the channel and its number in the file. So
// its identity does not depend on which host reads it. Rows of a pipe are identified by their
// number in the stream, and by the host's rank if each host has different rows.
//
// A channel that all hosts have is divided among them: by files if there are at least as many files
// as hosts, else by rows.
//
// Threads: confined to one. Errors: those of files and rows, naming the file. `stop` is not an
// error: reading ends as at the end of the data, and ChannelEnd::stopped is set.
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
  bool is_sharded = false;  // each host has different rows
  int rank = 0;
  int ranks = 1;
  RowFormat format;
  size_t dimensions = 1;
};

struct ChannelEnd {
  uint64_t rows = 0;   // rows that this host has, including rows that belong to other hosts
  uint64_t taken = 0;  // rows that belong to this host
  bool stopped = false;
};

using IdentifiedRowCallback = std::function<Result<void>(RowId id, std::span<const float> features,
                                                         std::optional<double> label)>;

Result<ChannelEnd> read_channel(const ChannelOptions& options, const std::atomic<bool>& stop,
                                const IdentifiedRowCallback& take);

}  // namespace trainyard::forest
