#include "net/link.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "net/frame_decoder.hpp"
#include "os/files.hpp"

namespace trainyard::net {
namespace {

constexpr size_t kLengthBytes = FrameDecoder::kLengthBytes;
// limit of bytes that are read from one link before the next is served; so large that the cost of a
// call is small
constexpr size_t kReadBytesMax = 64 << 10;
// limit of frames that are passed to the kernel in one call
constexpr size_t kFramesAtOnceMax = 32;
// backlog of connections before accept(): enough for a restart of many agents at once
constexpr int kBacklogMax = 1024;
// a host that does not answer within this time is unreachable
constexpr Duration kConnectLimit = 10s;
// the pause in accepting if no descriptors are free
constexpr Duration kAcceptRest = 100ms;

// -- addresses ------------------------------------------------------------------------------------

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  // Descriptor of the directory of a unix socket, through which it is accessed if its path is too
  // long for sockaddr_un.
  os::File folder;
  std::string path;  // complete path of a unix socket

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

Result<SocketAddress> unix_address(const std::string& path) {
  SocketAddress address;
  address.path = path;
  auto* parts = reinterpret_cast<sockaddr_un*>(&address.storage);
  parts->sun_family = AF_UNIX;
  std::string reach = path;
  if (reach.size() >= sizeof parts->sun_path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos)
      return invalid("invalid unix socket: name too long: " + shorten(path, 64));
    const std::string parent = slash == 0 ? "/" : path.substr(0, slash);
    address.folder = os::File(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!address.folder) return from_errno("unix socket: opening " + parent);
    reach = "/proc/self/fd/" + std::to_string(address.folder.descriptor()) + path.substr(slash);
    if (reach.size() >= sizeof parts->sun_path)
      return invalid("invalid unix socket: name too long: " + shorten(path.substr(slash + 1), 64));
  }
  if (reach.empty()) return invalid("invalid unix socket: the path is empty");
  std::memcpy(parts->sun_path, reach.data(), reach.size());
  address.length = socklen_t(offsetof(sockaddr_un, sun_path) + reach.size() + 1);
  return address;
}

// Resolves "127.0.0.1:4570", "[::1]:4570" or "name:4570".
Result<SocketAddress> tcp_address(std::string_view text, bool listening) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return invalid("invalid address '" + shorten(text, 64) + "': the port is missing");
  std::string name(text.substr(0, colon)), port(text.substr(colon + 1));
  if (name.size() >= 2 && name.front() == '[' && name.back() == ']')
    name = name.substr(1, name.size() - 2);
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (listening ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  if (const int why = ::getaddrinfo(name.c_str(), port.c_str(), &hints, &found); why != 0) {
    const Kind kind = why == EAI_AGAIN ? Kind::unavailable : Kind::not_found;
    return Error{kind, "address '" + shorten(text, 64) + "': " + ::gai_strerror(why)};
  }
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

Result<SocketAddress> socket_address(const std::string& text, bool listening) {
  if (text.starts_with("unix:")) return unix_address(text.substr(5));
  if (text.starts_with("tcp:")) return tcp_address(std::string_view(text).substr(4), listening);
  return invalid("invalid address '" + shorten(text, 64) + "': it must start with unix: or tcp:");
}

Result<os::File> make_socket(const SocketAddress& address) {
  os::File socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return from_errno("making a socket");
  return socket;
}

void tune(const os::File& socket, const LinkLimits& limits) {
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  end_with_dead_peer(socket.descriptor(), limits.dead_peer);
}

// Returns true if a socket file was left by a listener that has ended.
bool abandoned(const SocketAddress& address) {
  struct stat status;
  if (::lstat(address.path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const auto probe = make_socket(address);
  return probe && ::connect(probe->descriptor(), address.get(), address.length) != 0 &&
         errno == ECONNREFUSED;
}

Result<os::File> listening_socket(const std::string& text, const SocketAddress& address) {
  os::File socket = TRY(make_socket(address));
  const bool is_unix = address.family() == AF_UNIX;
  const int on = 1;
  if (!is_unix) ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Linux makes the file with the mode of the unbound socket, so other users can never connect.
  if (is_unix) ::fchmod(socket.descriptor(), 0600);
  int bound = ::bind(socket.descriptor(), address.get(), address.length);
  if (bound != 0 && errno == EADDRINUSE && is_unix) {
    if (abandoned(address)) {
      ::unlink(address.path.c_str());
      bound = ::bind(socket.descriptor(), address.get(), address.length);
    } else {
      errno = EADDRINUSE;
    }
  }
  if (bound != 0) return from_errno("listening on " + text);
  if (::listen(socket.descriptor(), kBacklogMax) != 0) return from_errno("listening on " + text);
  return socket;
}

Result<os::File> connected_socket(const std::string& text, const SocketAddress& address,
                                  const LinkLimits& limits) {
  os::File socket = TRY(make_socket(address));
  if (::connect(socket.descriptor(), address.get(), address.length) != 0) {
    if (errno != EINPROGRESS) return from_errno("connecting to " + text);
    pollfd ready = {socket.descriptor(), POLLOUT, 0};
    int answer;
    do answer = ::poll(&ready, 1, int(kConnectLimit.count()));
    while (answer < 0 && errno == EINTR);
    int why = answer == 0 ? ETIMEDOUT : 0;
    socklen_t length = sizeof why;
    if (answer > 0) ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &why, &length);
    if (why != 0) return from_errno("connecting to " + text, why);
  }
  if (address.family() != AF_UNIX) tune(socket, limits);
  return socket;
}

std::string with_real_port(const std::string& text, const os::File& socket) {
  if (!text.starts_with("tcp:")) return text;
  sockaddr_storage storage = {};
  socklen_t length = sizeof storage;
  ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&storage), &length);
  const auto port = storage.ss_family == AF_INET6
                        ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                        : reinterpret_cast<sockaddr_in*>(&storage)->sin_port;
  return text.substr(0, text.rfind(':') + 1) + std::to_string(ntohs(port));
}

// -- one link -------------------------------------------------------------------------------------

// The senders share the socket with the thread of the loop; only the loop reads and closes it. A
// sender writes to the socket directly if the backlog is empty; if the kernel's buffer is full, the
// loop continues later. A thread that ends the link stores the reason and shuts the socket down;
// the loop detects that, closes the socket, and calls closed().
class SocketLink final : public Link {
 public:
  SocketLink(os::File socket, int poll, const LinkLimits& limits)
      : poll_(poll), limits_(limits), socket_(std::move(socket)) {}

