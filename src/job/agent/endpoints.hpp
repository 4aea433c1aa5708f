// Serves the platform's endpoints to a job: sockets in its network namespace on the link-local
// address, served from here.
//
//   169.254.170.2:80    /v2/credentials/ID: the job's temporary keys, in the form of the AWS SDKs
//   169.254.170.2:4566  the API (and the embedded object store), bytes relayed unchanged
//   169.254.170.2:4567  another object store that speaks plain HTTP, where one is configured
//
// The credentials' path holds 128 random bits and is sufficient for access. A token in the request,
// which the environment has too, must be correct. The job gets the own URL of an object store that
// speaks TLS: a relay's address would not match its certificate.
//
// The servers behind the sockets are made on the first connection.
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

// Returns the response of the credentials endpoint. Pure; for its handler and tests. `path` has the
// form "/v2/credentials/ID".
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
