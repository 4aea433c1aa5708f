#include "forest/rows/channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/fnv.hpp"
#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::forest {
namespace {

constexpr size_t kPieceBytes = 1 << 20;
constexpr int kStopCheckMs = 100;
constexpr size_t kNameShown = 200;

class ChannelReader {
 public:
  ChannelReader(const ChannelOptions& options, const std::atomic<bool>& stop,
                const TakeIdentifiedRow& take)
      : options_(options), stop_(stop), take_(take), piece_(kPieceBytes, '\0') {}

  Result<ChannelEnd> read() {
    TRY(options_.is_pipe ? read_pipe() : read_files());
    end_.stopped = stop_;
    return end_;
  }

 private:
  Result<std::vector<std::string>> list() const {
    namespace fs = std::filesystem;
    const fs::path folder = options_.data + "/" + options_.name;
    std::vector<std::string> names;
    std::error_code fault;
    for (fs::recursive_directory_iterator at(folder, fault), end; !fault && at != end;
         at.increment(fault)) {
      if (at->path().filename().native().starts_with('.')) {
        if (at->is_directory(fault)) at.disable_recursion_pending();
        continue;
      }
      if (!at->is_regular_file(fault)) continue;
      if (names.size() == kFilesMax)
        return exhausted("more than " + std::to_string(kFilesMax) + " files");
      names.push_back(at->path().lexically_relative(folder).native());
    }
    if (fault) return from_errno("listing " + folder.native(), fault.value());
    std::ranges::sort(names);
    return names;
  }

  Result<void> read_files() {
    const auto names = TRY(list());
    const auto ranks = size_t(options_.ranks);
    const bool by_files = !options_.is_sharded && names.size() >= ranks;
    by_rows_ = !options_.is_sharded && !by_files;
    for (size_t i = 0; i < names.size() && !stop_; ++i) {
      if (by_files && i % ranks != size_t(options_.rank)) {
        ++end_.rows;  // at least one row in a file of another host
        continue;
      }
      const std::string path = options_.data + "/" + options_.name + "/" + names[i];
      TRY(read_file(path, fnv1a(names[i])).in(shorten(names[i], kNameShown)));
    }
    return ok();
  }

  Result<void> read_file(const std::string& path, uint64_t object) {
    const os::File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (!file) return from_errno("opening it");
    struct stat found {};
    if (::fstat(file.descriptor(), &found) != 0) return from_errno("reading its size");
    if (!S_ISREG(found.st_mode)) return invalid("it is not a regular file");
    return read_all(file, object, false);
  }

  // The writer of a FIFO opens it when it has data: until then there is no end of file.
  Result<void> read_pipe() {
    const std::string path = options_.data + "/" + options_.name + "_0";
    const os::File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return from_errno("opening " + path);
    by_rows_ = !options_.is_sharded;
    const std::string name = options_.is_sharded ? "pipe-" + std::to_string(options_.rank) : "pipe";
    return read_all(file, fnv1a(name), true);
  }

  Result<void> read_all(const os::File& file, uint64_t object, bool is_pipe) {
    RowDecoder decoder(options_.format, options_.dimensions);
    uint64_t number = 0;
    const TakeRow take = [&](std::span<const float> features, std::optional<double> label) {
      return take_row({object, number++}, features, label);
    };
    while (!stop_) {
      if (is_pipe && !TRY(is_readable(file))) continue;
      const ssize_t count = ::read(file.descriptor(), piece_.data(), piece_.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count < 0) return from_errno("reading it");
      if (count == 0) return decoder.finish(take);
      TRY(decoder.push(std::string_view(piece_).substr(0, size_t(count)), take));
    }
    return ok();
  }

  static Result<bool> is_readable(const os::File& file) {
    struct pollfd polled {
      file.descriptor(), POLLIN, 0
    };
    const int ready = ::poll(&polled, 1, kStopCheckMs);
    if (ready < 0 && errno != EINTR) return from_errno("waiting for data");
    return ready > 0;
  }

  Result<void> take_row(RowId id, std::span<const float> features, std::optional<double> label) {
    ++end_.rows;
    if (by_rows_ && id.number % uint64_t(options_.ranks) != uint64_t(options_.rank)) return ok();
    ++end_.taken;
    return take_(id, features, label);
  }

  const ChannelOptions& options_;
  const std::atomic<bool>& stop_;
  const TakeIdentifiedRow& take_;
  std::string piece_;
  bool by_rows_ = false;
  ChannelEnd end_;
};

}  // namespace

Result<ChannelEnd> read_channel(const ChannelOptions& options, const std::atomic<bool>& stop,
                                const TakeIdentifiedRow& take) {
  return ChannelReader(options, stop, take).read();
}

}  // namespace trainyard::forest
