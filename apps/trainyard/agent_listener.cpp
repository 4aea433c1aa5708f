#include "trainyard/agent_listener.hpp"

#include "base/log.hpp"
#include "os/files.hpp"

namespace trainyard::apps {
namespace {

bool is_tcp(const std::string& listen) { return listen.starts_with("tcp:"); }

Result<wire::AgentIdentity> issue(const net::ClientCertificates& issuer, const std::string& name,
                                  Instant now) {
  net::TlsIdentity identity = TRY(issuer.issue(name, now));
  return wire::AgentIdentity{std::move(identity.certificate), std::move(identity.key)};
}

}  // namespace

Result<void> set_agent_access(const config::Config& config, const DataDirectory& data,
                              const Listening& listening, uint16_t port,
                              const net::CertificatePaths& certificates, Clock& clock,
                              control::Settings& settings) {
  const std::string listen = agents_listen_of(config, data);
  const std::string server = server_address_of(config, listening);
  settings.wire_address = agents_address_of(listen, server);
  settings.api_address = server + ":" + std::to_string(port);
  const bool https = (config.slurm || config.kubernetes) && !listening.plain_http;
  settings.objects_endpoint = (https ? "https://" : "http://") + settings.api_address;
  if (https || is_tcp(listen))
    settings.authority = TRY(net::read_server_identity(certificates)).authority;
  if (!is_tcp(listen)) return {};
  const std::shared_ptr<const net::ClientCertificates> issuer =
      TRY(net::open_client_certificates(certificates));
  settings.issue_certificate = [issuer, &clock](const std::string& name) {
    return issue(*issuer, name, clock.now());
  };
  return {};
}

Result<std::unique_ptr<net::LinkListener>> listen_for_agents(
    const std::string& listen, net::LinkEvents events, const net::CertificatePaths& certificates) {
  std::optional<net::TlsIdentity> identity;
  if (is_tcp(listen)) identity = TRY(net::read_server_identity(certificates));
  return net::listen_links(listen, std::move(events), {}, identity).in("listening for agents");
}

void renew_certificate(const std::string& directory, const std::vector<std::string>& names,
                       Instant now, net::HttpServer& server, net::LinkListener& agents) {
  const auto renew = [&]() -> Result<void> {
    const auto paths = TRY(net::ensure_certificates(directory, names, now));
    TRY(server.renew_certificate());
    if (is_tcp(agents.address())) TRY(agents.renew(TRY(net::read_server_identity(paths))));
    return {};
  };
  if (const auto renewed = renew(); !renewed)
    log(Level::error, "serve", "renewing the server's certificate failed; it is retried later",
        {{"why", renewed.error().message}});
}

}  // namespace trainyard::apps
