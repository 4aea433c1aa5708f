#include "prometheus/write.hpp"

#include <any>
#include <string>
#include <string_view>
#include <utility>

#include "auth/authorizer.hpp"
#include "base/text.hpp"
#include "operations/rate_limiter.hpp"
#include "prometheus/bearer_tokens.hpp"
#include "prometheus/token_request.hpp"
#include "remote_write/received.hpp"
#include "remote_write/snappy.hpp"
#include "shapes/cloudwatch.hpp"

namespace trainyard::api::prometheus {
namespace {

constexpr size_t kBodyBytesMax = 4 << 20;      // Prometheus sends some 100 KB
constexpr size_t kMessageBytesMax = 16 << 20;  // decompressed
constexpr std::string_view kMessage = "prometheus.WriteRequest";

// Returns the part of the headers that this receiver does not support; "" = remote write 1.0.
// A missing header means version 1.0, as in Prometheus.
std::string_view unsupported_part(std::string_view content_type,
                                  std::string_view content_encoding) {
  if (!content_encoding.empty() && !equals_ignoring_case(trim(content_encoding), "snappy"))
    return "content encoding";
  if (content_type.empty()) return "";
  const std::string_view type = trim(content_type.substr(0, content_type.find(';')));
  if (!equals_ignoring_case(type, "application/x-protobuf")) return "content type";
  for (const std::string_view part : split(content_type, ';')) {
    const std::string_view parameter = trim(part);
    const size_t equals = parameter.find('=');
    if (equals == parameter.npos ||
        !equals_ignoring_case(trim(parameter.substr(0, equals)), "proto"))
      continue;
    std::string_view message = trim(parameter.substr(equals + 1));
    if (message.size() >= 2 && message.front() == '"' && message.back() == '"')
      message = message.substr(1, message.size() - 2);
    if (message != kMessage) return "message";
  }
  return "";
}

class Write final : public net::Handler {
 public:
  Write(const Settings& settings, const Services& services, net::Handler& next)
      : settings_(settings),
        services_(services),
        next_(next),
        tokens_(settings, services.control, nullptr),
        authorizer_(settings, services) {}

  Choice choose(const net::RequestHead& head) override {
    const auto token = head.path() == kWritePath ? bearer_token(head) : std::nullopt;
    if (!token) return next_.choose(head);
    auto principal = tokens_.find(*token, signing::TokenUse::write);
    if (!principal) return {.refusal = invalid_token_reply()};
    if (head.method != "POST") return {.refusal = text_reply(405, "Only POST is allowed.\n")};
    const std::string_view unsupported =
        unsupported_part(head.headers.get("content-type"), head.headers.get("content-encoding"));
    if (!unsupported.empty())
      return {.refusal = text_reply(415, "Unsupported " + std::string(unsupported) +
                                             ": only remote write 1.0 is taken, as "
                                             "application/x-protobuf (prometheus.WriteRequest) in "
                                             "the encoding snappy.\n")};
    Choice choice = admit(*principal, OperationClass::changes, kBodyBytesMax, settings_,
                          services_.clock, limiter_);
    choice.finding = std::make_shared<WriteAdmitted>(WriteAdmitted{{*std::move(principal)}});
    return choice;
  }

  std::optional<Choice> preface(const net::RequestHead& head, std::string_view bytes,
                                bool whole) override {
    return next_.preface(head, bytes, whole);
  }

  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    const auto* admitted = std::any_cast<std::shared_ptr<WriteAdmitted>>(&request.finding);
    if (!admitted) return next_.handle(std::move(request), std::move(responder));
    responder->reply(answer(request, (*admitted)->principal));
  }

  void stream(net::Stream& stream) override { next_.stream(stream); }

 private:
  // A type of its own: the next handler's requests have other findings.
  struct WriteAdmitted : Admitted {};

  net::Response answer(const net::Request& request, const Principal& principal) {
    const Instant now = services_.clock.now();
    const Context context = context_of(request, principal, settings_, now);
    shapes::cloudwatch::PutMetricDataInput input;
    input.namespace_ = std::string(remote_write::kReceivedNamespace);
    if (const auto failure =
            authorizer_.check(context, shapes::cloudwatch::PutMetricData::shape(), &input))
      return text_reply(403, failure->message + "\n");
    return store(request.body, context.region, now);
  }

  // Senders repeat a request that gets 503, and drop one that gets 400.
  net::Response store(const std::string& body, const std::string& region, Instant now) {
    if (const auto space = settings_.check_disk_space(); !space)
      return text_reply(503, space.error().message + "\n");
    const auto points = points_in(body, region, now);
    if (!points) return text_reply(400, points.error().message + "\n");
    const auto left_out = services_.metrics.append_series_allowed(points->series);
    if (!left_out) return text_reply(503, left_out.error().message + "\n");
    if (*left_out == 0) return {204, {}, ""};
    return text_reply(400, std::to_string(*left_out) + " of " + std::to_string(points->count) +
                               " points were left out, and the others are stored: the namespace " +
                               std::string(remote_write::kReceivedNamespace) +
                               " has as many metrics as it may have in a region "
                               "(series_of_job_max of [metrics])\n");
  }

  static Result<remote_write::ReceivedPoints> points_in(const std::string& body,
                                                        const std::string& region, Instant now) {
    const std::string message = TRY(remote_write::snappy_decompress(body, kMessageBytesMax));
    const auto series = TRY(remote_write::decode(message, {}));
    return remote_write::points_of(series, region, now);
  }

  const Settings& settings_;
  const Services& services_;
  net::Handler& next_;
  const BearerTokens tokens_;
  const Authorizer authorizer_;
  RateLimiter limiter_;
};

}  // namespace

std::unique_ptr<net::Handler> make_write(const Settings& settings, const Services& services,
                                         net::Handler& next) {
  return std::make_unique<Write>(settings, services, next);
}

}  // namespace trainyard::api::prometheus
