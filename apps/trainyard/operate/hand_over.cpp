#include "trainyard/operate/hand_over.hpp"

#include <cctype>
#include <cstring>
#include <filesystem>

#include "base/text.hpp"
#include "client/authority.hpp"
#include "config/config.hpp"
#include "net/certificates.hpp"
#include "os/files.hpp"
#include "policy/identity_changes.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/environment.hpp"
#include "trainyard/identities.hpp"

namespace trainyard::apps {
namespace {

constexpr size_t kAuthorityBytesMax = 1 << 20;

// Returns the newest active key.
Result<policy::ConfiguredKey> key_of(const policy::Identities& identities,
                                     const std::string& user) {
  const policy::AccessKey* newest = nullptr;
  const auto keys = policy::keys_of(identities, user);
  for (const policy::AccessKey* key : keys)
    if (key->active && (!newest || key->created > newest->created)) newest = key;
  if (newest) return policy::ConfiguredKey{newest->id, newest->secret, user};
  if (keys.empty() && !identities.find_user(user))
    return not_found("user '" + user + "' not found: make it with `trainyard user add " + user +
                     "`, or with [[user]] and [[access_key]] in the config");
  return not_found("user '" + user + "' has no active access key: make one with `aws iam " +
                   "create-access-key --user-name " + user + "`");
}

// Sets the endpoint of the record, which becomes a part of a script. Errors: invalid, unless it is
// a URL without a path.
Result<void> point_to(const std::string& endpoint, ServerRecord& record) {
  record.host_and_port = TRY(client::authority_of(endpoint));
  for (const char c : record.host_and_port)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr(".-_:[]", c))
      return invalid("invalid endpoint '" + shorten(to_utf8(endpoint), 200) +
                     "': it must be http://HOST:PORT or https://HOST:PORT");
  record.endpoint = endpoint.substr(0, endpoint.find_last_not_of('/') + 1);
  return {};
}

// Returns "host.lan" for "host.lan:4566", and "::1" for "[::1]:4566".
std::string host_of(const std::string& host_and_port) {
  if (host_and_port.starts_with('[')) return host_and_port.substr(1, host_and_port.find(']') - 1);
  return host_and_port.substr(0, host_and_port.find(':'));
}

// Checks the names of the certificate: clients reject one without the name that they called.
Result<void> check_name(const std::string& data_directory, const ServerRecord& record) {
  if (!record.endpoint.starts_with("https://")) return {};
  const std::string host = to_lower(host_of(record.host_and_port));
  const auto facts = TRY(net::read_certificate(data_directory + "/tls/server.pem"));
  std::string all;
  for (const std::string& name : facts.names) {
    if (to_lower(name) == host) return {};
    if (!name.starts_with("169.254.")) all += (all.empty() ? "" : ", ") + name;
  }
  return invalid("--endpoint " + record.endpoint + ": the server's certificate has no name '" +
                 host + "' (it has " + all + "): add it to certificate_names in [server] of the " +
                 "config, and start the server again");
}

}  // namespace

Result<std::string> environment_of(const EnvironmentRequest& request) {
  const std::string data = std::filesystem::absolute(request.data_directory).string();
  ServerRecord record = TRY(read_server_record(data));
  if (request.user.empty() && request.endpoint.empty()) return shell_exports(data, record);
  config::Config config;
  if (!record.config_file.empty()) config = TRY(config::read_config(record.config_file));
  record.key.user = "owner";
  if (!request.user.empty())
    record.key = TRY(key_of(TRY(stored_identities(data, config)), request.user));
  TRY(point_to(request.endpoint.empty() ? record.endpoint : request.endpoint, record)
          .in("--endpoint"));
  TRY(check_name(data, record));
  const std::string authority = TRY(os::read_file(data + "/tls/ca.pem", kAuthorityBytesMax));
  return client_setup_script(record.key.user, record, authority);
}

Result<std::string> hand_over(const client::Settings& api, const std::string& objects_endpoint,
                              const policy::ConfiguredKey& key, const std::string& endpoint) {
  ServerRecord record;
  record.region = api.region;
  record.key = key;
  if (objects_endpoint != api.endpoint) record.objects_endpoint = objects_endpoint;
  TRY(point_to(endpoint.empty() ? api.endpoint : endpoint, record));
  if (api.ca_bundle.empty())
    return invalid("the certificate authority of " + api.endpoint +
                   " is unknown: set AWS_CA_BUNDLE to its file, as `trainyard env` does");
  const std::string authority =
      TRY(os::read_file(api.ca_bundle, kAuthorityBytesMax).in("reading the certificate authority"));
  return client_setup_script(key.user, record, authority);
}

}  // namespace trainyard::apps
