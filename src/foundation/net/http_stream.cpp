#include "net/http_connection_asio.hpp"

#include <openssl/ssl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"

namespace trainyard::net::http {
namespace {

Error from_code(std::string_view doing, const error_code& code) {
  return unavailable(std::string(doing) + ": " + code.message());
}

}  // namespace

// -- a streamed request ---------------------------------------------------------------------------

class ConnectionUpgrade final : public Upgraded {
 public:
  ConnectionUpgrade(Connection& connection, std::string early)
      : connection_(connection), early_(std::move(early)) {}

  Result<std::string> read(Duration at_most, int wake) override;
  Result<void> write(std::string_view bytes) override;

 private:
  Error ended(std::string_view doing, const error_code& error) const;
  Connection& connection_;
  std::string early_;  // bytes that arrived together with the request
};

class ConnectionStream final : public Stream {
 public:
  explicit ConnectionStream(Connection& connection)
      : connection_(connection),
        is_head_(connection.in_.is_head_method()),
        reading_(connection.make_floor()),
        writing_(connection.make_floor()) {}

  const RequestHead& head() const override { return connection_.head_; }

  Result<size_t> read(std::span<char> buffer) override {
    HttpDecoder& in = connection_.in_;
    if (buffer.empty()) return size_t(0);
    error_code error;
    // Sent even if the body is empty, so that a client that expects it continues, and the
    // connection can be reused.
    if (!failed_ && connection_.continue_wanted()) {
      send({"HTTP/1.1 100 Continue\r\n\r\n"}, error);
      if (error) return fail("sending 100 Continue", error);
    }
    if (!in.body_left()) return size_t(0);
    if (failed_) return broken("reading the request's body");
    for (;;) {
      size_t got = 0;
      const HttpDecoder::Step step = in.take_body(buffer, got);
      if (step == HttpDecoder::Step::done) return got;
      if (step == HttpDecoder::Step::fault) {
        failed_ = true;
        return invalid("reading the request's body: " + in.fault().explanation);
      }
      if (in.may_bypass()) {
        got = connection_.read_now(
            buffer.first(size_t(std::min<uint64_t>(buffer.size(), in.declared_left()))), error,
            &reading_);
        if (error) return fail("reading the request's body", error);
        in.bypassed(got);
        return got;
      }
      got = connection_.read_now(in.free_space(kStreamBytes), error, &reading_);
      if (error) return fail("reading the request's body", error);
      in.filled(got);
    }
  }

  Result<void> start(int status, const Headers& headers,
                     std::optional<uint64_t> content_length) override {
    CHECK(!started_, "a stream is started once");
    started_ = true;
    with_body_ = has_body(status) && !is_head_;
    chunked_ = !content_length && !connection_.in_.is_http_1_0();
    remaining_ = content_length;
    // The connection cannot be reused if the client waits for 100 Continue, since it may or may not
    // send its body now, or if it declared more bytes than are dropped here.
    if (connection_.continue_expected_ || connection_.in_.declared_left() > kDrainBytesMax)
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
                to_http_date(os::MachineClock().now()));
    // Clients may read chunked answers live, so the headers are sent before the first bytes of the
    // body.
    if (chunked_ || !with_body_) return flush_head();
    return ok();
  }

