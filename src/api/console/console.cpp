#include "console/console.hpp"

#include <any>
#include <optional>
#include <utility>

#include "auth/auth.hpp"
#include "auth/authorizer.hpp"
#include "auth/principals.hpp"
#include "base/check.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "console/api_call.hpp"
#include "console/data_request.hpp"
#include "console/data_stream.hpp"
#include "console/event_stream.hpp"
#include "console/page_request.hpp"
#include "console/rights.hpp"
#include "dispatch/call.hpp"
#include "operations/rate_limiter.hpp"
#include "shapes/batch.hpp"
#include "shapes/cloudwatch.hpp"
#include "shapes/iam.hpp"
#include "shapes/s3.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api::console {
namespace {

namespace own = shapes::trainyard;

// Most calls have only names and times. The largest one has the request of a new job (at most 100
// KiB) as a text in JSON.
constexpr size_t kCallBytesMax = 256 << 10;
constexpr size_t kSignInBytesMax = 4 << 10;
constexpr size_t kLoggedBytesMax = 500;
constexpr std::string_view kTenant = "console";  // its share of threads is apart from S3's

// The result of choose() for a request of the console, which handle() and stream() read.
struct Admitted {
  Page page;
  std::string secret;  // the secret of the session
  std::optional<SignedIn> who;
  const shapes::OperationShape* operation = nullptr;  // set if the page is an API call
  DataRequest data_request;
  net::RequestHead data_head;  // the signed request of S3
};

net::Response reply_of(int status, std::string body, std::string_view content_type) {
  net::Response out{status, {}, std::move(body)};
  if (!out.body.empty()) out.headers.add("Content-Type", std::string(content_type));
  out.headers.add("Cache-Control", "no-store");
  add_security_headers(out.headers);
  return out;
}

net::Response json_reply(int status, const Json& body) {
  return reply_of(status, dump(body), "application/json");
}

constexpr std::string_view kRequestIdHeader = "x-amzn-RequestId";

// Forwards the API's response, with the console's headers.
class PageResponder final : public net::Responder {
 public:
  explicit PageResponder(std::unique_ptr<net::Responder> to) : to_(std::move(to)) {}
  void reply(net::Response response) override {
    net::Response out = reply_of(response.status, std::move(response.body), "application/json");
    out.headers.add(std::string(kRequestIdHeader),
                    std::string(response.headers.get(kRequestIdHeader)));
    to_->reply(std::move(out));
  }

 private:
  const std::unique_ptr<net::Responder> to_;
};

// Stores the response of an operation that replies before handle() returns.
class KeptResponder final : public net::Responder {
 public:
  explicit KeptResponder(std::shared_ptr<net::Response> kept) : kept_(std::move(kept)) {}
  void reply(net::Response response) override { *kept_ = std::move(response); }

 private:
  const std::shared_ptr<net::Response> kept_;
};

class ConsoleHandler final : public Console {
 public:
  ConsoleHandler(const ConsoleParts& parts, Assets assets)
      : settings_(parts.settings),
        services_(parts.services),
        sessions_(parts.sessions),
        api_(parts.api),
        assets_(std::move(assets)),
        authenticator_(settings_, services_.control),
        principals_(settings_, services_.control),
        authorizer_(settings_, services_),
        events_(settings_, services_, parts.feed) {}

  void stop() override { events_.stop(); }

  Choice choose(const net::RequestHead& head) override {
    const PageRequest request = read_page_request(head);
    if (request.page == Page::none) return api_.choose(head);
    auto admitted = std::make_shared<Admitted>();
    admitted->page = request.page;
    admitted->secret = session_cookie(head);
    admitted->who = find_session(admitted->secret);
    const auto& who = admitted->who;
    if (request.page == Page::document) return {.refusal = document(head, request.path, who)};
    if (request.page == Page::session && head.method != "POST")
      return {.refusal = head.method == "DELETE" ? sign_out(head, admitted->secret)
                                                 : describe_session(head, who)};
    if (request.page == Page::session) {
      if (!is_same_origin(head)) return {.refusal = refuse(head, 403, "Sign in from the console.")};
      return {.intake = net::Intake::blocking,
              .body_bytes_max = kSignInBytesMax,
              .tenant = std::string(kTenant),
              .finding = std::move(admitted)};
    }
    if (!who) return {.refusal = refuse(head, 401, "Sign in.")};
    const bool reads = request.page == Page::events || request.page == Page::data;
    if (reads && is_other_origin(head))
      return {.refusal = refuse(head, 403, "Use the console's own pages.")};
    if (request.page == Page::data) return choose_data(head, std::move(admitted));
    Choice choice{.intake = net::Intake::streamed,
                  .body_bytes_max = kCallBytesMax,
                  .tenant = std::string(kTenant) + " " + who->delegation.name};
    if (request.page == Page::call || request.page == Page::rights) {
      admitted->operation = find_page_operation(request.service, request.operation);
      if (!is_same_origin(head))
        return {.refusal = refuse(head, 403, "Use the console's own pages.")};
      choice.intake = net::Intake::blocking;
    }
    if (request.page == Page::unknown || (request.page == Page::call && !admitted->operation))
      return {.refusal = refuse(head, 404, "Not found in the console.")};
    choice.finding = std::move(admitted);
    return choice;
  }

