// Implements the API's handler: it routes, authenticates, decodes, checks and authorises a request,
// calls its operation, and encodes and logs the response.
#include <algorithm>
#include <any>
#include <map>
#include <set>
#include <stdexcept>

#include "audit/audit.hpp"
#include "auth/auth.hpp"
#include "auth/authorizer.hpp"
#include "auth/delegation.hpp"
#include "base/check.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "dispatch/all_operations.hpp"
#include "dispatch/api.hpp"
#include "dispatch/body.hpp"
#include "dispatch/call.hpp"
#include "dispatch/cross_origin.hpp"
#include "dispatch/decode.hpp"
#include "dispatch/match.hpp"
#include "dispatch/post_form.hpp"
#include "dispatch/remote.hpp"
#include "dispatch/s3_exchange.hpp"
#include "dispatch/shell.hpp"
#include "dispatch/unsigned_form.hpp"
#include "protocol/constraints.hpp"
#include "protocol/errors.hpp"
#include "protocol/gzip.hpp"
#include "protocol/query.hpp"
#include "protocol/replies.hpp"
#include "protocol/route.hpp"
#include "shapes/services.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api {
namespace {

constexpr Duration kDeadline = 60s;  // botocore's read timeout

// Names the operation of a request that this server does not offer. An unknown service is named by
// the scope of the signature: "DescribeRepositories of the service ecr".
std::string name_of(const Route& route, const net::RequestHead& head) {
  const std::string scope = route.service ? "" : scope_service(head);
  if (scope.empty()) return route.operation_name;
  const std::string service = "service " + shorten(scope, 60);
  return route.operation_name.empty() ? "The " + service
                                      : shorten(route.operation_name, 100) + " of the " + service;
}

class Api final : public net::Handler {
 public:
  Api(const Settings& settings, const Services& services, observe::AuditLog* audit)
      : settings_(settings),
        services_(services),
        authenticator_(settings_, services.control),
        authorizer_(settings_, services_),
        remotes_(settings_.remote_regions, services.clock),
        cross_origin_(services.control),
        table_(all_operations(settings_, services_)),
        recorder_(services_, audit) {
    add_cloudtrail(table_, audit);
    for (const auto* service : all_services())
      constraints_.emplace(service, std::make_unique<Constraints>(*service));
  }

  // Checks the head alone. No body is read, and no thread used, before the head has a known key
  // and, if the head has the hash of the body, a valid signature.
  Choice choose(const net::RequestHead& head) override {
    auto admitted = std::make_shared<Admitted>();
    admitted->route = match(table_, head);
    const shapes::Service* service = admitted->route.service;
    if (!service && UnsignedForm::is(admitted->route, head))
      return {.intake = net::Intake::prefaced,
              .body_bytes_max = kUnsignedFormBytesMax,
              .finding = std::move(admitted)};
    const std::string& named = admitted->route.operation_name;
    if (!service || (service->name == "s3" && !named.empty()))
      return refuse(head, admitted->route,
                    unknown_operation(service, name_of(admitted->route, head)));
    if (service->name == "s3" && CrossOrigin::is_preflight(head)) {
      auto answer = cross_origin_.answer_preflight(head);
      if (!answer) return refuse(head, admitted->route, answer.failure(*service));
      answer->headers.add("x-amz-request-id", recorder_.new_request_id());
      return {.refusal = *std::move(answer)};
    }
    if (service->name == "s3")
      if ((admitted->form = PostForm::of(head)))
        return {.intake = net::Intake::prefaced,
                .body_bytes_max = kFormPrefaceBytesMax,
                .finding = std::move(admitted)};
    auto signer = authenticator_.check_head(*service, head, services_.clock.now());
    if (!signer) return refuse(head, admitted->route, signer.failure(*service));
    Choice choice{intake_of(admitted->route, signer->claim.scope.region),
                  settings_.body_bytes_max,
                  {},
                  signer->principal.name,
                  {}};
    choice.authenticated = signer->verified;
    if (choice.intake == net::Intake::streamed && !signer->verified)
      return refuse(
          head, admitted->route,
          invalid_request("Missing required header for this request: x-amz-content-sha256"));
    if (service->name == "s3") match_s3(table_, head, admitted->route);
    *admitted->signer = std::move(*signer);
    choice.finding = std::move(admitted);
    return choice;
  }

