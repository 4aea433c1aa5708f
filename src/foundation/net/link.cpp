#include "net/link.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
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
#include "net/link_socket.hpp"
#include "net/link_stream.hpp"
#include "os/files.hpp"

namespace trainyard::net {
namespace {

constexpr size_t kLengthBytes = FrameDecoder::kLengthBytes;
// limit of bytes that are read from one link before the next is served; so large that the cost of a
// call is small
constexpr size_t kReadBytesMax = 64 << 10;
// limit of frames that are passed to the kernel in one call
constexpr size_t kFramesAtOnceMax = 32;
// the pause in accepting if no descriptors are free
constexpr Duration kAcceptRest = 100ms;

std::string milliseconds(Duration duration) { return std::to_string(duration.count()) + " ms"; }

// -- one link -------------------------------------------------------------------------------------

// The senders share the socket with the thread of the loop; only the loop reads and closes it. A
// sender writes to the socket directly if the backlog is empty; if the kernel's buffer is full, the
// loop continues later. A thread that ends the link stores the reason and shuts the socket down;
// the loop detects that, closes the socket, and calls closed().
class SocketLink final : public Link {
 public:
  // The link of a client, after its handshake.
  SocketLink(os::File socket, int poll, const LinkLimits& limits,
             std::unique_ptr<LinkStream> stream)
      : poll_(poll),
        limits_(limits),
        socket_(std::move(socket)),
        stream_(std::move(stream)),
        peer_name_(stream_->peer_name()),
        open_(true) {}
  // The link of a listener. `tls`: the peer may choose TLS; nullptr: it is plain.
  SocketLink(os::File socket, int poll, const LinkLimits& limits, std::shared_ptr<const TlsEnd> tls)
      : poll_(poll),
        limits_(limits),
        tls_(std::move(tls)),
        socket_(std::move(socket)),
        stream_(tls_ ? nullptr : plain_stream(socket_.descriptor())),
        open_(tls_ == nullptr) {
    if (!open_) wait_for_bytes(int(kTlsStartBytes));
  }

  std::string peer_name() const override { return peer_name_; }

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

  bool is_open() const { return open_; }
  bool has_spoken() const { return spoken_; }
  bool has_unread_bytes() const {
    int bytes = 0;
    return ::ioctl(descriptor_, FIONREAD, &bytes) == 0 && bytes > 0;
  }

