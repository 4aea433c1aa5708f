#include "net/http_connection_asio.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"

namespace trainyard::net::http {
namespace {

// the initial buffer for requests: twice the size of a signed control request
constexpr size_t kReadBytes = 4 << 10;
// larger buffers, which a large request needed, are freed when a connection becomes idle
constexpr size_t kIdleBufferBytesMax = 16 << 10;
// limit of bodies that are copied after their header, so that one write sends both
constexpr size_t kJoinedBytesMax = 16 << 10;
// A buffered body may take the idle limit, and one more second for each multiple of this size.
constexpr uint64_t kBodyBytesPerSecondMin = 16 << 10;
// Bodies up to this size are never rejected because of large bodies of other requests: those of all
// connections together have at most 256 MiB.
constexpr size_t kSmallBodyBytes = 64 << 10;
constexpr size_t kUnauthenticatedShare = 4;  // unauthenticated bodies may use 1 / this of the limit
constexpr uint64_t kLingerBytesMax = 16 << 20;

constexpr std::string_view kOnlyTls =
    "Plain HTTP is disabled for your address. Use https:// and trust the server's own certificate "
    "authority: `trainyard env` "
    "prints what a client needs.\n";

// Calls the handler's choose(). If it throws, the request is answered with 500.
Handler::Choice decide(Handler& handler, const RequestHead& head) {
  try {
    return handler.choose(head);
  } catch (const std::exception& error) {
    log(Level::error, "net", "a request's handler threw", {{"what", error.what()}});
    return {.refusal = Response{.status = 500, .headers = {}, .body = ""}};
  }
}

std::optional<Handler::Choice> take_preface(Handler& handler, const RequestHead& head,
                                            std::string_view bytes, bool whole) {
  try {
    return handler.preface(head, bytes, whole);
  } catch (const std::exception& error) {
    log(Level::error, "net", "a request's handler threw", {{"what", error.what()}});
    return Handler::Choice{.refusal = Response{.status = 500, .headers = {}, .body = ""}};
  }
}

// Charge counts the memory of one buffered body in the sum of all bodies, until the request is
// answered.
class Charge {
 public:
  explicit Charge(std::atomic<size_t>& all) : all_(all) {}
  Charge(const Charge&) = delete;
  ~Charge() { give_back(); }
  void give_back() { all_.fetch_sub(std::exchange(mine_, 0), std::memory_order_relaxed); }
  // Returns the sum of all bodies after adding.
  size_t add(size_t bytes) {
    mine_ += bytes;
    return all_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  }

