// Forwards requests for regions of other servers. A request is checked here like any other, signed again with the keys that
// the configuration has for that server, and sent on; its response is returned as it is. The other server is told on whose
// behalf a request is made (auth/delegation.hpp), and decides by its own policies what that principal may do there.
//
// Global services (STS, IAM) are answered here whatever region the request was signed for: there is one account.
//
// Threads: callable from many threads at once; blocks while the other server works. Lifetime: settings outlive it.
#pragma once

#include <map>
#include <string>

#include "base/time.hpp"
#include "client/forward.hpp"
#include "dispatch/body.hpp"
#include "net/http_server.hpp"
#include "protocol/route.hpp"

namespace trainyard::api {

// Of services that are not kept by region. nullptr: of no service that is here.
bool is_global(const shapes::Service* service);

using RemoteRegions = std::map<std::string, client::Remote>;

class Remotes {
 public:
  Remotes(const RemoteRegions& regions, Clock& clock) : regions_(regions), forwarder_(clock) {}

  // By the head alone, before anything of it is checked: whether it must run on a thread that may wait.
  bool may_be_for_another(const net::RequestHead& head) const;
  bool is_for_another(const Route& route, const std::string& region) const;

  // A whole request of any service but S3. `body`: as it was signed. Errors: unavailable, denied.
  // `on_behalf`: the value of kDelegationHeader; "" = the request is made with the rights of the configured key.
  Result<net::Response> pass(const net::RequestHead& head, const std::string& body, const Route& route,
                             const std::string& region, const std::string& on_behalf);
  // S3: bodies stream. On an error before the answer began, `started` is false and the caller answers.
  struct Streamed {
    bool started = false;
    int status = 0;
  };
  Result<void> pass_s3(net::Stream& stream, const S3Address& address, Body& body, const std::string& region,
                       const std::string& on_behalf, Streamed& streamed);

 private:
  const RemoteRegions& regions_;
  client::Forwarder forwarder_;
};

}  // namespace trainyard::api
