// UnsignedForm makes the failure for a form of the query protocol without a signature. STS's
// operations for web identities and SAML need none, and this server does not offer them. The
// operation's name is read from the first bytes of the body, so that the failure can name it.
//
// Threads: one at a time. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/errors.hpp"
#include "protocol/route.hpp"

namespace trainyard::api {

// Forms whose name does not end within this size are rejected. Clients send the name first.
inline constexpr size_t kUnsignedFormBytesMax = 8 << 10;

class UnsignedForm {
 public:
  // Returns whether the request is such a form.
  static bool is(const Route& route, const net::RequestHead& head) {
    return !route.service && route.protocol == Protocol::query &&
           !head.headers.has("authorization");
  }

  // Reads the next bytes. Once it has the name, sets the route's service and returns the failure.
  // `whole`: these are the last bytes.
  std::optional<Failure> feed(std::string_view bytes, bool whole, Route& route);

 private:
  std::string text_;
};

}  // namespace trainyard::api
