#include "launch/kubernetes/exec_credentials.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::launch {
namespace {

constexpr const char* kV1 = "client.authentication.k8s.io/v1";
constexpr const char* kCertificate = "-----BEGIN CERTIFICATE-----\n";
constexpr const char* kKey = "-----BEGIN PRIVATE KEY-----\n";

os::Outcome printed(const Json& status) {
  os::Outcome outcome;
  outcome.output = dump(Json{{"kind", "ExecCredential"}, {"apiVersion", kV1}, {"status", status}});
  return outcome;
}

// Returns the prepared outcomes of the plugin and answers of the API server in order; the last ones
// are returned again. Records the runs and requests.
class ExecCredentialsTest : public testing::Test {
 protected:
  ExecCredentialsTest() {
    plugin_.api_version = kV1;
    plugin_.command = "aws";
    plugin_.arguments = {"get-token"};
    plugin_.environment = {{"PROFILE", "lab"}};
    plugin_.info = "{}";
  }

  SendRest sender(const RunProgram& run = {}) { return senders(run)(); }

  OpenSendRest senders(const RunProgram& run = {}) {
    const RunProgram prepared = [this](const os::Command& command) -> Result<os::Outcome> {
      runs_.push_back(command);
      clock_.advance(run_time_);
      return next(outcomes_);
    };
    return open_with_plugin(
        plugin_, "CA",
        [this](const RestIdentity& identity) {
          identities_.push_back(identity);
          return [this](const RestRequest& request) -> Result<RestAnswer> {
            requests_.push_back(request);
            return next(answers_);
          };
        },
        run ? run : prepared, clock_);
  }

  template <class T>
  static T next(std::vector<T>& prepared) {
    T first = prepared.front();
    if (prepared.size() > 1) prepared.erase(prepared.begin());
    return first;
  }

  static RestRequest request() {
    return {"GET", "https://10.0.0.1:6443/api", {{"Accept", "a"}}, ""};
  }

  // The value of the last request's header; "": it has none.
  std::string authorization() const {
    for (const auto& [name, value] : requests_.back().headers)
      if (name == "Authorization") return value;
    return "";
  }

  Json token_until(const std::string& token, Duration left) {
    return {{"token", token}, {"expirationTimestamp", to_iso8601(clock_.now() + left)}};
  }

  std::string failure_of(const Result<RestAnswer>& answer) {
    if (answer) return "";
    EXPECT_EQ(answer.error().kind, Kind::unavailable);
    return answer.error().message;
  }

