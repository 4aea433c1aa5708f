// Makes the handler of the server's only port, which serves all of its APIs.
//
//   server.listen(address, *make_api(settings, services, &audit_log));
//
// Threads: the handler is called from many threads at once. Lifetime: settings, services and audit
// outlive the handler.
#pragma once

#include <memory>

#include "net/http_server.hpp"
#include "observe/audit.hpp"
#include "operations/services.hpp"

namespace trainyard::api {

// `audit`: gets a record of each request that is_recorded() accepts (audit/audit.hpp); nullptr = no
// audit log.
std::unique_ptr<net::Handler> make_api(const Settings& settings, const Services& services,
                                       observe::AuditLog* audit = nullptr);

}  // namespace trainyard::api
