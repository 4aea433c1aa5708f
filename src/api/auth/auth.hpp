// Who signed this request, and may they? A claim of a signature becomes a principal, or the failure the
// client is told.
//
// Threads: callable from many threads at once. Lifetime: settings outlive it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/api.hpp"
#include "api/context.hpp"
#include "api/errors.hpp"
#include "signing/signing.hpp"

namespace trainyard::api {

// A request whose signature was found right.
struct Signer {
  Principal principal;
  signing::Claim claim;
  std::string signing_key;  // for the chunks of a signed upload
};

class Authenticator {
 public:
  Authenticator(const Settings& settings);
  ~Authenticator();

  // `body`: hashed when the head does not say its hash, and compared with it when it does. nullptr: the body
  // comes later; then the head must say.
  Outcome<Signer> check(const shapes::Service& service, const host::RequestHead& head,
                        const std::string* body, Instant now) const;

 private:
  struct KeyCache;
  const Settings& settings_;
  std::unique_ptr<KeyCache> keys_;
};

// The owner may do everything; a job's role what its training code needs (README). The one place that
// decides.
bool authorise(const Principal& principal, const shapes::OperationShape& operation);

}  // namespace trainyard::api
