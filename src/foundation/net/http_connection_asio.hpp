// Defines the classes of the HTTP server: loop, connection and server. Private to this module,
// because it exposes asio. http_server.cpp implements the server, http_connection.cpp reads
// requests and writes responses, http_stream.cpp serves a streamed request on a thread of the pool.
//
// Threads: described at each class.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <limits>
#include <list>
#include <map>
#include <thread>

#include "base/check.hpp"
#include "base/thread_safety.hpp"
#include "net/http_decoder.hpp"
#include "net/http_message.hpp"
#include "net/http_server.hpp"
#include "net/rate_floor.hpp"
#include "net/tenant_pool.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"

namespace trainyard::net::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Buffer size for body bytes that are copied (of chunked bodies); limits the memory of one stream.
inline constexpr size_t kStreamBytes = 64 << 10;
// The time for which a connection is still read after its last response: closing it with unread
// bytes would reset the connection, and might discard the response before the client reads it.
inline constexpr Duration kLingerLimit = 2s;
// The limit of bytes of an unwanted body that are read and dropped to reuse the connection.
inline constexpr uint64_t kDrainBytesMax = 256 << 10;

inline int64_t steady_now() { return std::chrono::steady_clock::now().time_since_epoch() / 1ms; }
inline std::chrono::microseconds steady_microseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// -- waking a coroutine ---------------------------------------------------------------------------

// Waiter wakes a suspended coroutine. Confined to the loop of its connection.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void wake() = 0;
};

template <class Handler>
class WaiterOf final : public Waiter {
 public:
  explicit WaiterOf(Handler handler) : handler_(std::move(handler)) {}
  // Posts the handler instead of calling it, because the caller may be inside another connection's
  // handler.
  void wake() override { asio::post(std::move(handler_)); }

 private:
  Handler handler_;
};

class Connection;
class Server;

// -- the loop -------------------------------------------------------------------------------------

// A Loop is one I/O thread with its connections.
struct Loop {
  asio::io_context context{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{
      context.get_executor()};
  std::list<Connection*> connections;
  asio::steady_timer tick{context};
  bool ticking = false;
  std::thread thread;

  // Returns the Date header, formatted once a second.
  std::string_view date() {
    const Instant now = os::MachineClock().now();
    if (const int64_t second = to_milliseconds(now) / 1000; second != date_second_) {
      date_second_ = second;
      date_ = to_http_date(now);
    }
    return date_;
  }

 private:
  int64_t date_second_ = -1;
  std::string date_;
};

// A Gate gives responders access to the loop of their connection, while the loop exists. Shared by
// the server and all responders of the loop; the last one frees it.
struct Gate {
  explicit Gate(Loop* of) : loop(of) {}

  Mutex mutex;
  Loop* loop GUARDED_BY(mutex);  // null once the server has stopped
};

// -- a connection ---------------------------------------------------------------------------------

// A Connection serves one client. Owned by its coroutine and by the messages that a loop posts
// about it. Confined to the thread of its loop, with one exception: while a streamed request is
// served, a thread of the pool uses the socket and does all reading and writing; the loop then uses
// only the atomics, and shuts the socket down at a deadline.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, Loop& loop, std::shared_ptr<Gate> gate, tcp::socket socket,
             asio::ip::address peer);
  ~Connection();

  // `self` keeps the object alive while the coroutine runs.
  static asio::awaitable<void> run(std::shared_ptr<Connection> self);

  // -- called on the thread of the loop
  void answer(uint64_t exchange, Response response);
  void check_deadline(int64_t now);
  void close_if_idle();
  void cut_off();
  // Returns true if the connection may be ended in favour of a new one: it belongs to `peer`, and
  // it has had no accepted request and the handler has none of its requests. With `idle`, also if
  // it waits for its next request.
  bool may_be_shed(const std::optional<asio::ip::address>& peer, bool idle) const {
    return ((!accepted_ && state_ != State::waiting) || (idle && state_ == State::idle)) &&
           !cut_off_ && (!peer || *peer == peer_group_);
  }
  // Returns true while the connection ends in favour of a new connection of `peer`.
  bool is_shed(const std::optional<asio::ip::address>& peer) const {
    return cut_off_ && (!peer || *peer == peer_group_);
  }
  void finish_stream();

 private:
  friend class ConnectionStream;
  friend class ConnectionUpgrade;
  enum class State { idle, busy, waiting, streaming };

  asio::awaitable<bool> open();
  asio::awaitable<bool> read_some();
  asio::awaitable<bool> read_head();
  asio::awaitable<bool> serve_request();
  asio::awaitable<bool> buffered_request(const Handler::Choice& choice);
  asio::awaitable<bool> prefaced_request(size_t bytes_max);
  asio::awaitable<bool> streamed_request(std::string tenant);
  asio::awaitable<bool> drain();
  asio::awaitable<bool> send_response(const Response& response);
  asio::awaitable<bool> refuse_unread(const Response& response);
  void pass_to_handler(Request request, bool blocking, const std::string& tenant);
  asio::awaitable<size_t> read_body_some(std::span<char> free_space);
  asio::awaitable<bool> send(std::string_view first, std::string_view second);
  asio::awaitable<bool> refuse(int status, std::string_view explanation);
  asio::awaitable<void> until_woken();
  asio::awaitable<void> end();

  void wake();
  bool continue_wanted();
  void append_answer(const Response& response);
  void move_deadline();
  void set_deadline(Duration from_now) {
    deadline_.store(steady_now() + from_now.count(), std::memory_order_relaxed);
  }
  void no_deadline() { deadline_.store(kNever, std::memory_order_relaxed); }
  void shut_down() { ::shutdown(descriptor_, SHUT_RDWR); }
  // Read and write on the thread of the pool while streaming. `floor` limits the waits; null: any
  // wait up to the idle limit is allowed.
  size_t read_now(std::span<char> free_space, error_code& error, RateFloor* floor);
  void send_now(std::span<const asio::const_buffer> parts, error_code& error, RateFloor* floor);
  RateFloor make_floor() const;

  Server& server_;
  Loop& loop_;
  const std::shared_ptr<Gate> gate_;
  std::list<Connection*>::iterator position_;
  tcp::socket socket_;
  std::shared_ptr<asio::ssl::context> tls_context_;  // the context of its handshake
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  const int descriptor_;
  bool may_speak_plain_ = true;
  std::string peer_;
  const asio::ip::address peer_group_;
  bool accepted_ = false;  // a request of this connection was accepted

  State state_ = State::idle;
  std::atomic<int64_t> deadline_{kNever};  // milliseconds of the steady clock
  std::atomic<bool> overdue_ = false;      // the deadline passed
  std::atomic<bool> cut_off_ = false;      // it ends at once: the server stops, or it is shed
  int64_t head_deadline_ = kNever;

  HttpDecoder in_;
  std::string out_;
  RequestHead head_;
  bool continue_expected_ = false;
  bool keep_alive_ = true;

  uint64_t exchange_ = 0;  // number of the request: a responder answers only its own request
  bool linger_ = false;    // the client may still be sending bytes that will not be read
  std::optional<Response> response_;
  std::unique_ptr<Waiter> waiter_;
  bool woken_ = false;
};

