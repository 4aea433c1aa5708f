#include "objects/s3_client/requests.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "objects/s3_client/answers.hpp"

namespace trainyard::objects {

std::string S3Request::text() const {
  std::string text = method;
  if (bucket.empty()) return text + " buckets";
  text += " s3://" + bucket;
  if (!key.empty()) text += "/" + shorten(to_utf8(key), 200);
  return text;
}

template <class Send>
Result<HttpAnswer> Client::attempts(Connection& connection, const S3Request& what, Send send) {
  Duration pause = settings_.first_pause;
  for (int attempt = 1;; ++attempt) {
    const std::string target = target_of(what);
    auto answer = send(request_of(what, target));
    if (answer && answer->status < 300) return std::move(*answer);
    Refusal refusal{};
    if (answer) {
      refusal = refusal_of(*answer, what.text());
    } else {
      refusal.error = Error(answer.error()).in(what.text() + " at " + settings_.endpoint);
      refusal.is_temporary = answer.error().kind == Kind::unavailable;
    }
    const bool again = refusal.nothing_changed || (refusal.is_temporary && what.repeatable);
    const bool abandoned = what.abandoned && *what.abandoned;
    if (!again || abandoned || attempt >= settings_.attempts_max) {
      if (again) refusal.error.message += " (" + std::to_string(attempt) + " attempts)";
      return std::move(refusal.error);
    }
    log(Level::debug, "objects", "retrying", {{"why", refusal.error.message}});
    // A random time between half and all of the pause: clients that failed at the same time do not
    // retry at the same time.
    const auto part =
        Duration(clock_.monotonic().count() % std::max<int64_t>(1, pause.count() / 2));
    connection.wait(pause - part);
    pause = std::min(pause * 2, settings_.pause_max);
  }
}

Result<HttpAnswer> Client::send(const S3Request& what) {
  const Loan connection = borrow();
  return attempts(*connection, what,
                  [&](const HttpRequest& request) { return connection->perform(request); });
}

Result<XmlElement> Client::send_for_xml(const S3Request& what) {
  const HttpAnswer answer = TRY(send(what));
  auto xml = parse_xml(answer.body);
  if (!xml)
    return corrupt(what.text() + ": invalid answer of the endpoint: " + xml.error().message);
  return xml;
}

Result<Client::Opened> Client::open(const S3Request& what) {
  Loan connection = borrow();
  const auto start = [&](const HttpRequest& request) -> Result<HttpAnswer> {
    HttpAnswer answer;
    static_cast<HttpHead&>(answer) = TRY(connection->start(request));
    if (answer.status >= 300) answer.body = TRY(connection->read_rest());
    return answer;
  };
  HttpHead head = TRY(attempts(*connection, what, start));
  return Opened{std::move(connection), std::move(head)};
}

std::string Client::target_of(const S3Request& what) const {
  std::string target = "/";
  if (!what.bucket.empty()) target += percent_encode(what.bucket);
  if (!what.key.empty()) target += "/" + percent_encode(what.key, true);
  Fields query = what.query;
  std::sort(query.begin(), query.end());
  char separator = '?';
  for (const auto& [name, value] : query) {
    target += separator + percent_encode(name) + "=" + percent_encode(value);
    separator = '&';
  }
  return target;
}

HttpRequest Client::request_of(const S3Request& what, const std::string& target) {
  HttpRequest request{what.method, settings_.endpoint + target, what.headers, what.body};
  request.headers.emplace_back("Host", authority_);
  const signing::Keys keys = settings_.keys ? settings_.keys() : signing::Keys{};
  if (keys.access_key_id.empty()) return request;
  const auto added =
      signing::sign(what.method, target, request.headers, signing::sha256_hex(what.body), keys,
                    {settings_.region, "s3"}, clock_.now());
  for (const auto& header : added) request.headers.push_back(header);
  return request;
}

Client::Loan Client::borrow() {
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return Loan(connection.release(), Return{this});
    }
  }
  const ConnectionSettings of_connection{settings_.ca_bundle, settings_.proxy,
                                         settings_.connect_limit, settings_.idle_limit};
  return Loan(new Connection(of_connection), Return{this});
}

void Client::give_back(std::unique_ptr<Connection> connection) {
  connection->finish();
  MutexLock lock(mutex_);
  if (idle_.size() < settings_.idle_connections_max) idle_.push_back(std::move(connection));
}

}  // namespace trainyard::objects
