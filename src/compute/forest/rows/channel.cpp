#include "forest/rows/channel.hpp"

#include "base/fnv.hpp"
#include "channels/channel_bytes.hpp"

namespace trainyard::forest {
namespace {

class ChannelReader {
 public:
  ChannelReader(const ChannelOptions& options, const std::atomic<bool>& stop,
                const IdentifiedRowCallback& take)
      : options_(options), files_{options.data, options.name}, stop_(stop), take_(take) {}

  Result<ChannelEnd> read() {
    TRY(options_.is_pipe ? read_pipe() : read_files());
    end_.stopped = stop_;
    return end_;
  }

 private:
  Result<void> read_files() {
    const auto names = TRY(channels::list_files(files_));
    const auto ranks = size_t(options_.ranks);
    const bool by_files = !options_.is_sharded && names.size() >= ranks;
    by_rows_ = !options_.is_sharded && !by_files;
    for (size_t i = 0; i < names.size() && !stop_; ++i) {
      if (by_files && i % ranks != size_t(options_.rank)) {
        ++end_.rows;  // counts at least one row of a file that another host reads
        continue;
      }
      TRY(decode(fnv1a(names[i]), [&](const channels::FileCallbacks& take) {
        return channels::read_file(files_, names[i], stop_, take);
      }));
    }
    return ok();
  }

  Result<void> read_pipe() {
    by_rows_ = !options_.is_sharded;
    const std::string name = options_.is_sharded ? "pipe-" + std::to_string(options_.rank) : "pipe";
    return decode(fnv1a(name), [&](const channels::FileCallbacks& take) {
      return channels::read_pipe(files_, stop_, take);
    });
  }

  template <class ReadBytes>
  Result<void> decode(uint64_t object, const ReadBytes& read_bytes) {
    RowDecoder decoder(options_.format, options_.dimensions);
    uint64_t number = 0;
    const RowCallback take = [&](std::span<const float> features, std::optional<double> label) {
      return take_row({object, number++}, features, label);
    };
    return read_bytes(
        channels::FileCallbacks{[&](std::string_view piece) { return decoder.push(piece, take); },
                                [&] { return decoder.finish(take); }});
  }

  Result<void> take_row(RowId id, std::span<const float> features, std::optional<double> label) {
    ++end_.rows;
    if (by_rows_ && id.number % uint64_t(options_.ranks) != uint64_t(options_.rank)) return ok();
    ++end_.taken;
    return take_(id, features, label);
  }

  const ChannelOptions& options_;
  const channels::ChannelFiles files_;
  const std::atomic<bool>& stop_;
  const IdentifiedRowCallback& take_;
  bool by_rows_ = false;
  ChannelEnd end_;
};

}  // namespace

Result<ChannelEnd> read_channel(const ChannelOptions& options, const std::atomic<bool>& stop,
                                const IdentifiedRowCallback& take) {
  return ChannelReader(options, stop, take).read();
}

}  // namespace trainyard::forest
