// Makes tokens that open sessions of the console.
#include "shapes/trainyard.hpp"

#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {

namespace own = shapes::trainyard;

void add_console(OperationTable& table, const Settings&, const Services& services) {
  table.add_quick<own::CreateConsoleSession>(
      [&](const Context& context,
          const own::CreateConsoleSessionRequest&) -> Outcome<own::CreateConsoleSessionResponse> {
        if (!services.issue_console_token)
          return validation(own::kService,
                            "this server has no console: its pages were not built (./yard build)");
        // A session is for a user of this server, so no other server may request it.
        if (!context.principal.invoked_by.empty() || !context.principal.peer_key_id.empty())
          return access_denied(own::kService,
                               "A console session is opened by its principal's own request.");
        const ConsoleToken token = services.issue_console_token(context);
        return own::CreateConsoleSessionResponse{.token = token.secret,
                                                 .expiration_time = token.expires};
      });
}

}  // namespace trainyard::api::trainyard_api
