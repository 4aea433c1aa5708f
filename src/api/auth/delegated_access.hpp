// Makes requests on behalf of principals that are not connected: a campaign has the rights of the principal that started it.
//
// A principal is kept as a record (delegation.hpp). The record gives no rights: each use is authorised like a request of the
// principal at that time. The keys made here never leave this server and expire within minutes.
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

// For a campaign: its requests say `campaign_arn` in the audit log. "" = of a request of the principal itself.
Result<campaign::Principal> record_of(const Context& context, const std::string& campaign_arn);

class DelegatedAccess {
 public:
  // Keys are valid for at least half of it; callers get new ones before that.
  static constexpr Duration kKeysLifetime = 1h;

  DelegatedAccess(const Settings& settings, const Services& services);
  ~DelegatedAccess();

  // Of a principal without a record: the owner's.
  signing::Keys keys_for(const campaign::Principal& principal) const;
  // `resource`: "*", or "campaign/NAME" in `region`.
  Result<void> authorise(const campaign::Principal& principal, std::string_view action,
                         const std::string& resource, const std::string& region) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace trainyard::api
