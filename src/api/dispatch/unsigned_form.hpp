// Finds the operation of a form of the query protocol without a signature: STS's operations for
// web identities and SAML have none, and this server does not offer them. The name is read from the
// first bytes of the body, so that the answer says so.
//
// Threads: one at a time. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/errors.hpp"
#include "protocol/route.hpp"

namespace trainyard::api {

// Longer beginnings of bodies are refused. Clients send the name first.
inline constexpr size_t kUnsignedFormBytesMax = 8 << 10;

class UnsignedForm {
 public:
  static bool is(const Route& route, const net::RequestHead& head) {
    return !route.service && route.protocol == Protocol::query &&
           !head.headers.has("authorization");
  }

  // Takes the next bytes. Returns the failure to answer with, and sets the route's service, once
  // the name is there; `whole`: they are the last bytes.
  std::optional<Failure> feed(std::string_view bytes, bool whole, Route& route);

 private:
  std::string text_;
};

}  // namespace trainyard::api
