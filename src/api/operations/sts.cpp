// Who am I: the one operation of STS that clients need to find their account.
#include "api/shapes/sts.hpp"
#include "api/operations/operations.hpp"

namespace trainyard::api {

void add_sts(OperationTable& table, const Settings&, const Services&) {
  table.add_quick<shapes::sts::GetCallerIdentity>(
      [](const Context& context,
         const shapes::sts::GetCallerIdentityRequest&) -> Outcome<shapes::sts::GetCallerIdentityResponse> {
        return shapes::sts::GetCallerIdentityResponse{.user_id = context.principal.user_id,
                                                      .account = context.principal.account,
                                                      .arn = context.principal.arn};
      });
}

}  // namespace trainyard::api