  // Continues the handshake. Requires: the link is not open, and its socket is ready.
  Result<void> establish() {
    const MutexLock lock(mutex_);
    if (!stream_) {
      std::array<char, kTlsStartBytes> start;
      const ssize_t got = ::recv(descriptor_, start.data(), start.size(), MSG_PEEK | MSG_DONTWAIT);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) return {};
      if (got < 0) return from_errno("reading from a new link");
      // The kernel waits for all of them, unless the peer has closed.
      if (size_t(got) < start.size()) return unavailable("closed by the peer");
      wait_for_bytes(1);
      const bool is_tls = starts_tls({start.data(), start.size()});
      stream_ = is_tls ? tls_->stream(descriptor_, "") : plain_stream(descriptor_);
    }
    const LinkStream::Wait wait = TRY(stream_->shake_hands());
    want_writing(wait == LinkStream::Wait::writable);
    if (wait != LinkStream::Wait::nothing) return {};
    peer_name_ = stream_->peer_name();
    open_ = true;
    return {};
  }

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
    auto got = [&] {
      const MutexLock lock(mutex_);
      return stream_->read(buffer);
    }();
    if (!got) return note(std::move(got).error()), false;
    if (!*got) return true;
    if (**got == 0) {
      const bool within = decoder_.within_frame();
      return note(unavailable(within ? "the peer closed within a frame" : "closed by the peer")),
             false;
    }
    auto taken = decoder_.take(std::string_view(buffer.data(), **got), frames);
    spoken_ |= !frames.empty();
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
      auto sent = stream_->write(std::span(parts).first(count));
      if (!sent) return sending_failed(std::move(sent).error());
      if (*sent == 0) return want_writing(true);
      sent_of_first_ += *sent;
      while (!queue_.empty() && sent_of_first_ >= kLengthBytes + queue_.front().frame.size()) {
        sent_of_first_ -= kLengthBytes + queue_.front().frame.size();
        queued_bytes_ -= sizeof(Outgoing) + queue_.front().frame.size();
        queue_.pop_front();
      }
    }
    want_writing(false);
  }

  void wait_for_bytes(int count) {
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVLOWAT, &count, sizeof count);
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
  const std::shared_ptr<const TlsEnd> tls_;

  Mutex mutex_;
  os::File socket_ GUARDED_BY(mutex_);
  std::unique_ptr<LinkStream> stream_ GUARDED_BY(mutex_);
  std::string peer_name_;  // constant once the link is opened
  std::optional<Error> why_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
  std::deque<Outgoing> queue_ GUARDED_BY(mutex_);
  size_t queued_bytes_ GUARDED_BY(mutex_) = 0;
  size_t sent_of_first_ GUARDED_BY(mutex_) = 0;
  bool writing_wanted_ GUARDED_BY(mutex_) = false;

  // Confined to the loop's thread:
  const int descriptor_ = socket_.descriptor();
  FrameDecoder decoder_{limits_.frame_bytes_max};
  bool open_;
  bool spoken_ = false;  // the peer has sent a frame
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

  Result<void> start_listening(os::File listener) {
    listener_ = std::move(listener);
    return start();
  }
  Result<void> start_client(os::File socket, std::unique_ptr<LinkStream> stream) {
    first_ = add(std::make_shared<SocketLink>(std::move(socket), poll_.descriptor(), limits_,
                                              std::move(stream)));
    return start();
  }

  std::shared_ptr<Link> first() const { return first_; }

  // For new links of a listener; nullptr: they are plain.
  void use(std::shared_ptr<const TlsEnd> tls) {
    const MutexLock lock(tls_mutex_);
    tls_ = std::move(tls);
  }

 private:
  using Links = std::map<int, std::shared_ptr<SocketLink>>;

  Result<void> start() {
    if (!poll_ || !stop_) return from_errno("making an event loop");
    watch(stop_.descriptor());
    if (listener_) watch(listener_.descriptor());
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      return exhausted(std::string("starting a thread: ") + error.what());
    }
    return ok();
  }

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
      const int count =
          ::epoll_wait(poll_.descriptor(), ready.data(), int(ready.size()), wait_milliseconds());
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
      end_silent_links();
    }
  }

  // The time until the oldest link without a frame has taken too long; -1: there is none.
  int wait_milliseconds() const {
    if (accept_rests_) return int(kAcceptRest.count());
    if (silent_.empty()) return -1;
    const auto left = silent_.front().until - std::chrono::steady_clock::now();
    return int(std::max<int64_t>(0, std::chrono::ceil<Duration>(left).count()));
  }

  void end_silent_links() {
    const auto now = std::chrono::steady_clock::now();
    while (has_silent_link() && silent_.front().until <= now) {
      SilentLink& oldest = silent_.front();
      if (!oldest.extended && oldest.link->has_unread_bytes()) {
        // It is this end that is late, for example after a restart with thousands of agents.
        silent_.push_back({oldest.link, now + limits_.greeting_max, true});
        silent_.pop_front();
        continue;
      }
      close_silent_link("the peer has not sent a frame within " +
                        milliseconds(limits_.greeting_max));
    }
  }

  // Also forgets the oldest links that have sent a frame or were closed.
  bool has_silent_link() {
    while (!silent_.empty()) {
      const auto& link = silent_.front().link;
      const auto known = links_.find(link->descriptor());
      if (known != links_.end() && known->second == link && !link->has_spoken()) return true;
      silent_.pop_front();
    }
    return false;
  }

  // Requires: has_silent_link().
  void close_silent_link(std::string why) {
    const std::shared_ptr<SocketLink> link = std::move(silent_.front().link);
    silent_.pop_front();
    link->note(unavailable(std::move(why)));
    close(link);
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
      if (!free_a_place()) {
        log(Level::warning, "net", "rejected a link",
            {{"links_max", std::to_string(limits_.links_max)}});
        continue;
      }
      tune(socket, limits_);
      open(std::move(socket));
    }
  }

  // Returns false if there are links_max links that have sent frames.
  bool free_a_place() {
    if (links_.size() < limits_.links_max) return true;
    if (!has_silent_link()) return false;
    close_silent_link("there are too many links");
    return true;
  }

  void open(os::File socket) {
    std::shared_ptr<const TlsEnd> tls;
    {
      const MutexLock lock(tls_mutex_);
      tls = tls_;
    }
    const auto link = add(std::make_shared<SocketLink>(std::move(socket), poll_.descriptor(),
                                                       limits_, std::move(tls)));
    silent_.push_back({link, std::chrono::steady_clock::now() + limits_.greeting_max});
    if (link->is_open() && events_.opened) events_.opened(link);
  }

  // Registers the link before it is shared, because a sender may change the watched events.
  std::shared_ptr<SocketLink> add(std::shared_ptr<SocketLink> link) {
    links_.emplace(link->descriptor(), link);
    watch(link->descriptor());
    return link;
  }

  // By value, because closing removes the link from the table.
  void serve(std::shared_ptr<SocketLink> link, uint32_t events) {
    if (!link->is_open()) return establish(link);
    if (link->over()) return close(link);
    if (events & EPOLLOUT) link->writable();
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
    const bool open = link->readable(buffer_, frames_);
    for (std::string& frame : frames_)
      if (events_.frame && !link->over()) events_.frame(link, std::move(frame));
    frames_.clear();
    if (!open) close(link);
  }

  void establish(const std::shared_ptr<SocketLink>& link) {
    auto done = link->establish();
    if (!done) {
      link->note(std::move(done).error());
      return close(link);
    }
    if (link->is_open() && events_.opened) events_.opened(link);
  }

  void close(const std::shared_ptr<SocketLink>& link) {
    links_.erase(link->descriptor());
    Error why = link->finish();  // this also ends the registration
    if (!link->is_open()) {
      log(Level::info, "net", "a link was not opened", {{"why", why.message}});
    } else if (events_.closed) {
      events_.closed(link, std::move(why));
    }
  }

  void close_all() {
    listener_.close();
    silent_.clear();
    while (!links_.empty()) {
      const std::shared_ptr<SocketLink> link = links_.begin()->second;
      link->note(cancelled("closed on this side"));
      close(link);
    }
  }

  // A link of a listener that has not sent a frame.
  struct SilentLink {
    std::shared_ptr<SocketLink> link;
    std::chrono::steady_clock::time_point until;
    bool extended = false;  // it had unread bytes at its first deadline
  };

  const LinkEvents events_;
  const LinkLimits limits_;
  const os::File poll_;
  const os::File stop_;
  os::File listener_;
  std::shared_ptr<SocketLink> first_;  // the link of a client, on which its owner sends
  Mutex tls_mutex_;
  std::shared_ptr<const TlsEnd> tls_ GUARDED_BY(tls_mutex_);

  // Confined to the thread:
  Links links_;
  std::deque<SilentLink> silent_;  // in order of `until`; also former ones
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

  Result<void> renew(const TlsIdentity& identity) override {
    loop_->use(TRY(make_tls_end(identity, TlsRole::server)));
    return {};
  }

  Result<void> start(const std::string& text, const SocketAddress& address,
                     const std::optional<TlsIdentity>& identity) {
    if (identity) TRY(renew(*identity));
    os::File socket = TRY(listening_socket(text, address));
    address_ = with_real_port(text, socket);
    struct stat status;
    if (!address.path.empty() && ::lstat(address.path.c_str(), &status) == 0) {
      path_ = address.path;
      inode_ = status.st_ino;
    }
    return loop_->start_listening(std::move(socket));
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
  Result<void> start(os::File socket, std::unique_ptr<LinkStream> stream) {
    TRY(loop_.start_client(std::move(socket), std::move(stream)));
    link_ = loop_.first();
    return {};
  }
  const std::shared_ptr<Link>& link() const override { return link_; }

 private:
  std::shared_ptr<Link> link_;
  LinkLoop loop_;
};

