#include "host/http_server.hpp"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "host/http_decoder.hpp"
#include "host/http_message.hpp"
#include "host/machine_clock.hpp"
#include "host/thread_pool.hpp"

namespace trainyard::host {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// First room for what a client sends: a signed request of the control plane fits twice.
constexpr size_t kReadBytes = 4 << 10;
// Room for body bytes that pass through our own buffer (chunked ones); bounds what one stream holds in
// memory.
constexpr size_t kStreamBytes = 64 << 10;
// Buffers that a large request made are given back when a connection goes idle.
constexpr size_t kIdleBufferBytesMax = 16 << 10;
// A body up to here is copied behind its head, so that one write sends both.
constexpr size_t kJoinedBytesMax = 16 << 10;
// A slow buffered body may take the idle limit, and a second more for each so many bytes.
constexpr uint64_t kBodyBytesPerSecondMin = 16 << 10;
// What is read and thrown away of a request whose answer did not want its body, so that the connection can go
// on.
constexpr uint64_t kDrainBytesMax = 256 << 10;
// After our last word we read on for so long and so much, since closing on unread bytes would reset the
// connection and may take the answer from the client.
constexpr Duration kLingerLimit = 2s;
constexpr uint64_t kLingerBytesMax = 16 << 20;
// How long accepting rests when we are out of descriptors.
constexpr Duration kAcceptRest = 100ms;
constexpr int kBacklogMax = 1024;

constexpr std::string_view kOnlyTls =
    "This server answers plain HTTP only where it was told to (plain HTTP is off for this address). Use "
    "https:// and "
    "trust the server's own certificate authority: `trainyard env` prints what a client needs.\n";

int64_t steady_now() { return std::chrono::steady_clock::now().time_since_epoch() / 1ms; }
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

Error from_code(std::string_view doing, const error_code& code) {
  return unavailable(std::string(doing) + ": " + code.message());
}

// -- waking a coroutine ---------------------------------------------------------------------------

// What a suspended coroutine waits by. Confined to the loop of its connection.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void wake() = 0;
};

template <class Handler>
class WaiterOf final : public Waiter {
 public:
  explicit WaiterOf(Handler handler) : handler_(std::move(handler)) {}
  // Posted, not called: who wakes may himself be deep inside another connection's turn.
  void wake() override { asio::post(std::move(handler_)); }

 private:
  Handler handler_;
};

class Connection;
class Server;

// -- the loop -------------------------------------------------------------------------------------

