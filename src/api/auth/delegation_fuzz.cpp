// Parses descriptions of principals, from other servers and from stored campaigns. A parsed
// description is formatted and parsed again without a change.
// decoder: src/api/auth/delegation.cpp
#include <cstddef>
#include <cstdint>
#include <memory>

#include "auth/delegation.hpp"
#include "base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const auto read = api::parse_delegation({reinterpret_cast<const char*>(data), size});
  if (!read) return 0;
  // Format and parse again.
  const auto text = api::format_delegation(*read);
  if (!text) return 0;
  const auto again = api::parse_delegation(*text);
  CHECK(bool(again), "a formatted description parses");
  CHECK(*api::format_delegation(*again) == *text, "and formats to the same text");
  // A request on its behalf describes the same principal.
  api::Context context;
  api::Principal& principal = context.principal;
  principal.kind = again->kind;
  principal.name = again->name;
  principal.user_id = again->id;
  principal.invoked_by = again->invoked_by;
  principal.peer_key_id = again->peer_key_id;
  if (again->kind == api::PrincipalKind::session)
    principal.session = std::make_shared<const api::RoleSession>(again->session);
  context.source_ip = again->source_ip;
  context.secure = again->secure;
  CHECK(*api::format_delegation(api::delegation_of(context)) == *text,
        "a request on its behalf has the same description");
  return 0;
}
