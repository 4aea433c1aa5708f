#include "console/console.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "console/data_request.hpp"
#include "dispatch/testing/tenants.hpp"
#include "reconcile/state.hpp"

namespace trainyard::api::console {
namespace {

using in_memory::Reply;
using in_memory::Signing;
using Fields = signing::HeaderList;

constexpr const char* kRead =
    R"("trainyard:CreateConsoleSession","trainyard:ListJobs","trainyard:DescribeJob","logs:GetLogEvents")";

Assets pages() {
  const auto html = [](const char* text) { return Asset{text, "text/html; charset=utf-8"}; };
  return Assets({{"index.html", html("the application")},
                 {"sign-in.html", html("the sign-in page")},
                 {"assets/main.js", {"application code", "text/javascript"}},
                 {"sign-in/main.js", {"sign-in code", "text/javascript"}}});
}

struct ConsoleWorld : ::testing::Test {
  TestTenants tenants;
  SessionTable sessions{tenants.random};
  JobFeed feed;
  std::unique_ptr<net::Handler> api;
  std::unique_ptr<Console> console;

  ConsoleWorld() {
    tenants.services.issue_console_token = [this](const Context& context) {
      return sessions.issue_token(signed_in_by(context), tenants.clock.now());
    };
    api = make_api(tenants.settings, tenants.services);
    console = make_console({tenants.settings, tenants.services, sessions, feed, *api}, pages());
  }

