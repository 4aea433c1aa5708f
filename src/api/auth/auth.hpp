// Finds the principal that signed a request. What the principal may do is decided by authorizer.hpp.
//
// Keys of a job end with its attempt: the job is looked up at each request. Another server that is configured as a peer may
// sign requests on behalf of users and roles of this one.
//
// Threads: callable from many threads at once. Lifetime: settings and control outlive it.
// Errors:  the failure that the client is told.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "auth/principals.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"
#include "protocol/errors.hpp"
#include "signing/signing.hpp"

namespace trainyard::api {

// A request whose signature was found right.
struct Signer {
  Principal principal;
  signing::Claim claim;
  std::string signing_key;  // for the chunks of a signed upload
  // False: the head does not say the hash of the body, so that the signature can be checked only with the body.
  bool verified = false;
};

class Authenticator {
 public:
  Authenticator(const Settings& settings, control::Control& control);
  ~Authenticator();

  // By the head alone, before anything of the body is read: the key is known, and the signature is right where the head
  // says the hash of the body.
  Outcome<Signer> check_head(const shapes::Service& service, const net::RequestHead& head, Instant now) const;
  // Of a form (S3's POST), by its fields; `policy` as it came, in base64.
  Outcome<Signer> check_form(const shapes::Service& service, const signing::FormSignature& form,
                             std::string_view policy, Instant now) const;
  // The rest, once the whole body is here: it is hashed when the head does not say its hash, and compared with it when
  // it does. Nothing: the request is the signer's.
  std::optional<Failure> check_body(const shapes::Service& service, const net::RequestHead& head,
                                    Signer& signer, const std::string& body, Instant now) const;
  // Both. `body` nullptr: it comes later; then the head must say its hash.
  Outcome<Signer> check(const shapes::Service& service, const net::RequestHead& head, const std::string* body,
                        Instant now) const;

 private:
  std::optional<std::string> region_of(std::string_view region_set) const;
  std::optional<Failure> resolve(const shapes::Service& service, Signer& signer, Instant now) const;
  std::optional<Failure> take(signing::Verdict verdict, const shapes::Service& service, const Signer& signer,
                              const signing::HeaderList& headers, Instant now) const;
  std::optional<Failure> judge(const shapes::Service& service, const net::RequestHead& head,
                               const Signer& signer, Instant now) const;

  // A request with kDelegationHeader: the principal becomes the described one, when a peer has signed it.
  std::optional<Failure> act_on_behalf(const shapes::Service& service, const net::RequestHead& head,
                                       Signer& signer, Instant now) const;

  struct KeyCache;
  const Settings& settings_;
  const Principals principals_;
  std::unique_ptr<KeyCache> keys_;
};

}  // namespace trainyard::api
