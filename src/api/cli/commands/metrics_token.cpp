// `trainyard metrics-token`: prints a bearer token for Prometheus, made from the access key in use.
#include "signing/metrics_token.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"

namespace trainyard::cli {

Result<int> metrics_token_command(CommandContext& context, const Arguments& arguments) {
  const signing::Keys& keys = context.client.settings().keys;
  if (!keys.session_token.empty())
    return invalid("temporary keys have no token for metrics: use a user's access key");
  const auto use = arguments.has("--write") ? signing::TokenUse::write : signing::TokenUse::scrape;
  const std::string token = signing::metrics_token(keys.access_key_id, keys.secret_access_key, use);
  const auto parsed = signing::parse_metrics_token(token);
  const bool allowed = token.find_first_not_of(
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
                           "yz0123456789-._") == token.npos;
  if (!parsed || !allowed)
    return invalid("the access key id '" + shorten(keys.access_key_id, 100) +
                   "' has characters that a token cannot contain: use an id of letters and digits");
  TRY(context.terminal.write(token + "\n"));
  return 0;
}

}  // namespace trainyard::cli