  TestClock clock_;
  ExecPlugin plugin_;
  Duration run_time_ = 0s;
  std::vector<Result<os::Outcome>> outcomes_;
  std::vector<RestAnswer> answers_ = {{200, "{}"}};
  std::vector<os::Command> runs_;
  std::vector<RestRequest> requests_;
  std::vector<RestIdentity> identities_;
};

TEST_F(ExecCredentialsTest, SendsThePluginsToken) {
  outcomes_ = {printed({{"token", "first"}})};
  const auto send = sender();
  EXPECT_TRUE(runs_.empty()) << "before the first request";
  const auto answer = send(request());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(authorization(), "Bearer first");
  ASSERT_EQ(runs_.size(), 1u);
  EXPECT_EQ(runs_[0].arguments, (std::vector<std::string>{"aws", "get-token"}));
  EXPECT_EQ(runs_[0].environment, (std::map<std::string, std::string>{
                                      {"KUBERNETES_EXEC_INFO", "{}"}, {"PROFILE", "lab"}}));
  EXPECT_EQ(runs_[0].at_most, kExecRunMax);
  EXPECT_EQ(runs_[0].input, "");
  clock_.advance(24h);
  ASSERT_TRUE(send(request()));
  EXPECT_EQ(runs_.size(), 1u) << "it does not expire";
}

TEST_F(ExecCredentialsTest, ConnectsWithThePluginsCertificate) {
  const Json first = {{"clientCertificateData", kCertificate}, {"clientKeyData", kKey}};
  Json until = first;
  until["expirationTimestamp"] = to_iso8601(clock_.now() + 10min);
  Json other = first;
  other["clientCertificateData"] = std::string(kCertificate) + "2";
  outcomes_ = {printed(until), printed(first), printed(other)};
  const auto send = sender();
  ASSERT_TRUE(send(request()));
  EXPECT_EQ(authorization(), "");
  ASSERT_EQ(identities_.size(), 1u);
  EXPECT_EQ(identities_[0].ca, "CA");
  EXPECT_EQ(identities_[0].certificate, kCertificate);
  EXPECT_EQ(identities_[0].key, kKey);
  clock_.advance(10min);
  ASSERT_TRUE(send(request()));
  EXPECT_EQ(runs_.size(), 2u);
  EXPECT_EQ(identities_.size(), 1u) << "the same certificate keeps its connection";
  clock_.advance(10min);
  answers_ = {{401, "{}"}, {200, "{}"}};
  ASSERT_TRUE(send(request()));
  ASSERT_EQ(identities_.size(), 2u);
  EXPECT_EQ(identities_[1].certificate, std::string(kCertificate) + "2");
}

TEST_F(ExecCredentialsTest, RenewsATokenShortlyBeforeItExpires) {
  outcomes_ = {printed(token_until("first", 15min)), printed(token_until("second", 30min))};
  const auto send = sender();
  ASSERT_TRUE(send(request()));
  clock_.advance(15min - kExecRenewBefore - 1ms);
  ASSERT_TRUE(send(request()));
  EXPECT_EQ(authorization(), "Bearer first");
  clock_.advance(1ms);
  ASSERT_TRUE(send(request()));
  EXPECT_EQ(authorization(), "Bearer second");
  EXPECT_EQ(runs_.size(), 2u);
}

TEST_F(ExecCredentialsTest, RunsThePluginOnceInAPauseForATokenThatHasExpired) {
  outcomes_ = {printed(token_until("old", -5min))};
  const auto send = sender();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(send(request()));
  EXPECT_EQ(authorization(), "Bearer old") << "the clock of this machine may be wrong";
  EXPECT_EQ(runs_.size(), 1u);
  clock_.advance(kExecPause);
  ASSERT_TRUE(send(request()));
  EXPECT_EQ(runs_.size(), 2u);
}

TEST_F(ExecCredentialsTest, RunsThePluginAgainOnceATokenIsRejected) {
  outcomes_ = {printed({{"token", "first"}}), printed({{"token", "second"}})};
  const auto send = sender();
  ASSERT_TRUE(send(request()));
  clock_.advance(kExecPause);
  answers_ = {{401, "{}"}, {200, "accepted"}};
  const auto answer = send(request());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "accepted");
  EXPECT_EQ(authorization(), "Bearer second");
  EXPECT_EQ(requests_.size(), 3u);
  EXPECT_EQ(requests_[2].headers.size(), 2u) << "not both tokens";
}

TEST_F(ExecCredentialsTest, SharesCredentialsBetweenItsSenders) {
  outcomes_ = {printed({{"token", "first"}}), printed({{"token", "second"}})};
  const auto open = senders();
  const auto one = open(), other = open();
  ASSERT_TRUE(one(request()));
  ASSERT_TRUE(other(request()));
  EXPECT_EQ(runs_.size(), 1u);
  clock_.advance(kExecPause);
  answers_ = {{401, "{}"}, {200, "{}"}};
  ASSERT_TRUE(one(request()));
  EXPECT_EQ(runs_.size(), 2u);
  ASSERT_TRUE(other(request()));
  EXPECT_EQ(runs_.size(), 2u);
  EXPECT_EQ(authorization(), "Bearer second");
  EXPECT_EQ(identities_.size(), 2u) << "each has its own connection";
}

TEST_F(ExecCredentialsTest, ReturnsARejectionThatNewTokensDoNotChange) {
  outcomes_ = {printed({{"token", "first"}})};
  answers_ = {{401, "{}"}};
  const auto send = sender();
  ASSERT_EQ(send(request())->status, 401);
  EXPECT_EQ(runs_.size(), 1u) << "the rejected token was new";
  clock_.advance(kExecPause);
  ASSERT_EQ(send(request())->status, 401);
  EXPECT_EQ(runs_.size(), 2u);
  ASSERT_EQ(send(request())->status, 401);
  EXPECT_EQ(runs_.size(), 2u);
}

TEST_F(ExecCredentialsTest, FailsWithTheLastLineOfThePluginsErrors) {
  os::Outcome failed = printed({{"token", "secret"}});
  failed.code = 255;
  failed.errors = "Traceback\nThe SSO session has expired:\trun aws sso login\x1b\n\n";
  outcomes_ = {failed};
  const auto send = sender();
  const std::string message = failure_of(send(request()));
  EXPECT_EQ(message,
            "the kubeconfig's exec plugin aws failed with exit code 255: The SSO session has "
            "expired: run aws sso login ");
  EXPECT_TRUE(requests_.empty());
  EXPECT_EQ(failure_of(send(request())), message);
  EXPECT_EQ(runs_.size(), 1u) << "within the pause";
  clock_.advance(kExecPause);
  outcomes_ = {printed({{"token", "first"}})};
  EXPECT_TRUE(send(request()));
}