// -- the server -----------------------------------------------------------------------------------

class Server final : public HttpServer {
 public:
  // `listener` is a listening socket, or empty.
  Server(const HttpSettings& settings, Handler& handler, os::File listener)
      : settings_(settings),
        handler_(handler),
        given_(std::move(listener)),
        pool_(std::in_place, settings.stream_threads_max, settings.stream_threads_per_tenant) {}
  ~Server() override { stop(0ms); }

  Result<void> start();
  uint16_t port() const override { return port_; }
  Load load() const override;
  Result<void> renew_certificate() override;
  void stop(Duration grace) override;

  const HttpSettings& settings() const { return settings_; }
  Handler& handler() { return handler_; }
  TenantPool& pool() { return *pool_; }
  // Returns null if the server has no TLS.
  std::shared_ptr<asio::ssl::context> tls() const {
    const MutexLock lock(mutex_);
    return tls_;
  }
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  Duration tick_interval() const { return std::clamp<Duration>(settings_.idle_limit / 4, 1ms, 1s); }
  void connection_ended(const asio::ip::address& peer);
  void tick(Loop& loop);
  std::atomic<size_t>& buffered_bytes() { return buffered_bytes_; }
  // Returns the memory of bodies of clients that are not authenticated yet.
  std::atomic<size_t>& unauthenticated_bytes() { return unauthenticated_bytes_; }

 private:
  Result<void> listen();
  asio::awaitable<void> accept();
  void start_connection(Loop& loop, std::shared_ptr<Gate> gate, tcp::socket socket,
                        asio::ip::address peer);
  bool count(const asio::ip::address& peer, bool& peer_is_full);
  void shed(const std::optional<asio::ip::address>& peer);
  void reject_connection(tcp::socket socket);
  void on_every_loop(const std::function<void(Connection&)>& act);

  const HttpSettings settings_;
  Handler& handler_;
  os::File given_;  // until it is passed to the acceptor
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::shared_ptr<Gate>> gates_;
  std::optional<TenantPool> pool_;
  std::optional<tcp::acceptor> acceptor_;  // confined to the first loop
  uint16_t port_ = 0;
  std::atomic<size_t> buffered_bytes_ = 0, unauthenticated_bytes_ = 0;
  std::atomic<bool> stopping_ = false;
  bool stopped_ = false;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  size_t connections_ GUARDED_BY(mutex_) = 0;
  std::map<asio::ip::address, size_t> peers_ GUARDED_BY(mutex_);  // peers with connections
  std::shared_ptr<asio::ssl::context> tls_ GUARDED_BY(mutex_);    // the context for new connections
};

// LoopResponder answers by posting to the loop of the connection or, on the thread of the loop,
// directly.
class LoopResponder final : public Responder {
 public:
  LoopResponder(std::shared_ptr<Gate> gate, std::weak_ptr<Connection> connection, uint64_t exchange)
      : gate_(std::move(gate)), connection_(std::move(connection)), exchange_(exchange) {}

  ~LoopResponder() override {
    if (!answered_) reply({.status = 500, .headers = {}, .body = ""});
  }

  void reply(Response response) override {
    CHECK(!answered_, "a request is answered once");
    answered_ = true;
    MutexLock lock(gate_->mutex);
    if (!gate_->loop) return;
    if (gate_->loop->thread.get_id() == std::this_thread::get_id()) {
      lock.unlock();
      if (const auto connection = connection_.lock())
        connection->answer(exchange_, std::move(response));
      return;
    }
    asio::post(gate_->loop->context, [connection = std::move(connection_), exchange = exchange_,
                                      answer = std::move(response)]() mutable {
      if (const auto alive = connection.lock()) alive->answer(exchange, std::move(answer));
    });
  }

 private:
  const std::shared_ptr<Gate> gate_;
  std::weak_ptr<Connection> connection_;  // locked on its loop only
  const uint64_t exchange_;
  bool answered_ = false;
};

}  // namespace trainyard::net::http
