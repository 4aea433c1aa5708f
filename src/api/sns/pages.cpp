#include "sns/pages.hpp"

#include <any>
#include <map>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/xml.hpp"

namespace trainyard::api::sns {
namespace {

constexpr size_t kQueryBytesMax = 4096;
constexpr std::string_view kNamespace = "http://sns.amazonaws.com/doc/2010-03-31/";
constexpr std::string_view kTenant = "sns";  // its share of threads is apart from S3's

// The finding of choose() for a link, which handle() follows.
struct Link {
  std::map<std::string, std::string> parameters;
};

net::Response page(int status, std::string body, const char* content_type) {
  net::Response out{status, {}, std::move(body)};
  out.headers.add("Content-Type", content_type);
  out.headers.add("Cache-Control", "no-store");
  out.headers.add("X-Content-Type-Options", "nosniff");
  return out;
}

net::Response nothing_here() {
  return page(404,
              "<ErrorResponse xmlns=\"" + std::string(kNamespace) +
                  "\"><Error><Type>Sender</Type><Code>NotFound</Code><Message>The link is not "
                  "valid, or no longer.</Message></Error></ErrorResponse>\n",
              "text/xml");
}

std::map<std::string, std::string> parameters_of(std::string_view query) {
  std::map<std::string, std::string> out;
  if (query.size() > kQueryBytesMax) return out;
  for (const auto part : split(query, '&')) {
    const auto equals = part.find('=');
    if (equals == part.npos) continue;
    auto value = percent_decode(part.substr(equals + 1), true);
    if (value && is_utf8(*value)) out[std::string(part.substr(0, equals))] = std::move(*value);
  }
  return out;
}

class Pages final : public net::Handler {
 public:
  Pages(notify::Notifications& notifications, net::Handler& next)
      : notifications_(notifications), next_(next) {}

  Choice choose(const net::RequestHead& head) override {
    if (!head.path().starts_with(kPagesPath)) return next_.choose(head);
    if (head.method != "GET") return {.refusal = nothing_here()};
    const std::string_view name = head.path().substr(kPagesPath.size());
    if (name == notifications_.signer().file_name())
      return {.refusal =
                  page(200, notifications_.signer().certificate(), "application/x-pem-file")};
    auto link = std::make_shared<Link>(Link{parameters_of(head.query())});
    if (!name.empty() || !link->parameters.contains("Action")) return {.refusal = nothing_here()};
    return {.intake = net::Intake::blocking,
            .body_bytes_max = 0,
            .tenant = std::string(kTenant),
            .finding = std::move(link)};
  }

  std::optional<Choice> preface(const net::RequestHead& head, std::string_view bytes,
                                bool whole) override {
    return next_.preface(head, bytes, whole);
  }

  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    const auto* link = std::any_cast<std::shared_ptr<Link>>(&request.finding);
    if (!link) return next_.handle(std::move(request), std::move(responder));
    responder->reply(follow((*link)->parameters));
  }

  void stream(net::Stream& stream) override { next_.stream(stream); }

 private:
  net::Response follow(std::map<std::string, std::string>& parameters) {
    const std::string action = parameters["Action"];
    if (action == "ConfirmSubscription") {
      const auto found = notifications_.confirm(parameters["TopicArn"], parameters["Token"], false);
      if (!found) return failed(found.error());
      return done(action, "<SubscriptionArn>" + xml_text(found->arn) + "</SubscriptionArn>");
    }
    if (action != "Unsubscribe") return nothing_here();
    const auto ended =
        notifications_.unsubscribe_by_token(parameters["SubscriptionArn"], parameters["Token"]);
    return ended ? done(action, "") : failed(ended.error());
  }

  // The server failed, not the link: the endpoint will retry.
  static net::Response failed(const Error& error) {
    const bool ours = error.kind == Kind::unavailable || error.kind == Kind::exhausted ||
                      error.kind == Kind::corrupt || error.kind == Kind::internal;
    if (!ours) return nothing_here();
    log(Level::error, "sns", "a link was not followed", {{"why", error.message}});
    return page(503, "The server is not able to store this now. Try again later.\n", "text/plain");
  }

  static net::Response done(const std::string& action, const std::string& result) {
    return page(200,
                "<" + action + "Response xmlns=\"" + std::string(kNamespace) + "\"><" + action +
                    "Result>" + result + "</" + action + "Result></" + action + "Response>\n",
                "text/xml");
  }

  notify::Notifications& notifications_;
  net::Handler& next_;
};

}  // namespace

std::unique_ptr<net::Handler> make_pages(notify::Notifications& notifications, net::Handler& next) {
  return std::make_unique<Pages>(notifications, next);
}

}  // namespace trainyard::api::sns
