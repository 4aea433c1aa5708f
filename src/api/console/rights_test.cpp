#include "console/rights.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "console/console.hpp"
#include "dispatch/testing/tenants.hpp"
#include "operations/identity_store.hpp"
#include "shapes/iam.hpp"

namespace trainyard::api::console {
namespace {

using in_memory::Reply;

// Returns the rights of a principal that may make every call.
Result<Json> rights_of_owner(const std::string& request) {
  return rights_of(request, [](const auto&, const void*) { return true; });
}

Json allowed(const std::string& call) {
  return (*rights_of_owner("{\"Calls\":[" + call + "]}"))["Allowed"];
}

TEST(Rights, AreReturnedForEachCallInOrder) {
  std::vector<std::string> users;
  const auto found = rights_of(
      R"({"Calls":[{"Service":"iam","Operation":"CreateAccessKey","Input":{"UserName":"ann"}},
                   {"Service":"iam","Operation":"CreateAccessKey","Input":{"UserName":"bob"}},
                   {"Service":"trainyard","Operation":"ListJobs"}]})",
      [&](const shapes::OperationShape& operation, const void* input) {
        if (operation.name != "CreateAccessKey") return true;
        users.push_back(*static_cast<const shapes::iam::CreateAccessKeyRequest*>(input)->user_name);
        return users.back() == "ann";
      });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (Json{{"Allowed", {true, false, true}}}));
  EXPECT_EQ(users, (std::vector<std::string>{"ann", "bob"}));
}

TEST(Rights, AreFalseForCallsThatPagesMayNotMake) {
  for (const char* call :
       {R"({"Service":"iam","Operation":"CreateUser","Input":{"UserName":"ann"}})",
        R"({"Service":"nothing","Operation":"Nothing"})", R"({"Service":"iam"})", "{}", "7", "null",
        R"({"Service":7,"Operation":"ListUsers"})"})
    EXPECT_EQ(allowed(call), Json::array({false})) << call;
}

TEST(Rights, AreFalseForInputsThatTheOperationWouldReject) {
  for (const char* input :
       {"{}", "7", "[]", R"({"UserName":7,"AccessKeyId":"AKIA"})", R"({"UserName":"ann"})"})
    EXPECT_EQ(allowed(R"({"Service":"iam","Operation":"DeleteAccessKey","Input":)" +
                      std::string(input) + "}"),
              Json::array({false}))
        << input;
  EXPECT_EQ(allowed(R"({"Service":"iam","Operation":"DeleteAccessKey",
                    "Input":{"UserName":"ann","AccessKeyId":"AKIAIOSFODNN7EXAMPLE"}})"),
            Json::array({true}));
}

TEST(Rights, RejectMalformedRequestsAndTooManyCalls) {
  for (const char* request : {"", "[]", "null", "{}", R"({"Calls":7})", "\xff"})
    EXPECT_FALSE(rights_of_owner(request)) << request;
  std::string many = "{}";
  for (size_t i = 1; i < kRightsCallsMax; ++i) many += ",{}";
  EXPECT_TRUE(rights_of_owner("{\"Calls\":[" + many + "]}"));
  EXPECT_FALSE(rights_of_owner("{\"Calls\":[" + many + ",{}]}"));
}

// Has a console session of ann, whose policy allows ListUsers and not ListRoles.
struct RightsOfAUser : ::testing::Test {
  TestTenants tenants;
  SessionTable sessions{tenants.random};
  JobFeed feed;
  std::optional<IdentityStore> store;  // made once its users exist
  std::unique_ptr<net::Handler> api;
  std::unique_ptr<Console> console;
  std::string cookie;

  RightsOfAUser() {
    const auto by = tenants.add_user(
        "ann", allow(R"("trainyard:CreateConsoleSession","iam:ListUsers")", R"("*")"));
    tenants.add_user("bob", allow(R"("trainyard:ListJobs")", R"("*")"));
    store.emplace(tenants.control, std::string(32, 'k'), *tenants.identities, tenants.random);
    tenants.services.identities = &*store;
    tenants.services.issue_console_token = [this](const Context& context) {
      return sessions.issue_token(signed_in_by(context), tenants.clock.now());
    };
    api = make_api(tenants.settings, tenants.services);
    console = make_console({tenants.settings, tenants.services, sessions, feed, *api},
                           Assets({{"index.html", {"application", "text/html"}},
                                   {"sign-in.html", {"sign-in", "text/html"}}}));
    auto request = in_memory::signed_request("POST", "/console/session",
                                             {{"Content-Type", "application/json"}}, "{}",
                                             "trainyard", tenants.clock.now(), by);
    request.headers.add("Sec-Fetch-Site", "same-origin");
    request.peer = "192.0.2.7:5000";
    const Reply reply = *in_memory::send(*console, std::move(request));
    const std::string set(reply.headers.get("set-cookie"));
    cookie = set.substr(0, set.find(';'));
  }
  Reply post(const std::string& path, const std::string& body) {
    net::Request request;
    request.method = "POST";
    request.target = "/console/" + path;
    request.body = body;
    request.peer = "192.0.2.7:5000";
    for (const auto& [name, value] : signing::HeaderList{
             {"Host", "127.0.0.1:4566"}, {"Sec-Fetch-Site", "same-origin"}, {"Cookie", cookie}})
      request.headers.add(name, value);
    return *in_memory::send(*console, std::move(request));
  }
};

TEST_F(RightsOfAUser, AgreeWithTheResponsesToCalls) {
  const Reply reply = post("rights?region=eu-west-1",
                           R"({"Calls":[{"Service":"iam","Operation":"ListUsers"},
                                        {"Service":"iam","Operation":"ListRoles"}]})");
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["Allowed"], Json::array({true, false}));
  EXPECT_EQ(post("api/iam/ListUsers", "{}").status, 200);
  EXPECT_TRUE(is_denied(post("api/iam/ListRoles", "{}")));
  EXPECT_EQ(post("rights?region=eu%2Fwest", R"({"Calls":[]})").status, 400);
  EXPECT_EQ(post("rights", "{}").status, 400);
}

TEST_F(RightsOfAUser, CountAsReadsForTheRateLimit) {
  tenants.settings.rate_limits = [] {
    policy::RateLimits limits;
    limits.reads_per_second = 0.1;
    return limits;
  };
  EXPECT_EQ(post("rights", R"({"Calls":[]})").status, 200);
  const Reply refused = post("rights", R"({"Calls":[]})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.json()["message"], "Rate exceeded");
}

// On AWS, IAM has only the query protocol. Pages call it with JSON, as they call every service.
TEST_F(RightsOfAUser, LetPagesCallIamWithJson) {
  const Json users = post("api/iam/ListUsers", "{}").json();
  ASSERT_TRUE(users["Users"].is_array()) << dump(users);
  std::vector<std::string> names;
  for (const Json& user : users["Users"]) {
    names.push_back(user["UserName"]);
    EXPECT_TRUE(user["CreateDate"].is_number());
  }
  EXPECT_NE(std::ranges::find(names, "ann"), names.end());
  EXPECT_NE(std::ranges::find(names, "bob"), names.end());
  const Reply refused = post("api/iam/CreateAccessKey", R"({"UserName":7})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(refused.json()["message"].is_string()) << refused.body;
}

}  // namespace
}  // namespace trainyard::api::console
