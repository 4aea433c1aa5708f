// DelegatedAccess makes keys and decisions for requests on behalf of a principal that is not
// present: a campaign acts with the rights of the principal that started it.
//
// A principal is stored as a record (delegation.hpp). The record grants no rights: each use is
// authorised like a request of the principal at that time. The keys made here never leave this
// server, and expire after kKeysLifetime.
//
// Threads: callable from many threads at once. Lifetime: settings and services outlive it.
// Errors:  denied, with the text of AccessDenied.
#pragma once

#include <memory>
#include <string>

#include "campaign/principal.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"
#include "signing/signing.hpp"

namespace trainyard::api {

// Describes the principal of a request. `campaign_arn`: the campaign that will make requests for
// the principal, for the audit log; "" = the principal's own request.
Result<campaign::Principal> record_of(const Context& context, const std::string& campaign_arn);

class DelegatedAccess {
 public:
  // The lifetime of new keys. keys_for() returns keys that are valid for at least half of it.
  static constexpr Duration kKeysLifetime = 1h;

  DelegatedAccess(const Settings& settings, const Services& services);
  ~DelegatedAccess();

  // Returns temporary keys for requests of the principal; for a principal without a record, the
  // owner's keys.
  signing::Keys keys_for(const campaign::Principal& principal) const;
  // Checks that the principal may do the action now. `resource`: "*", or "campaign/NAME" in
  // `region`.
  Result<void> authorise(const campaign::Principal& principal, std::string_view action,
                         const std::string& resource, const std::string& region) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace trainyard::api
