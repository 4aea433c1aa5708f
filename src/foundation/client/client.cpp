#include "client/client.hpp"

#include <poll.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/xml.hpp"
#include "client/authority.hpp"
#include "client/curl.hpp"
#include "client/query.hpp"
#include "client/upgrade.hpp"

namespace trainyard::client {
namespace {

enum class Protocol { json, path, query, ec2 };

struct ServiceNames {
  const char* scope;  // the service name in the signature's scope
  Protocol protocol;
  const char* target = "";   // json: prefix of the operation's name in X-Amz-Target
  const char* version = "";  // query, ec2: version of the API
};

ServiceNames names_of(Service service) {
  switch (service) {
    case Service::sagemaker:
      return {"sagemaker", Protocol::json, "SageMaker."};
    case Service::logs:
      return {"logs", Protocol::json, "Logs_20140328."};
    case Service::cloudwatch:
      return {"monitoring", Protocol::json, "GraniteServiceVersion20100801."};
    case Service::trainyard:
      return {"trainyard", Protocol::json, "Trainyard."};
    case Service::batch:
      return {"batch", Protocol::path};
    case Service::iam:
      return {"iam", Protocol::query, "", "2010-05-08"};
    case Service::sts:
      return {"sts", Protocol::query, "", "2011-06-15"};
    case Service::ec2:
      return {"ec2", Protocol::ec2, "", "2016-11-15"};
  }
  return {"", Protocol::json};
}

const char* content_type_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::json:
      return "application/x-amz-json-1.1";
    case Protocol::path:
      return "application/json";
    case Protocol::query:
    case Protocol::ec2:
      return "application/x-www-form-urlencoded; charset=utf-8";
  }
  return "";
}

Result<Json> decode(Protocol protocol, const std::string& body) {
  if (protocol == Protocol::query) return query_answer(body);
  if (protocol == Protocol::ec2) return ec2_answer(body);
  return parse_json(body);
}

class SignedClient final : public Client {
 public:
  SignedClient(Settings settings, std::string authority, Clock& clock)
      : settings_(std::move(settings)),
        authority_(std::move(authority)),
        clock_(clock),
        curl_(limits()) {
    while (settings_.endpoint.ends_with('/')) settings_.endpoint.pop_back();
  }

  const Settings& settings() const override { return settings_; }

  Result<Json> call(Service service, std::string_view operation, const Json& input) override {
    const ServiceNames names = names_of(service);
    const bool query = names.protocol == Protocol::query || names.protocol == Protocol::ec2;
    const std::string path = names.protocol == Protocol::path ? "/v1/" + to_lower(operation) : "/";
    const std::string body = query ? query_body(operation, names.version, input) : dump(input);
    Duration pause = settings_.first_pause;
    for (int attempt = 1;; ++attempt) {
      signing::HeaderList headers{{"Host", authority_},
                                  {"Content-Type", content_type_of(names.protocol)}};
      if (names.protocol == Protocol::json)
        headers.emplace_back("X-Amz-Target", names.target + std::string(operation));
      for (auto& header :
           signing::sign("POST", path, headers, signing::sha256_hex(body), settings_.keys,
                         {settings_.region, names.scope}, clock_.now()))
        headers.push_back(std::move(header));
      auto answer = curl_.post(settings_.endpoint + path, headers, body);
      if (answer && answer->status < 300) {
        if (trim(answer->body).empty()) return Json::object();
        return decode(names.protocol, answer->body).in("the answer to " + std::string(operation));
      }
      Error error = answer ? error_of(*answer, operation)
                           : std::move(answer).error().in("calling " + settings_.endpoint);
      if (error.kind != Kind::unavailable || !is_repeatable(operation) ||
          attempt >= settings_.attempts_max)
        return error;
      pause_for(pause);
      pause *= 2;
    }
  }

  Result<std::unique_ptr<Connection>> open_shell(const ShellRequest& request) override {
    auto connection =
        TRY(connect_raw(settings_.endpoint, limits()).in("connecting to " + settings_.endpoint));
    Json command = Json::array();
    for (const auto& word : request.command) command.push_back(word);
    const std::string requested = dump(Json{{"command", command},
                                            {"terminal", request.terminal},
                                            {"terminal_name", request.terminal_name},
                                            {"columns", request.columns},
                                            {"rows", request.rows}});
    const std::string target = "/trainyard/shell?host=" + std::to_string(request.host) +
                               "&job=" + percent_encode(request.job) +
                               "&request=" + percent_encode(requested);
    signing::HeaderList headers{{"Host", authority_}};
    for (auto& header :
         signing::sign("GET", target, headers, signing::sha256_hex(""), settings_.keys,
                       {settings_.region, "trainyard"}, clock_.now()))
      headers.push_back(std::move(header));
    std::string head =
        "GET " + target + " HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: trainyard-shell\r\n";
    for (const auto& [name, value] : headers) head += name + ": " + value + "\r\n";
    TRY(connection->write(head + "\r\n"));
    const auto upgrade = TRY(await_upgrade(*connection).in("opening a shell"));
    if (upgrade.answer.status != 101) return error_of(upgrade.answer, "opening a shell");
    return std::unique_ptr<Connection>(
        std::make_unique<Upgraded>(std::move(connection), upgrade.early));
  }

