// Makes the handler of the server's one port, which speaks every AWS API of this server.
//
//   server.listen(address, *make_api(settings, services, &audit_log));
//
// Threads: the handler is called from many threads at once. Lifetime: settings, services and audit outlive the handler.
#pragma once

#include <memory>

#include "net/http_server.hpp"
#include "observe/audit.hpp"
#include "operations/services.hpp"

namespace trainyard::api {

// `audit`: records each request that is_recorded (audit/audit.hpp); nullptr: none.
std::unique_ptr<net::Handler> make_api(const Settings& settings, const Services& services,
                                       observe::AuditLog* audit = nullptr);

}  // namespace trainyard::api