  Reply send(const std::string& method, const std::string& target, const std::string& body = "",
             const Fields& fields = {}) {
    net::Request request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.peer = "192.0.2.7:5000";
    request.headers.add("Host", "127.0.0.1:4566");
    for (const auto& [name, value] : fields) request.headers.add(name, value);
    return *in_memory::send(*console, std::move(request));
  }
  // Sends a request like a page of the console.
  Reply from_page(const std::string& method, const std::string& path, const std::string& cookie,
                  const std::string& body = "") {
    Fields fields{{"Sec-Fetch-Site", "same-origin"}};
    if (!cookie.empty()) fields.emplace_back("Cookie", cookie);
    return send(method, "/console/" + path, body, fields);
  }
  Reply call(const std::string& operation, const std::string& cookie,
             const std::string& body = "{}", const std::string& region = "eu-west-1") {
    return from_page("POST", "api/" + operation + "?region=" + region, cookie, body);
  }
  static std::string cookie_of(const Reply& reply) {
    const std::string cookie(reply.headers.get("set-cookie"));
    return cookie.substr(0, cookie.find(';'));
  }
  net::Request signed_sign_in(const Signing& by) {
    auto request = in_memory::signed_request("POST", "/console/session",
                                             {{"Content-Type", "application/json"}}, "{}",
                                             "trainyard", tenants.clock.now(), by);
    request.headers.add("Sec-Fetch-Site", "same-origin");
    request.peer = "192.0.2.7:5000";
    return request;
  }
  Reply sign_in(const Signing& by) { return *in_memory::send(*console, signed_sign_in(by)); }
  // Returns the cookie.
  std::string signed_in(const Signing& by) {
    const Reply reply = sign_in(by);
    EXPECT_EQ(reply.status, 204) << reply.body;
    return cookie_of(reply);
  }
  std::string token(const Signing& by) {
    auto request = in_memory::signed_request("POST", "/",
                                             {{"X-Amz-Target", "Trainyard.CreateConsoleSession"},
                                              {"Content-Type", "application/x-amz-json-1.1"}},
                                             "{}", "trainyard", tenants.clock.now(), by);
    request.peer = "192.0.2.7:5000";
    return in_memory::send(*console, std::move(request))->json().value("Token", "");
  }
  Signing reader() { return tenants.add_user("ann", allow(kRead, R"("*")")); }
};

// -- signing in

TEST_F(ConsoleWorld, SignsInWithAnAccessKey) {
  const std::string cookie = signed_in(tenants.owner);
  EXPECT_EQ(from_page("GET", "", cookie).body, "the application");
  const Json session = from_page("GET", "session", cookie).json();
  EXPECT_EQ(session["Principal"], "arn:aws:sts::123456789012:assumed-role/TrainyardOwner/owner");
  EXPECT_EQ(session["Regions"], Json::array({"eu-west-1"}));
  EXPECT_EQ(session["Views"], Json::array({"jobs", "queues", "machines", "data", "new", "alarms",
                                           "dashboards", "users"}));
}

TEST_F(ConsoleWorld, NamesTheViewsThatThePrincipalMaySee) {
  const Json session = from_page("GET", "session", signed_in(reader())).json();
  EXPECT_EQ(session["Views"], Json::array({"jobs"}));
}

TEST_F(ConsoleWorld, AcceptsASignatureForAnyRegion) {
  Signing by = tenants.owner;
  by.region = "us-east-1";
  const std::string cookie = signed_in(by);
  EXPECT_EQ(from_page("GET", "session", cookie).json()["Region"], "eu-west-1");
}

TEST_F(ConsoleWorld, RejectsWrongSecrets) {
  Signing wrong = tenants.owner;
  wrong.keys.secret_access_key = "guess";
  const Reply reply = sign_in(wrong);
  EXPECT_EQ(reply.status, 403);
  EXPECT_FALSE(reply.headers.has("set-cookie"));
  wrong.keys.access_key_id = "AKIANOBODY";
  EXPECT_EQ(sign_in(wrong).status, 403);
}

TEST_F(ConsoleWorld, RejectsUsersWithoutThePermission) {
  const Reply reply = sign_in(tenants.add_user("poor", allow(R"("trainyard:ListJobs")", R"("*")")));
  EXPECT_EQ(reply.status, 403);
  EXPECT_NE(reply.body.find("trainyard:CreateConsoleSession"), std::string::npos) << reply.body;
}

TEST_F(ConsoleWorld, RejectsAJobsOwnKeys) {
  EXPECT_EQ(sign_in(tenants.keys_of("mnist-1")).status, 403);
  EXPECT_EQ(token(tenants.keys_of("mnist-1")), "");
}

TEST_F(ConsoleWorld, SignsInOnceWithAToken) {
  const std::string secret = token(tenants.owner);
  ASSERT_EQ(secret.size(), 64u);
  const std::string body = R"({"Token":")" + secret + R"("})";
  const Reply first = from_page("POST", "session", "", body);
  EXPECT_EQ(first.status, 204);
  EXPECT_EQ(from_page("GET", "", cookie_of(first)).body, "the application");
  const Reply second = from_page("POST", "session", "", body);
  EXPECT_EQ(second.status, 403);
  EXPECT_NE(second.body.find("used already"), std::string::npos);
}

TEST_F(ConsoleWorld, RejectsSignInsFromOtherSites) {
  const std::string body = R"({"Token":")" + token(tenants.owner) + R"("})";
  const Fields others[] = {{{"Sec-Fetch-Site", "cross-site"}},
                           {{"Sec-Fetch-Site", "same-site"}},
                           {{"Origin", "http://evil.example"}},
                           {}};
  for (const Fields& fields : others)
    EXPECT_EQ(send("POST", "/console/session", body, fields).status, 403);
  EXPECT_EQ(from_page("POST", "session", "", body).status, 204) << "and the token is not used up";
}

TEST_F(ConsoleWorld, RejectsBodiesWithoutAToken) {
  for (const char* body : {"", "{}", "[]", "null", R"({"Token":7})", "\xff"})
    EXPECT_EQ(from_page("POST", "session", "", body).status, 403) << body;
}

// -- the end of a session

TEST_F(ConsoleWorld, EndsTheSessionAtSignOut) {
  const std::string cookie = signed_in(tenants.owner);
  const Reply reply = from_page("DELETE", "session", cookie);
  EXPECT_EQ(reply.status, 204);
  EXPECT_NE(reply.headers.get("set-cookie").find("Max-Age=0"), std::string::npos);
  EXPECT_EQ(from_page("GET", "session", cookie).status, 401);
}

TEST_F(ConsoleWorld, EndsASessionAfterItsLifetime) {
  const std::string cookie = signed_in(tenants.owner);
  tenants.clock.advance(kSessionLifetime);
  EXPECT_EQ(from_page("GET", "session", cookie).status, 401);
}

TEST_F(ConsoleWorld, EndsASessionWhenItsKeyIsDeactivated) {
  const std::string cookie = signed_in(reader());
  EXPECT_EQ(call("trainyard/ListJobs", cookie).status, 200);
  tenants.identities->put(
      policy::AccessKey{.id = "AKIAann", .user = "ann", .secret = "ann-secret", .active = false});
  EXPECT_EQ(call("trainyard/ListJobs", cookie).status, 401);
  EXPECT_EQ(from_page("GET", "", cookie).body, "the sign-in page");
}

TEST_F(ConsoleWorld, EndsASessionOfALinkWhenItsKeyIsDeactivated) {
  const std::string body = R"({"Token":")" + token(reader()) + R"("})";
  const std::string cookie = cookie_of(from_page("POST", "session", "", body));
  EXPECT_EQ(from_page("GET", "session", cookie).status, 200);
  tenants.identities->put(
      policy::AccessKey{.id = "AKIAann", .user = "ann", .secret = "ann-secret", .active = false});
  EXPECT_EQ(from_page("GET", "session", cookie).status, 401);
}

// -- without a session

TEST_F(ConsoleWorld, ServesOnlyTheSignInPageWithoutASession) {
  for (const char* path : {"", "jobs/mnist-1", "assets/main.js", "index.html", "nothing"})
    EXPECT_EQ(from_page("GET", path, "").body, "the sign-in page") << path;
  EXPECT_EQ(from_page("GET", "sign-in/main.js", "").body, "sign-in code");
  EXPECT_EQ(send("GET", "/console").body, "the sign-in page");
}

TEST_F(ConsoleWorld, AnswersAllOtherRequestsAlikeWithoutASession) {
  const Reply refusals[] = {
      call("trainyard/ListJobs", ""),
      call("trainyard/Nothing", ""),
      call("nothing/Nothing", "", "not json"),
      call("trainyard/DescribeJob", "", R"({"JobName":"mnist-1"})"),
      from_page("GET", "session", ""),
      from_page("GET", "events?region=eu-west-1", ""),
      from_page("GET", "events?region=nowhere&job=mnist-1", ""),
      from_page("POST", "rights?region=eu-west-1", "", R"({"Calls":[]})"),
      from_page("POST", "nothing", ""),
      call("trainyard/ListJobs", "trainyard_console=" + std::string(64, '0'))};
  for (const Reply& reply : refusals) {
    EXPECT_EQ(reply.status, 401);
    EXPECT_EQ(reply.body, R"({"message":"Sign in."})");
    EXPECT_FALSE(reply.headers.has("set-cookie"));
    EXPECT_FALSE(reply.headers.has("server"));
    EXPECT_EQ(reply.headers.get("x-amzn-requestid").size(), 36u) << "which the server's log has";
  }
}

TEST_F(ConsoleWorld, SendsTheContentPolicyWithEveryResponse) {
  const std::string cookie = signed_in(tenants.owner);
  const Reply replies[] = {from_page("GET", "", ""),
                           from_page("GET", "", cookie),
                           from_page("GET", "assets/main.js", cookie),
                           from_page("GET", "assets/nothing.js", cookie),
                           from_page("GET", "session", cookie),
                           call("trainyard/ListJobs", cookie),
                           call("trainyard/ListJobs", "")};
  for (const Reply& reply : replies) {
    const auto policy = reply.headers.get("content-security-policy");
    EXPECT_NE(policy.find("default-src 'none'"), std::string::npos);
    EXPECT_EQ(policy.find("unsafe"), std::string::npos);
    EXPECT_EQ(reply.headers.get("x-content-type-options"), "nosniff");
  }
}

// -- calls

TEST_F(ConsoleWorld, CallsOperationsAsThePrincipal) {
  const std::string cookie = signed_in(reader());
  const Reply described = call("trainyard/DescribeJob", cookie, R"({"JobName":"mnist-1"})");
  EXPECT_EQ(described.status, 200) << described.body;
  EXPECT_EQ(described.json()["Name"], "mnist-1");
  const Reply refused =
      call("sagemaker/DescribeTrainingJob", cookie, R"({"TrainingJobName":"mnist-1"})");
  EXPECT_TRUE(is_denied(refused)) << refused.body;
  EXPECT_NE(refused.body.find("arn:aws:iam::123456789012:user/ann"), std::string::npos);
}

TEST_F(ConsoleWorld, AppliesChangesOfRightsAtOnce) {
  const std::string cookie = signed_in(reader());
  EXPECT_EQ(call("trainyard/ListJobs", cookie).status, 200);
  tenants.add_user("ann", allow(R"("trainyard:DescribeJob")", R"("*")"));
  EXPECT_TRUE(is_denied(call("trainyard/ListJobs", cookie)));
}

TEST_F(ConsoleWorld, AppliesConditionsToTheBrowsersAddress) {
  const auto only_from = [&](const char* address) {
    return tenants.add_user(
        "ann",
        allow(kRead, R"("*")",
              std::string(R"(,"Condition":{"IpAddress":{"aws:SourceIp":")") + address + "\"}}"));
  };
  const std::string cookie = signed_in(only_from("192.0.2.7"));
  EXPECT_EQ(call("trainyard/ListJobs", cookie).status, 200);
  only_from("192.0.2.8");
  EXPECT_TRUE(is_denied(call("trainyard/ListJobs", cookie)));
}

TEST_F(ConsoleWorld, CallsOnlyListedOperations) {
  const std::string cookie = signed_in(tenants.owner);
  for (const char* operation :
       {"trainyard/KillJob", "trainyard/CreateConsoleSession", "sagemaker/StopTrainingJob",
        "sagemaker/AddTags", "iam/CreateUser", "s3/DeleteBucket", "trainyard/listjobs",
        "trainyard/ListJobs/x", "/ListJobs"})
    EXPECT_EQ(call(operation, cookie).status, 404) << operation;
  EXPECT_TRUE(tenants.control.killed.empty());
}

TEST_F(ConsoleWorld, RejectsCallsFromOtherSites) {
  const std::string cookie = signed_in(tenants.owner);
  const Fields others[] = {{{"Cookie", cookie}, {"Sec-Fetch-Site", "cross-site"}},
                           {{"Cookie", cookie}, {"Origin", "http://127.0.0.1:8888"}},
                           {{"Cookie", cookie}}};
  for (const Fields& fields : others) {
    EXPECT_EQ(send("POST", "/console/api/trainyard/ListJobs", "{}", fields).status, 403);
    EXPECT_EQ(send("POST", "/console/rights", R"({"Calls":[]})", fields).status, 403);
    EXPECT_EQ(send("DELETE", "/console/session", "", fields).status, 403);
    if (fields.size() > 1) {
      EXPECT_EQ(send("GET", "/console/events", "", fields).status, 403);
    }
  }
  EXPECT_EQ(from_page("GET", "session", cookie).status, 200);
}

TEST_F(ConsoleWorld, ChecksRegions) {
  const std::string cookie = signed_in(tenants.owner);
  EXPECT_EQ(call("trainyard/ListJobs", cookie, "{}", "mars-1").status, 400);
  EXPECT_EQ(call("trainyard/ListJobs", cookie, "{}", "eu%2Fwest").status, 400);
}

TEST_F(ConsoleWorld, LeavesABucketNamedConsoleToS3) {
  const auto s3 = [&](const char* method, const char* target, const char* body) {
    return *in_memory::send(
        *console, in_memory::signed_request(method, target, {}, body, "s3", tenants.clock.now()));
  };
  EXPECT_EQ(s3("PUT", "/console", "").status, 200);
  EXPECT_EQ(s3("PUT", "/console/session", "bytes").status, 200);
  EXPECT_EQ(s3("GET", "/console/session", "").body, "bytes");
}

// -- buckets and objects

struct Data : ConsoleWorld {
  const std::string cookie = signed_in(tenants.owner);
  Reply get(const std::string& query, const std::string& by = "") {
    return from_page("GET", "objects?region=eu-west-1&" + query, by.empty() ? cookie : by);
  }
  void put(const std::string& key, const std::string& bytes, const std::string& type) {
    auto request = in_memory::signed_request("PUT", "/data/" + percent_encode(key, true),
                                             {{"Content-Type", type}}, bytes, "s3",
                                             tenants.clock.now(), tenants.owner);
    ASSERT_EQ(in_memory::send(*console, std::move(request))->status, 200);
  }
};

TEST_F(Data, ListsBucketsAndObjectsAsS3Does) {
  const Reply buckets = get("what=buckets");
  EXPECT_EQ(buckets.status, 200) << buckets.body;
  EXPECT_EQ(buckets.headers.get("content-type"), "application/xml");
  EXPECT_NE(buckets.body.find("<Name>models</Name>"), std::string::npos) << buckets.body;
  const Reply objects = get("what=objects&bucket=data&prefix=train%2F");
  EXPECT_EQ(objects.status, 200) << objects.body;
  EXPECT_NE(objects.body.find("part-0"), std::string::npos) << objects.body;
  EXPECT_EQ(objects.body.find("secret"), std::string::npos) << "another prefix";
}

// No object runs as a script, whatever type and name its creator chose.
TEST_F(Data, ShowsObjectsAsTextOrPictures) {
  put("page <1>.html", "<script>alert(1)</script>", "text/html");
  const Reply text = get("what=text&bucket=data&key=page%20%3C1%3E.html");
  EXPECT_EQ(text.status, 206) << text.body;
  EXPECT_EQ(text.body, "<script>alert(1)</script>");
  EXPECT_EQ(text.headers.get("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(text.headers.get("x-content-type-options"), "nosniff");
  EXPECT_EQ(text.headers.get("content-security-policy"), "default-src 'none'; sandbox");
  EXPECT_EQ(get("what=image&bucket=data&key=page%20%3C1%3E.html").status, 400);
  put("a.svg", "<svg onload='alert(1)'/>", "image/svg+xml");
  EXPECT_EQ(get("what=image&bucket=data&key=a.svg").status, 400) << "a picture with scripts";
  put("a.PNG", "png", "text/html");
  EXPECT_EQ(get("what=image&bucket=data&key=a.PNG").headers.get("content-type"), "image/png");
  const Reply download = get("what=download&bucket=data&key=page%20%3C1%3E.html");
  EXPECT_EQ(download.status, 200);
  EXPECT_EQ(download.headers.get("content-type"), "application/octet-stream");
  EXPECT_EQ(download.headers.get("content-disposition"),
            "attachment; filename*=UTF-8''page%20%3C1%3E.html");
}

TEST_F(Data, ShowsAPartAsPreview) {
  put("long", std::string(kTextBytesMax + 1, 'x'), "text/plain");
  const Reply text = get("what=text&bucket=data&key=long");
  EXPECT_EQ(text.status, 206);
  EXPECT_EQ(text.body.size(), kTextBytesMax);
  EXPECT_EQ(text.headers.get("content-range"), "bytes 0-262143/262145");
  EXPECT_EQ(get("what=download&bucket=data&key=long").body.size(), kTextBytesMax + 1);
}

TEST_F(Data, IsReadWithTheRightsOfThePrincipal) {
  tenants.add_user("bob", allow(R"("trainyard:CreateConsoleSession")", R"("*")"));
  const std::string bob = signed_in({{"AKIAbob", "bob-secret", ""}, "eu-west-1"});
  for (const char* query :
       {"what=buckets", "what=objects&bucket=data", "what=text&bucket=data&key=train%2Fpart-0",
        "what=download&bucket=data&key=nothing"}) {
    const Reply refused = get(query, bob);
    EXPECT_EQ(refused.status, 403) << query;
    EXPECT_NE(refused.body.find("<Code>AccessDenied</Code>"), std::string::npos) << refused.body;
    EXPECT_EQ(refused.headers.get("content-type"), "application/xml");
    EXPECT_EQ(refused.body.find("bytes"), std::string::npos);
  }
  EXPECT_EQ(get("what=text&bucket=data&key=nothing").status, 404);
}

TEST_F(Data, RejectsOtherRequests) {
  for (const char* query : {"what=", "what=delete", "what=objects", "what=objects&bucket=..",
                            "what=objects&bucket=A%2FB", "what=text&bucket=data",
                            "what=text&bucket=data&key=", "bucket=data"})
    EXPECT_EQ(get(query).status, 400) << query;
  EXPECT_EQ(get("what=objects&bucket=data&prefix=" + std::string(1'025, 'x')).status, 400);
  EXPECT_EQ(from_page("GET", "objects?what=buckets", "").status, 401);
  EXPECT_EQ(from_page("POST", "objects?what=buckets", cookie).status, 404);
  EXPECT_EQ(from_page("DELETE", "objects?what=text&bucket=data&key=a", cookie).status, 404);
  EXPECT_EQ(send("GET", "/console/objects?what=buckets", "",
                 {{"Cookie", cookie}, {"Sec-Fetch-Site", "cross-site"}})
                .status,
            403);
}

// -- events

// A page that reads events until `each` returns false, and is then closed.
class PageStream final : public net::Stream {
 public:
  using Each = std::function<bool(const std::string& event, const Json& data)>;
  PageStream(net::RequestHead head, Each each) : head_(std::move(head)), each_(std::move(each)) {}
  const net::RequestHead& head() const override { return head_; }
  Result<size_t> read(std::span<char>) override { return size_t(0); }
  Result<void> start(int status, const net::Headers&, std::optional<uint64_t>) override {
    status_ = status;
    return {};
  }
  Result<void> write(std::span<const char> bytes) override {
    const std::string text(bytes.data(), bytes.size());
    const size_t line = text.find('\n');
    if (!text.starts_with("event: ")) return {};
    const std::string data = text.substr(line + 7);  // behind "\ndata: "
    if (!each_(text.substr(7, line - 7), *parse_json(trim(data))))
      return unavailable("the page was closed");
    return {};
  }
  Result<void> reply(const net::Response& response) override {
    return start(response.status, response.headers, {});
  }
  Result<std::unique_ptr<net::Upgraded>> upgrade(std::string_view) override {
    return invalid("not an upgrade");
  }
  int status() const { return status_; }

 private:
  const net::RequestHead head_;
  const Each each_;
  int status_ = 0;
};

struct Events : ConsoleWorld {
  int follow(const std::string& query, const std::string& cookie, PageStream::Each each) {
    net::RequestHead head;
    head.method = "GET";
    head.target = "/console/events?region=eu-west-1" + query;
    head.peer = "192.0.2.7:5000";
    head.headers.add("Cookie", cookie);
    auto choice = console->choose(head);
    if (choice.refusal) return choice.refusal->status;
    head.finding = std::move(choice.finding);
    PageStream stream(std::move(head), std::move(each));
    console->stream(stream);
    return stream.status();
  }
  void print(const std::string& line) {
    const domain::Job& job = *tenants.control.jobs.at({"eu-west-1", "mnist-1"});
    const observe::StreamKey key{"eu-west-1", std::string(reconcile::log_group_of(job, 0)),
                                 reconcile::log_stream_of(job, job.attempts[0], 0)};
    ASSERT_TRUE(tenants.logs->ensure_stream(key));
    ASSERT_TRUE(tenants.logs->append(key, {{tenants.clock.now(), {}, line}}));
  }
};

TEST_F(Events, NameTheJobsThatChanged) {
  Json changed;
  const int status =
      follow("", signed_in(reader()), [&](const std::string& event, const Json& data) {
        if (event == "hello") {
          feed.publish("us-east-1", "elsewhere");
          feed.publish("eu-west-1", "mnist-1");
        }
        changed = data;
        return event != "jobs";
      });
  EXPECT_EQ(status, 200);
  EXPECT_EQ(changed, Json::array({"mnist-1"}));
}

TEST_F(Events, ResyncAPageThatFellBehind) {
  std::string last;
  follow("", signed_in(reader()), [&](const std::string& event, const Json&) {
    if (event == "hello")
      for (size_t i = 0; i <= JobFeed::kChangesMax; ++i) feed.publish("eu-west-1", "j");
    last = event;
    return event != "resync";
  });
  EXPECT_EQ(last, "resync");
}

TEST_F(Events, FollowAJobsLog) {
  print("first <b>line</b>");
  std::vector<std::string> texts;
  follow("&job=mnist-1", signed_in(reader()), [&](const std::string& event, const Json& data) {
    if (event != "log") return true;
    EXPECT_EQ(data["Ranges"].size(), 1u);
    EXPECT_EQ(data["Ranges"][0]["Host"], "algo-1");
    for (const Json& line : data["Lines"])
      texts.push_back(line["Host"].get<std::string>() + ": " + line["Text"].get<std::string>());
    if (texts.size() == 1) print("second");
    return texts.size() < 2;
  });
  EXPECT_EQ(texts, (std::vector<std::string>{"algo-1: first <b>line</b>", "algo-1: second"}));
}

TEST_F(Events, ReportThatALogMayNotBeRead) {
  print("secret");
  const Signing by = tenants.add_user(
      "ann", allow(R"("trainyard:CreateConsoleSession","trainyard:DescribeJob")", R"("*")"));
  std::vector<std::string> events;
  follow("&job=mnist-1", signed_in(by), [&](const std::string& event, const Json&) {
    events.push_back(event);
    if (event == "denied") feed.publish("eu-west-1", "rival"), feed.publish("eu-west-1", "mnist-1");
    return event != "jobs";
  });
  EXPECT_EQ(events, (std::vector<std::string>{"hello", "denied", "jobs"}));
}

TEST_F(Events, AreOnlyThoseOfThePagesJobWithoutTheRightToList) {
  const Signing by = tenants.add_user(
      "ann", allow(R"("trainyard:CreateConsoleSession","trainyard:DescribeJob")", R"("*")"));
  Json changed;
  follow("&job=mnist-1", signed_in(by), [&](const std::string& event, const Json& data) {
    if (event == "hello") feed.publish("eu-west-1", "rival"), feed.publish("eu-west-1", "mnist-1");
    changed = data;
    return event != "jobs";
  });
  EXPECT_EQ(changed, Json::array({"mnist-1"}));
}

TEST_F(Events, EndWithTheSession) {
  const std::string cookie = signed_in(reader());
  std::string last;
  follow("", cookie, [&](const std::string& event, const Json&) {
    if (event == "hello") from_page("DELETE", "session", cookie);
    last = event;
    return true;
  });
  EXPECT_EQ(last, "end");
}

TEST_F(Events, EndWithTheRights) {
  std::string last;
  follow("", signed_in(reader()), [&](const std::string& event, const Json&) {
    if (event == "hello") tenants.add_user("ann", allow(R"("s3:GetObject")", R"("*")"));
    last = event;
    return true;
  });
  EXPECT_EQ(last, "end");
}

TEST_F(Events, EndWhenTheServerStops) {
  std::string last;
  const int status = follow("", signed_in(reader()), [&](const std::string& event, const Json&) {
    console->stop();
    last = event;
    return true;
  });
  EXPECT_EQ(status, 200);
  EXPECT_EQ(last, "hello");
}

TEST_F(ConsoleWorld, SendsNoEventsWithoutRights) {
  const std::string nothing = allow(R"("trainyard:CreateConsoleSession")", R"("*")");
  const std::string cookie = signed_in(tenants.add_user("ann", nothing));
  EXPECT_EQ(from_page("GET", "events?region=eu-west-1", cookie).status, 403);
  EXPECT_EQ(from_page("GET", "events?region=eu-west-1&job=mnist-1", cookie).status, 403);
}

TEST_F(ConsoleWorld, RejectsStreamsAfterStop) {
  const std::string cookie = signed_in(tenants.owner);
  console->stop();
  EXPECT_EQ(from_page("GET", "events?region=eu-west-1", cookie).status, 503);
}

}  // namespace
}  // namespace trainyard::api::console
