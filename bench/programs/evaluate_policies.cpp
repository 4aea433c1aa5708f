// Measures policy evaluation next to the slow reference of policy's tests, interleaved in the same
// run: a request of a user with nine identity policies and a bucket policy, as in a typical team.
//
//   evaluate_policies     prints two lines of JSON for each round: the time of one evaluation

#include <cstdio>

#include "base/check.hpp"
#include "base/json.hpp"
#include "bench/processor_time.hpp"
#include "policy/managed.hpp"
#include "policy/testing/reference.hpp"

namespace trainyard::bench {
namespace {

constexpr int kRounds = 15;
constexpr int kOurEvaluations = 20'000, kPeerEvaluations = 50;

constexpr std::string_view kHome = R"({"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::data", "Condition": {"StringLike": {"s3:prefix": ["", "home/${aws:username}/*"]}}},
  {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "Resource": "arn:aws:s3:::data/home/${aws:username}/*"}]})";
constexpr std::string_view kTeam = R"({"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": "sagemaker:*", "Resource": "arn:aws:sagemaker:*:*:training-job/*", "Condition": {"StringEquals": {"aws:ResourceTag/Team": "${aws:PrincipalTag/Team}"}}},
  {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "arn:aws:iam::111122223333:role/train-*", "Condition": {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}},
  {"Effect": "Deny", "Action": "sagemaker:CreateTrainingJob", "Resource": "*", "Condition": {"ForAnyValue:StringNotLike": {"sagemaker:InstanceTypes": ["ml.m5.*", "ml.g5.*"]}}}]})";
constexpr std::string_view kGuard = R"({"Version": "2012-10-17", "Statement": [
  {"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": {"NotIpAddress": {"aws:SourceIp": ["10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32"]}}},
  {"Effect": "Deny", "NotAction": ["sts:*", "iam:List*"], "Resource": "*", "Condition": {"DateGreaterThan": {"aws:CurrentTime": "2030-01-01T00:00:00Z"}}}]})";
constexpr std::string_view kBucket = R"({"Version": "2012-10-17", "Statement": [
  {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": ["arn:aws:s3:::data", "arn:aws:s3:::data/*"], "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
  {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::111122223333:role/train"}, "Action": "s3:GetObject", "Resource": "arn:aws:s3:::data/shared/*"}]})";

std::shared_ptr<const policy::Policy> parse(std::string_view json, policy::PolicyKind kind) {
  auto parsed = policy::parse_policy(json, kind);
  CHECK(parsed, "the policies of this bench are valid");
  return *parsed;
}

template <class Evaluate>
double microseconds(int evaluations, const Evaluate& evaluate) {
  size_t allowed = 0;
  const double began = bench::cpu_seconds();
  for (int i = 0; i < evaluations; ++i) allowed += evaluate() == policy::Verdict::allowed;
  const double took = bench::cpu_seconds() - began;
  CHECK(allowed == size_t(evaluations), "every evaluation allows the request");
  return took * 1e6 / evaluations;
}

void run() {
  std::vector<std::shared_ptr<const policy::Policy>> owned;
  for (const std::string_view json : {kHome, kTeam, kGuard})
    owned.push_back(parse(json, policy::PolicyKind::identity));
  for (const char* name :
       {"AWSBatchFullAccess", "AmazonSageMakerFullAccess", "CloudWatchLogsFullAccess",
        "CloudWatchFullAccess", "IAMReadOnlyAccess", "AmazonS3ReadOnlyAccess"})
    owned.push_back(
        policy::find_managed_policy(std::string("arn:aws:iam::aws:policy/") + name)->policy);
  policy::Policies policies;
  for (const auto& one : owned) policies.identity.push_back(one.get());
  const auto bucket = parse(kBucket, policy::PolicyKind::resource);
  policies.resource = {bucket.get()};

  policy::Request request{
      .principal_arn = "arn:aws:iam::111122223333:user/ana",
      .account = "111122223333",
      .action = "s3:PutObject",
      .resource = "arn:aws:s3:::data/home/ana/checkpoints/step-000123/model.safetensors"};
  request.values.set("aws:username", "ana");
  request.values.set("aws:userid", "AIDAEXAMPLE");
  request.values.set("aws:PrincipalArn", request.principal_arn);
  request.values.set("aws:PrincipalAccount", request.account);
  request.values.set("aws:PrincipalTag/Team", "red");
  request.values.set("aws:SourceIp", "10.20.30.40");
  request.values.set("aws:SecureTransport", "true");
  request.values.set("aws:CurrentTime", "2026-11-20T09:45:00Z");
  request.values.set("aws:RequestedRegion", "eu-west-1");

  for (int round = 0; round < kRounds; ++round) {
    const double ours =
        microseconds(kOurEvaluations, [&] { return policy::evaluate(request, policies).verdict; });
    const double peer = microseconds(
        kPeerEvaluations, [&] { return policy::reference::evaluate(request, policies); });
    std::printf("%s\n",
                dump(Json{{"side", "ours"}, {"round", round}, {"microseconds", ours}}).c_str());
    std::printf("%s\n",
                dump(Json{{"side", "peer"}, {"round", round}, {"microseconds", peer}}).c_str());
  }
}

}  // namespace
}  // namespace trainyard::bench

int main() { trainyard::bench::run(); }
