// `trainyard status`: shows the state of the server itself.
#include "cli/commands.hpp"
#include "cli/server_view.hpp"

namespace trainyard::cli {

Result<int> status_command(CommandContext& context, const Arguments& arguments) {
  const Json answer =
      TRY(context.client.call(client::Service::trainyard, "DescribeServer", Json::object()));
  TRY(context.terminal.write(arguments.has("--json")
                                 ? dump(answer, 2) + "\n"
                                 : server_page(context.style, answer, context.clock.now())));
  return 0;
}

}  // namespace trainyard::cli
