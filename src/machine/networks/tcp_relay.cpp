#include "networks/tcp_relay.hpp"

#include <array>
#include <boost/asio.hpp>
#include <list>
#include <thread>

#include "base/log.hpp"
#include "base/text.hpp"
#include "net/tls_client.hpp"

namespace trainyard::networks {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Failure = boost::system::error_code;

// the pause after a failed accept (no free descriptors)
constexpr std::chrono::milliseconds kAcceptPause{100};

auto with(Failure& failure) { return asio::redirect_error(asio::use_awaitable, failure); }

// How one direction changes the bytes of a connection.
class Transform {
 public:
  virtual ~Transform() = default;
  // Appends what to send for the received bytes. Returns false after the end of the stream.
  virtual Result<bool> take(std::string_view bytes, std::string& out) = 0;
  // Returns what to send before the end.
  virtual std::string end() { return ""; }
};

class Encryption final : public Transform {
 public:
  explicit Encryption(net::TlsClient& tls) : tls_(tls) {}
  Result<bool> take(std::string_view bytes, std::string& out) override {
    TRY(tls_.encrypt(bytes));
    out = tls_.take_output();
    return true;
  }
  std::string end() override {
    tls_.end();
    return tls_.take_output();
  }

 private:
  net::TlsClient& tls_;
};

class Decryption final : public Transform {
 public:
  explicit Decryption(net::TlsClient& tls) : tls_(tls) {}
  Result<bool> take(std::string_view bytes, std::string& out) override {
    tls_.feed(bytes);
    return tls_.decrypt(out);
  }

