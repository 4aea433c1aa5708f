#include "channels/channel_bytes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::channels {
namespace {

constexpr size_t kPieceBytes = 1 << 20;
constexpr int kStopCheckMs = 100;

Result<bool> is_readable(const os::File& file) {
  struct pollfd polled {
    file.descriptor(), POLLIN, 0
  };
  const int ready = ::poll(&polled, 1, kStopCheckMs);
  if (ready < 0 && errno != EINTR) return from_errno("waiting for data");
  return ready > 0;
}

Result<void> read_all(const os::File& file, bool is_pipe, const std::atomic<bool>& stop,
                      const FileCallbacks& take) {
  std::string piece(kPieceBytes, '\0');
  while (!stop) {
    if (is_pipe && !TRY(is_readable(file))) continue;
    const ssize_t count = ::read(file.descriptor(), piece.data(), piece.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return from_errno("reading the file");
    if (count == 0) return take.finish();
    TRY(take.push(std::string_view(piece).substr(0, size_t(count))));
  }
  return ok();
}

Result<void> read_regular(const std::string& path, const std::atomic<bool>& stop,
                          const FileCallbacks& take) {
  const os::File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file) return from_errno("opening the file");
  struct stat found {};
  if (::fstat(file.descriptor(), &found) != 0) return from_errno("reading the file's size");
  if (!S_ISREG(found.st_mode)) return invalid("not a regular file");
  return read_all(file, false, stop, take);
}

}  // namespace

Result<std::vector<std::string>> list_files(const ChannelFiles& channel) {
  namespace fs = std::filesystem;
  const fs::path folder = channel.data + "/" + channel.name;
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

Result<void> read_file(const ChannelFiles& channel, const std::string& file,
                       const std::atomic<bool>& stop, const FileCallbacks& take) {
  const std::string path = channel.data + "/" + channel.name + "/" + file;
  return read_regular(path, stop, take).in(shorten(file, kFileNameShown));
}

// The writer opens the FIFO when it has data. Until then, read() returns 0, which is not the end of
// the file.
Result<void> read_pipe(const ChannelFiles& channel, const std::atomic<bool>& stop,
                       const FileCallbacks& take) {
  const std::string path = channel.data + "/" + channel.name + "_0";
  const os::File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return from_errno("opening " + path);
  return read_all(file, true, stop, take);
}

}  // namespace trainyard::channels
