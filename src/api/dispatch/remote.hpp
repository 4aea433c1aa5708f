// Remotes forwards requests for regions of other servers. This server checks a request like any
// other, signs it with the configured keys for the other server, and returns its response
// unchanged. A header describes the principal on whose behalf the request is made
// (auth/delegation.hpp), and the other server authorises it by its own policies.
//
// Requests to global services (STS, IAM) are never forwarded, whatever region they are signed for:
// there is one account.
//
// Threads: callable from many threads at once; blocks while the other server works. Lifetime:
// settings outlive it.
#pragma once

#include <map>
#include <string>

#include "base/time.hpp"
#include "client/forward.hpp"
#include "dispatch/body.hpp"
#include "net/http_server.hpp"
#include "operations/context.hpp"
#include "protocol/route.hpp"

namespace trainyard::api {

// Returns whether the service has no regions. True for nullptr, an unknown service.
bool is_global(const shapes::Service* service);

// Returns the value of kDelegationHeader, which describes the principal on whose behalf a request
// is forwarded; "" for the owner, whose requests have the rights of the configured keys.
Result<std::string> on_behalf_of(const Context& context);

using RemoteRegions = std::map<std::string, client::Remote>;

class Remotes {
 public:
  Remotes(const RemoteRegions& regions, Clock& clock) : regions_(regions), forwarder_(clock) {}

  // Returns whether the request is forwarded, and so must run on a thread that may block.
  bool is_for_another(const Route& route, const std::string& region) const;

  // Forwards a whole request of any service except S3. `body`: as it was signed. Errors:
  // unavailable, denied. `on_behalf`: the value of kDelegationHeader; "" = the request has the
  // rights of the configured key.
  Result<net::Response> pass(const net::RequestHead& head, const std::string& body,
                             const Route& route, const std::string& region,
                             const std::string& on_behalf);
  // Forwards an S3 request and streams both bodies. After an error with `started` false, the caller
  // must respond.
  struct Streamed {
    bool started = false;
    int status = 0;
  };
  Result<void> pass_s3(net::Stream& stream, const S3Address& address, Body& body,
                       const std::string& region, const std::string& on_behalf, Streamed& streamed);

 private:
  const RemoteRegions& regions_;
  client::Forwarder forwarder_;
};

}  // namespace trainyard::api