// Completes the handshake of a client within the limit.
Result<void> shake_hands(LinkStream& stream, int descriptor, Duration limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const LinkStream::Wait wait = TRY(stream.shake_hands());
    if (wait == LinkStream::Wait::nothing) return {};
    const auto left = std::chrono::ceil<Duration>(until - std::chrono::steady_clock::now());
    pollfd ready = {descriptor, short(wait == LinkStream::Wait::readable ? POLLIN : POLLOUT), 0};
    if (left <= Duration{} || ::poll(&ready, 1, int(left.count())) == 0)
      return unavailable("the TLS handshake: no answer within " + milliseconds(limit));
  }
}

}  // namespace

Result<std::unique_ptr<LinkListener>> listen_links(const std::string& address, LinkEvents events,
                                                   LinkLimits limits,
                                                   const std::optional<TlsIdentity>& identity) {
  const SocketAddress where = TRY(socket_address(address, true));
  auto listener = std::make_unique<SocketListener>(std::move(events), limits);
  TRY(listener->start(address, where, identity));
  return std::unique_ptr<LinkListener>(std::move(listener));
}

Result<std::unique_ptr<LinkClient>> connect_link(const std::string& address, LinkEvents events,
                                                 LinkLimits limits,
                                                 const std::optional<TlsIdentity>& identity) {
  const SocketAddress where = TRY(socket_address(address, false));
  if (identity && where.family() == AF_UNIX)
    return invalid("connecting to " + address + ": a unix socket has no TLS");
  os::File socket = TRY(connected_socket(address, where, limits));
  std::unique_ptr<LinkStream> stream = plain_stream(socket.descriptor());
  if (identity) {
    const auto tls = TRY(make_tls_end(*identity, TlsRole::client));
    stream = tls->stream(socket.descriptor(), host_of(address));
    TRY(shake_hands(*stream, socket.descriptor(), limits.greeting_max)
            .in("connecting to " + address));
  }
  auto client = std::make_unique<SocketClient>(std::move(events), limits);
  TRY(client->start(std::move(socket), std::move(stream)));
  return std::unique_ptr<LinkClient>(std::move(client));
}

}  // namespace trainyard::net