 private:
  net::TlsClient& tls_;
};

// Copies one direction of a connection, until its end or an error on either side. The end is
// forwarded and the other direction continues; an error ends both. `transform`: nullptr: none.
asio::awaitable<void> pass_on(tcp::socket& from, tcp::socket& to, Transform* transform) {
  std::array<char, kRelayBufferBytes> buffer;
  std::string changed;
  Failure failure, ignored;
  for (;;) {
    const size_t size = co_await from.async_read_some(asio::buffer(buffer), with(failure));
    if (size == 0 || failure) break;
    std::string_view bytes(buffer.data(), size);
    bool more = true;
    if (transform) {
      changed.clear();
      const auto taken = transform->take(bytes, changed);
      if (!taken) {
        from.close(ignored);
        to.close(ignored);
        co_return;
      }
      more = *taken;
      bytes = changed;
    }
    co_await asio::async_write(to, asio::buffer(bytes.data(), bytes.size()), with(failure));
    if (failure) {
      from.close(ignored);
      to.close(ignored);
      co_return;
    }
    if (!more) break;
  }
  if (failure && failure != asio::error::eof) from.close(ignored);
  if (transform) {
    const std::string last = transform->end();
    co_await asio::async_write(to, asio::buffer(last), with(ignored));
  }
  to.shutdown(tcp::socket::shutdown_send, ignored);
}

class Relay final : public TcpRelay {
 public:
  Relay(os::File listener, std::string host, std::string port, std::unique_ptr<net::TlsClients> tls)
      : host_(std::move(host)),
        port_(std::move(port)),
        tls_(std::move(tls)),
        acceptor_(context_),
        pause_(context_) {
    acceptor_.assign(tcp::v4(), listener.release());
    asio::co_spawn(context_, accept(), asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }

  ~Relay() override {
    context_.stop();
    thread_.join();
  }

 private:
  struct Session {
    explicit Session(asio::io_context& context) : inside(context), outside(context) {}
    tcp::socket inside, outside;
    std::unique_ptr<net::TlsClient> tls;  // nullptr: without TLS
    std::unique_ptr<Transform> encryption, decryption;
    int ways = 2;  // number of open directions
  };

  asio::awaitable<void> accept() {
    for (;;) {
      if (sessions_.size() >= kRelayConnectionsMax) {
        pause_.expires_after(std::chrono::hours(24));  // until a session ends and cancels it
        Failure ignored;
        co_await pause_.async_wait(with(ignored));
        continue;
      }
      Failure failure;
      tcp::socket socket = co_await acceptor_.async_accept(with(failure));
      if (failure) {
        log(Level::warning, "networks", "a relay cannot accept", {{"error", failure.message()}});
        pause_.expires_after(kAcceptPause);
        Failure ignored;
        co_await pause_.async_wait(with(ignored));
        continue;
      }
      const auto session = sessions_.emplace(sessions_.end(), context_);
      session->inside = std::move(socket);
      asio::co_spawn(context_, serve(session), asio::detached);
    }
  }

  asio::awaitable<void> serve(std::list<Session>::iterator session) {
    tcp::resolver resolver(context_);
    Failure failure;
    const auto found = co_await resolver.async_resolve(host_, port_, with(failure));
    if (!failure) co_await asio::async_connect(session->outside, found, with(failure));
    std::string why = failure ? failure.message() : "";
    if (!failure && tls_) why = co_await shake_hands(*session);
    if (!why.empty()) {
      log(Level::info, "networks", "a relay's target cannot be reached",
          {{"target", host_ + ":" + port_}, {"error", why}});
      end(session);
      co_return;
    }
    Failure ignored;
    session->inside.set_option(tcp::no_delay(true), ignored);
    session->outside.set_option(tcp::no_delay(true), ignored);
    asio::co_spawn(context_, one_way(session, true), asio::detached);
    asio::co_spawn(context_, one_way(session, false), asio::detached);
  }

  // Returns the reason why the handshake failed; "" after a complete one.
  asio::awaitable<std::string> shake_hands(Session& session) {
    session.tls = tls_->make();
    std::array<char, kRelayBufferBytes> buffer;
    for (;;) {
      const auto done = session.tls->shake_hands();
      Failure failure;
      const std::string output = session.tls->take_output();
      co_await asio::async_write(session.outside, asio::buffer(output), with(failure));
      if (!done) co_return done.error().message;
      if (failure) co_return failure.message();
      if (*done) break;
      const size_t size =
          co_await session.outside.async_read_some(asio::buffer(buffer), with(failure));
      if (failure) co_return failure.message();
      session.tls->feed({buffer.data(), size});
    }
    session.encryption = std::make_unique<Encryption>(*session.tls);
    session.decryption = std::make_unique<Decryption>(*session.tls);
    co_return "";
  }

  asio::awaitable<void> one_way(std::list<Session>::iterator session, bool outbound) {
    if (outbound) {
      co_await pass_on(session->inside, session->outside, session->encryption.get());
    } else {
      co_await pass_on(session->outside, session->inside, session->decryption.get());
    }
    // A direction that ended by an error has closed its source, so the other direction must not
    // wait for it.
    if (!session->inside.is_open() || !session->outside.is_open()) {
      Failure ignored;
      session->inside.close(ignored);
      session->outside.close(ignored);
    }
    if (--session->ways == 0) end(session);
  }

  void end(std::list<Session>::iterator session) {
    sessions_.erase(session);
    pause_.cancel();
  }

  const std::string host_, port_;
  const std::unique_ptr<net::TlsClients> tls_;  // nullptr: without TLS
  // Confined to thread_ once it runs. Sockets are destroyed before their context, which does not
  // resume the remaining coroutines.
  asio::io_context context_{1};
  std::list<Session> sessions_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<TcpRelay>> relay_tcp(os::File listener, const std::string& target,
                                            const std::string& authority) {
  const size_t colon = target.rfind(':');
  if (colon == std::string::npos || !parse_int(target.substr(colon + 1)))
    return invalid("invalid relay target '" + target + "': expected HOST:PORT");
  const std::string host = target.substr(0, colon);
  std::unique_ptr<net::TlsClients> tls;
  if (!authority.empty()) tls = TRY(net::tls_clients(authority, host));
  return std::unique_ptr<TcpRelay>(
      std::make_unique<Relay>(std::move(listener), host, target.substr(colon + 1), std::move(tls)));
}

}  // namespace trainyard::networks