  void send(std::string frame) override {
    const MutexLock lock(mutex_);
    if (!socket_ || why_) return;
    if (frame.size() > limits_.frame_bytes_max)
      return end(invalid("sending a frame of " + human_bytes(frame.size()) + ": the limit is " +
                         human_bytes(limits_.frame_bytes_max)));
    const size_t cost = sizeof(Outgoing) + frame.size();
    if (queued_bytes_ + cost > limits_.queue_bytes_max)
      return end(exhausted("sending a frame: the peer reads too slowly, " +
                           human_bytes(queued_bytes_) + " are unsent"));
    Outgoing outgoing;
    for (size_t i = 0; i < kLengthBytes; i++) outgoing.length[i] = char(frame.size() >> (8 * i));
    outgoing.frame = std::move(frame);
    queue_.push_back(std::move(outgoing));
    queued_bytes_ += cost;
    if (queue_.size() == 1) flush();
  }

  void close() override {
    const MutexLock lock(mutex_);
    if (socket_) end(cancelled("closed on this side"));
  }

  // -- called on the thread of the loop

  int descriptor() const { return descriptor_; }

  // Returns true if this side ended the link.
  bool over() {
    const MutexLock lock(mutex_);
    return ended_;
  }

  void writable() {
    const MutexLock lock(mutex_);
    if (socket_ && !why_) flush();
  }

