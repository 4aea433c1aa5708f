// `trainyard console`: prints a link that opens the web console, once.
#include "cli/commands.hpp"

namespace trainyard::cli {

Result<int> console_command(CommandContext& context, const Arguments&) {
  const Json answer =
      TRY(context.client.call(client::Service::trainyard, "CreateConsoleSession", Json::object()));
  std::string endpoint = context.client.settings().endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  // Browsers send no fragment to a server, so the token is in no log and no referrer.
  TRY(context.terminal.write(endpoint + "/console#" + TRY(string_at(answer, "Token")) + "\n"));
  return 0;
}

}  // namespace trainyard::cli