  // Reads the fields of a form up to its file, and checks their signature.
  std::optional<Choice> preface(const net::RequestHead& head, std::string_view bytes,
                                bool whole) override {
    Admitted& admitted = admitted_of(head);
    const auto refused = [&](const Failure& failure) {
      return refuse(head, admitted.route, failure);
    };
    if (!admitted.form) {
      const auto failure = admitted.unsigned_form.feed(bytes, whole, admitted.route);
      return failure ? std::optional(refused(*failure)) : std::nullopt;
    }
    const auto fed = admitted.form->feed(bytes);
    if (!fed) return refused(fed.failure(*admitted.route.service));
    if (!*fed && !whole) return std::nullopt;
    if (!*fed)
      return refused(invalid_argument("POST requires exactly one file upload per request."));
    auto signer = admitted.form->check(authenticator_, head, services_.clock.now());
    if (!signer) return refused(signer.failure(*admitted.route.service));
    *admitted.signer = std::move(*signer);
    return Choice{.tenant = admitted.signer->principal.name};
  }

  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    // Shared by the call and its response, which may come from another thread. The response is the
    // last owner.
    const std::shared_ptr<net::Responder> to(std::move(responder));
    guarded(
        request,
        [&](Call& call, Signer& signer) {
          run(call, signer, request.body,
              [to](net::Response response) { to->reply(std::move(response)); });
        },
        [&](net::Response response) { to->reply(std::move(response)); });
  }

  void stream(net::Stream& stream) override {
    const auto reply = [&](net::Response response) {
      if (auto sent = stream.reply(response); !sent)
        log(Level::debug, "api", "the client disconnected before the response",
            {{"why", sent.error().message}});
    };
    guarded(
        stream.head(),
        [&](Call& call, Signer& signer) {
          if (call.route.shell) return run_shell(call, signer, stream, reply);
          const Admitted& admitted = admitted_of(stream.head());
          if (admitted.form) return run_form(call, signer, *admitted.form, stream);
          run_s3(call, signer, stream);
        },
        reply);
  }

 private:
  using Reply = std::function<void(net::Response)>;

  // The result of choose().
  // In parts, since malloc is slow for more than a kibibyte.
  struct Admitted {
    Match route;
    std::unique_ptr<Signer> signer = std::make_unique<Signer>();
    std::unique_ptr<PostForm> form;  // S3's POST; nullptr: another request
    UnsignedForm unsigned_form = {};
  };

  static Admitted& admitted_of(const net::RequestHead& head) {
    const auto* admitted = std::any_cast<std::shared_ptr<Admitted>>(&head.finding);
    CHECK(admitted, "choose() was called before preface(), handle() and stream()");
    return **admitted;
  }

  // Requests that may block run on a thread of the pool.
  net::Intake intake_of(const Match& match, const std::string& region) const {
    if (match.shell || match.protocol == Protocol::rest_xml) return net::Intake::streamed;
    return may_block(table_, match) || remotes_.is_for_another(match, region)
               ? net::Intake::blocking
               : net::Intake::buffered;
  }

  Call begin(const net::RequestHead& head, Match where) {
    Call call{head, std::move(where), {}, services_.clock.monotonic()};
    call.context.now = services_.clock.now();
    call.context.clock_offset = services_.control.clock_offset();
    call.context.deadline = call.context.now + kDeadline;
    call.context.request_id = recorder_.new_request_id();
    call.context.may_describe = [this](const Context& context, const domain::JobKey& job) {
      return authorizer_.may_describe(context, job);
    };
    return call;
  }

