#include "net/http_server.hpp"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <system_error>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "net/http_connection_asio.hpp"
#include "net/http_listener.hpp"

namespace trainyard::net {
namespace http {
namespace {

// the pause in accepting if no descriptors are free
constexpr Duration kAcceptRest = 100ms;
constexpr int kBacklogMax = 1024;
// the network part of an IPv6 address: one subscriber has all addresses of such a network
constexpr size_t kIpv6NetworkBytes = 8;

// Returns the addresses that count as one peer.
asio::ip::address group_of(const asio::ip::address& address) {
  if (address.is_loopback()) return asio::ip::address_v4::loopback();
  if (!address.is_v6()) return address;
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + kIpv6NetworkBytes, bytes.end(), static_cast<unsigned char>(0));
  return asio::ip::address_v6(bytes);
}

}  // namespace

// -- the server -----------------------------------------------------------------------------------

Result<void> Server::renew_certificate() {
  if (settings_.certificate_file.empty()) return ok();
  auto made = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* context = made->native_handle();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  error_code error;
  made->use_certificate_chain_file(settings_.certificate_file, error);
  if (error)
    return invalid("reading the certificate " + settings_.certificate_file + ": " +
                   error.message());
  made->use_private_key_file(settings_.key_file, asio::ssl::context::pem, error);
  if (error) return invalid("reading the key " + settings_.key_file + ": " + error.message());
  const MutexLock lock(mutex_);
  tls_ = std::move(made);
  return ok();
}

Result<void> Server::listen() {
  if (given_) {
    acceptor_.emplace(loops_.front()->context);
    error_code error;
    acceptor_->assign(tcp::v4(), given_.descriptor(), error);
    if (error) return from_errno("using a listening socket", error.value());
    (void)given_.release();
    port_ = acceptor_->local_endpoint(error).port();
    end_with_dead_peer(acceptor_->native_handle(), settings_.dead_peer);
    return ok();
  }
  const std::string doing = "listening on " + settings_.listen;
  const size_t colon = settings_.listen.rfind(':');
  if (colon == std::string::npos) return invalid(doing + ": the port is missing");
  std::string host = settings_.listen.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  const int64_t port = TRY(parse_int(settings_.listen.substr(colon + 1)).in(doing));
  if (port < 0 || port > 65535) return invalid(doing + ": invalid port");
  error_code error;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error) return invalid(doing + ": invalid address");
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
  end_with_dead_peer(acceptor_->native_handle(), settings_.dead_peer);
  port_ = acceptor_->local_endpoint(error).port();
  return ok();
}

Result<void> Server::start() {
  TRY(renew_certificate());
  for (size_t i = 0; i < std::max<size_t>(1, settings_.io_threads); i++) {
    loops_.push_back(std::make_unique<Loop>());
    gates_.push_back(std::make_shared<Gate>(loops_.back().get()));
  }
  TRY(listen());
  asio::co_spawn(loops_.front()->context, accept(), asio::detached);
  try {
    for (const auto& loop : loops_) {
      // A loop's thread reads its own id when it answers; the lock delays that until the id is
      // written.
      const MutexLock lock(mutex_);
      loop->thread = std::thread([this, &context = loop->context] {
        { const MutexLock started(mutex_); }
        context.run();
      });
    }
  } catch (const std::system_error& error) {
    return exhausted(std::string("starting a thread: ") + error.what());
  }
  return ok();
}

