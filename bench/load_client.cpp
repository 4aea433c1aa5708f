#include "bench/load_client.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A response that takes longer is an error.
constexpr Duration kAnswerLimit = 30s;
constexpr size_t kAnswerBytesMax = 64 << 20;

// Counts latencies in buckets that are 2 % apart, so that a measurement of any length needs little
// memory.
class Histogram {
 public:
  void add(std::chrono::nanoseconds latency) {
    const double microseconds = std::max(1.0, double(latency.count()) / 1000);
    buckets_[std::min(size_t(std::log(microseconds) / kStep), buckets_.size() - 1)]++;
    count_++;
    max_ = std::max(max_, microseconds);
  }
  void add(const Histogram& other) {
    for (size_t i = 0; i < buckets_.size(); i++) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    max_ = std::max(max_, other.max_);
  }
  double milliseconds_at(double share) const {
    uint64_t below = 0;
    for (size_t i = 0; i < buckets_.size(); i++) {
      below += buckets_[i];
      if (double(below) >= share * double(count_))
        return std::min(max_, std::exp(double(i + 1) * kStep)) / 1000;
    }
    return max_ / 1000;
  }
  double max_milliseconds() const { return max_ / 1000; }
  uint64_t count() const { return count_; }

 private:
  static constexpr double kStep = 0.02;
  std::array<uint64_t, 1000> buckets_ = {};  // up to 485 seconds
  uint64_t count_ = 0;
  double max_ = 0;
};

// Finds the end and the status of a response.
class AnswerReader {
 public:
  // Returns true at the end of a response; the next call begins the next one.
  Result<bool> add(std::string_view bytes) {
    text_ += bytes;
    if (head_size_ == 0) {
      const size_t end = text_.find("\r\n\r\n");
      if (end == std::string::npos) return false;
      head_size_ = end + 4;
      const std::string_view head = std::string_view(text_).substr(0, end);
      status_ = int(TRY(parse_int(head.substr(head.find(' ') + 1, 3))));
      size_t body_size = 0;
      for (std::string_view line : split(head, '\n')) {
        if (line.size() > 15 && equals_ignoring_case(line.substr(0, 15), "Content-Length:"))
          body_size = size_t(TRY(parse_int(trim(line.substr(15)))));
        else if (line.size() > 18 && equals_ignoring_case(line.substr(0, 18), "Transfer-Encoding:"))
          return invalid("reading a response: chunked responses are not supported");
      }
      if (body_size > kAnswerBytesMax)
        return invalid("reading a response: its body exceeds the maximum");
      whole_size_ = head_size_ + body_size;
    }
    if (text_.size() < whole_size_) return false;
    last_ = status_ >= 400 ? shorten(text_, 500) : "";
    text_.clear();
    head_size_ = 0;
    return true;
  }
  int status() const { return status_; }
  const std::string& refusal() const { return last_; }

 private:
  std::string text_, last_;
  size_t head_size_ = 0, whole_size_ = 0;
  int status_ = 0;
};

struct Connection {
  os::File socket;
  std::string request;
  size_t sent = 0;
  SteadyClock::time_point began;
  AnswerReader reader;
};

struct Part {
  Histogram latencies;
  uint64_t refusals = 0;
  std::string first_refusal;
  double busy_seconds = 0, seconds = 0;
  std::optional<Error> error;
};

Result<os::File> connect(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return invalid("address " + address + ": must be HOST:PORT");
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(uint16_t(TRY(parse_int(address.substr(colon + 1)))));
  if (::inet_pton(AF_INET, address.substr(0, colon).c_str(), &where.sin_addr) != 1)
    return invalid("address " + address + ": must be an IPv4 address");
  os::File socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return from_errno("creating a socket");
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&where), sizeof where) != 0)
    return from_errno("connecting to " + address);
  return socket;
}

double thread_seconds() {
  timespec used = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return double(used.tv_sec) + double(used.tv_nsec) / 1e9;
}

// Drives the connections of one thread.
class Driver {
 public:
  Driver(const Load& load, size_t connections, std::atomic<uint64_t>& number)
      : load_(load), number_(number), connections_(connections) {}

