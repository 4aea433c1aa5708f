#include "launch/rest_request.hpp"

#include <memory>

#include "client/curl.hpp"

namespace trainyard::launch {
namespace {

constexpr Duration kConnectMax = 5s;

SendRest send_by(client::CurlLimits limits) {
  limits.connect_limit = kConnectMax;
  limits.answer_limit = kRestAnswerMax;
  const auto curl = std::make_shared<client::Curl>(std::move(limits));
  return [curl](const RestRequest& request) -> Result<RestAnswer> {
    const bool streams = request.receive || request.interrupt_descriptor >= 0;
    const client::Streaming streaming{
        request.receive, request.answer_limit == Duration() ? kRestAnswerMax : request.answer_limit,
        request.interrupt_descriptor};
    auto answer =
        TRY(streams ? curl->stream(request.method, request.url, request.headers, request.body,
                                   streaming)
                    : curl->send(request.method, request.url, request.headers, request.body));
    return RestAnswer{answer.status, std::move(answer.body)};
  };
}

}  // namespace

SendRest send_by_curl(const std::string& ca_bundle) {
  client::CurlLimits limits;
  limits.ca_bundle = ca_bundle;
  return send_by(std::move(limits));
}

SendRest send_by_curl(const RestIdentity& identity) {
  client::CurlLimits limits;
  limits.ca = identity.ca;
  limits.certificate = identity.certificate;
  limits.key = identity.key;
  return send_by(std::move(limits));
}

}  // namespace trainyard::launch
