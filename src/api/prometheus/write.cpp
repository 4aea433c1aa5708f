#include "prometheus/write.hpp"

#include <any>
#include <string>
#include <utility>

#include "auth/authorizer.hpp"
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
    if (!principal) return {.refusal = wrong_token()};
    if (head.method != "POST") return {.refusal = text_reply(405, "Only POST is allowed.\n")};
    if (!limiter_.admit(principal->name, OperationClass::changes, settings_.rate_limits(),
                        services_.clock.monotonic()))
      return {.refusal = text_reply(429, "Rate exceeded\n")};
    Choice choice{.intake = net::Intake::blocking, .body_bytes_max = kBodyBytesMax};
    choice.tenant = std::string(kTenantPrefix) + principal->name;
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
    const auto stored = store(request.body, context.region, now);
    if (stored) return {204, {}, ""};
    const bool ours = stored.error().kind == Kind::unavailable ||
                      stored.error().kind == Kind::corrupt ||
                      stored.error().kind == Kind::internal ||
                      (stored.error().kind == Kind::exhausted && is_full());
    return text_reply(ours ? 503 : 400, stored.error().message + "\n");
  }

  Result<void> store(const std::string& body, const std::string& region, Instant now) {
    TRY(settings_.check_disk_space());
    const std::string message = TRY(remote_write::snappy_decompress(body, kMessageBytesMax));
    const auto series = TRY(remote_write::decode(message, {}));
    const auto points = TRY(remote_write::points_of(series, region, now));
    return services_.metrics.append(points.records);
  }

  // Senders repeat requests that fail since the disk is full.
  bool is_full() const { return !settings_.check_disk_space(); }

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
