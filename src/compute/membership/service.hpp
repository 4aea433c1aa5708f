// A Service assigns ranks to the members of an elastic training. It is a Membership with a
// listener.
//
//   auto service = TRY(Service::start({.listen = {"0.0.0.0", 0}, .secret = secret,
//                                      .limits = {.ranks_min = 2}}));
//   service->expect("algo-1/0 #1");                   // before its process is started
//   while (auto news = service->next(1s)) print(news->text);
//
// The launcher of the processes owns it: horovodrun, or the main host. A member is lost when its
// connection breaks. The loss of a machine is detected after TcpOptions::kDeadPeerMax.
//
// Threads: call from any thread; a thread of its own does all I/O. Errors: those of listening.
// Limits: kUnauthenticatedMax unauthenticated connections, each for kHandshakeMax; kMembersMax;
// kNewsMax events, beyond which the oldest are dropped.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "membership/membership.hpp"

namespace trainyard::membership {

struct ServiceOptions {
  collectives::Endpoint listen;  // port 0: any free port
  std::string secret;
  Limits limits;
};

struct News {
  enum class Kind : uint8_t { came, formed, done, lost, dismissed };
  Kind kind = Kind::came;
  std::string name;  // formed: empty
  std::string text;
  uint64_t generation = 0;  // formed
  int ranks = 0;            // formed
};

class Service {
 public:
  static Result<std::unique_ptr<Service>> start(ServiceOptions options);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  uint16_t port() const;
  // Announces that a process with this name was started and will connect.
  void expect(std::string name);
  // Reports that a process has ended; called by its launcher, which notices it first. An empty
  // `why` is success.
  void gone(std::string name, std::string why);
  void host_leaves(std::string host);
  void host_returns(std::string host);
  // Returns the next event; waits at most `at_most`.
  std::optional<News> next(Duration at_most);
  // Describes for what the next generation waits; empty if it waits for nothing.
  std::string missing() const;

  static constexpr size_t kMembersMax = 100'000;
  static constexpr size_t kUnauthenticatedMax = 256;
  static constexpr Duration kHandshakeMax = 10s;
  static constexpr size_t kNewsMax = 10'000;

 private:
  class Impl;
  explicit Service(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainyard::membership