  Result<void> write(std::span<const char> bytes) override {
    CHECK(started_, "a stream is started before it is written");
    if (bytes.empty() || !with_body_) return ok();
    if (failed_) return broken("writing the answer's body");
    error_code error;
    const std::string_view text(bytes.data(), bytes.size());
    if (chunked_) {
      send({pending_head_, chunk_prefix(bytes.size()), text, "\r\n"}, error);
    } else {
      if (remaining_) {
        CHECK(bytes.size() <= *remaining_, "at most the declared length is written");
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

  Result<std::unique_ptr<Upgraded>> upgrade(std::string_view protocol) override {
    CHECK(!started_, "a stream is started once");
    if (connection_.in_.is_http_1_0() || connection_.in_.body_left())
      return invalid("only an HTTP/1.1 request without a body can be upgraded");
    started_ = true;
    upgraded_ = true;
    connection_.keep_alive_ = false;
    // Closing the socket with unread bytes would drop bytes that were sent to the client.
    connection_.linger_ = true;
    error_code error;
    send({"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ", protocol,
          "\r\n\r\n"},
         error);
    if (error) return fail("answering the upgrade", error);
    return std::unique_ptr<Upgraded>(
        std::make_unique<ConnectionUpgrade>(connection_, connection_.in_.take_waiting()));
  }

  // A started answer cannot be replaced, but the client must not regard it as complete.
  void break_off() { failed_ = started_; }

  // Called after the handler. Returns true if the connection can be used again.
  bool finish() {
    if (upgraded_) return false;
    if (!started_ && !failed_) {
      (void)reply({.status = 500, .headers = {}, .body = ""});
      return false;
    }
    if (failed_ || (with_body_ && remaining_ && *remaining_ > 0)) {
      // Ends without a TLS closure, so the client detects that the answer is incomplete.
      (void)flush_head();
      connection_.overdue_ = true;
      return false;
    }
    if (!flush_head()) return false;
    error_code error;
    if (with_body_ && chunked_) send({"0\r\n\r\n"}, error);
    return !error && connection_.keep_alive_;
  }

 private:
  Result<void> flush_head() {
    if (pending_head_.empty()) return ok();
    if (failed_) return broken("writing the answer's head");
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
    connection_.send_now({buffers.data(), count}, error, &writing_);
  }

  Error fail(std::string_view doing, const error_code& error) {
    failed_ = true;
    if (connection_.cut_off_) return cancelled(std::string(doing) + ": the server stops");
    if (connection_.overdue_)
      return cancelled(std::string(doing) + ": timed out waiting for the client");
    return from_code(doing, error);
  }
  static Error broken(std::string_view doing) {
    return unavailable(std::string(doing) + ": the connection has failed before");
  }

  Connection& connection_;
  const bool is_head_;
  RateFloor reading_, writing_;
  bool started_ = false;
  bool failed_ = false;
  bool upgraded_ = false;
  bool with_body_ = false;
  bool chunked_ = false;
  std::optional<uint64_t> remaining_;
  std::string pending_head_;
};

Error ConnectionUpgrade::ended(std::string_view doing, const error_code& error) const {
  if (connection_.cut_off_) return cancelled(std::string(doing) + ": the server stops");
  return from_code(doing, error);
}

Result<std::string> ConnectionUpgrade::read(Duration at_most, int wake) {
  if (!early_.empty()) return std::exchange(early_, std::string());
  // TLS may have buffered bytes that are no longer in the socket.
  const bool pending = connection_.tls_ && SSL_pending(connection_.tls_->native_handle()) > 0;
  pollfd ready[2] = {{connection_.descriptor_, POLLIN, 0}, {wake, POLLIN, 0}};
  if (!pending) {
    (void)::poll(ready, 2, int(at_most / 1ms));
    if (ready[0].revents == 0) return std::string();
  }
  std::string bytes(kStreamBytes, '\0');
  error_code error;
  bytes.resize(connection_.read_now(bytes, error, nullptr));
  if (error) return ended("reading the connection", error);
  return bytes;
}

Result<void> ConnectionUpgrade::write(std::string_view bytes) {
  error_code error;
  const asio::const_buffer part(bytes.data(), bytes.size());
  connection_.send_now({&part, 1}, error, nullptr);
  if (error) return ended("writing to the connection", error);
  return ok();
}

size_t Connection::read_now(std::span<char> free_space, error_code& error, RateFloor* floor) {
  const auto begun = steady_microseconds();
  set_deadline(floor ? std::chrono::floor<Duration>(floor->allowance())
                     : server_.settings().idle_limit);
  const auto space = asio::buffer(free_space.data(), free_space.size());
  const size_t got = tls_ ? tls_->read_some(space, error) : socket_.read_some(space, error);
  no_deadline();
  if (floor) floor->waited(steady_microseconds() - begun, got);
  return got;
}

void Connection::send_now(std::span<const asio::const_buffer> parts, error_code& error,
                          RateFloor* floor) {
  std::array<asio::const_buffer, 4> left;
  std::copy(parts.begin(), parts.end(), left.begin());
  size_t first = 0;
  const size_t count = parts.size();
  while (first < count && !error) {
    const auto begun = steady_microseconds();
    set_deadline(floor ? std::chrono::floor<Duration>(floor->allowance())
                       : server_.settings().idle_limit);
    const std::span<const asio::const_buffer> rest(left.data() + first, count - first);
    size_t sent = tls_ ? tls_->write_some(rest, error) : socket_.write_some(rest, error);
    if (floor) floor->waited(steady_microseconds() - begun, sent);
    while (first < count && sent >= left[first].size()) sent -= left[first++].size();
    if (first < count) left[first] += sent;
  }
  no_deadline();
}

asio::awaitable<bool> Connection::streamed_request(std::string tenant) {
  if (cut_off_) co_return false;
  bool keep_open = false;
  woken_ = false;
  state_ = State::streaming;
  no_deadline();
  const bool runs = server_.pool().run(tenant, [self = shared_from_this(), &keep_open]() mutable {
    {
      ConnectionStream stream(*self);
      try {
        self->server_.handler().stream(stream);
      } catch (const std::exception& error) {
        log(Level::error, "net", "a stream's handler threw", {{"what", error.what()}});
        stream.break_off();
      }
      keep_open = stream.finish();
    }
    // Moves the pointer, because the last owner must be on the loop.
    asio::io_context& context = self->loop_.context;
    asio::post(context, [self = std::move(self)] { self->wake(); });
  });
  if (!runs) {
    state_ = State::busy;
    co_return co_await refuse(503, "No thread is left to serve this request.\n");
  }
  while (!std::exchange(woken_, false)) {
    co_await asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
        [this](auto handler) {
          waiter_ = std::make_unique<WaiterOf<decltype(handler)>>(std::move(handler));
        },
        asio::use_awaitable);
    woken_ = true;
  }
  state_ = State::busy;
  if (!keep_open || cut_off_ || overdue_) co_return false;
  co_return co_await drain();
}

}  // namespace trainyard::net::http
