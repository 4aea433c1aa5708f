#include "gateway/hello_check.hpp"

#include <gtest/gtest.h>

namespace trainyard::gateway {
namespace {

domain::Job job_with_an_attempt() {
  domain::Job job;
  job.number = 7;
  domain::Attempt& attempt = job.attempts.emplace_back();
  attempt.number = 2;
  attempt.token = "secret";
  attempt.hosts.resize(1);
  return job;
}

wire::Hello hello() {
  wire::Hello hello;
  hello.attempt = {7, 2};
  hello.token = "secret";
  return hello;
}

TEST(HelloCheck, AcceptsTheCurrentAttempt) {
  EXPECT_EQ(refusal_of(job_with_an_attempt(), hello(), "", {}), "");
}

TEST(HelloCheck, RejectsOtherAttemptsTokensHostsAndVersions) {
  const domain::Job job = job_with_an_attempt();
  wire::Hello former = hello(), forged = hello(), beyond = hello(), later = hello();
  former.attempt.number = 1;
  forged.token = "secreT";
  beyond.host = 1;
  later.version = later.oldest = wire::kVersion + 1;
  for (const auto& wrong : {former, forged, beyond, later})
    EXPECT_NE(refusal_of(job, wrong, "", {}), "");
  domain::Job lost = job;
  lost.attempts.back().hosts.front().state = domain::HostState::lost;
  EXPECT_NE(refusal_of(lost, hello(), "", {}), "");
}

TEST(HelloCheck, RequiresTheCertificateOfTheAttempt) {
  domain::Job job = job_with_an_attempt();
  job.attempts.back().mutual_tls = true;
  EXPECT_EQ(refusal_of(job, hello(), "agent of j7a2", {}), "");
  EXPECT_EQ(refusal_of(job, hello(), "agent of j7a1", {}),
            "the certificate is for another attempt: agent of j7a1");
  EXPECT_EQ(refusal_of(job, hello(), "", {}), "the attempt's agents must connect by TLS");
}

// An agent that an earlier release started has no certificate.
TEST(HelloCheck, AcceptsAttemptsThatWereStartedWithoutTls) {
  EXPECT_EQ(refusal_of(job_with_an_attempt(), hello(), "agent of j7a2", {}), "");
}

TEST(HelloCheck, RejectsASecondAgentInAnotherAllocation) {
  const domain::Job job = job_with_an_attempt();
  wire::Hello allocated = hello();
  allocated.allocation = 17;
  EXPECT_EQ(refusal_of(job, allocated, "", LinkedAgent{17}), "");  // a newer link of the same agent
  EXPECT_EQ(refusal_of(job, allocated, "", LinkedAgent{18}),
            "another agent serves the attempt, in Slurm job 18");
  EXPECT_NE(refusal_of(job, allocated, "", LinkedAgent{0}), "");
}

}  // namespace
}  // namespace trainyard::gateway
