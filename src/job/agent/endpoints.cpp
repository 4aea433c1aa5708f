#include "agent/endpoints.hpp"

#include "base/json.hpp"
#include "net/http_listener.hpp"
#include "net/lazy_listeners.hpp"
#include "networks/network_namespace.hpp"
#include "networks/tcp_relay.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kCredentialsPort = "80";
constexpr const char* kApiPort = "4566";
constexpr const char* kObjectsPort = "4567";
// The SDKs in a job's processes connect about once an hour each.
constexpr size_t kCredentialsConnectionsMax = 256;
constexpr Duration kStopGrace = 100ms;

// Compares two texts in constant time: the time depends only on the length of `a`.
bool same(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    difference |=
        static_cast<unsigned char>(a[i]) ^ (i < b.size() ? static_cast<unsigned char>(b[i]) : 0u);
  return difference == 0;
}

struct Authority {
  std::string scheme;
  std::string address;  // "host:port"
};

// Parses a URL: returns {"http", "host:port"} for "http://host:port/path". The default port is the
// scheme's; a text without a scheme is an address for http.
Authority authority_of(const std::string& url) {
  const size_t colon = url.find("://");
  if (colon == std::string::npos) return {"http", url};
  Authority found{url.substr(0, colon), url.substr(colon + 3)};
  found.address = found.address.substr(0, found.address.find('/'));
  if (found.address.find(':') == std::string::npos)
    found.address += found.scheme == "https" ? ":443" : ":80";
  return found;
}

class CredentialsHandler final : public net::Handler {
 public:
  CredentialsHandler(const JobKeys& keys, std::string path, std::string token, std::string role_arn)
      : keys_(keys),
        path_(std::move(path)),
        token_(std::move(token)),
        role_arn_(std::move(role_arn)) {}

  Choice choose(const net::RequestHead&) override { return {net::Intake::buffered, 0}; }
  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    auto answer =
        answer_credentials(request.method, request.path(), request.headers.get("authorization"),
                           path_, token_, keys_.get(), role_arn_);
    net::Response response;
    response.status = answer.status;
    response.headers.add("Content-Type", "application/json");
    response.body = std::move(answer.body);
    responder->reply(std::move(response));
  }
  void stream(net::Stream&) override {}  // choose() never selects it

 private:
  const JobKeys& keys_;
  const std::string path_, token_, role_arn_;
};

class OpenEndpoints final : public Endpoints {
 public:
  OpenEndpoints(const wire::Order& order, const JobKeys& keys, Random& random)
      : path_("/v2/credentials/" + random.uuid()),
        token_(random.hex(32)),
        handler_(keys, path_, token_, order.spec.role_arn) {}
  ~OpenEndpoints() override {
    listeners_.reset();
    if (credentials_) credentials_->stop(kStopGrace);
  }

  Result<void> open(const wire::Order& order, const std::string& network_namespace) {
    const std::string address = kLinkLocalAddress;
    const Authority objects = authority_of(order.objects_endpoint);
    const bool embedded = objects.address == order.api_address;
    const bool tls = embedded && objects.scheme == "https";
    config_.api_url = "http://" + address + ":" + kApiPort;
    if (!embedded && objects.scheme != "http") config_.objects_url = order.objects_endpoint;
    config_.credentials_url = "http://" + address + path_;
    config_.credentials_token = token_;

    std::vector<std::string> listening = {address + ":" + kCredentialsPort,
                                          address + ":" + kApiPort};
    if (!embedded && objects.scheme == "http") {
      listening.push_back(address + ":" + kObjectsPort);
      config_.objects_url = "http://" + listening.back();
    }
    auto sockets = TRY(networks::listen_in_namespace(network_namespace, listening)
                           .in("opening the endpoints of the keys, the API and the object store"));
    std::vector<net::LazyListener> listeners;
    listeners.push_back({std::move(sockets[0]), [this](os::File listener) {
                           return serve_credentials(std::move(listener));
                         }});
    listeners.push_back(
        {std::move(sockets[1]), relaying(api_, order.api_address, tls ? order.authority : "")});
    if (sockets.size() > 2)
      listeners.push_back({std::move(sockets[2]), relaying(objects_, objects.address, "")});
    listeners_ = TRY(net::serve_lazily(std::move(listeners)));
    return {};
  }

  const contract::EndpointConfig& config() const override { return config_; }

 private:
  Result<void> serve_credentials(os::File listener) {
    net::HttpSettings settings;
    settings.io_threads = 1;
    settings.stream_threads_max = 1;
    settings.connections_max = kCredentialsConnectionsMax;
    credentials_ = TRY(net::serve_http(settings, handler_, std::move(listener)));
    return {};
  }
  static std::function<Result<void>(os::File)> relaying(std::unique_ptr<networks::TcpRelay>& relay,
                                                        const std::string& target,
                                                        const std::string& authority) {
    return [&relay, target, authority](os::File listener) -> Result<void> {
      relay = TRY(networks::relay_tcp(std::move(listener), target, authority));
      return {};
    };
  }

  const std::string path_, token_;
  CredentialsHandler handler_;
  contract::EndpointConfig config_;
  // These are set by the thread of listeners_, which is declared last and ends first.
  std::unique_ptr<net::HttpServer> credentials_;
  std::unique_ptr<networks::TcpRelay> api_, objects_;
  std::unique_ptr<net::LazyListeners> listeners_;
};

}  // namespace

CredentialsAnswer answer_credentials(std::string_view method, std::string_view path,
                                     std::string_view authorization,
                                     const std::string& expected_path, const std::string& token,
                                     const std::optional<wire::Credentials>& credentials,
                                     const std::string& role_arn) {
  const auto refuse = [](int status, const char* code, const char* message) {
    return CredentialsAnswer{status, dump(Json{{"code", code}, {"message", message}})};
  };
  if (method != "GET") return refuse(405, "MethodNotAllowed", "only GET is supported");
  if (!same(path, expected_path)) return refuse(404, "NotFound", "unknown credentials id");
  if (!authorization.empty() && !same(authorization, token))
    return refuse(403, "AccessDenied", "invalid token");
  if (!credentials) return refuse(503, "NotReady", "the server has not sent keys yet: try again");
  return {200, dump(Json{{"AccessKeyId", credentials->access_key_id},
                         {"SecretAccessKey", credentials->secret_access_key},
                         {"Token", credentials->session_token},
                         {"Expiration", to_iso8601(credentials->expires, false)},
                         {"RoleArn", role_arn}})};
}

Result<std::unique_ptr<Endpoints>> open_endpoints(const wire::Order& order,
                                                  const std::string& network_namespace,
                                                  const JobKeys& keys, Random& random) {
  auto endpoints = std::make_unique<OpenEndpoints>(order, keys, random);
  TRY(endpoints->open(order, network_namespace));
  return std::unique_ptr<Endpoints>(std::move(endpoints));
}

}  // namespace trainyard::agent