asio::awaitable<void> Server::accept() {
  size_t next = 0;
  asio::steady_timer rest(loops_.front()->context);
  while (acceptor_->is_open()) {
    Loop& loop = *loops_[next];
    const std::shared_ptr<Gate> gate = gates_[next];
    next = (next + 1) % loops_.size();
    error_code error;
    tcp::socket socket = co_await acceptor_->async_accept(
        loop.context, asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      log(Level::warning, "net", "cannot accept connections now", {{"why", error.message()}});
      rest.expires_after(kAcceptRest);
      co_await rest.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    const asio::ip::address peer = group_of(socket.remote_endpoint(error).address());
    bool peer_is_full = false;
    if (!count(peer, peer_is_full)) {
      reject_connection(std::move(socket));
      shed(peer_is_full ? std::optional(peer) : std::nullopt);
      continue;
    }
    asio::post(loop.context, [this, &loop, gate = gate, peer, taken = std::move(socket)]() mutable {
      start_connection(loop, std::move(gate), std::move(taken), peer);
    });
  }
}

// Counts a new connection. Returns false if its peer or the server has too many.
bool Server::count(const asio::ip::address& peer, bool& peer_is_full) {
  const MutexLock lock(mutex_);
  const auto found = peers_.find(peer);
  peer_is_full = found != peers_.end() && found->second >= settings_.connections_per_peer_max;
  if (peer_is_full || connections_ >= settings_.connections_max) return false;
  connections_++;
  peers_[peer]++;
  return true;
}

// Ends the oldest connection of each loop without an accepted request or, if there is none, the
// oldest idle one, which its client can open again. A refused client therefore succeeds when it
// retries. With `peer`, only connections of that peer are ended.
void Server::shed(const std::optional<asio::ip::address>& peer) {
  for (const auto& loop : loops_)
    asio::post(loop->context, [&loop = *loop, peer] {
      // While one connection ends, no further one needs to be ended.
      for (const Connection* connection : loop.connections)
        if (connection->is_shed(peer)) return;
      for (const bool idle : {false, true})
        for (Connection* connection : loop.connections) {
          if (!connection->may_be_shed(peer, idle)) continue;
          connection->cut_off();
          return;
        }
    });
}

void Server::reject_connection(tcp::socket socket) {
  static constexpr std::string_view kFull =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\nContent-Length: "
      "43\r\nRetry-After: 1\r\n"
      "Connection: close\r\n\r\n<html>Too many connections are open.</html>";
  // Reads the bytes that have already arrived: closing with unread bytes would reset the connection
  // before the answer is read.
  std::array<char, 4096> ignored;
  (void)!::recv(socket.native_handle(), ignored.data(), ignored.size(), MSG_DONTWAIT);
  (void)!::send(socket.native_handle(), kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Server::start_connection(Loop& loop, std::shared_ptr<Gate> gate, tcp::socket socket,
                              asio::ip::address peer) {
  const auto connection = std::make_shared<Connection>(*this, loop, std::move(gate),
                                                       std::move(socket), std::move(peer));
  if (stopping()) return;
  if (!loop.ticking) {
    loop.ticking = true;
    tick(loop);
  }
  asio::co_spawn(loop.context, Connection::run(connection), asio::detached);
}

// Checks all deadlines of a loop, which is far cheaper than a timer for each read and write.
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

HttpServer::Load Server::load() const {
  Load load;
  if (pool_) {
    const TenantPool::Load streams = pool_->load();
    load.streams_running = streams.running;
    load.streams_waiting = streams.waiting;
  }
  const MutexLock lock(mutex_);
  load.connections = connections_;
  return load;
}

void Server::connection_ended(const asio::ip::address& peer) {
  const MutexLock lock(mutex_);
  connections_--;
  const auto found = peers_.find(peer);
  if (--found->second == 0) peers_.erase(found);
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
    MutexLock lock(mutex_);
    changed_.wait_for(lock, grace, [&]() REQUIRES(mutex_) { return connections_ == 0; });
    lock.unlock();
    on_every_loop([](Connection& connection) { connection.cut_off(); });
    lock.lock();
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return connections_ == 0; });
  }
  for (const auto& gate : gates_) {
    const MutexLock lock(gate->mutex);
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

}  // namespace http

Result<std::unique_ptr<HttpServer>> serve_http(const HttpSettings& settings, Handler& handler) {
  return serve_http(settings, handler, os::File());
}

Result<std::unique_ptr<HttpServer>> serve_http(const HttpSettings& settings, Handler& handler,
                                               os::File listener) {
  auto server = std::make_unique<http::Server>(settings, handler, std::move(listener));
  TRY(server->start());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace trainyard::net