  std::optional<Choice> preface(const net::RequestHead& head, std::string_view bytes,
                                bool whole) override {
    return api_.preface(head, bytes, whole);  // the console chooses no such intake
  }

  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    const auto admitted = admitted_of(request);
    if (!admitted) return api_.handle(std::move(request), std::move(responder));
    if (admitted->page == Page::session) return responder->reply(sign_in(request));
    if (admitted->page == Page::rights) return responder->reply(rights(*admitted, request));
    call(*admitted, request, std::make_unique<PageResponder>(std::move(responder)));
  }

  void stream(net::Stream& stream) override {
    const auto admitted = admitted_of(stream.head());
    if (!admitted) return api_.stream(stream);
    if (admitted->page == Page::data) {
      DataStream data(stream, admitted->data_request, admitted->data_head);
      return api_.stream(data);
    }
    const std::string region = query_value(stream.head(), "region");
    const EventRequest request{region.empty() ? admitted->who->region : region,
                               query_value(stream.head(), "job")};
    events_.run(stream, request, [&] {
      return context_of(find_session(admitted->secret), stream.head(), request.region);
    });
  }

 private:
  // S3 admits or rejects the signed request by its head.
  Choice choose_data(const net::RequestHead& head, std::shared_ptr<Admitted> admitted) {
    auto request = read_data_request(head);
    if (!request) return {.refusal = refuse(head, 400, request.error().message)};
    auto signed_head =
        sign_data_request(*request, *admitted->who, head, settings_.temporary_key_secret,
                          services_.clock.now(), services_.random);
    if (!signed_head) return {.refusal = refuse(head, 400, signed_head.error().message)};
    Choice choice = api_.choose(*signed_head);
    if (choice.refusal) {
      choice.refusal->headers =
          data_headers(*request, choice.refusal->status, choice.refusal->headers);
      return choice;
    }
    admitted->data_request = *std::move(request);
    admitted->data_head = *std::move(signed_head);
    admitted->data_head.finding = std::move(choice.finding);
    choice.tenant = std::string(kTenant) + " " + admitted->who->delegation.name;
    choice.finding = std::move(admitted);
    return choice;
  }

  static std::shared_ptr<Admitted> admitted_of(const net::RequestHead& head) {
    const auto* found = std::any_cast<std::shared_ptr<Admitted>>(&head.finding);
    return found ? *found : nullptr;
  }

  // Logs a rejection, and returns it as the response.
  net::Response refuse(const net::RequestHead& head, int status, std::string_view text,
                       std::string request_id = "") const {
    if (request_id.empty()) request_id = request_ids_.next();
    log(Level::info, "console", "refused",
        {{"request", request_id},
         {"status", std::to_string(status)},
         {"error", shorten(text, kLoggedBytesMax)},
         {"peer", head.peer}});
    net::Response out = json_reply(status, Json{{"message", text}});
    out.headers.add(std::string(kRequestIdHeader), std::move(request_id));
    return out;
  }

  // -- sessions

  // Returns nothing if the session is unknown, or if the key that opened it is no longer active.
  std::optional<SignedIn> find_session(std::string_view secret) const {
    const Instant now = services_.clock.now();
    auto who = sessions_.find(secret, now);
    if (!who) return {};
    Principal principal;
    const bool long_term = who->delegation.kind != PrincipalKind::session;
    if (long_term && !principals_.find_by_key(who->access_key_id, principal)) return {};
    if (!principals_.find_stored(who->delegation, now)) return {};
    return who;
  }

  std::optional<Context> context_of(const std::optional<SignedIn>& who,
                                    const net::RequestHead& head, const std::string& region) const {
    if (!who) return {};
    const Instant now = services_.clock.now();
    auto principal = principals_.find_stored(delegation_for(*who, head), now);
    if (!principal) return {};
    Context out{.principal = *std::move(principal), .region = region, .now = now};
    out.clock_offset = services_.control.clock_offset();
    out.source_ip = head.peer_address();
    out.secure = head.tls;
    return out;
  }