 private:
  // Wraps the connection: read() first returns the bytes that arrived with the header.
  class Upgraded final : public Connection {
   public:
    Upgraded(std::unique_ptr<Connection> connection, std::string early)
        : connection_(std::move(connection)), early_(std::move(early)) {}
    int descriptor() const override { return connection_->descriptor(); }
    Result<std::string> read() override {
      if (!early_.empty()) return std::exchange(early_, std::string());
      return connection_->read();
    }
    Result<void> write(std::string_view bytes) override { return connection_->write(bytes); }

   private:
    std::unique_ptr<Connection> connection_;
    std::string early_;
  };

  CurlLimits limits() const {
    return {settings_.ca_bundle, settings_.connect_limit, settings_.answer_limit};
  }

  Result<Upgrade> await_upgrade(Connection& connection) {
    std::string bytes;
    const auto deadline = clock_.monotonic() + settings_.answer_limit;
    while (clock_.monotonic() < deadline) {
      pollfd ready{connection.descriptor(), POLLIN, 0};
      (void)::poll(&ready, 1, int(settings_.first_pause / 1ms));
      auto more = connection.read();
      if (more) bytes += *more;
      const auto upgrade = TRY(read_upgrade(bytes, !more));
      if (upgrade) return *upgrade;
      if (!more) return std::move(more).error();
    }
    return unavailable("waiting for the answer of " + settings_.endpoint + ": timed out after " +
                       std::to_string(settings_.answer_limit / 1s) + " s");
  }

  Settings settings_;
  const std::string authority_;  // host and port, as in the Host header
  Clock& clock_;
  Curl curl_;
};

}  // namespace

bool is_repeatable(std::string_view operation) {
  for (const std::string_view start : {"Describe", "List", "Get", "Filter", "Stop"})
    if (operation.starts_with(start)) return true;
  return false;
}

Error error_of(const Answer& answer, std::string_view operation) {
  std::string code, message;
  if (answer.body.starts_with('<')) {
    const auto xml = parse_xml(answer.body);
    const XmlElement* errors = xml ? xml->child("Errors") : nullptr;  // EC2's form
    if (!errors && xml) errors = &*xml;
    if (const XmlElement* error = errors ? errors->child("Error") : nullptr) {
      code = error->text_of("Code");
      message = error->text_of("Message");
    }
  } else if (const auto body = parse_json(answer.body); body && body->is_object()) {
    code = body->value("__type", "");
    code = code.substr(code.rfind('#') + 1);
    for (const char* name : {"message", "Message"})
      if (const auto found = body->find(name); found != body->end() && found->is_string())
        message = found->get<std::string>();
  }
  if (message.empty()) message = shorten(to_utf8(trim(answer.body)), 500);
  if (message.empty())
    message = std::string(operation) + " failed with status " + std::to_string(answer.status);
  const auto says = [&](std::string_view part) { return code.find(part) != std::string::npos; };
  const auto starts = [&](std::string_view part) { return message.starts_with(part); };
  Kind kind = Kind::invalid;
  if (says("AccessDenied") || says("Signature") || says("UnrecognizedClient") || says("Token") ||
      says("MissingAuthentication") || answer.status == 403 || answer.status == 401)
    kind = Kind::denied;
  else if (says("NotFound") || says("NoSuchEntity") || answer.status == 404 ||
           starts("Requested resource not found"))
    kind = Kind::not_found;
  else if (says("InUse") || says("AlreadyExists") || says("Conflict") || answer.status == 409)
    kind = Kind::conflict;
  else if (says("LimitExceeded") || says("TooLarge") || answer.status == 413)
    kind = Kind::exhausted;
  else if (answer.status >= 500 || says("Throttling") || answer.status == 429)
    kind = Kind::unavailable;
  return {kind, std::move(message)};
}

Result<std::unique_ptr<Client>> open_client(Settings settings, Clock& clock) {
  auto authority = TRY(authority_of(settings.endpoint));
  if (settings.keys.access_key_id.empty() || settings.keys.secret_access_key.empty())
    return denied(
        "no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, as `trainyard env` prints them");
  return std::unique_ptr<Client>(
      std::make_unique<SignedClient>(std::move(settings), std::move(authority), clock));
}

}  // namespace trainyard::client
