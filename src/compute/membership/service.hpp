// Where the members of an elastic training apply for ranks: Membership behind a port.
//
//   auto service = TRY(Service::start({.listen = {"0.0.0.0", 0}, .secret = secret, .limits = {.ranks_min = 2}}));
//   service->expect("algo-1/0 #1");                   // before its process is started
//   while (auto news = service->next(1s)) print(news->words);
//
// Whoever starts the processes has it: horovodrun, or the leading host. A member is lost when its connection breaks; a
// machine that vanishes, after TcpOptions::dead_peer_max.
//
// Threads: call from anywhere; a thread of its own does the talking. Errors: those of listening.
// Limits: strangers_max connections without a proof, each for stranger_max; members_max; news_max, of which the oldest
// are dropped.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "membership/membership.hpp"

namespace trainyard::membership {

struct ServiceOptions {
  collectives::Endpoint listen;  // port 0: a free one
  std::string secret;
  Limits limits;
};

struct News {
  enum class Kind : uint8_t { came, seated, done, lost, dismissed };
  Kind kind = Kind::came;
  std::string name;  // seated: empty
  std::string words;
  uint64_t generation = 0;  // seated
  int ranks = 0;            // seated
};

class Service {
 public:
  static Result<std::unique_ptr<Service>> start(ServiceOptions options);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  uint16_t port() const;
  // A process with this name was started and will come.
  void expect(std::string name);
  // It ended, as whoever started it knows first. `why` empty: it is done.
  void gone(std::string name, std::string why);
  void host_leaves(std::string host);
  void host_returns(std::string host);
  // What happened since; waits for something, at most so long.
  std::optional<News> next(Duration at_most);
  // What is waited for, in words; empty when nothing is.
  std::string missing() const;

  static constexpr size_t members_max = 100'000;
  static constexpr size_t strangers_max = 256;
  static constexpr Duration stranger_max = 10s;
  static constexpr size_t news_max = 10'000;

 private:
  class Impl;
  explicit Service(std::unique_ptr<Impl> inside);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainyard::membership
