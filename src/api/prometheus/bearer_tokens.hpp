// BearerTokens finds the principal of a bearer token, for requests of clients other than AWS's.
//
//   token of the configuration   the user that the configuration names, or the owner
//   token of an access key       the key's user, until the key is deactivated or deleted
//
// A token of an access key is computed from the key's secret, and is valid for one kind of use only
// (signing/metrics_token.hpp). Temporary keys have no tokens.
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
  std::string user;  // the token has this user's rights; "" = the owner's
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

// Returns the token of an Authorization header with the scheme Bearer; nothing for another scheme.
std::optional<std::string_view> bearer_token(const net::RequestHead& head);

}  // namespace trainyard::api::prometheus
