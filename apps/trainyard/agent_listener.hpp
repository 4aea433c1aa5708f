// The server's end of agents on other machines: agents' links use TLS with certificates of the
// server's own authority. On this machine, a unix socket needs none.
//
// Threads: callable from anywhere. Errors: those of net/link.hpp and net/certificates.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "config/config.hpp"
#include "control/control.hpp"
#include "net/certificates.hpp"
#include "net/http_server.hpp"
#include "net/link.hpp"
#include "trainyard/serve_settings.hpp"

namespace trainyard::apps {

// Sets where agents find the API and the object store, and the certificates for agents on other
// machines. `port`: of the API. `clock` outlives the settings.
Result<void> set_agent_access(const config::Config& config, const DataDirectory& data,
                              const Listening& listening, uint16_t port,
                              const net::CertificatePaths& certificates, Clock& clock,
                              control::Settings& settings);

// `listen`: an address of net/link.hpp.
Result<std::unique_ptr<net::LinkListener>> listen_for_agents(
    const std::string& listen, net::LinkEvents events, const net::CertificatePaths& certificates);

// Renews a certificate that is about to expire; new connections use it. Reads the files in any
// case, since another program may have renewed them. Errors are logged.
void renew_certificate(const std::string& directory, const std::vector<std::string>& names,
                       Instant now, net::HttpServer& server, net::LinkListener& agents);

}  // namespace trainyard::apps
