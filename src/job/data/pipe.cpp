#include "data/pipe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/thread_safety.hpp"
#include "os/beneath.hpp"

namespace trainyard::data {
namespace {

// The intervals at which a FIFO is opened, since it cannot be polled for a reader. Short at first,
// when a reader is likely to open it soon.
constexpr Duration kPollInterval = 2ms;
constexpr Duration kPollIntervalLater = 20ms;
constexpr int kPolledOften = 500;
// The longest wait for space in a full FIFO before a stop is checked.
constexpr int kFullWaitMilliseconds = 50;
// The size of a FIFO: the default limit of Linux.
constexpr int kFifoBytes = 1 << 20;

}  // namespace

Pipe::Pipe(std::string directory, std::string channel,
           std::function<std::unique_ptr<Feed>(uint64_t epoch)> open_epoch,
           std::function<void(Error)> on_failure)
    : directory_path_(std::move(directory)),
      channel_(std::move(channel)),
      open_epoch_(std::move(open_epoch)),
      on_failure_(std::move(on_failure)) {}

Result<void> Pipe::start() {
  directory_ = os::File(::open(directory_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory_) return from_errno("opening " + directory_path_);
  TRY(make_fifo(0));
  thread_ = std::thread([this] { run(); });
  return {};
}

void Pipe::stop() {
  stop_.order();
  {
    const MutexLock lock(mutex_);
    if (feed_ != nullptr) feed_->stop();
  }
  if (thread_.joinable()) thread_.join();
}

void Pipe::run() {
  for (uint64_t epoch = 0; !stop_.ordered(); ++epoch) {
    const auto sent = send_epoch(epoch);
    if (sent && *sent == Sent::stopped) return;
    if (sent) continue;
    if (sent.error().kind != Kind::cancelled) on_failure_(sent.error());
    return;
  }
}

Result<Pipe::Sent> Pipe::send_epoch(uint64_t epoch) {
  const auto feed = open_epoch_(epoch);
  {
    const MutexLock lock(mutex_);
    feed_ = feed.get();
  }
  const auto forget = [&] {
    const MutexLock lock(mutex_);
    feed_ = nullptr;
  };
  auto fifo = wait_for_reader(epoch);
  auto sent = fifo ? send(*fifo, *feed) : Result<Sent>(fifo.error());
  forget();
  if (!sent && sent.error().kind != Kind::cancelled) {
    // The FIFO stays open until the agent has ended the reader: closing it would look like the end
    // of the epoch.
    on_failure_(sent.error());
    while (!stop_.wait(kOutageMax)) {
    }
    return Sent::stopped;
  }
  if (!sent || *sent == Sent::stopped) return sent;
  TRY(make_fifo(epoch + 1));
  remove_fifo(epoch);
  return sent;
}

Result<os::File> Pipe::wait_for_reader(uint64_t epoch) {
  for (int requested = 0;; ++requested) {
    auto fifo = os::open_fifo_beneath(directory_, name_of(epoch), os::FifoEnd::writing);
    if (fifo) {
      (void)::fcntl(fifo->descriptor(), F_SETPIPE_SZ, kFifoBytes);  // optional
      return fifo;
    }
    if (fifo.error().kind != Kind::not_found)
      return std::move(fifo).error().in("opening a channel's FIFO");
    if (stop_.wait(requested < kPolledOften ? kPollInterval : kPollIntervalLater))
      return cancelled("stopped");
  }
}

Result<Pipe::Sent> Pipe::send(const os::File& fifo, Feed& feed) {
  for (;;) {
    const auto bytes = TRY(feed.next());
    if (!bytes) return Sent::all;
    const auto sent = TRY(write_all(fifo, *bytes));
    if (sent != Sent::all) return sent;
  }
}

Result<Pipe::Sent> Pipe::write_all(const os::File& fifo, const std::vector<char>& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    if (stop_.ordered()) return Sent::stopped;
    const ssize_t now = ::write(fifo.descriptor(), bytes.data() + at, bytes.size() - at);
    if (now >= 0) {
      at += static_cast<size_t>(now);
    } else if (errno == EPIPE) {
      return Sent::closed_early;
    } else if (errno == EAGAIN) {
      struct pollfd wanted {
        fifo.descriptor(), POLLOUT, 0
      };
      ::poll(&wanted, 1, kFullWaitMilliseconds);
    } else if (errno != EINTR) {
      return from_errno("writing to " + channel_ + "'s FIFO");
    }
  }
  return Sent::all;
}

Result<void> Pipe::make_fifo(uint64_t epoch) {
  const std::string name = name_of(epoch);
  remove_fifo(epoch);  // a file that the job made there
  if (::mkfifoat(directory_.descriptor(), name.c_str(), 0666) != 0)
    return from_errno("making the FIFO " + name);
  // Independent of the umask: the job may run as any user.
  const auto fifo = TRY(os::open_fifo_beneath(directory_, name, os::FifoEnd::reading));
  if (::fchmod(fifo.descriptor(), 0666) != 0)
    return from_errno("opening the FIFO " + name + " to the job");
  return {};
}

void Pipe::remove_fifo(uint64_t epoch) {
  ::unlinkat(directory_.descriptor(), name_of(epoch).c_str(), 0);
}

}  // namespace trainyard::data