  Choice refuse(const net::RequestHead& head, const Match& where, const Failure& failure) {
    Choice choice{.refusal = fail(begin(head, where), failure)};
    if (where.protocol == Protocol::rest_xml) cross_origin_.add_to(*choice.refusal, head);
    return choice;
  }

  template <class Work>
  void guarded(const net::RequestHead& head, const Work& work, const Reply& reply) {
    Admitted& admitted = admitted_of(head);
    Call call = begin(head, std::move(admitted.route));
    try {
      work(call, *admitted.signer);
    } catch (const std::exception&
                 fault) {  // from the standard or another library: our own faults abort
      log(Level::error, "api", "an operation threw",
          {{"what", fault.what()}, {"request", call.context.request_id}});
      reply(
          fail(call, failure_of(service_of(call),
                                internal("We encountered an internal error. Please try again."))));
    }
  }

  // -- shells, which take over the connection

  void run_shell(Call& call, const Signer& signer, net::Stream& stream, const Reply& reply) {
    const shapes::Service& service = shapes::trainyard::kService;
    accept(call, signer);
    auto order = read_shell_request(call.head.query());
    if (!order) return reply(fail(call, failure_of(service, order.error())));
    const std::string arn =
        control::job_arn(settings_.account, {call.context.region, order->job.name});
    call.resources->push_back(arn);
    call.host = domain::host_name(order->host);
    if (auto refused = authorizer_.check(call.context, service, "trainyard:Shell", arn))
      return reply(fail(call, *refused));
    if (!services_.shells)
      return reply(fail(call, validation(service, "shells are not available on this server")));
    order->job.region = call.context.region;
    order->principal = call.context.principal.arn;
    order->peer = call.head.peer;
    auto shell = services_.shells->open(*order);
    if (!shell) return reply(fail(call, failure_of(service, shell.error())));
    const auto opened = services_.clock.monotonic();
    recorder_.record(call, 101, "");
    if (auto carried = carry_shell(stream, **shell); !carried)
      reply(fail(call, failure_of(service, carried.error())));
    recorder_.record_end_of_shell(call, opened);
  }

  // -- all services except S3, with the whole body

  // `sent`: the body as it was signed. It is not parsed before its signature is verified.
  void run(Call& call, Signer& signer, const std::string& sent, const Reply& reply) {
    const shapes::Service& service = service_of(call);
    if (auto failure =
            authenticator_.check_body(service, call.head, signer, sent, call.context.now))
      return reply(fail(call, *failure));
    accept(call, signer);
    std::string unpacked;
    const bool packed = equals_ignoring_case(call.head.headers.get("content-encoding"), "gzip");
    if (packed) {
      auto whole = gunzip(sent, settings_.body_bytes_max);
      if (!whole)
        return reply(fail(call, whole.error().kind == Kind::exhausted
                                    ? too_large(service_of(call), settings_.body_bytes_max)
                                    : unreadable_body(service_of(call), whole.error().message)));
      unpacked = std::move(*whole);
    }
    const std::string& body = packed ? unpacked : sent;
    NameValues parameters;
    if (call.route.protocol == Protocol::query) {
      auto read = read_form(call.head.method == "GET" ? call.head.query() : std::string_view(body));
      if (!read) return reply(fail(call, unreadable_body(service, read.error().message)));
      parameters = std::move(*read);
      std::string operation;
      for (const auto& [name, value] : parameters)
        if (name == "Action") operation = value;
      match_name(table_, operation, call.route);
    }
    const Entry* entry = call.route.entry;
    if (!entry || !entry->call)
      return reply(fail(call, unknown_operation(&service, call.route.operation_name)));
    if (is_throttled(call, *entry)) return reply(fail(call, throttled(service)));
    if (auto refused = refuse_region(call)) return reply(fail(call, *refused));
    if (auto refused = refuse_peer(call)) return reply(fail(call, *refused));
    const Decode decode = [&](void* input) -> std::optional<Failure> {
      if (auto failure = decode_input(call.route.protocol, *entry->shape, call.head, body,
                                      parameters, *constraints_.at(entry->shape->service), input))
        return failure;
      return authorizer_.check(call.context, *entry->shape, input,
                               recorder_.note_resources(call, input));
    };
    if (remotes_.is_for_another(call.route, call.context.region)) {
      if (!call.context.principal.owner())
        if (auto refused = entry->inspect(decode)) return reply(fail(call, *refused));
      const auto on_behalf = on_behalf_of(call.context);
      if (!on_behalf) return reply(fail(call, failure_of(service, on_behalf.error())));
      auto passed = remotes_.pass(call.head, sent, call.route, call.context.region, *on_behalf);
      if (!passed) return reply(fail(call, failure_of(service, passed.error())));
      recorder_.record(call, passed->status, "");
      return reply(std::move(*passed));
    }

    // The head may no longer exist when the response comes, so the response has a call without one.
    static const net::RequestHead kNoHead;
    auto later =
        std::make_shared<Call>(Call{kNoHead, call.route, call.context, call.begun, call.resources});
    entry->call(call.context, decode,
                [this, later, reply](const void* output, const Failure* failure) {
                  reply(failure ? fail(*later, *failure) : succeed(*later, output));
                });
  }