  // Reads the available bytes, up to the limit of one round, and appends whole frames. Returns
  // false if the link has ended.
  bool readable(std::vector<char>& buffer, std::vector<std::string>& frames) {
    const ssize_t got = ::recv(descriptor_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (got < 0) return note(from_errno("reading from the link")), false;
    if (got == 0) {
      const bool within = decoder_.within_frame();
      return note(unavailable(within ? "the peer closed within a frame" : "closed by the peer")),
             false;
    }
    auto taken = decoder_.take(std::string_view(buffer.data(), size_t(got)), frames);
    if (taken) return true;
    note(std::move(taken).error());
    return false;
  }

  // Closes the socket and returns the first stored reason.
  Error finish() {
    const MutexLock lock(mutex_);
    socket_.close();
    queue_.clear();
    queued_bytes_ = 0;
    return why_ ? *why_ : unavailable("the link is closed");
  }

  void note(Error why) {
    const MutexLock lock(mutex_);
    if (!why_) why_ = std::move(why);
  }

 private:
  struct Outgoing {
    char length[kLengthBytes];
    std::string frame;
  };

  void end(Error why) REQUIRES(mutex_) {
    if (!why_) why_ = std::move(why);
    ended_ = true;
    ::shutdown(socket_.descriptor(), SHUT_RDWR);
  }

  // The peer has closed, but its earlier frames are still delivered.
  void sending_failed(Error why) REQUIRES(mutex_) {
    if (!why_) why_ = std::move(why);
    ::shutdown(socket_.descriptor(), SHUT_RDWR);
  }

  // Passes to the kernel as many bytes as it accepts, and waits for an event to pass more.
  void flush() REQUIRES(mutex_) {
    while (!queue_.empty()) {
      std::array<iovec, 2 * kFramesAtOnceMax> parts;
      size_t count = 0;
      size_t skip = sent_of_first_;
      for (size_t i = 0; i < queue_.size() && i < kFramesAtOnceMax; i++) {
        for (const auto& [data, size] :
             {std::pair(queue_[i].length, kLengthBytes),
              std::pair(queue_[i].frame.data(), queue_[i].frame.size())}) {
          const size_t skipped = std::min(skip, size);
          skip -= skipped;
          if (size > skipped) parts[count++] = {data + skipped, size - skipped};
        }
      }
      msghdr message = {};
      message.msg_iov = parts.data();
      message.msg_iovlen = count;
      const ssize_t sent = ::sendmsg(socket_.descriptor(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) return want_writing(true);
      if (sent < 0) return sending_failed(from_errno("sending to the link"));
      sent_of_first_ += size_t(sent);
      while (!queue_.empty() && sent_of_first_ >= kLengthBytes + queue_.front().frame.size()) {
        sent_of_first_ -= kLengthBytes + queue_.front().frame.size();
        queued_bytes_ -= sizeof(Outgoing) + queue_.front().frame.size();
        queue_.pop_front();
      }
    }
    want_writing(false);
  }

  void want_writing(bool wanted) REQUIRES(mutex_) {
    if (wanted == writing_wanted_) return;
    writing_wanted_ = wanted;
    epoll_event event = {};
    event.events = EPOLLIN | (wanted ? uint32_t(EPOLLOUT) : 0u);
    event.data.fd = descriptor_;
    ::epoll_ctl(poll_, EPOLL_CTL_MOD, descriptor_, &event);
  }

  const int poll_;  // valid while socket_ is
  const LinkLimits limits_;

  Mutex mutex_;
  os::File socket_ GUARDED_BY(mutex_);
  std::optional<Error> why_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
  std::deque<Outgoing> queue_ GUARDED_BY(mutex_);
  size_t queued_bytes_ GUARDED_BY(mutex_) = 0;
  size_t sent_of_first_ GUARDED_BY(mutex_) = 0;
  bool writing_wanted_ GUARDED_BY(mutex_) = false;

  // Confined to the loop's thread:
  const int descriptor_ = socket_.descriptor();
  FrameDecoder decoder_{limits_.frame_bytes_max};
};

// -- the loop -------------------------------------------------------------------------------------

// A Loop is one thread that serves all links of a listener, or the link of a client.
class LinkLoop {
 public:
  LinkLoop(LinkEvents events, LinkLimits limits)
      : events_(std::move(events)),
        limits_(limits),
        poll_(::epoll_create1(EPOLL_CLOEXEC)),
        stop_(::eventfd(0, EFD_CLOEXEC)) {}

  ~LinkLoop() {
    if (!thread_.joinable()) return;
    CHECK(thread_.get_id() != std::this_thread::get_id(),
          "a link's owner is not destroyed by its own events");
    const uint64_t one = 1;
    CHECK(::write(stop_.descriptor(), &one, sizeof one) == sizeof one, "an eventfd takes a number");
    thread_.join();
  }

  Result<void> start(os::File listener, os::File connected) {
    if (!poll_ || !stop_) return from_errno("making an event loop");
    listener_ = std::move(listener);
    watch(stop_.descriptor());
    if (listener_) watch(listener_.descriptor());
    if (connected) first_ = add(std::move(connected));
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      return exhausted(std::string("starting a thread: ") + error.what());
    }
    return ok();
  }

  const std::shared_ptr<Link>& first() const { return first_; }

 private:
  using Links = std::map<int, std::shared_ptr<SocketLink>>;

  bool watch(int descriptor) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    return ::epoll_ctl(poll_.descriptor(), EPOLL_CTL_ADD, descriptor, &event) == 0;
  }

  void run() {
    if (first_ && events_.opened) events_.opened(first_);
    std::array<epoll_event, 64> ready;
    while (listener_ || !links_.empty()) {
      const int count = ::epoll_wait(poll_.descriptor(), ready.data(), int(ready.size()),
                                     accept_rests_ ? int(kAcceptRest.count()) : -1);
      if (accept_rests_) accept_rests_ = !watch(listener_.descriptor());
      for (int i = 0; i < count; i++) {
        const int descriptor = ready[size_t(i)].data.fd;
        if (descriptor == stop_.descriptor()) return close_all();
        if (descriptor == listener_.descriptor()) {
          accept();
        } else if (const auto found = links_.find(descriptor); found != links_.end()) {
          serve(found->second, ready[size_t(i)].events);
        }
      }
    }
  }

