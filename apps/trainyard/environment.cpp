#include "trainyard/environment.hpp"

#include <cctype>

#include "contract/clients.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::apps {
namespace {

// Quotes text for a shell. Single quotes protect all characters except themselves.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::string sagemaker_yaml() {
  // Version 2 of the SDK sends telemetry to a host of AWS and waits for the response without a
  // timeout: without egress it would wait forever.
  return "# For the SageMaker Python SDK, which merges the user's own config over this one.\n"
         "SchemaVersion: '1.0'\n"
         "SageMaker:\n"
         "  PythonSDK:\n"
         "    Modules:\n"
         "      TelemetryOptOut: true\n";
}

std::string botocore_plugin() {
  return R"py("""Botocore plugin installed by `trainyard env` (BOTOCORE_EXPERIMENTAL__PLUGINS).

Redirects to this server the requests of clients that were created with an explicit AWS host name
and therefore ignore AWS_ENDPOINT_URL; the SageMaker SDK creates such a client for STS. Versions of
botocore without plugin support ignore this module.
"""

import os
import urllib.parse

import botocore.httpsession

DOMAINS = (".amazonaws.com", ".amazonaws.com.cn")


def initialize_client_plugin(client):
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    host = urllib.parse.urlsplit(client.meta.endpoint_url).hostname or ""
    if not endpoint or not host.endswith(DOMAINS) or client.meta.service_model.service_name == "s3":
        return
    # A separate session: the client's session would use the configured HTTP proxy.
    session = botocore.httpsession.URLLib3Session(verify=os.environ.get("AWS_CA_BUNDLE", True))
    server = urllib.parse.urlsplit(endpoint)

    def redirect(request, **_):
        request.url = urllib.parse.urlsplit(request.url)._replace(scheme=server.scheme, netloc=server.netloc).geturl()

    client.meta.events.register_first("before-sign", redirect)
    client.meta.events.register_last("before-send", lambda request, **_: session.send(request))
)py";
}

namespace {

// Formats the exports. `file` returns a path of tls/ or clients/ as a word of the shell.
template <class File>
std::string exports(const ServerRecord& record, const File& file) {
  std::string text;
  const auto set_file = [&](const std::string& name, const std::string& path) {
    text += "export " + name + "=" + file(path) + "\n";
  };
  const auto set = [&](const std::string& name, const std::string& value) {
    text += "export " + name + "=" + quoted(value) + "\n";
  };
  // Unsets variables of another server, or of AWS, that would take precedence in this shell.
  text +=
      "unset AWS_SESSION_TOKEN AWS_SECURITY_TOKEN AWS_PROFILE AWS_DEFAULT_PROFILE "
      "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS "
      "AWS_USE_FIPS_ENDPOINT AWS_USE_DUALSTACK_ENDPOINT";
  for (const char* service : {"S3", "STS", "IAM", "SAGEMAKER", "SAGEMAKER_RUNTIME",
                              "SAGEMAKER_METRICS", "CLOUDWATCH", "CLOUDWATCH_LOGS", "BATCH", "ECR"})
    text += std::string(" AWS_ENDPOINT_URL_") + service;
  text += "\n";
  set("AWS_ENDPOINT_URL", record.endpoint);
  if (!record.objects_endpoint.empty()) set("AWS_ENDPOINT_URL_S3", record.objects_endpoint);
  set("AWS_ACCESS_KEY_ID", record.key.id);
  set("AWS_SECRET_ACCESS_KEY", record.key.secret);
  set("AWS_DEFAULT_REGION", record.region);
  set("AWS_REGION", record.region);
  set_file("AWS_CA_BUNDLE", "tls/ca.pem");
  set_file("AWS_DATA_PATH", "clients");
  // Without this, old clients call a global STS host that endpoints.json cannot override.
  set("AWS_STS_REGIONAL_ENDPOINTS", "regional");
  set("AWS_EC2_METADATA_DISABLED", "true");
  set_file("SAGEMAKER_ADMIN_CONFIG_OVERRIDE", "clients/sagemaker.yaml");
  set("BOTOCORE_EXPERIMENTAL__PLUGINS", std::string("trainyard=") + kBotocorePlugin);
  const std::string modules = file("clients/python");
  text += "case \":${PYTHONPATH:-}:\" in *:" + modules +
          ":*) ;; *) PYTHONPATH=\"${PYTHONPATH:+$PYTHONPATH:}\"" + modules +
          " ;; esac\nexport PYTHONPATH\n";
  // Requests to this server must not use a proxy. Clients read either name, so each is copied to
  // the other. The host is added once, however often the text is evaluated.
  const std::string host = quoted(record.host_and_port.substr(0, record.host_and_port.rfind(':')));
  text += ": \"${NO_PROXY:=${no_proxy:-}}\" \"${no_proxy:=$NO_PROXY}\"\n";
  for (const std::string name : {"NO_PROXY", "no_proxy"})
    text += "case \",$" + name + ",\" in *," + host + ",*) ;; *) " + name + "=\"${" + name + ":+$" +
            name + ",}\"" + host + " ;; esac\n";
  text += "export NO_PROXY no_proxy\n";
  return text;
}

// Formats a config file for AWS clients. If the endpoint is a host name, clients would address
// buckets as BUCKET.<endpoint>, names that neither the certificate nor DNS has.
std::string aws_config() {
  return "[default]\n"
         "s3 =\n"
         "    addressing_style = path\n";
}

// Formats a command that writes a file below $trainyard_files. No line of these files equals the
// mark.
std::string put(const std::string& path, const std::string& text) {
  constexpr const char* kMark = "END_OF_TRAINYARD_FILE";
  return "trainyard_put " + path + " <<'" + kMark + "'\n" + text +
         (text.ends_with('\n') ? "" : "\n") + kMark + "\n";
}

}  // namespace

std::string shell_exports(const std::string& data_directory, const ServerRecord& record) {
  return exports(record,
                 [&](const std::string& path) { return quoted(data_directory + "/" + path); });
}

std::string client_setup_script(const std::string& user, const ServerRecord& record,
                                const std::string& authority) {
  // A directory for each server, since a user may have the files of several servers.
  std::string server = record.host_and_port;
  for (char& c : server)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  const std::string model = std::string(api::shapes::trainyard::kModelPath);
  std::string text = "# For " + user + ", as a client of " + record.endpoint +
                     ". Keep it secret: it has an access key.\n"
                     "trainyard_files=\"${XDG_DATA_HOME:-$HOME/.local/share}/trainyard/servers/" +
                     server +
                     "\"\n"
                     "mkdir -p \"$trainyard_files/tls\" \"$trainyard_files/clients/python\" "
                     "\"$trainyard_files/clients/" +
                     model.substr(0, model.rfind('/')) +
                     "\"\n"
                     // Other shells may be reading the files.
                     "trainyard_put() {\n"
                     "  cat > \"$trainyard_files/$1.$$\" &&\n"
                     "    mv -f \"$trainyard_files/$1.$$\" \"$trainyard_files/$1\"\n"
                     "}\n";
  text += put("tls/ca.pem", authority);
  text += put("clients/endpoints.json",
              contract::endpoints_json(record.endpoint, record.objects_endpoint));
  text += put("clients/sagemaker.yaml", sagemaker_yaml());
  text += put(std::string("clients/python/") + kBotocorePlugin + ".py", botocore_plugin());
  text += put("clients/" + model, std::string(api::shapes::trainyard::kModel));
  text += put("clients/aws-config", aws_config());
  const auto file = [](const std::string& path) { return "\"$trainyard_files/" + path + "\""; };
  text += exports(record, file);
  text += "export AWS_CONFIG_FILE=" + file("clients/aws-config") + "\n";
  return text + "unset trainyard_files\nunset -f trainyard_put\n";
}

}  // namespace trainyard::apps