  Result<void> run(Part& part) {
    const os::File poll(::epoll_create1(EPOLL_CLOEXEC));
    for (size_t i = 0; i < connections_.size(); i++) {
      connections_[i].socket = TRY(connect(load_.address));
      epoll_event event = {};
      event.events = EPOLLIN;
      event.data.u64 = i;
      if (::epoll_ctl(poll.descriptor(), EPOLL_CTL_ADD, connections_[i].socket.descriptor(),
                      &event) != 0)
        return from_errno("watching a connection");
    }
    const auto begun = SteadyClock::now();
    const auto counts_from = begun + load_.warm_up;
    const auto ends = counts_from + load_.lasts;
    for (Connection& connection : connections_) TRY(send(connection));
    if (waiting_ == 0) return ok();
    double busy_before = thread_seconds();
    bool counting = false;
    std::array<epoll_event, 64> ready;
    for (;;) {
      const int count = ::epoll_wait(poll.descriptor(), ready.data(), int(ready.size()),
                                     int(kAnswerLimit.count()));
      if (count == 0)
        return unavailable("timed out after " + std::to_string(kAnswerLimit.count()) +
                           " ms without a response");
      const auto now = SteadyClock::now();
      if (!counting && now >= counts_from) {
        counting = true;
        busy_before = thread_seconds();
      }
      if (now >= ends) break;
      for (int i = 0; i < count; i++) {
        Connection& connection = connections_[ready[size_t(i)].data.u64];
        if (!TRY(receive(connection))) continue;
        if (counting && connection.began >= counts_from) note(part, connection);
        waiting_--;
        TRY(send(connection));
      }
      if (waiting_ == 0) break;
    }
    part.seconds = std::chrono::duration<double>(SteadyClock::now() - counts_from).count();
    part.busy_seconds = thread_seconds() - busy_before;
    return ok();
  }

 private:
  Result<void> send(Connection& connection) {
    const uint64_t number = number_.fetch_add(1, std::memory_order_relaxed);
    if (load_.requests_max > 0 && number >= load_.requests_max) return ok();
    connection.request = load_.make_request(number);
    waiting_++;
    connection.began = SteadyClock::now();
    std::string_view rest = connection.request;
    while (!rest.empty()) {
      const ssize_t sent =
          ::send(connection.socket.descriptor(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return from_errno("sending");
      rest.remove_prefix(size_t(sent));
    }
    return ok();
  }

  Result<bool> receive(Connection& connection) {
    const ssize_t got =
        ::recv(connection.socket.descriptor(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got < 0) return from_errno("reading");
    if (got == 0) return unavailable("the server closed a connection");
    return connection.reader.add({buffer_.data(), size_t(got)});
  }

  void note(Part& part, const Connection& connection) {
    part.latencies.add(SteadyClock::now() - connection.began);
    if (connection.reader.status() < 400) return;
    if (part.refusals++ == 0) part.first_refusal = connection.reader.refusal();
  }

  const Load& load_;
  std::atomic<uint64_t>& number_;
  std::vector<Connection> connections_;
  size_t waiting_ = 0;  // connections that wait for a response
  std::vector<char> buffer_ = std::vector<char>(64 << 10);
};

}  // namespace

Result<LoadResult> run_load(const Load& load) {
  const size_t threads = std::clamp<size_t>(load.threads, 1, std::max<size_t>(1, load.connections));
  std::atomic<uint64_t> number = 0;
  std::vector<Part> parts(threads);
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; t++)
    running.emplace_back([&, t] {
      const size_t connections =
          load.connections / threads + (t < load.connections % threads ? 1 : 0);
      Driver driver(load, std::max<size_t>(1, connections), number);
      if (auto driven = driver.run(parts[t]); !driven) parts[t].error = driven.error();
    });
  for (std::thread& thread : running) thread.join();

  LoadResult result;
  Histogram all;
  double busy_seconds = 0, seconds = 0;
  for (Part& part : parts) {
    if (part.error) return std::move(*part.error).in("loading " + load.address);
    all.add(part.latencies);
    result.refusals += part.refusals;
    if (result.first_refusal.empty()) result.first_refusal = part.first_refusal;
    result.answers_per_second +=
        part.seconds > 0 ? double(part.latencies.count()) / part.seconds : 0;
    busy_seconds += part.busy_seconds;
    seconds += part.seconds;
  }
  result.answers = all.count();
  result.p50_ms = all.milliseconds_at(0.5);
  result.p90_ms = all.milliseconds_at(0.9);
  result.p99_ms = all.milliseconds_at(0.99);
  result.max_ms = all.max_milliseconds();
  result.busy_share = seconds > 0 ? busy_seconds / seconds : 0;
  return result;
}

}  // namespace trainyard::bench