  static net::Response sign_out_reply(const net::RequestHead& head) {
    net::Response out = reply_of(204, "", "");
    out.headers.add("Set-Cookie", format_session_cookie("", head.tls));
    return out;
  }

  net::Response sign_out(const net::RequestHead& head, const std::string& secret) {
    if (!is_same_origin(head)) return refuse(head, 403, "Sign out from the console.");
    sessions_.close(secret);
    return sign_out_reply(head);
  }

  net::Response describe_session(const net::RequestHead& head,
                                 const std::optional<SignedIn>& who) const {
    if (!who) return refuse(head, 401, "Sign in.");
    Json regions = settings_.regions;
    for (const auto& [name, remote] : settings_.remote_regions) regions.push_back(name);
    if (regions.empty()) regions.push_back(who->region);
    return json_reply(200, {{"Principal", who->arn},
                            {"Region", who->region},
                            {"Regions", std::move(regions)},
                            {"Views", views_of(who, head)},
                            {"Expires", to_seconds(who->expires)}});
  }

  // Returns the list views that the principal may see in its region. Pages offer only these.
  Json views_of(const std::optional<SignedIn>& who, const net::RequestHead& head) const {
    Json views = Json::array();
    const auto context = context_of(who, head, who->region);
    const auto add = [&](std::string_view view, const shapes::OperationShape& operation,
                         const void* input) {
      if (context && !authorizer_.check(*context, operation, input)) views.push_back(view);
    };
    const own::ListJobsRequest jobs;
    const own::ListMachinesRequest machines;
    const shapes::batch::DescribeJobQueuesRequest queues;
    add("jobs", own::ListJobs::shape(), &jobs);
    add("queues", shapes::batch::DescribeJobQueues::shape(), &queues);
    add("machines", own::ListMachines::shape(), &machines);
    const shapes::s3::ListBucketsRequest buckets;
    add("data", shapes::s3::ListBuckets::shape(), &buckets);
    const own::PreviewJobRequest preview;
    add("new", own::PreviewJob::shape(), &preview);
    const own::ListCampaignsRequest campaigns;
    if (services_.campaigns) add("campaigns", own::ListCampaigns::shape(), &campaigns);
    const shapes::cloudwatch::DescribeAlarmsInput alarms;
    add("alarms", shapes::cloudwatch::DescribeAlarms::shape(), &alarms);
    const shapes::cloudwatch::ListDashboardsInput dashboards;
    add("dashboards", shapes::cloudwatch::ListDashboards::shape(), &dashboards);
    const shapes::iam::ListUsersRequest users;
    add("users", shapes::iam::ListUsers::shape(), &users);
    return views;
  }

  // Checks many permissions, so it counts for the rate limit like calls.
  net::Response rights(const Admitted& admitted, const net::Request& request) {
    const std::string named = query_value(request, "region");
    const std::string region = named.empty() ? admitted.who->region : named;
    if (!is_region(region)) return refuse(request, 400, "invalid region: " + region);
    const auto context = context_of(admitted.who, request, region);
    if (!context) return refuse(request, 401, "Sign in.");
    if (!limiter_.admit(context->principal.name, OperationClass::reads, settings_.rate_limits(),
                        services_.clock.monotonic())) {
      if (services_.statistics) services_.statistics->add_throttled();
      return refuse(request, 429, "Rate exceeded");
    }
    const auto allowed =
        rights_of(request.body, [&](const shapes::OperationShape& operation, const void* input) {
          return !authorizer_.check(*context, operation, input);
        });
    if (!allowed) return refuse(request, 400, allowed.error().message);
    return json_reply(200, *allowed);
  }

  // Opens a session for a request that is signed with an access key, or that has a token.
  net::Response sign_in(const net::Request& request) {
    if (request.headers.has("authorization")) return prove(request);
    const auto body = parse_json(request.body);
    const auto token = body ? string_at(*body, "Token") : Result<std::string>(body.error());
    auto who = token ? sessions_.redeem(*token, services_.clock.now()) : std::nullopt;
    if (!who)
      return refuse(request, 403, "This link was used already, or has expired. Get a new one.");
    return open_session(request, *std::move(who));
  }

