// BearerTokens finds the principal of a bearer token, for requests that no client of AWS makes.
//
//   a token of the configuration   a user's, or the owner's
//   a token of an access key       that of its user, until the key is deactivated or deleted
//
// A token of an access key is computed from the key's secret, and is good for one use only
// (signing/metrics_token.hpp). Temporary keys have none.
//
// Threads: callable from many threads at once. Lifetime: settings and control outlive it. Errors:
// none; an unknown token has no principal.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/principals.hpp"
#include "net/http_server.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"
#include "signing/metrics_token.hpp"

namespace trainyard::api::prometheus {

struct ConfiguredToken {
  std::string token;
  std::string user;  // whose rights it has; "": the owner's
};
// Returns the current tokens of the configuration.
using ConfiguredTokens = std::function<std::vector<ConfiguredToken>()>;

class BearerTokens {
 public:
  BearerTokens(const Settings& settings, control::Control& control, ConfiguredTokens configured);

  std::optional<Principal> find(std::string_view token, signing::TokenUse use) const;

 private:
  std::optional<Principal> of_user(const std::string& name) const;

  const Settings& settings_;
  const Principals principals_;
  const ConfiguredTokens configured_;
};

// Returns the token of an Authorization header with the scheme Bearer. Nothing: it has another one.
std::optional<std::string_view> bearer_token(const net::RequestHead& head);

}  // namespace trainyard::api::prometheus
