#include "networks/tcp_relay.hpp"

#include <array>
#include <boost/asio.hpp>
#include <list>
#include <thread>

#include "base/log.hpp"
#include "base/text.hpp"

namespace trainyard::networks {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Failure = boost::system::error_code;

// the pause after a failed accept (no free descriptors)
constexpr std::chrono::milliseconds kAcceptPause{100};

auto with(Failure& failure) { return asio::redirect_error(asio::use_awaitable, failure); }

// Copies one direction of a connection, until its end or an error on either side.
asio::awaitable<void> pass_on(tcp::socket& from, tcp::socket& to) {
  std::array<char, kRelayBufferBytes> buffer;
  for (;;) {
    Failure failure;
    const size_t size = co_await from.async_read_some(asio::buffer(buffer), with(failure));
    if (size == 0 || failure) {
      Failure ignored;
      to.shutdown(tcp::socket::shutdown_send, ignored);
      // The end of one direction is forwarded and the other continues; an error ends both.
      if (failure && failure != asio::error::eof) from.close(ignored);
      co_return;
    }
    co_await asio::async_write(to, asio::buffer(buffer, size), with(failure));
    if (failure) {
      Failure ignored;
      from.close(ignored);
      to.close(ignored);
      co_return;
    }
  }
}

class Relay final : public TcpRelay {
 public:
  Relay(os::File listener, std::string host, std::string port)
      : host_(std::move(host)), port_(std::move(port)), acceptor_(context_), pause_(context_) {
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
    if (failure) {
      log(Level::info, "networks", "a relay's target cannot be reached",
          {{"target", host_ + ":" + port_}, {"error", failure.message()}});
      end(session);
      co_return;
    }
    Failure ignored;
    session->inside.set_option(tcp::no_delay(true), ignored);
    session->outside.set_option(tcp::no_delay(true), ignored);
    asio::co_spawn(context_, one_way(session, true), asio::detached);
    asio::co_spawn(context_, one_way(session, false), asio::detached);
  }

  asio::awaitable<void> one_way(std::list<Session>::iterator session, bool outbound) {
    if (outbound) {
      co_await pass_on(session->inside, session->outside);
    } else {
      co_await pass_on(session->outside, session->inside);
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
  // Confined to thread_ once it runs. Sockets are destroyed before their context, which does not
  // resume the remaining coroutines.
  asio::io_context context_{1};
  std::list<Session> sessions_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<TcpRelay>> relay_tcp(os::File listener, const std::string& target) {
  const size_t colon = target.rfind(':');
  if (colon == std::string::npos || !parse_int(target.substr(colon + 1)))
    return invalid("invalid relay target '" + target + "': expected HOST:PORT");
  return std::unique_ptr<TcpRelay>(std::make_unique<Relay>(
      std::move(listener), target.substr(0, colon), target.substr(colon + 1)));
}

}  // namespace trainyard::networks