  // Verifies the signature, and lets the API decide whether its principal may open a session.
  net::Response prove(const net::Request& request) {
    const shapes::Service& service = own::kService;
    const Instant now = services_.clock.now();
    auto signer = authenticator_.check(service, request, &request.body, now);
    if (!signer) return refuse(request, 403, signer.failure(service).message);
    const Context context{.principal = signer->principal, .region = home_of(*signer), .now = now};
    SignedIn who = signed_in_by(context);
    auto create = sign_call({own::CreateConsoleSession::shape(), who.region, "{}"}, who, request,
                            settings_.temporary_key_secret, now, services_.random);
    if (!create) return refuse(request, 403, create.error().message);
    const auto kept = std::make_shared<net::Response>();
    forward(*std::move(create), std::make_unique<KeptResponder>(kept));
    const auto answer = parse_json(kept->body);
    const auto text_at = [&](std::string_view name) {
      const auto text = answer ? string_at(*answer, name) : Result<std::string>(answer.error());
      return text ? *text : std::string();
    };
    // Uses up the token, which is for the same principal. The session belongs to the key that
    // signed, and ends with it.
    if (kept->status != 200 || !sessions_.redeem(text_at("Token"), now))
      return refuse(request, 403, text_at("message"),
                    std::string(kept->headers.get(kRequestIdHeader)));
    return open_session(request, std::move(who));
  }

  net::Response open_session(const net::RequestHead& head, SignedIn who) {
    log(Level::info, "console", "signed in", {{"principal", who.arn}, {"peer", head.peer}});
    const std::string secret = sessions_.open(std::move(who), services_.clock.now());
    net::Response out = reply_of(204, "", "");
    out.headers.add("Set-Cookie", format_session_cookie(secret, head.tls));
    return out;
  }

  // Returns the region that pages show first: the signature's, if this server has it.
  std::string home_of(const Signer& signer) const {
    const std::string& signed_for = signer.claim.scope.region;
    for (const std::string& region : settings_.regions)
      if (region == signed_for) return region;
    return settings_.regions.empty() ? signed_for : settings_.regions.front();
  }

  // -- pages and calls

  net::Response document(const net::RequestHead& head, std::string_view path,
                         const std::optional<SignedIn>& who) const {
    const bool of_sign_in = path.starts_with("sign-in/");
    const Asset* found = who || of_sign_in ? assets_.find(path) : nullptr;
    const bool is_file = path.starts_with("assets/") || of_sign_in;
    if (!found && is_file && who) return refuse(head, 404, "Not found in the console.");
    // All other paths are views of the one page.
    if (!found) found = assets_.find(who ? "index.html" : "sign-in.html");
    CHECK(found, "Assets::read has read the pages");
    net::Response out = reply_of(200, found->bytes, found->content_type);
    // Names of built files have the hash of their contents.
    if (is_file && who) out.headers.set("Cache-Control", "private, max-age=31536000, immutable");
    return out;
  }

  void call(const Admitted& admitted, net::Request& request,
            std::unique_ptr<net::Responder> responder) {
    const std::string region = query_value(request, "region");
    auto signed_call =
        sign_call({*admitted.operation, region.empty() ? admitted.who->region : region,
                   std::move(request.body)},
                  *admitted.who, request, settings_.temporary_key_secret, services_.clock.now(),
                  services_.random);
    if (!signed_call) return responder->reply(refuse(request, 400, signed_call.error().message));
    forward(*std::move(signed_call), std::move(responder));
  }

  void forward(net::Request request, std::unique_ptr<net::Responder> responder) {
    Choice choice = api_.choose(request);
    if (choice.refusal) return responder->reply(*std::move(choice.refusal));
    request.finding = std::move(choice.finding);
    api_.handle(std::move(request), std::move(responder));
  }

  const Settings& settings_;
  const Services& services_;
  SessionTable& sessions_;
  net::Handler& api_;
  const Assets assets_;
  const Authenticator authenticator_;
  const Principals principals_;
  const Authorizer authorizer_;
  EventStreams events_;
  RateLimiter limiter_;
  mutable RequestIds request_ids_{services_.random};
};

}  // namespace

SignedIn signed_in_by(const Context& context) {
  SignedIn out;
  out.delegation = delegation_of(context);
  out.arn = context.principal.arn;
  out.access_key_id = context.principal.access_key_id;
  out.region = context.region;
  if (context.principal.session) out.expires = context.principal.session->expires;
  return out;
}

std::unique_ptr<Console> make_console(const ConsoleParts& parts, Assets assets) {
  return std::make_unique<ConsoleHandler>(parts, std::move(assets));
}

}  // namespace trainyard::api::console