  // Called only for requests with a valid signature, so that no client can use up another
  // principal's rate.
  bool is_throttled(const Call& call, const Entry& entry) {
    const bool admitted = limiter_.admit(call.context.principal.name, class_of(*entry.shape),
                                         settings_.rate_limits(), services_.clock.monotonic());
    if (!admitted && services_.statistics) services_.statistics->add_throttled();
    return !admitted;
  }

  // Jobs, quotas and logs are stored by region, so an unconfigured region would be empty. Buckets
  // are not stored by region, and STS and IAM have no regions.
  std::optional<Failure> refuse_region(const Call& call) const {
    const std::string& region = call.context.region;
    if (settings_.regions.empty() || is_global(call.route.service) ||
        settings_.remote_regions.contains(region) ||
        std::ranges::find(settings_.regions, region) != settings_.regions.end())
      return {};
    std::string known;
    std::set<std::string> names(settings_.regions.begin(), settings_.regions.end());
    for (const auto& [name, remote] : settings_.remote_regions) names.insert(name);
    for (const auto& name : names) known += (known.empty() ? "" : ", ") + name;
    return malformed_authentication(
        service_of(call), "Credential should be scoped to a valid region, not '" + region +
                              "': this server's regions are " + known + ".");
  }

  // A peer's request is not forwarded again, and gets no keys that would outlive it.
  std::optional<Failure> refuse_peer(const Call& call) const {
    const Principal& principal = call.context.principal;
    const bool remote = remotes_.is_for_another(call.route, call.context.region);
    if (principal.peer_key_id.empty() || (!remote && !is_global(call.route.service))) return {};
    return access_denied(
        service_of(call),
        "User: " + principal.arn + " is not authorized to make " +
            (remote ? "requests for the region " + call.context.region + ", a third server,"
                    : "requests of " + std::string(call.route.service->name)) +
            " through another server");
  }

  net::Response succeed(const Call& call, const void* output) {
    net::Response response =
        call.route.protocol == Protocol::query
            ? query_reply(*call.route.operation, output, call.context.request_id)
            : json_reply(*call.route.operation, output, call.context.request_id);
    recorder_.record(call, response.status, "");
    return response;
  }

  net::Response fail(const Call& call, const Failure& failure) {
    recorder_.record(call, failure.status, failure.code);
    switch (call.route.protocol) {
      case Protocol::json:
      case Protocol::rest_json:
        return json_failure(call.route.service, failure, call.context.request_id);
      case Protocol::query:
        return query_failure(call.route.service, failure, call.context.request_id);
      case Protocol::rest_xml:
        break;
    }
    return s3_failure_reply(call.head, failure, call.context.request_id);
  }