// One I/O thread with the connections that live on it.
struct Loop {
  asio::io_context context{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{context.get_executor()};
  std::list<Connection*> connections;
  asio::steady_timer tick{context};
  bool ticking = false;
  std::thread thread;

  // The Date header, written anew each second.
  std::string_view date() {
    const Instant now = MachineClock().now();
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

// Through this a Responder finds the loop of its connection, as long as there is one. Shared by the server
// and all responders of the loop; whoever is last frees it.
struct Gate {
  std::mutex mutex;
  Loop* loop;  // guarded by mutex; null once the server has stopped
};

// -- a connection ---------------------------------------------------------------------------------

// Owned by its coroutine (and by the messages that a loop posts about it). All of it is confined to its
// loop's thread, except that while a streamed request is served the socket and all that reads and writes
// belong to the pool's thread; the loop then touches nothing but the atomics and shuts the socket down when
// it must.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, Loop& loop, std::shared_ptr<Gate> gate, tcp::socket socket);
  ~Connection();

  // `self` keeps us alive while the coroutine runs.
  static asio::awaitable<void> run(std::shared_ptr<Connection> self);

  // -- for the loop's thread
  void answer(uint64_t exchange, Response response);
  void check_deadline(int64_t now);
  void close_if_idle();
  void cut_off();
  void finish_stream();

 private:
  friend class ConnectionStream;
  enum class State { idle, busy, waiting, streaming };

  asio::awaitable<bool> open();
  asio::awaitable<bool> read_some();
  asio::awaitable<bool> read_head();
  asio::awaitable<bool> one_request();
  asio::awaitable<bool> buffered_request(size_t body_bytes_max);
  asio::awaitable<bool> streamed_request();
  asio::awaitable<size_t> read_body_some(std::span<char> room);
  asio::awaitable<bool> send(std::string_view first, std::string_view second);
  asio::awaitable<bool> refuse(int status, std::string_view words);
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
  // For the pool's thread, while streaming.
  size_t read_now(std::span<char> room, error_code& error);
  void send_now(std::span<const asio::const_buffer> parts, error_code& error);

  Server& server_;
  Loop& loop_;
  const std::shared_ptr<Gate> gate_;
  std::list<Connection*>::iterator place_;
  tcp::socket socket_;
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  const int descriptor_;
  std::string peer_;

  State state_ = State::idle;
  std::atomic<int64_t> deadline_{kNever};  // milliseconds of the steady clock
  std::atomic<bool> overdue_ = false;      // the deadline passed
  std::atomic<bool> cut_off_ = false;      // the server stops
  int64_t head_deadline_ = kNever;

  HttpDecoder in_;
  std::string out_;
  RequestHead head_;
  bool continue_expected_ = false;
  bool keep_alive_ = true;

  uint64_t exchange_ = 0;  // counts requests, so that a responder answers no other than its own
  bool linger_ = false;    // the client may still be sending what nobody will read
  std::optional<Response> response_;
  std::unique_ptr<Waiter> waiter_;
  bool woken_ = false;
};

// -- the server -----------------------------------------------------------------------------------

class Server final : public HttpServer {
 public:
  Server(const HttpSettings& settings, Handler& handler)
      : settings_(settings), handler_(handler), pool_(std::in_place, settings.stream_threads_max) {}
  ~Server() override { stop(0ms); }

  Result<void> start();
  uint16_t port() const override { return port_; }
  void stop(Duration grace) override;

  const HttpSettings& settings() const { return settings_; }
  Handler& handler() { return handler_; }
  ThreadPool& pool() { return *pool_; }
  asio::ssl::context* tls() { return tls_ ? &*tls_ : nullptr; }
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  Duration tick_interval() const { return std::clamp<Duration>(settings_.idle_limit / 4, 1ms, 1s); }
  void connection_ended();
  void tick(Loop& loop);
  std::atomic<size_t>& buffered_bytes() { return buffered_bytes_; }

 private:
  Result<void> prepare_tls();
  Result<void> listen();
  asio::awaitable<void> accept();
  void adopt(Loop& loop, std::shared_ptr<Gate> gate, tcp::socket socket);
  void turn_away(tcp::socket socket);
  void on_every_loop(const std::function<void(Connection&)>& act);

  const HttpSettings settings_;
  Handler& handler_;
  std::optional<asio::ssl::context> tls_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::shared_ptr<Gate>> gates_;
  std::optional<ThreadPool> pool_;
  std::optional<tcp::acceptor> acceptor_;  // confined to the first loop
  uint16_t port_ = 0;
  std::atomic<size_t> buffered_bytes_ = 0;
  std::atomic<bool> stopping_ = false;
  bool stopped_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t connections_ = 0;  // guarded by mutex_
};

// Answers by posting to the loop of the connection, or at once when that is where we are.
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
    std::unique_lock lock(gate_->mutex);
    if (!gate_->loop) return;
    if (gate_->loop->thread.get_id() == std::this_thread::get_id()) {
      lock.unlock();
      if (const auto connection = connection_.lock()) connection->answer(exchange_, std::move(response));
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

// -- a connection: reading ------------------------------------------------------------------------

Connection::Connection(Server& server, Loop& loop, std::shared_ptr<Gate> gate, tcp::socket socket)
    : server_(server),
      loop_(loop),
      gate_(std::move(gate)),
      place_(loop.connections.insert(loop.connections.end(), this)),
      socket_(std::move(socket)),
      descriptor_(socket_.native_handle()),
      in_(server.settings().head_bytes_max) {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  const tcp::endpoint remote = socket_.remote_endpoint(ignored);
  const std::string address = remote.address().to_string();
  peer_ = (remote.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(remote.port());
}

Connection::~Connection() {
  loop_.connections.erase(place_);
  server_.connection_ended();
}

asio::awaitable<void> Connection::run(std::shared_ptr<Connection> self) {
  self->set_deadline(self->server_.settings().idle_limit);
  bool open = co_await self->open();
  while (open) open = co_await self->one_request();
  co_await self->end();
}

// Finds out what the client speaks, and shakes hands.
asio::awaitable<bool> Connection::open() {
  error_code error;
  co_await socket_.async_wait(tcp::socket::wait_read, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return false;
  char first = 0;
  if (::recv(descriptor_, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1) co_return false;
  if (first != 0x16) co_return true;
  if (!server_.tls()) co_return false;
  state_ = State::busy;
  tls_.emplace(socket_, *server_.tls());
  co_await tls_->async_handshake(asio::ssl::stream_base::server,
                                 asio::redirect_error(asio::use_awaitable, error));
  if (error) {
    tls_.reset();  // there is nothing to take leave of
    co_return false;
  }
  co_return true;
}

// More bytes into in_. False at the end of the connection, or of our patience.
asio::awaitable<bool> Connection::read_some() {
  error_code error;
  size_t got = 0;
  const std::span<char> space = in_.room(std::max(kReadBytes, std::min(in_.waiting(), kStreamBytes)));
  const auto room = asio::buffer(space.data(), space.size());
  if (tls_) {
    got = co_await tls_->async_read_some(room, asio::redirect_error(asio::use_awaitable, error));
  } else {
    got = co_await socket_.async_read_some(room, asio::redirect_error(asio::use_awaitable, error));
  }
  in_.filled(got);
  co_return !error && got > 0;
}

void Connection::move_deadline() {
  deadline_.store(std::min(head_deadline_, steady_now() + server_.settings().idle_limit.count()),
                  std::memory_order_relaxed);
}

asio::awaitable<bool> Connection::read_head() {
  const HttpSettings& settings = server_.settings();
  in_.begin();
  bool begun = in_.waiting() > 0;
  state_ = begun ? State::busy : State::idle;
  if (!begun) in_.shrink_to(kIdleBufferBytesMax);
  if (out_.capacity() > kIdleBufferBytesMax) std::string().swap(out_);
  if (server_.stopping() && !begun) co_return false;
  head_deadline_ = begun ? steady_now() + settings.idle_limit.count() : kNever;
  for (;;) {
    const HttpDecoder::Step step = in_.head();
    if (step == HttpDecoder::Step::done) co_return true;
    if (step == HttpDecoder::Step::fault) co_return co_await refuse(in_.fault().status, in_.fault().words);
    move_deadline();
    const bool more = co_await read_some();
    if (!more && overdue_ && begun)
      co_return co_await refuse(408, "The request's head did not arrive in time.\n");
    if (!more) co_return false;
    if (!begun) head_deadline_ = steady_now() + settings.idle_limit.count();
    begun = true;
    state_ = State::busy;
  }
}

// Whether the client waits to be told that its body is wanted. Once.
bool Connection::continue_wanted() {
  // A client that sends already, without waiting, needs no word.
  return std::exchange(continue_expected_, false) && in_.waiting() == 0;
}

// The next bytes of a buffered body. 0 when it has ended, and when the connection has failed or was refused:
// then there is still some left.
asio::awaitable<size_t> Connection::read_body_some(std::span<char> room) {
  if (continue_wanted()) {
    const bool sent = co_await send("HTTP/1.1 100 Continue\r\n\r\n", {});
    if (!sent) co_return 0;
  }
  for (;;) {
    size_t got = 0;
    const HttpDecoder::Step step = in_.take_body(room, got);
    if (step == HttpDecoder::Step::done) co_return got;
    if (step == HttpDecoder::Step::fault) {
      co_await refuse(in_.fault().status, in_.fault().words);
      co_return 0;
    }
    move_deadline();
    if (!in_.may_pass_by()) {
      const bool more = co_await read_some();
      if (!more) co_return 0;
      continue;
    }
    error_code error;
    const auto space =
        asio::buffer(room.data(), size_t(std::min<uint64_t>(room.size(), in_.announced_left())));
    if (tls_) {
      got = co_await tls_->async_read_some(space, asio::redirect_error(asio::use_awaitable, error));
    } else {
      got = co_await socket_.async_read_some(space, asio::redirect_error(asio::use_awaitable, error));
    }
    if (error) co_return 0;
    in_.passed_by(got);
    co_return got;
  }
}

// What one buffered body takes of the memory for all of them, until its request is answered.
class Charge {
 public:
  explicit Charge(std::atomic<size_t>& all) : all_(all) {}
  Charge(const Charge&) = delete;
  ~Charge() { all_.fetch_sub(mine_, std::memory_order_relaxed); }
  // The sum of all after adding.
  size_t add(size_t bytes) {
    mine_ += bytes;
    return all_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  }

 private:
  std::atomic<size_t>& all_;
  size_t mine_ = 0;
};

// -- a connection: requests -----------------------------------------------------------------------

// False when the connection is over.
asio::awaitable<bool> Connection::one_request() {
  const bool have_head = co_await read_head();
  if (!have_head) co_return false;
  keep_alive_ = in_.keep_alive() && !server_.stopping();
  if (!tls_ && !server_.settings().plain_http) co_return co_await refuse(403, kOnlyTls);
  if (in_.take_head(head_) == HttpDecoder::Step::fault)
    co_return co_await refuse(in_.fault().status, in_.fault().words);
  head_.tls = tls_.has_value();
  head_.peer = peer_;
  continue_expected_ = in_.expects_continue();

  const Handler::Choice choice = server_.handler().choose(head_);
  exchange_++;
  bool goes_on = false;
  if (choice.intake == Intake::streamed) {
    goes_on = co_await streamed_request();
  } else {
    goes_on = co_await buffered_request(choice.body_bytes_max);
  }
  co_return goes_on;
}

asio::awaitable<bool> Connection::buffered_request(size_t body_bytes_max) {
  Request request;
  if (in_.announced_left() > body_bytes_max)
    co_return co_await refuse(413,
                              "The request's body is larger than " + human_bytes(body_bytes_max) + ".\n");
  const int64_t begun = steady_now();
  Charge charge(server_.buffered_bytes());
  while (in_.body_left()) {
    // Room grows with what has arrived, not with what was announced.
    const size_t length = request.body.size();
    size_t room = std::max(kReadBytes, length);
    if (in_.announced_left() > 0) room = size_t(std::min<uint64_t>(room, in_.announced_left()));
    request.body.resize(length + room);
    head_deadline_ =
        begun + server_.settings().idle_limit.count() + int64_t(length / kBodyBytesPerSecondMin) * 1000;
    const size_t got = co_await read_body_some({request.body.data() + length, room});
    request.body.resize(length + got);
    if (got == 0 && in_.body_left()) {
      if (overdue_) co_return co_await refuse(408, "The request's body did not arrive in time.\n");
      co_return false;
    }
    if (charge.add(got) > server_.settings().buffered_bytes_max)
      co_return co_await refuse(503, "Too many large requests are under way.\n");
    if (request.body.size() > body_bytes_max)
      co_return co_await refuse(413,
                                "The request's body is larger than " + human_bytes(body_bytes_max) + ".\n");
  }
  static_cast<RequestHead&>(request) = std::move(head_);
  head_ = RequestHead();

  response_.reset();
  woken_ = false;
  state_ = State::waiting;
  no_deadline();
  auto responder = std::make_unique<LoopResponder>(gate_, weak_from_this(), exchange_);
  try {
    server_.handler().handle(std::move(request), std::move(responder));
  } catch (const std::exception& error) {
    log(Level::error, "host", "a request's handler threw", {{"what", error.what()}});
  }
  if (!response_) co_await until_woken();
  if (!response_) co_return false;  // cut off
  state_ = State::busy;
  const Response response = std::move(*response_);
  response_.reset();

  if (equals_ignoring_case(response.headers.get("Connection"), "close") || server_.stopping())
    keep_alive_ = false;
  const bool with_body = has_body(response.status) && !in_.is_head_method();
  out_.clear();
  append_head(out_,
              {.status = response.status,
               .headers = response.headers,
               .content_length = response.body.size(),
               .keep_alive = keep_alive_,
               .answers_http_1_0 = in_.is_http_1_0(),

               .answers_head = in_.is_head_method()},
              loop_.date());
  std::string_view rest;
  if (with_body) {
    if (response.body.size() <= kJoinedBytesMax)
      out_ += response.body;
    else
      rest = response.body;
  }
  head_deadline_ = kNever;
  const bool sent = co_await send(out_, rest);
  co_return sent&& keep_alive_;
}

void Connection::answer(uint64_t exchange, Response response) {
  if (exchange != exchange_ || state_ != State::waiting) return;
  response_ = std::move(response);
  wake();
}

// An answer of the server's own, after which the connection ends.
asio::awaitable<bool> Connection::refuse(int status, std::string_view words) {
  Headers headers;
  headers.add("Content-Type", "text/plain; charset=utf-8");
  keep_alive_ = false;
  linger_ = true;
  overdue_ = false;
  head_deadline_ = kNever;
  out_.clear();
  append_head(out_,
              {.status = status, .headers = headers, .content_length = words.size(), .keep_alive = false},
              loop_.date());
  if (!in_.is_head_method()) out_ += words;
  co_await send(out_, {});
  co_return false;
}

asio::awaitable<bool> Connection::send(std::string_view first, std::string_view second) {
  while (!first.empty() || !second.empty()) {
    move_deadline();
    const std::array<asio::const_buffer, 2> parts = {asio::const_buffer(first.data(), first.size()),
                                                     asio::const_buffer(second.data(), second.size())};
    error_code error;
    size_t sent = 0;
    if (tls_) {
      sent = co_await tls_->async_write_some(parts, asio::redirect_error(asio::use_awaitable, error));
    } else if (second.empty()) {
      sent = co_await socket_.async_write_some(parts[0], asio::redirect_error(asio::use_awaitable, error));
    } else {
      sent = co_await socket_.async_write_some(parts, asio::redirect_error(asio::use_awaitable, error));
    }
    if (error) co_return false;
    const size_t of_first = std::min(sent, first.size());
    first.remove_prefix(of_first);
    second.remove_prefix(sent - of_first);
  }
  co_return true;
}

// Takes leave. Where the client may still be sending, what it sends is read and thrown away for a while.
asio::awaitable<void> Connection::end() {
  if (cut_off_ || overdue_) co_return;
  state_ = State::idle;
  error_code error;
  head_deadline_ = steady_now() + kLingerLimit.count();
  move_deadline();
  if (tls_ && !server_.stopping()) {
    // Waits for the client's own goodbye, which it usually is slower to say than to close.
    co_await tls_->async_shutdown(asio::redirect_error(asio::use_awaitable, error));
  }
  if (!linger_) co_return;
  socket_.shutdown(tcp::socket::shutdown_send, error);
  uint64_t thrown_away = 0;
  while (!error && thrown_away < kLingerBytesMax) {
    in_.forget_waiting();
    const std::span<char> space = in_.room(kStreamBytes);
    const auto room = asio::buffer(space.data(), space.size());
    thrown_away += co_await socket_.async_read_some(room, asio::redirect_error(asio::use_awaitable, error));
  }
}

asio::awaitable<void> Connection::until_woken() {
  if (!std::exchange(woken_, false) && !cut_off_) {
    co_await asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
        [this](auto handler) { waiter_ = std::make_unique<WaiterOf<decltype(handler)>>(std::move(handler)); },
        asio::use_awaitable);
  }
  woken_ = false;
}

void Connection::wake() {
  if (waiter_) {
    std::exchange(waiter_, nullptr)->wake();
  } else {
    woken_ = true;
  }
}

void Connection::check_deadline(int64_t now) {
  if (now < deadline_.load(std::memory_order_relaxed)) return;
  const bool again = overdue_.exchange(true);
  if (state_ == State::streaming) return shut_down();  // the pool's thread wakes from its call
  error_code ignored;
  if (again) {
    socket_.close(ignored);
    no_deadline();
  } else {
    // Time for a last word, should the coroutine have one.
    set_deadline(kLingerLimit);
    socket_.cancel(ignored);
  }
}

void Connection::close_if_idle() {
  error_code ignored;
  if (state_ == State::idle) socket_.cancel(ignored);
}

void Connection::cut_off() {
  cut_off_ = true;
  error_code ignored;
  if (state_ == State::streaming) {
    shut_down();
  } else {
    socket_.close(ignored);
    wake();
  }
}

// -- a streamed request ---------------------------------------------------------------------------

class ConnectionStream final : public Stream {
 public:
  explicit ConnectionStream(Connection& connection)
      : connection_(connection), is_head_(connection.in_.is_head_method()) {}

  const RequestHead& head() const override { return connection_.head_; }

  Result<size_t> read(std::span<char> buffer) override {
    HttpDecoder& in = connection_.in_;
    if (buffer.empty() || !in.body_left()) return size_t(0);
    if (failed_) return broken();
    error_code error;
    if (connection_.continue_wanted()) {
      send({"HTTP/1.1 100 Continue\r\n\r\n"}, error);
      if (error) return fail("sending 100 Continue", error);
    }
    for (;;) {
      size_t got = 0;
      const HttpDecoder::Step step = in.take_body(buffer, got);
      if (step == HttpDecoder::Step::done) return got;
      if (step == HttpDecoder::Step::fault) {
        failed_ = true;
        return invalid("reading the request's body: " + in.fault().words);
      }
      if (in.may_pass_by()) {
        got = connection_.read_now(
            buffer.first(size_t(std::min<uint64_t>(buffer.size(), in.announced_left()))), error);
        if (error) return fail("reading the request's body", error);
        in.passed_by(got);
        return got;
      }
      got = connection_.read_now(in.room(kStreamBytes), error);
      if (error) return fail("reading the request's body", error);
      in.filled(got);
    }
  }

  Result<void> start(int status, const Headers& headers, std::optional<uint64_t> content_length) override {
    CHECK(!started_, "a stream is started once");
    started_ = true;
    with_body_ = has_body(status) && !is_head_;
    chunked_ = !content_length && !connection_.in_.is_http_1_0();
    remaining_ = content_length;
    // A client that was not told to go on may or may not send its body; one that sends more than we would
    // throw away is not worth waiting for. Either way what follows on this connection cannot be told apart.
    if (connection_.continue_expected_ || connection_.in_.announced_left() > kDrainBytesMax)
      connection_.keep_alive_ = false;
    if (equals_ignoring_case(headers.get("Connection"), "close")) connection_.keep_alive_ = false;
    if (connection_.in_.is_http_1_0() && !content_length) connection_.keep_alive_ = false;
    if (connection_.server_.stopping()) connection_.keep_alive_ = false;
    if (!connection_.keep_alive_) connection_.linger_ = connection_.in_.body_left();
    append_head(pending_head_,
                {.status = status,
                 .headers = headers,
                 .content_length = content_length,
                 .chunked = chunked_,
                 .keep_alive = connection_.keep_alive_,
                 .answers_http_1_0 = connection_.in_.is_http_1_0(),
                 .answers_head = is_head_},
                to_http_date(MachineClock().now()));
    // Chunked answers may be followed live: their head does not wait for the first bytes.
    if (chunked_ || !with_body_) return flush_head();
    return ok();
  }

  Result<void> write(std::span<const char> bytes) override {
    CHECK(started_, "a stream is started before it is written");
    if (bytes.empty() || !with_body_) return ok();
    if (failed_) return broken();
    error_code error;
    const std::string_view text(bytes.data(), bytes.size());
    if (chunked_) {
      send({pending_head_, chunk_prefix(bytes.size()), text, "\r\n"}, error);
    } else {
      if (remaining_) {
        CHECK(bytes.size() <= *remaining_, "no more is written than was promised");
        *remaining_ -= bytes.size();
      }
      send({pending_head_, text}, error);
    }
    pending_head_.clear();
    if (error) return fail("sending the answer", error);
    return ok();
  }

  Result<void> reply(const Response& response) override {
    TRY(start(response.status, response.headers, response.body.size()));
    TRY(write(response.body));
    return flush_head();
  }

  // An answer that was begun cannot be taken back, but it must not look whole.
  void break_off() { failed_ = started_; }

  // After the handler: whether the connection can go on.
  bool finish() {
    if (!started_ && !failed_) {
      (void)reply({.status = 500, .headers = {}, .body = ""});
      return false;
    }
    if (failed_ || (with_body_ && remaining_ && *remaining_ > 0)) {
      // The client must see that the answer is not whole, so without a goodbye.
      (void)flush_head();
      connection_.overdue_ = true;
      return false;
    }
    if (!flush_head()) return false;
    error_code error;
    if (with_body_ && chunked_) send({"0\r\n\r\n"}, error);
    if (error || !connection_.keep_alive_) return false;
    return drain();
  }

 private:
  bool drain() {
    std::array<char, 16 << 10> buffer;
    uint64_t thrown_away = 0;
    while (connection_.in_.body_left() && thrown_away <= kDrainBytesMax) {
      const auto got = read(buffer);
      if (!got) return false;
      thrown_away += *got;
    }
    return !connection_.in_.body_left();
  }

  Result<void> flush_head() {
    if (pending_head_.empty()) return ok();
    if (failed_) return broken();
    error_code error;
    send({pending_head_}, error);
    pending_head_.clear();
    if (error) return fail("sending the answer", error);
    return ok();
  }

  void send(std::initializer_list<std::string_view> parts, error_code& error) {
    std::array<asio::const_buffer, 4> buffers;
    size_t count = 0;
    for (const std::string_view part : parts)
      if (!part.empty()) buffers[count++] = asio::const_buffer(part.data(), part.size());
    connection_.send_now({buffers.data(), count}, error);
  }

  Error fail(std::string_view doing, const error_code& error) {
    failed_ = true;
    if (connection_.cut_off_) return cancelled(std::string(doing) + ": the server stops");
    if (connection_.overdue_) return cancelled(std::string(doing) + ": the client let too much time pass");
    return from_code(doing, error);
  }
  Error broken() const { return unavailable("the connection has failed before"); }

  Connection& connection_;
  const bool is_head_;
  bool started_ = false;
  bool failed_ = false;
  bool with_body_ = false;
  bool chunked_ = false;
  std::optional<uint64_t> remaining_;
  std::string pending_head_;
};

size_t Connection::read_now(std::span<char> room, error_code& error) {
  set_deadline(server_.settings().idle_limit);
  const auto space = asio::buffer(room.data(), room.size());
  const size_t got = tls_ ? tls_->read_some(space, error) : socket_.read_some(space, error);
  no_deadline();
  return got;
}

void Connection::send_now(std::span<const asio::const_buffer> parts, error_code& error) {
  std::array<asio::const_buffer, 4> left;
  std::copy(parts.begin(), parts.end(), left.begin());
  size_t first = 0;
  const size_t count = parts.size();
  while (first < count && !error) {
    set_deadline(server_.settings().idle_limit);
    const std::span<const asio::const_buffer> rest(left.data() + first, count - first);
    size_t sent = tls_ ? tls_->write_some(rest, error) : socket_.write_some(rest, error);
    while (first < count && sent >= left[first].size()) sent -= left[first++].size();
    if (first < count) left[first] += sent;
  }
  no_deadline();
}

asio::awaitable<bool> Connection::streamed_request() {
  if (cut_off_) co_return false;
  bool goes_on = false;
  woken_ = false;
  state_ = State::streaming;
  no_deadline();
  const bool runs = server_.pool().run([self = shared_from_this(), &goes_on]() mutable {
    {
      ConnectionStream stream(*self);
      try {
        self->server_.handler().stream(stream);
      } catch (const std::exception& error) {
        log(Level::error, "host", "a stream's handler threw", {{"what", error.what()}});
        stream.break_off();
      }
      goes_on = stream.finish();
    }
    // Given away whole: the last owner must be on the loop.
    asio::io_context& context = self->loop_.context;
    asio::post(context, [self = std::move(self)] { self->wake(); });
  });
  if (!runs) {
    state_ = State::busy;
    co_return co_await refuse(503, "No thread is left to serve this request.\n");
  }
  while (!std::exchange(woken_, false)) {
    co_await asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
        [this](auto handler) { waiter_ = std::make_unique<WaiterOf<decltype(handler)>>(std::move(handler)); },
        asio::use_awaitable);
    woken_ = true;
  }
  state_ = State::busy;
  co_return goes_on && !cut_off_ && !overdue_;
}

// -- the server -----------------------------------------------------------------------------------

Result<void> Server::prepare_tls() {
  if (settings_.certificate_file.empty()) return ok();
  tls_.emplace(asio::ssl::context::tls_server);
  SSL_CTX* context = tls_->native_handle();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  error_code error;
  tls_->use_certificate_chain_file(settings_.certificate_file, error);
  if (error) return invalid("reading the certificate " + settings_.certificate_file + ": " + error.message());
  tls_->use_private_key_file(settings_.key_file, asio::ssl::context::pem, error);
  if (error) return invalid("reading the key " + settings_.key_file + ": " + error.message());
  return ok();
}

Result<void> Server::listen() {
  const std::string doing = "listening on " + settings_.listen;
  const size_t colon = settings_.listen.rfind(':');
  if (colon == std::string::npos) return invalid(doing + ": no port");
  std::string host = settings_.listen.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const int64_t port = TRY(parse_int(settings_.listen.substr(colon + 1)).in(doing));
  if (port < 0 || port > 65535) return invalid(doing + ": no such port");
  error_code error;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error) return invalid(doing + ": not an address");
  const tcp::endpoint endpoint(address, uint16_t(port));
  acceptor_.emplace(loops_.front()->context);
  const auto step = [&](error_code& code) -> Result<void> {
    if (code) return from_errno(doing, code.value());
    return ok();
  };
  acceptor_->open(endpoint.protocol(), error);
  TRY(step(error));
  acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
  TRY(step(error));
  acceptor_->bind(endpoint, error);
  TRY(step(error));
  acceptor_->listen(kBacklogMax, error);
  TRY(step(error));
  port_ = acceptor_->local_endpoint(error).port();
  return ok();
}

Result<void> Server::start() {
  TRY(prepare_tls());
  for (size_t i = 0; i < std::max<size_t>(1, settings_.io_threads); i++) {
    loops_.push_back(std::make_unique<Loop>());
    gates_.push_back(std::make_shared<Gate>());
    gates_.back()->loop = loops_.back().get();
  }
  TRY(listen());
  asio::co_spawn(loops_.front()->context, accept(), asio::detached);
  try {
    for (const auto& loop : loops_) {
      // A loop's thread reads its own id when it answers; hold it until that is written.
      const std::lock_guard lock(mutex_);
      loop->thread = std::thread([this, &context = loop->context] {
        { const std::lock_guard started(mutex_); }
        context.run();
      });
    }
  } catch (const std::system_error& error) {
    return exhausted(std::string("starting a thread: ") + error.what());
  }
  return ok();
}

asio::awaitable<void> Server::accept() {
  size_t turn = 0;
  asio::steady_timer rest(loops_.front()->context);
  while (acceptor_->is_open()) {
    Loop& loop = *loops_[turn];
    const std::shared_ptr<Gate> gate = gates_[turn];
    turn = (turn + 1) % loops_.size();
    error_code error;
    tcp::socket socket =
        co_await acceptor_->async_accept(loop.context, asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      log(Level::warning, "host", "cannot accept connections now", {{"why", error.message()}});
      rest.expires_after(kAcceptRest);
      co_await rest.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    bool room = false;
    {
      const std::lock_guard lock(mutex_);
      room = connections_ < settings_.connections_max;
      if (room) connections_++;
    }
    if (!room) {
      turn_away(std::move(socket));
      continue;
    }
    asio::post(loop.context, [this, &loop, gate, taken = std::move(socket)]() mutable {
      adopt(loop, std::move(gate), std::move(taken));
    });
  }
}

void Server::turn_away(tcp::socket socket) {
  static constexpr std::string_view kFull =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 30\r\nRetry-After: "
      "1\r\n"
      "Connection: close\r\n\r\nToo many connections are open.";
  // What was sent to us is taken in first, as far as it is here: closing on it would reset what we say.
  std::array<char, 4096> ignored;
  (void)!::recv(socket.native_handle(), ignored.data(), ignored.size(), MSG_DONTWAIT);
  (void)!::send(socket.native_handle(), kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Server::adopt(Loop& loop, std::shared_ptr<Gate> gate, tcp::socket socket) {
  const auto connection = std::make_shared<Connection>(*this, loop, std::move(gate), std::move(socket));
  if (stopping()) return;
  if (!loop.ticking) {
    loop.ticking = true;
    tick(loop);
  }
  asio::co_spawn(loop.context, Connection::run(connection), asio::detached);
}

// Looks at all deadlines of a loop: far cheaper than a timer for each read and write.
void Server::tick(Loop& loop) {
  loop.tick.expires_after(tick_interval());
  loop.tick.async_wait([this, &loop](const error_code& error) {
    if (error || loop.connections.empty()) {
      loop.ticking = false;
      return;
    }
    const int64_t now = steady_now();
    for (Connection* connection : loop.connections) connection->check_deadline(now);
    tick(loop);
  });
}

void Server::connection_ended() {
  const std::lock_guard lock(mutex_);
  connections_--;
  changed_.notify_all();
}

void Server::on_every_loop(const std::function<void(Connection&)>& act) {
  for (const auto& loop : loops_)
    asio::post(loop->context, [&loop = *loop, act] {
      for (Connection* connection : loop.connections) act(*connection);
    });
}

void Server::stop(Duration grace) {
  if (std::exchange(stopped_, true)) return;
  stopping_ = true;
  if (!loops_.empty() && acceptor_)
    asio::post(loops_.front()->context, [this] {
      error_code ignored;
      acceptor_->close(ignored);
    });
  on_every_loop([](Connection& connection) { connection.close_if_idle(); });
  const bool running = !loops_.empty() && loops_.back()->thread.joinable();
  if (running) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, grace, [&] { return connections_ == 0; });
    lock.unlock();
    on_every_loop([](Connection& connection) { connection.cut_off(); });
    lock.lock();
    changed_.wait(lock, [&] { return connections_ == 0; });
  }
  for (const auto& gate : gates_) {
    const std::lock_guard lock(gate->mutex);
    gate->loop = nullptr;
  }
  pool_.reset();
  for (const auto& loop : loops_) {
    asio::post(loop->context, [&loop = *loop] { loop.tick.cancel(); });
    loop->work.reset();
    if (!running) loop->context.stop();
  }
  for (const auto& loop : loops_)
    if (loop->thread.joinable()) loop->thread.join();
}

}  // namespace

Result<std::unique_ptr<HttpServer>> serve_http(const HttpSettings& settings, Handler& handler) {
  auto server = std::make_unique<Server>(settings, handler);
  TRY(server->start());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace trainyard::host