TEST_F(ExecCredentialsTest, ShortensALongLine) {
  os::Outcome failed;
  failed.code = 1;
  failed.errors = std::string(100'000, 'x');
  outcomes_ = {failed};
  EXPECT_LT(failure_of(sender()(request())).size(), 400u);
}

TEST_F(ExecCredentialsTest, SaysWhyThePluginCannotRun) {
  plugin_.install_hint = "See https://example.com/plugin";
  outcomes_ = {not_found("running plugin: No such file or directory")};
  std::string message = failure_of(sender()(request()));
  EXPECT_NE(message.find("aws was not found: install it on the server's machine"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("(See https://example.com/plugin)"), std::string::npos) << message;
  outcomes_ = {denied("running plugin: Permission denied")};
  message = failure_of(sender()(request()));
  EXPECT_NE(message.find("could not be run: running plugin: Permission denied"), std::string::npos)
      << message;
  outcomes_ = {cancelled("running plugin: killed after 30000 ms; its last output: secret")};
  message = failure_of(sender()(request()));
  EXPECT_NE(message.find("did not end within 30 s"), std::string::npos) << message;
  EXPECT_EQ(message.find("secret"), std::string::npos) << message;
}

TEST_F(ExecCredentialsTest, FailsOnInvalidOutput) {
  os::Outcome other = printed({{"token", "secret"}});
  other.output = R"({"kind":"ExecCredential","apiVersion":"v1","status":{"token":"secret"}})";
  outcomes_ = {other};
  EXPECT_EQ(failure_of(sender()(request())),
            "the kubeconfig's exec plugin aws printed invalid credentials: its apiVersion is "
            "'v1', and the kubeconfig says client.authentication.k8s.io/v1");
}

TEST_F(ExecCredentialsTest, KeepsAValidTokenWhileThePluginFails) {
  os::Outcome failed;
  failed.code = 1;
  outcomes_ = {printed(token_until("first", 15min)), failed};
  run_time_ = 1s;
  const auto send = sender();
  ASSERT_TRUE(send(request()));
  clock_.advance(15min - kExecRenewBefore);
  ASSERT_TRUE(send(request())) << "it is valid for a minute";
  EXPECT_EQ(authorization(), "Bearer first");
  EXPECT_EQ(runs_.size(), 2u);
  clock_.advance(kExecRenewBefore);
  EXPECT_NE(failure_of(send(request())).find("exit code 1"), std::string::npos);
  EXPECT_NE(failure_of(send(request())).find("exit code 1"), std::string::npos);
  EXPECT_EQ(runs_.size(), 3u);
  EXPECT_EQ(requests_.size(), 2u) << "an expired token is not sent";
}

TEST_F(ExecCredentialsTest, FailsIfNoTokenReplacesARejectedOne) {
  os::Outcome failed;
  failed.code = 1;
  failed.errors = "revoked";
  outcomes_ = {printed({{"token", "first"}}), failed};
  const auto send = sender();
  ASSERT_TRUE(send(request()));
  clock_.advance(kExecPause);
  answers_ = {{401, "{}"}};
  EXPECT_EQ(failure_of(send(request())),
            "renewing credentials that Kubernetes rejects: the kubeconfig's exec plugin aws "
            "failed with exit code 1: revoked");
  EXPECT_NE(failure_of(send(request())).find("revoked"), std::string::npos);
  EXPECT_EQ(requests_.size(), 2u) << "a rejected token is not sent again";
}

TEST_F(ExecCredentialsTest, RunsARealProgram) {
  const os::TemporaryDirectory directory;
  plugin_.command = directory.path() + "/plugin";
  plugin_.info = R"({"kind":"ExecCredential"})";
  ASSERT_TRUE(os::write_file(plugin_.command, R"script(#!/bin/sh
test "$KUBERNETES_EXEC_INFO" = '{"kind":"ExecCredential"}' || exit 1
test -t 0 && exit 2
echo "profile $PROFILE, $1" >&2
test "$PROFILE" = lab || exit 3
cat <<END
{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
 "status": {"token": "from-a-program"}}
END
)script",
                             0700));
  const auto answer = sender(os::run)(request());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(authorization(), "Bearer from-a-program");
  plugin_.environment["PROFILE"] = "other";
  EXPECT_NE(failure_of(sender(os::run)(request())).find("exit code 3: profile other, get-token"),
            std::string::npos);
  plugin_.command = directory.path() + "/missing";
  EXPECT_NE(failure_of(sender(os::run)(request())).find("missing was not found"),
            std::string::npos);
}

}  // namespace
}  // namespace trainyard::launch
