// Tests requests that another server makes on behalf of principals of this server: which servers
// may make them, for which principals, and with which rights.
#include "auth/delegation.hpp"
#include "base/text.hpp"
#include "dispatch/testing/tenants.hpp"

namespace trainyard::api {
namespace {

using in_memory::signed_request;
using in_memory::Signing;

struct PeerTenants : TestTenants {
  Signing peer = add_user("region-us", allow(R"("s3:GetObject")", R"("arn:aws:s3:::models/*")"));
  std::unique_ptr<observe::AuditLog> audit = *observe::open_audit_log(directory.path() + "/audit");

  PeerTenants() {
    add_user("ann", kReadTrain);
    add_user("bob", kReadTrain);
    add_role("runner", kReadTrain, R"({"AWS":"*"})");
    add_role("private", kReadTrain, R"({"AWS":"*"})");
    settings.peers = [] {
      return std::vector<policy::Peer>{
          {"AKIAregion-us", {"an*", "nobody"}, {"run*", "undefined", "Trainyard*"}}};
    };
    settings.remote_regions["ap-south-1"] = {.endpoint = "http://127.0.0.1:1",
                                             .keys = {"AKIATHIRD", "x", ""}};
    open(audit.get());
  }

  static signing::HeaderList header(const std::string& text) {
    return {{std::string(kDelegationHeader), to_base64(text)}};
  }
  static signing::HeaderList header(const Delegation& delegation) {
    return header(*format_delegation(delegation));
  }
  static Delegation ann() {
    return {.kind = PrincipalKind::user,
            .name = "ann",
            .id = "AIDAOFTHEOTHER",
            .source_ip = "198.51.100.9"};
  }
  Delegation session(const std::string& role) {
    return {.kind = PrincipalKind::session,
            .name = "ann",
            .id = "AROA:work",
            .session = {.role_arn = "arn:aws:iam::999999999999:role/" + role,
                        .session_name = "work",
                        .assumed = true,
                        .person = "ann",
                        .source_identity = "ann@example.org",
                        .issued = clock.now(),
                        .expires = clock.now() + 15min}};
  }
  std::string get(const std::string& path, const signing::HeaderList& headers, const Signing& by) {
    const auto reply = s3("GET", path, "", by, headers);
    return reply.status == 200 ? "200" : reply.body;
  }
};

TEST(Peers, GiveAPrincipalItsRightsOnThisServer) {
  PeerTenants tenants;
  EXPECT_EQ(
      tenants.get("/data/train/part-0", PeerTenants::header(PeerTenants::ann()), tenants.peer),
      "200");
  // Neither the rights of the peer's own user nor any others apply.
  for (const char* path :
       {"/models/rival/output/model.tar.gz", "/bob/secret", "/data/other/secret"})
    expect_access_denied(
        tenants.get(path, PeerTenants::header(PeerTenants::ann()), tenants.peer),
        "User: arn:aws:iam::123456789012:user/ann is not authorized to perform: s3:GetObject on "
        "resource: arn:aws:s3:::" +
            std::string(path).substr(1));
  EXPECT_EQ(tenants.get("/models/rival/output/model.tar.gz", {}, tenants.peer), "200") << "its own";

  EXPECT_EQ(tenants.get("/data/train/part-0", PeerTenants::header(tenants.session("runner")),
                        tenants.peer),
            "200");
  expect_access_denied(
      tenants.get("/bob/secret", PeerTenants::header(tenants.session("runner")), tenants.peer),
      "User: arn:aws:sts::123456789012:assumed-role/runner/work is not authorized");
  Delegation limited = tenants.session("runner");
  limited.session.limited = true;
  limited.session.policies = {allow(R"("s3:GetObject")", R"("arn:aws:s3:::data/train/other")")};
  expect_access_denied(
      tenants.get("/data/train/part-0", PeerTenants::header(limited), tenants.peer),
      "session policy");
}

struct Attack {
  const char* about;
  const Signing& by;
  signing::HeaderList headers;
  const char* text;
};

void expect_all_refused(PeerTenants& tenants, const std::vector<Attack>& attacks) {
  for (const Attack& attack : attacks) {
    SCOPED_TRACE(attack.about);
    expect_access_denied(tenants.get("/data/train/part-0", attack.headers, attack.by), attack.text);
    const auto reply =
        tenants.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", attack.by, attack.headers);
    EXPECT_EQ(reply.code(), "AccessDeniedException") << reply.body;
  }
}

TEST(Peers, AreTheOnlyServersThatMayActForOthers) {
  PeerTenants tenants;
  const Signing bob{{"AKIAbob", "bob-secret", ""}, "eu-west-1"};
  const Signing assumed = tenants.keys({.role_arn = "arn:aws:iam::123456789012:role/runner",
                                        .session_name = "peer",
                                        .assumed = true,
                                        .person = "region-us"});
  expect_all_refused(tenants,
                     {
                         {"a user that is not a peer", bob, PeerTenants::header(PeerTenants::ann()),
                          "user/bob is not authorized to make requests"},
                         {"the owner, which is not a peer", tenants.owner,
                          PeerTenants::header(PeerTenants::ann()), "on behalf of other principals"},
                         {"a session of the peer's user", assumed,
                          PeerTenants::header(PeerTenants::ann()), "on behalf of other principals"},
                     });
}

TEST(Peers, ActOnlyForAllowedPrincipals) {
  PeerTenants tenants;
  const auto named = [](const std::string& name) {
    Delegation out = PeerTenants::ann();
    out.name = name;
    return PeerTenants::header(out);
  };
  Delegation of_job = tenants.session("runner");
  of_job.session.role_arn = kTrainer;
  of_job.session.job_region = "eu-west-1";
  of_job.session.job_name = "mnist-1";
  of_job.session.job_number = 17;
  of_job.session.attempt = 1;
  of_job.session.assumed = false;
  expect_all_refused(
      tenants,
      {
          {"an owner", tenants.peer,
           PeerTenants::header(Delegation{PrincipalKind::owner, "owner", "x"}), "of owners"},
          {"the owner's name as a user's", tenants.peer, named("owner"), "of the user owner"},
          {"a user that the peer may not act for", tenants.peer, named("bob"), "of the user bob"},
          {"a user that is not here", tenants.peer, named("nobody"), "of the user nobody"},
          {"a role that the peer may not act for", tenants.peer,
           PeerTenants::header(tenants.session("private")), "of the role private"},
          {"a role that is not here", tenants.peer,
           PeerTenants::header(tenants.session("undefined")), "of the role undefined"},
          {"a reserved role", tenants.peer, PeerTenants::header(tenants.session("TrainyardOwner")),
           "of the role Trainyard"},
          {"a job's role that is not defined", tenants.peer, PeerTenants::header(of_job),
           "of the role trainer"},
      });
}

TEST(Peers, ActOnlyInAValidSessionOfOneHeader) {
  PeerTenants tenants;
  Delegation expired = tenants.session("runner"), chained = PeerTenants::ann();
  expired.session.expires = tenants.clock.now();
  chained.peer_key_id = "AKIAOTHER";
  expect_all_refused(tenants, {
                                  {"a session that has expired", tenants.peer,
                                   PeerTenants::header(expired), "the session has expired"},
                                  {"through a third server", tenants.peer,
                                   PeerTenants::header(chained), "through one server only"},
                                  {"bytes", tenants.peer, PeerTenants::header("bytes"),
                                   "on behalf of other principals"},
                                  {"no base64",
                                   tenants.peer,
                                   {{std::string(kDelegationHeader), "?!"}},
                                   "on behalf of other principals"},
                                  {"two headers",
                                   tenants.peer,
                                   {PeerTenants::header(PeerTenants::ann())[0],
                                    PeerTenants::header(tenants.session("runner"))[0]},
                                   "on behalf of other principals"},
                              });
}

TEST(Peers, MustSignTheHeaderAndTheHash) {
  PeerTenants tenants;
  auto request =
      signed_request("GET", "/data/train/part-0", {}, "", "s3", tenants.clock.now(), tenants.peer);
  request.headers.add(std::string(kDelegationHeader),
                      to_base64(*format_delegation(PeerTenants::ann())));
  const auto reply = *tenants.send(std::move(request));
  EXPECT_EQ(reply.status, 403);
  EXPECT_NE(reply.body.find("<HeadersNotSigned>" + std::string(kDelegationHeader)),
            std::string::npos)
      << reply.body;
  net::Request presigned;
  presigned.method = "GET";
  presigned.target =
      signing::presign("GET", "/data/train/part-0", "127.0.0.1:4566", tenants.peer.keys,
                       {"eu-west-1", "s3"}, tenants.clock.now(), 60s);
  presigned.headers.add("Host", "127.0.0.1:4566");
  presigned.headers.add(std::string(kDelegationHeader),
                        to_base64(*format_delegation(PeerTenants::ann())));
  EXPECT_EQ(tenants.send(std::move(presigned))->status, 403);
}

TEST(Peers, GetNoKeysAndReachNoThirdServer) {
  PeerTenants tenants;
  const auto headers = PeerTenants::header(PeerTenants::ann());
  policy::User ann = *tenants.identities->find_user("ann");
  ann.inline_policies["own"] = document(allow(R"("*")", R"("*")"));
  tenants.identities->put(ann);
  for (const std::string form :
       {"Action=AssumeRole&Version=2011-06-15&RoleSessionName=x&RoleArn=arn%3Aaws%"
        "3Aiam%3A%3A123456789012%3Arole%2Frunner",
        "Action=GetCallerIdentity&Version=2011-06-15"})
    expect_access_denied(tenants.form(form, "sts", tenants.peer, headers).body,
                         "requests of sts through another server");
  expect_access_denied(tenants
                           .form("Action=CreateAccessKey&Version=2010-05-08&UserName=ann", "iam",
                                 tenants.peer, headers)
                           .body,
                       "requests of iam through another server");
  Signing there = tenants.peer;
  there.region = "ap-south-1";
  expect_access_denied(
      tenants.json("SageMaker.ListTrainingJobs", "{}", "sagemaker", there, headers).body,
      "a third server, through another server");
  expect_access_denied(tenants.s3("GET", "/data/train/part-0", "", there, headers).body,
                       "a third server, through another server");
}

TEST(Peers, AreInTheAuditLogWithThePrincipal) {
  PeerTenants tenants;
  EXPECT_EQ(tenants
                .json("SageMaker.DescribeTrainingJob", R"({"TrainingJobName":"mnist-1"})",
                      "sagemaker", tenants.peer, PeerTenants::header(tenants.session("runner")))
                .code(),
            "AccessDeniedException");
  const auto found = tenants.json(
      "com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101.LookupEvents", "{}", "cloudtrail");
  const Json answer = found.json();
  for (const Json& one : answer.at("Events")) {
    if (one.at("EventName") != "DescribeTrainingJob") continue;
    const Json record = *parse_json(one.at("CloudTrailEvent").get<std::string>());
    const Json& identity = record.at("userIdentity");
    EXPECT_EQ(identity.at("arn"), "arn:aws:sts::123456789012:assumed-role/runner/work");
    EXPECT_EQ(identity.at("invokedBy"), "arn:aws:iam::123456789012:user/region-us");
    EXPECT_EQ(identity.at("accessKeyId"), "AKIAregion-us");
    EXPECT_EQ(identity.at("sessionContext").at("sourceIdentity"), "ann@example.org");
    return;
  }
  FAIL() << found.body;
}

TEST(Peers, ForwardTheClientsAddress) {
  PeerTenants tenants;
  policy::User ann = *tenants.identities->find_user("ann");
  ann.inline_policies["own"] =
      document(allow(R"("s3:GetObject")", R"("*")",
                     R"(,"Condition":{"IpAddress":{"aws:SourceIp":"198.51.100.0/24"}})"));
  tenants.identities->put(ann);
  EXPECT_EQ(
      tenants.get("/data/train/part-0", PeerTenants::header(PeerTenants::ann()), tenants.peer),
      "200");
  Delegation elsewhere = PeerTenants::ann();
  elsewhere.source_ip = "203.0.113.1";
  expect_access_denied(
      tenants.get("/data/train/part-0", PeerTenants::header(elsewhere), tenants.peer),
      "s3:GetObject");
}

}  // namespace
}  // namespace trainyard::api