  void accept() {
    // Accepts a few at a time, so that many new links do not starve the others.
    for (int i = 0; i < 16; i++) {
      os::File socket(
          ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          log(Level::warning, "net", "cannot accept links now", {{"why", std::strerror(errno)}});
          accept_rests_ = true;
          ::epoll_ctl(poll_.descriptor(), EPOLL_CTL_DEL, listener_.descriptor(), nullptr);
        }
        return;
      }
      if (links_.size() >= limits_.links_max) {
        log(Level::warning, "net", "rejected a link",
            {{"links_max", std::to_string(limits_.links_max)}});
        continue;
      }
      tune(socket, limits_);
      const std::shared_ptr<SocketLink> link = add(std::move(socket));
      if (events_.opened) events_.opened(link);
    }
  }

  // Registers the link before it is shared, because a sender may change the watched events.
  std::shared_ptr<SocketLink> add(os::File socket) {
    const auto link = std::make_shared<SocketLink>(std::move(socket), poll_.descriptor(), limits_);
    links_.emplace(link->descriptor(), link);
    watch(link->descriptor());
    return link;
  }

  // By value, because closing removes the link from the table.
  void serve(std::shared_ptr<SocketLink> link, uint32_t events) {
    if (link->over()) return close(link);
    if (events & EPOLLOUT) link->writable();
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
    const bool open = link->readable(buffer_, frames_);
    for (std::string& frame : frames_)
      if (events_.frame && !link->over()) events_.frame(link, std::move(frame));
    frames_.clear();
    if (!open) close(link);
  }

  void close(const std::shared_ptr<SocketLink>& link) {
    links_.erase(link->descriptor());
    Error why = link->finish();  // this also ends the registration
    if (events_.closed) events_.closed(link, std::move(why));
  }

  void close_all() {
    listener_.close();
    while (!links_.empty()) {
      const std::shared_ptr<SocketLink> link = links_.begin()->second;
      link->note(cancelled("closed on this side"));
      close(link);
    }
  }

  const LinkEvents events_;
  const LinkLimits limits_;
  const os::File poll_;
  const os::File stop_;
  os::File listener_;
  std::shared_ptr<Link> first_;  // the link of a client, on which its owner sends

  // Confined to the thread:
  Links links_;
  bool accept_rests_ = false;
  std::vector<char> buffer_ = std::vector<char>(kReadBytesMax);
  std::vector<std::string> frames_;

  std::thread thread_;
};

class SocketListener final : public LinkListener {
 public:
  SocketListener(LinkEvents events, LinkLimits limits)
      : loop_(std::in_place, std::move(events), limits) {}
  ~SocketListener() override {
    loop_.reset();
    // Removes only its own file: another server may listen at this path now.
    struct stat status;
    if (!path_.empty() && ::lstat(path_.c_str(), &status) == 0 && status.st_ino == inode_)
      ::unlink(path_.c_str());
  }

  Result<void> start(const std::string& text, const SocketAddress& address) {
    os::File socket = TRY(listening_socket(text, address));
    address_ = with_real_port(text, socket);
    struct stat status;
    if (!address.path.empty() && ::lstat(address.path.c_str(), &status) == 0) {
      path_ = address.path;
      inode_ = status.st_ino;
    }
    return loop_->start(std::move(socket), os::File());
  }

  std::string address() const override { return address_; }

 private:
  std::optional<LinkLoop> loop_;
  std::string address_;
  std::string path_;
  ino_t inode_ = 0;
};

class SocketClient final : public LinkClient {
 public:
  SocketClient(LinkEvents events, LinkLimits limits) : loop_(std::move(events), limits) {}
  Result<void> start(os::File socket) { return loop_.start(os::File(), std::move(socket)); }
  const std::shared_ptr<Link>& link() const override { return loop_.first(); }

 private:
  LinkLoop loop_;
};

}  // namespace

Result<std::unique_ptr<LinkListener>> listen_links(const std::string& address, LinkEvents events,
                                                   LinkLimits limits) {
  const SocketAddress where = TRY(socket_address(address, true));
  auto listener = std::make_unique<SocketListener>(std::move(events), limits);
  TRY(listener->start(address, where));
  return std::unique_ptr<LinkListener>(std::move(listener));
}

Result<std::unique_ptr<LinkClient>> connect_link(const std::string& address, LinkEvents events,
                                                 LinkLimits limits) {
  const SocketAddress where = TRY(socket_address(address, false));
  auto client = std::make_unique<SocketClient>(std::move(events), limits);
  TRY(client->start(TRY(connected_socket(address, where, limits))));
  return std::unique_ptr<LinkClient>(std::move(client));
}

}  // namespace trainyard::net
