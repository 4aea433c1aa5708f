// Authenticator finds the principal that signed a request. authorizer.hpp decides what the
// principal may do.
//
// The keys of a job expire with its attempt, so each request looks up the job. A server that is
// configured as a peer may sign requests on behalf of users and roles of this server.
//
// Threads: callable from many threads at once. Lifetime: settings and control outlive it.
// Errors:  the failure that is sent to the client.
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

// The principal and the signature of a request.
struct Signer {
  Principal principal;
  signing::Claim claim;
  std::string signing_key;  // for the chunks of a signed upload
  // False: the head does not contain the hash of the body, so the signature can be verified only
  // with the body.
  bool verified = false;
};

class Authenticator {
 public:
  Authenticator(const Settings& settings, control::Control& control);
  ~Authenticator();

  // Checks the head alone, before the body is read: the key, and, if the head contains the hash of
  // the body, the signature.
  Outcome<Signer> check_head(const shapes::Service& service, const net::RequestHead& head,
                             Instant now) const;
  // Checks a form (S3's POST) by its fields. `policy`: as received, in base64.
  Outcome<Signer> check_form(const shapes::Service& service, const signing::FormSignature& form,
                             std::string_view policy, Instant now) const;
  // Checks the whole body, after check_head(): compares its hash with the head's, or, if the head
  // has none, verifies the signature with it. Returns nothing if the request is valid.
  std::optional<Failure> check_body(const shapes::Service& service, const net::RequestHead& head,
                                    Signer& signer, const std::string& body, Instant now) const;
  // Checks head and body. `body` nullptr: it has not been received, and the head must contain its
  // hash.
  Outcome<Signer> check(const shapes::Service& service, const net::RequestHead& head,
                        const std::string* body, Instant now) const;

 private:
  std::optional<std::string> region_of(std::string_view region_set) const;
  std::optional<Failure> resolve(const shapes::Service& service, Signer& signer, Instant now) const;
  std::optional<Failure> apply_verdict(signing::Verdict verdict, const shapes::Service& service,
                                       const Signer& signer, const signing::HeaderList& headers,
                                       Instant now) const;
  std::optional<Failure> check_signature(const shapes::Service& service,
                                         const net::RequestHead& head, const Signer& signer,
                                         Instant now) const;

  // Replaces the principal of a request with kDelegationHeader by the described principal, if a
  // peer signed the request.
  std::optional<Failure> act_on_behalf(const shapes::Service& service, const net::RequestHead& head,
                                       Signer& signer, Instant now) const;

  struct KeyCache;
  const Settings& settings_;
  const Principals principals_;
  std::unique_ptr<KeyCache> keys_;
};

}  // namespace trainyard::api
