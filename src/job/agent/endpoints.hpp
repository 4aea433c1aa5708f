// Serves the platform's endpoints to a job, through sockets on the link-local address in the job's
// network namespace.
//
//   169.254.170.2:80    /v2/credentials/ID: the job's temporary keys, in the form of the AWS SDKs
//   169.254.170.2:4566  the API (and the embedded object store), bytes relayed unchanged, or by TLS
//                       to a server on another machine
//   169.254.170.2:4567  another object store that speaks plain HTTP, where one is configured
//
// The path of the credentials contains 128 random bits and is sufficient for access. A request may
// also send the token from the job's environment; a wrong token is rejected. An object store that
// speaks TLS is not relayed, since a relay's address would not match its certificate: the job gets
// the store's own URL.
//
// The servers behind the sockets start with the first connection.
//
// Threads: their own. Lifetime: `keys` must outlive them; destruction closes everything.
// Errors: those of networks/network_namespace.hpp.
#pragma once

#include <memory>
#include <string>

#include "agent/keys.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "contract/contract.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

inline constexpr const char* kLinkLocalAddress = "169.254.170.2";

class Endpoints {
 public:
  virtual ~Endpoints() = default;
  // The endpoints for the job's environment. ca_bundle is left empty.
  virtual const contract::EndpointConfig& config() const = 0;
};

Result<std::unique_ptr<Endpoints>> open_endpoints(const wire::Order& order,
                                                  const std::string& network_namespace,
                                                  const JobKeys& keys, Random& random);

// Returns the response of the credentials endpoint, for its handler and tests. Pure.
// `expected_path` has the form "/v2/credentials/ID".
struct CredentialsAnswer {
  int status = 200;
  std::string body;
};
CredentialsAnswer answer_credentials(std::string_view method, std::string_view path,
                                     std::string_view authorization,
                                     const std::string& expected_path, const std::string& token,
                                     const std::optional<wire::Credentials>& credentials,
                                     const std::string& role_arn);

}  // namespace trainyard::agent