 private:
  std::atomic<size_t>& all_;
  size_t mine_ = 0;
};

}  // namespace

// -- a connection: reading ------------------------------------------------------------------------

Connection::Connection(Server& server, Loop& loop, std::shared_ptr<Gate> gate, tcp::socket socket,
                       asio::ip::address peer)
    : server_(server),
      loop_(loop),
      gate_(std::move(gate)),
      position_(loop.connections.insert(loop.connections.end(), this)),
      socket_(std::move(socket)),
      descriptor_(socket_.native_handle()),
      peer_group_(std::move(peer)),
      in_(server.settings().head_bytes_max) {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  const tcp::endpoint remote = socket_.remote_endpoint(ignored);
  const bool here = remote.address().is_loopback() ||
                    remote.address() == socket_.local_endpoint(ignored).address();
  const PlainHttp plain = server_.settings().plain_http;
  may_speak_plain_ = plain == PlainHttp::all || (plain == PlainHttp::this_machine && here);
  const std::string address = remote.address().to_string();
  peer_ = (remote.address().is_v6() ? "[" + address + "]" : address) + ":" +
          std::to_string(remote.port());
}

Connection::~Connection() {
  loop_.connections.erase(position_);
  server_.connection_ended(peer_group_);
}

asio::awaitable<void> Connection::run(std::shared_ptr<Connection> self) {
  self->set_deadline(self->server_.settings().idle_limit);
  bool open = co_await self->open();
  while (open) open = co_await self->serve_request();
  co_await self->end();
}

// Detects the client's protocol, and completes the TLS handshake.
asio::awaitable<bool> Connection::open() {
  error_code error;
  co_await socket_.async_wait(tcp::socket::wait_read,
                              asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return false;
  char first = 0;
  if (::recv(descriptor_, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1) co_return false;
  if (first != 0x16) co_return true;
  tls_context_ = server_.tls();
  if (!tls_context_) co_return false;
  state_ = State::busy;
  tls_.emplace(socket_, *tls_context_);
  co_await tls_->async_handshake(asio::ssl::stream_base::server,
                                 asio::redirect_error(asio::use_awaitable, error));
  if (error) {
    tls_.reset();  // so that no TLS closure is sent
    co_return false;
  }
  co_return true;
}

// Reads more bytes into in_. Returns false if the connection has ended or the deadline has passed.
asio::awaitable<bool> Connection::read_some() {
  error_code error;
  size_t got = 0;
  const std::span<char> space =
      in_.free_space(std::max(kReadBytes, std::min(in_.waiting(), kStreamBytes)));
  const auto free_space = asio::buffer(space.data(), space.size());
  if (tls_) {
    got = co_await tls_->async_read_some(free_space,
                                         asio::redirect_error(asio::use_awaitable, error));
  } else {
    got = co_await socket_.async_read_some(free_space,
                                           asio::redirect_error(asio::use_awaitable, error));
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
    if (step == HttpDecoder::Step::fault)
      co_return co_await refuse(in_.fault().status, in_.fault().explanation);
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

// Returns true, but only once, if the client waits for 100 Continue before it sends its body.
bool Connection::continue_wanted() {
  // A client that already sends its body does not need it.
  return std::exchange(continue_expected_, false) && in_.waiting() == 0;
}

// Reads the next bytes of a buffered body. Returns 0 at its end, and if the connection has failed;
// in that case bytes of the body are left.
asio::awaitable<size_t> Connection::read_body_some(std::span<char> free_space) {
  if (continue_wanted()) {
    const bool sent = co_await send("HTTP/1.1 100 Continue\r\n\r\n", {});
    if (!sent) co_return 0;
  }
  for (;;) {
    size_t got = 0;
    const HttpDecoder::Step step = in_.take_body(free_space, got);
    if (step == HttpDecoder::Step::done) co_return got;
    if (step == HttpDecoder::Step::fault) {
      co_await refuse(in_.fault().status, in_.fault().explanation);
      co_return 0;
    }
    move_deadline();
    if (!in_.may_bypass()) {
      const bool more = co_await read_some();
      if (!more) co_return 0;
      continue;
    }
    error_code error;
    const auto space = asio::buffer(
        free_space.data(), size_t(std::min<uint64_t>(free_space.size(), in_.declared_left())));
    if (tls_) {
      got = co_await tls_->async_read_some(space, asio::redirect_error(asio::use_awaitable, error));
    } else {
      got =
          co_await socket_.async_read_some(space, asio::redirect_error(asio::use_awaitable, error));
    }
    if (error) co_return 0;
    in_.bypassed(got);
    co_return got;
  }
}

// -- a connection: requests -----------------------------------------------------------------------

// Serves one request. Returns false if the connection must end.
asio::awaitable<bool> Connection::serve_request() {
  const bool have_head = co_await read_head();
  if (!have_head) co_return false;
  keep_alive_ = in_.keep_alive() && !server_.stopping();
  if (!tls_ && !may_speak_plain_) co_return co_await refuse(403, kOnlyTls);
  if (in_.take_head(head_) == HttpDecoder::Step::fault)
    co_return co_await refuse(in_.fault().status, in_.fault().explanation);
  head_.tls = tls_.has_value();
  head_.peer = peer_;
  continue_expected_ = in_.expects_continue();

  head_.finding.reset();
  Handler::Choice choice = decide(server_.handler(), head_);
  exchange_++;
  bool keep_open = false;
  if (choice.refusal) {
    keep_open = co_await refuse_unread(*choice.refusal);
  } else if (choice.intake == Intake::prefaced) {
    head_.finding = std::move(choice.finding);
    keep_open = co_await prefaced_request(choice.body_bytes_max);
  } else {
    accepted_ = accepted_ || choice.authenticated;
    head_.finding = std::move(choice.finding);
    if (choice.intake == Intake::streamed) {
      keep_open = co_await streamed_request(std::move(choice.tenant));
    } else {
      keep_open = co_await buffered_request(choice);
    }
  }
  co_return keep_open;
}

// Answers a request without reading the rest of its body.
asio::awaitable<bool> Connection::refuse_unread(const Response& response) {
  // The connection cannot be reused if the client waits for 100 Continue, since it may or may not
  // send its body now, or if it declared more bytes than are dropped here.
  if (continue_expected_ || in_.declared_left() > kDrainBytesMax || server_.stopping() ||
      equals_ignoring_case(response.headers.get("Connection"), "close"))
    keep_alive_ = false;
  linger_ = !keep_alive_ && in_.body_left();
  const bool sent = co_await send_response(response);
  if (!sent || !keep_alive_) co_return false;
  co_return co_await drain();
}

// Reads and drops the rest of an unwanted body, for a short time and without a thread of the pool.
// Returns false if the connection cannot be used again.
asio::awaitable<bool> Connection::drain() {
  std::array<char, kReadBytes> buffer;
  uint64_t thrown_away = 0;
  head_deadline_ = steady_now() + kLingerLimit.count();
  while (in_.body_left()) {
    size_t got = 0;
    const HttpDecoder::Step step = in_.take_body(buffer, got);
    if (step == HttpDecoder::Step::fault) co_return false;
    thrown_away += got;
    if (thrown_away > kDrainBytesMax) co_return false;
    if (step == HttpDecoder::Step::done) continue;
    move_deadline();
    const bool more = co_await read_some();
    if (!more) co_return false;
  }
  co_return true;
}

// Passes the start of the body to the handler. Uses no thread of the pool, and has the deadline of
// a header, because the request is not authenticated yet.
asio::awaitable<bool> Connection::prefaced_request(size_t bytes_max) {
  std::array<char, kReadBytes> buffer;
  head_deadline_ = steady_now() + server_.settings().idle_limit.count();
  for (size_t taken = 0;;) {
    const size_t free_space = std::min(buffer.size(), bytes_max - taken);
    if (free_space == 0)
      co_return co_await refuse(
          413, "The fields before the file are larger than " + human_bytes(bytes_max) + ".\n");
    const size_t got = co_await read_body_some({buffer.data(), free_space});
    if (got == 0 && in_.body_left()) {
      if (overdue_) co_return co_await refuse(408, "The request's body did not arrive in time.\n");
      co_return false;
    }
    taken += got;
    const bool whole = !in_.body_left();
    auto choice = take_preface(server_.handler(), head_, {buffer.data(), got}, whole);
    if (!choice && whole) co_return co_await refuse(400, "The request's body ends early.\n");
    if (!choice) continue;
    if (choice->refusal) co_return co_await refuse_unread(*choice->refusal);
    accepted_ = true;
    co_return co_await streamed_request(std::move(choice->tenant));
  }
}

asio::awaitable<bool> Connection::buffered_request(const Handler::Choice& choice) {
  const size_t body_bytes_max = choice.body_bytes_max;
  Request request;
  if (in_.declared_left() > body_bytes_max)
    co_return co_await refuse(
        413, "The request's body is larger than " + human_bytes(body_bytes_max) + ".\n");
  const int64_t begun = steady_now();
  Charge charge(choice.authenticated ? server_.buffered_bytes() : server_.unauthenticated_bytes());
  const size_t charge_max =
      server_.settings().buffered_bytes_max / (choice.authenticated ? 1 : kUnauthenticatedShare);
  while (in_.body_left()) {
    // The buffer grows with the arrived bytes, not with the declared length.
    const size_t length = request.body.size();
    size_t free_space = std::max(kReadBytes, length);
    if (in_.declared_left() > 0)
      free_space = size_t(std::min<uint64_t>(free_space, in_.declared_left()));
    request.body.resize(length + free_space);
    head_deadline_ = begun + server_.settings().idle_limit.count() +
                     int64_t(length / kBodyBytesPerSecondMin) * 1000;
    const size_t got = co_await read_body_some({request.body.data() + length, free_space});
    request.body.resize(length + got);
    if (got == 0 && in_.body_left()) {
      if (overdue_) co_return co_await refuse(408, "The request's body did not arrive in time.\n");
      co_return false;
    }
    if (request.body.size() > kSmallBodyBytes && charge.add(got) > charge_max) {
      request.body = std::string();
      charge.give_back();  // before the answer: a rejected client may retry at once
      co_return co_await refuse(503, "Too many large requests are in progress: try again later.\n");
    }
    if (request.body.size() > body_bytes_max)
      co_return co_await refuse(
          413, "The request's body is larger than " + human_bytes(body_bytes_max) + ".\n");
  }
  static_cast<RequestHead&>(request) = std::move(head_);
  head_ = RequestHead();

  response_.reset();
  woken_ = false;
  state_ = State::waiting;
  no_deadline();
  pass_to_handler(std::move(request), choice.intake == Intake::blocking, choice.tenant);
  if (!response_) co_await until_woken();
  if (!response_) co_return false;  // cut off
  // before the answer is sent: its client may send the next request at once
  charge.give_back();
  state_ = State::busy;
  const Response response = std::move(*response_);
  response_.reset();
  accepted_ = accepted_ || response.status < 400;

  if (equals_ignoring_case(response.headers.get("Connection"), "close") || server_.stopping())
    keep_alive_ = false;
  const bool sent = co_await send_response(response);
  co_return sent&& keep_alive_;
}

// Passes the request to the handler, which answers through the responder, now or later.
void Connection::pass_to_handler(Request request, bool blocking, const std::string& tenant) {
  auto responder = std::make_unique<LoopResponder>(gate_, weak_from_this(), exchange_);
  const auto call = [&handler = server_.handler()](Request& given,
                                                   std::unique_ptr<LoopResponder> to) {
    try {
      handler.handle(std::move(given), std::move(to));
    } catch (const std::exception& error) {
      log(Level::error, "net", "a request's handler threw", {{"what", error.what()}});
    }
  };
  if (!blocking) return call(request, std::move(responder));
  struct Work {
    Request request;
    std::unique_ptr<LoopResponder> responder;
  };
  const auto work = std::make_shared<Work>(Work{std::move(request), std::move(responder)});
  const bool runs =
      server_.pool().run(tenant, [work, call] { call(work->request, std::move(work->responder)); });
  if (!runs)
    work->responder->reply({503, {}, "<html>No thread is left to serve this request.</html>\n"});
}

asio::awaitable<bool> Connection::send_response(const Response& response) {
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
  co_return co_await send(out_, rest);
}

void Connection::answer(uint64_t exchange, Response response) {
  if (exchange != exchange_ || state_ != State::waiting) return;
  response_ = std::move(response);
  wake();
}

// Sends an answer of the server itself, after which the connection ends.
asio::awaitable<bool> Connection::refuse(int status, std::string_view explanation) {
  Headers headers;
  // AWS's clients retry a 5xx with an HTML body, as proxies send it; plain text would fail in their
  // XML parser.
  std::string page;
  if (status >= 500) explanation = page = "<html>" + std::string(explanation) + "</html>\n";
  headers.add("Content-Type",
              status >= 500 ? "text/html; charset=utf-8" : "text/plain; charset=utf-8");
  keep_alive_ = false;
  linger_ = true;
  overdue_ = false;
  head_deadline_ = kNever;
  out_.clear();
  append_head(out_,
              {.status = status,
               .headers = headers,
               .content_length = explanation.size(),
               .keep_alive = false},
              loop_.date());
  if (!in_.is_head_method()) out_ += explanation;
  co_await send(out_, {});
  co_return false;
}

RateFloor Connection::make_floor() const {
  return {server_.settings().idle_limit, server_.settings().bytes_per_second_min};
}

asio::awaitable<bool> Connection::send(std::string_view first, std::string_view second) {
  RateFloor floor = make_floor();
  while (!first.empty() || !second.empty()) {
    const auto begun = steady_microseconds();
    deadline_.store(std::min(head_deadline_, steady_now() + int64_t(floor.allowance() / 1ms)),
                    std::memory_order_relaxed);
    const std::array<asio::const_buffer, 2> parts = {
        asio::const_buffer(first.data(), first.size()),
        asio::const_buffer(second.data(), second.size())};
    error_code error;
    size_t sent = 0;
    if (tls_) {
      sent =
          co_await tls_->async_write_some(parts, asio::redirect_error(asio::use_awaitable, error));
    } else if (second.empty()) {
      sent = co_await socket_.async_write_some(parts[0],
                                               asio::redirect_error(asio::use_awaitable, error));
    } else {
      sent = co_await socket_.async_write_some(parts,
                                               asio::redirect_error(asio::use_awaitable, error));
    }
    if (error) co_return false;
    floor.waited(steady_microseconds() - begun, sent);
    const size_t of_first = std::min(sent, first.size());
    first.remove_prefix(of_first);
    second.remove_prefix(sent - of_first);
  }
  co_return true;
}

// Closes the connection. If the client may still be sending, its bytes are read and dropped for
// some time.
asio::awaitable<void> Connection::end() {
  if (cut_off_ || overdue_) co_return;
  state_ = State::idle;
  error_code error;
  head_deadline_ = steady_now() + kLingerLimit.count();
  move_deadline();
  if (tls_ && !server_.stopping()) {
    // Waits for the client's TLS closure, which usually follows its end of the connection.
    co_await tls_->async_shutdown(asio::redirect_error(asio::use_awaitable, error));
  }
  if (!linger_) co_return;
  socket_.shutdown(tcp::socket::shutdown_send, error);
  uint64_t thrown_away = 0;
  while (!error && thrown_away < kLingerBytesMax) {
    in_.drop_waiting();
    const std::span<char> space = in_.free_space(kStreamBytes);
    const auto free_space = asio::buffer(space.data(), space.size());
    thrown_away += co_await socket_.async_read_some(
        free_space, asio::redirect_error(asio::use_awaitable, error));
  }
}

asio::awaitable<void> Connection::until_woken() {
  if (!std::exchange(woken_, false) && !cut_off_) {
    co_await asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
        [this](auto handler) {
          waiter_ = std::make_unique<WaiterOf<decltype(handler)>>(std::move(handler));
        },
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
  if (state_ == State::streaming) return shut_down();  // the pool's thread returns from its call
  error_code ignored;
  if (again) {
    socket_.close(ignored);
    no_deadline();
  } else {
    // Leaves the coroutine time for a last response.
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

}  // namespace trainyard::net::http
