#include "boosting/rows/channel_table.hpp"

#include <algorithm>

#include "channels/channel_bytes.hpp"

namespace trainyard::boosting {
namespace {

bool is_hidden(const std::string& path) {
  return path.starts_with('_') || path.find("/_") != std::string::npos;
}

}  // namespace

Result<Table> read_table(const ChannelSource& source, const DecoderOptions& options,
                         const std::atomic<bool>& stop) {
  Table table;
  uint64_t rows = 0;
  const channels::ChannelFiles files{source.data, source.name};
  const auto decode = [&](const auto& read_bytes) -> Result<void> {
    TableDecoder decoder(options, table, rows);
    TRY(read_bytes(
        channels::FileCallbacks{[&](std::string_view piece) { return decoder.push(piece); },
                                [&] { return decoder.finish(); }}));
    rows = decoder.rows();
    return ok();
  };
  if (source.is_pipe) {
    TRY(decode([&](const channels::FileCallbacks& take) {
      return channels::read_pipe(files, stop, take);
    }));
    return table;
  }
  for (const std::string& name : TRY(channels::list_files(files))) {
    if (stop) break;
    if (is_hidden(name) || std::ranges::count(name, '/') > kFolderDepthMax) continue;
    TRY(decode([&](const channels::FileCallbacks& take) {
      return channels::read_file(files, name, stop, take);
    }));
  }
  return table;
}

}  // namespace trainyard::boosting