  // -- S3, on a stream's thread: bodies are streamed, and choose() has verified the signature and
  // found the operation

  void run_s3(Call& call, const Signer& signer, net::Stream& stream) {
    const auto reply = [&](const Failure& failure) {
      finish_s3(call, stream, fail(call, failure), {});
    };
    const shapes::Service& s3 = *call.route.service;
    accept(call, signer);
    if (call.route.failure) return reply(*call.route.failure);
    const Entry& entry = *call.route.entry;
    if (is_throttled(call, entry)) return reply(throttled(s3));
    if (auto refused = refuse_peer(call)) return reply(*refused);
    const bool remote = remotes_.is_for_another(call.route, call.context.region);
    const auto on_behalf = remote ? on_behalf_of(call.context) : Result<std::string>(std::string());
    if (!on_behalf) return reply(failure_of(s3, on_behalf.error()));
    if (auto refused = refuse_by_head(call, remote)) return reply(*refused);

    auto body = Body::open(stream, signer);
    if (!body) return reply(malformed_authentication(s3, body.error().message));
    if (!remote) return run_s3_here(call, stream, **body);
    Remotes::Streamed streamed;
    const auto passed = remotes_.pass_s3(stream, call.route.address, **body, call.context.region,
                                         *on_behalf, streamed);
    if (streamed.started)
      return recorder_.record(call, streamed.status, passed ? "" : "broken off");
    reply((*body)->failure() ? *(*body)->failure() : failure_of(s3, passed.error()));
  }

  // Authorises a request before its body is read, if the head identifies the resources.
  std::optional<Failure> refuse_by_head(const Call& call, bool remote) {
    if (call.context.principal.owner()) return {};
    const Entry& entry = *call.route.entry;
    if (!AccessTable::needs_body(*entry.shape))
      return entry.inspect([&](void* input) -> std::optional<Failure> {
        if (auto failure = decode_s3_input(call.route, call.head, "", S3Part::head, input))
          return failure;
        return authorizer_.check(call.context, *entry.shape, input,
                                 recorder_.note_resources(call, input));
      });
    if (!remote) return {};
    return access_denied(*call.route.service, "User: " + call.context.principal.arn +
                                                  " is not authorized to perform " +
                                                  std::string(entry.shape->name) +
                                                  " in a region that is another server");
  }

  void run_s3_here(Call& call, net::Stream& stream, Body& body) {
    const shapes::Service& s3 = *call.route.service;
    const Entry& entry = *call.route.entry;
    const S3Address& address = call.route.address;
    S3Exchange ends(call.head, *entry.shape, call.context.request_id, settings_.blank_interval,
                    stream, body, cross_origin_.headers_for(call.head));
    const auto finish_with = [&](net::Response response, std::optional<uint64_t> content_length) {
      if (!ends.head_sent()) return finish_s3(call, stream, std::move(response), content_length);
      (void)!ends.write_rest(response.body);  // a disconnected client needs no answer
    };
    const Finish finish = [&](const void* output, const Failure* failure) {
      // The body's own failure is the cause of the operation's failure, so it is reported.
      if (failure) return finish_with(fail(call, body.failure() ? *body.failure() : *failure), {});
      S3Reply made = s3_reply(*entry.shape, output, call.context.request_id);
      recorder_.record(call, made.response.status, "");
      const auto name = entry.shape->name;
      if (services_.campaigns &&
          (name == "PutObject" || name == "CopyObject" || name == "CompleteMultipartUpload"))
        services_.campaigns->object_created(address.bucket, address.key);
      finish_with(std::move(made.response), made.content_length);
    };
    const Decode decode = [&](void* input) -> std::optional<Failure> {
      std::string text;
      if (entry.runs != Runs::streamed) {
        auto read = body.read_whole(settings_.body_bytes_max);
        if (!read)
          return read.error().kind == Kind::exhausted ? too_large(s3, settings_.body_bytes_max)
                                                      : failure_of(s3, read.error());
        text = std::move(*read);
      }
      if (auto failure = decode_s3_input(call.route, call.head, text, S3Part::whole, input))
        return failure;
      auto accesses = recorder_.note_resources(call, input);
      return AccessTable::needs_body(*entry.shape)
                 ? authorizer_.check(call.context, *entry.shape, input, std::move(accesses))
                 : std::nullopt;
    };
    if (entry.stream) {
      entry.stream(call.context, decode, ends, finish);
      if (ends.started()) recorder_.record(call, ends.status(), "");
    } else {
      entry.call(call.context, decode, finish);
    }
  }

