// `trainyard console`: prints a link that opens the web console, once.
#include "cli/commands.hpp"

namespace trainyard::cli {

Result<int> console_command(World& world, const Arguments&) {
  const Json answer =
      TRY(world.client.call(client::Service::trainyard, "CreateConsoleSession", Json::object()));
  std::string endpoint = world.client.settings().endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  // Browsers send no fragment to a server, so the token is in no log and no referrer.
  TRY(world.terminal.write(endpoint + "/console#" + TRY(string_at(answer, "Token")) + "\n"));
  return 0;
}

}  // namespace trainyard::cli
