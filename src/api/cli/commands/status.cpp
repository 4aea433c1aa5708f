// `trainyard status`: shows the state of the server itself.
#include "cli/commands.hpp"
#include "cli/server_view.hpp"

namespace trainyard::cli {

Result<int> status_command(World& world, const Arguments& arguments) {
  const Json answer =
      TRY(world.client.call(client::Service::trainyard, "DescribeServer", Json::object()));
  TRY(world.terminal.write(arguments.has("--json")
                               ? dump(answer, 2) + "\n"
                               : server_page(world.looks, answer, world.clock.now())));
  return 0;
}

}  // namespace trainyard::cli
