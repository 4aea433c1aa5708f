#include "launch/slurm/own_jobs.hpp"

#include <gtest/gtest.h>

namespace trainyard::launch {
namespace {

Result<std::string> unseal(const std::string& sealed, const std::string& context) {
  // Blanks separate the members of a comment.
  std::string one_word = context;
  for (char& c : one_word)
    if (c == ' ') c = '_';
  if (!sealed.starts_with(one_word + "#")) return corrupt("sealed with another context");
  return sealed.substr(one_word.size() + 1);
}

// A job of the account with the comment that this server would give it.
SlurmJob job_of(const std::string& user) {
  JobComment comment{"3fa91c",       {17, 1}, 1, *networks::parse_subnet("10.201.0.0/28"),
                     {{4, 4096, 0}}, ""};
  comment.submitter = "ana";
  std::string seal = seal_context(comment, user) + "#token";
  for (char& c : seal)
    if (c == ' ') c = '_';
  comment.seal = seal;
  SlurmJob job;
  job.id = 7;
  job.state = "RUNNING";
  job.nodes = "n1";
  job.comment = to_text(comment);
  job.user = user;
  return job;
}

TEST(SlurmOwnJobs, HaveATokenThatWasSealedForTheirAccount) {
  for (const char* user : {"", "alice"}) {
    const auto own = read_own_job(job_of(user), nullptr, "3fa91c", unseal);
    ASSERT_TRUE(own) << user;
    EXPECT_EQ(own->token, "token");
    EXPECT_EQ(own->comment.attempt, (domain::AttemptId{17, 1}));
    EXPECT_FALSE(read_own_job(job_of(user), nullptr, "000000", unseal)) << "of another server";
  }
}

// Comments are public, and their owners may change them.
TEST(SlurmOwnJobs, AreNotJobsWithACopiedOrChangedComment) {
  for (const char* from : {"", "alice"}) {
    SlurmJob copy = job_of(from);
    copy.user = "eve";
    EXPECT_FALSE(read_own_job(copy, nullptr, "3fa91c", unseal)) << "copied from '" << from << "'";
  }
  SlurmJob as_own = job_of("alice");
  as_own.user = "";
  EXPECT_FALSE(read_own_job(as_own, nullptr, "3fa91c", unseal));
  for (const char* more : {" cpus=64", " mem=1", " hosts=2", " by=bob", " reuse=0", " gpus=8",
                           " net=10.201.0.16/28"}) {
    SlurmJob changed = job_of("alice");
    changed.comment += more;
    EXPECT_FALSE(read_own_job(changed, nullptr, "3fa91c", unseal)) << more;
  }
  SlurmJob ended = job_of("alice");
  ended.comment += " ended=0:137 why=Killed";
  EXPECT_TRUE(read_own_job(ended, nullptr, "3fa91c", unseal)) << "its script appends this";
}

TEST(SlurmOwnJobs, AreReadAgainIfTheirCommentOrAccountHasChanged) {
  const auto known = read_own_job(job_of("alice"), nullptr, "3fa91c", unseal);
  ASSERT_TRUE(known);
  const UnsealToken never = [](const std::string&, const std::string&) -> Result<std::string> {
    return corrupt("not to be read again");
  };
  EXPECT_TRUE(read_own_job(job_of("alice"), &*known, "3fa91c", never));
  SlurmJob changed = job_of("alice");
  changed.user = "eve";
  EXPECT_FALSE(read_own_job(changed, &*known, "3fa91c", never));
}

TEST(SlurmOwnJobs, AreSummedByNodeUntilTheyEnd) {
  auto one = *read_own_job(job_of("alice"), nullptr, "3fa91c", unseal);
  auto two = one;
  two.job.nodes = "n[1-2]";
  auto ended = one;
  ended.job.state = "COMPLETED";
  const auto sums = sum_by_node({&one, &two, &ended});
  EXPECT_EQ(sums.at("n1").cpus, 8);
  EXPECT_EQ(sums.at("n2").memory_mib, 4096);
  EXPECT_EQ(sums.size(), 2u);
}

TEST(SlurmOwnJobs, AreSummedByComponent) {
  auto own = *read_own_job(job_of(""), nullptr, "3fa91c", unseal);
  own.job.nodes = "n1,n[2-3],n4";
  own.job.component_nodes = {"n1", "n[2-3]", "n4"};
  own.comment.amounts = {{8, 100, 1}, {2, 50, 0}};
  const auto sums = sum_by_node({&own});
  EXPECT_EQ(sums.at("n1"), (NodeAmounts{8, 100, 1}));
  EXPECT_EQ(sums.at("n3"), (NodeAmounts{2, 50, 0}));
  EXPECT_FALSE(sums.contains("n4")) << "the comment does not have its amounts";
}

}  // namespace
}  // namespace trainyard::launch
