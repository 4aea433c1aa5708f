// What a job reaches of the platform: sockets inside its network namespace on the link-local address, served
// from here.
//
//   169.254.170.2:80    /v2/credentials/ID: the job's temporary keys, as the AWS SDKs ask for them
//   169.254.170.2:4566  the API (and the embedded object store), bytes passed on as they are
//   169.254.170.2:4567  another object store that speaks plain HTTP, where one is configured
//
// The credentials' path holds 128 random bits; who has it may ask. Where a request carries the token that the
// environment names too, it must be the right one. An object store that speaks TLS is named to the job by its
// own URL: a relay's address would not fit its certificate.
//
// What serves them is made when the first one asks.
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
  // How the job finds them: for its environment. ca_bundle is left empty.
  virtual const contract::EndpointConfig& config() const = 0;
};

Result<std::unique_ptr<Endpoints>> open_endpoints(const wire::Order& order,
                                                  const std::string& network_namespace, const JobKeys& keys,
                                                  Random& random);

// What the credentials endpoint answers. Pure; for its handler and tests. `path` is of the form
// "/v2/credentials/ID".
struct CredentialsAnswer {
  int status = 200;
  std::string body;
};
CredentialsAnswer answer_credentials(std::string_view method, std::string_view path,
                                     std::string_view authorization, const std::string& expected_path,
                                     const std::string& token,
                                     const std::optional<wire::Credentials>& credentials,
                                     const std::string& role_arn);

}  // namespace trainyard::agent