  // Runs a browser's upload as a PUT whose head is in the form.
  void run_form(const Call& posted, const Signer& signer, PostForm& form, net::Stream& stream) {
    Call call{form.put_head(), posted.route, posted.context, posted.begun};
    call.route.operation = &shapes::s3::PutObject::shape();
    call.route.entry = table_.find(*call.route.operation);
    call.route.address = form.address();
    const Entry* entry = call.route.entry;
    const auto reply = [&](const Failure& failure) {
      finish_s3(call, stream, fail(call, failure), {});
    };
    accept(call, signer);
    if (is_throttled(call, *entry)) return reply(throttled(*call.route.service));
    if (remotes_.is_for_another(call.route, call.context.region))
      return reply(not_implemented("Forms for a region that is another server"));
    const S3Address& address = call.route.address;
    const Decode decode = [&](void* input) -> std::optional<Failure> {
      if (auto failure = decode_s3_input(call.route, call.head, "", S3Part::whole, input))
        return failure;
      return authorizer_.check(call.context, *entry->shape, input,
                               recorder_.note_resources(call, input));
    };
    const auto body = form.open_body(stream);
    S3Exchange ends(call.head, *entry->shape, call.context.request_id, settings_.blank_interval,
                    stream, *body);
    entry->stream(call.context, decode, ends, [&](const void* output, const Failure* failure) {
      if (failure) return reply(body->failure() ? *body->failure() : *failure);
      const auto& put = *static_cast<const shapes::s3::PutObjectOutput*>(output);
      net::Response made = form.reply(put.e_tag.value_or(""), call.context.request_id);
      recorder_.record(call, made.status, "");
      if (services_.campaigns) services_.campaigns->object_created(address.bucket, address.key);
      finish_s3(call, stream, std::move(made), {});
    });
  }

  void finish_s3(const Call& call, net::Stream& stream, net::Response response,
                 std::optional<uint64_t> content_length) {
    // The response to HEAD has the length that GET would send, and no body.
    cross_origin_.add_to(response, stream.head());
    set_sandbox_headers(response.headers);
    const bool head_only =
        call.head.method == "HEAD" || response.status == 304 || response.status == 204;
    Result<void> sent;
    if (head_only)
      sent = stream.start(response.status, response.headers, content_length.value_or(0));
    else
      sent = stream.reply(response);
    if (!sent)
      log(Level::debug, "api", "the client disconnected before the response",
          {{"why", sent.error().message}});
  }

  const Settings settings_;
  const Services services_;
  Authenticator authenticator_;
  RateLimiter limiter_;
  Authorizer authorizer_;
  Remotes remotes_;
  const CrossOrigin cross_origin_;
  OperationTable table_;
  CallRecorder recorder_;
  std::map<const shapes::Service*, std::unique_ptr<Constraints>> constraints_;
};

}  // namespace

std::unique_ptr<net::Handler> make_api(const Settings& settings, const Services& services,
                                       observe::AuditLog* audit) {
  return std::make_unique<Api>(settings, services, audit);
}

}  // namespace trainyard::api
