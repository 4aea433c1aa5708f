#include "launch/slurm/job_comment.hpp"

#include <gtest/gtest.h>

#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {
namespace {

JobComment some_comment() {
  return {"3fa91c",       {17, 2}, 3, *networks::parse_subnet("10.201.0.16/28"),
          {{8, 4096, 1}}, "AbC+/="};
}

TEST(SlurmJobComment, IsReadAsItWasWritten) {
  const auto comment = read_job_comment(to_text(some_comment()));
  ASSERT_TRUE(comment) << comment.error().message;
  EXPECT_EQ(comment->mark, "3fa91c");
  EXPECT_EQ(comment->attempt, (domain::AttemptId{17, 2}));
  EXPECT_EQ(comment->hosts, 3u);
  EXPECT_EQ(comment->subnet.text(), "10.201.0.16/28");
  EXPECT_EQ(comment->amounts, (std::vector<NodeAmounts>{{8, 4096, 1}}));
  EXPECT_EQ(comment->seal, "AbC+/=");
  EXPECT_TRUE(comment->ended.empty());
  EXPECT_LT(to_text(some_comment()).size(), kSlurmCommentBytesMax / 2);
}

TEST(SlurmJobComment, HasTheAmountsOfEachComponent) {
  JobComment comment = some_comment();
  comment.amounts.push_back({2, 512, 0});
  EXPECT_NE(to_text(comment).find(" cpus=8,2 mem=4096,512 gpus=1,0 "), std::string::npos);
  EXPECT_EQ(read_job_comment(to_text(comment))->amounts, comment.amounts);
  std::string many = "1";
  for (int i = 0; i < 200; ++i) many += ",1";
  for (const std::string& wrong : {many, std::string("1,"), std::string("1,-2")})
    EXPECT_EQ(read_job_comment(to_text(comment) + " cpus=" + wrong).error().kind, Kind::corrupt)
        << wrong;
}

TEST(SlurmJobComment, NamesItsSubmitterIfTheNameIsOneOfIam) {
  JobComment comment = some_comment();
  comment.submitter = "ana=x@lab";
  EXPECT_EQ(read_job_comment(to_text(comment))->submitter, "ana=x@lab");
  EXPECT_EQ(read_job_comment(to_text(comment))->seal, "AbC+/=");
  for (const std::string& name : {std::string("ana why=x"), std::string(65, 'a'), std::string()}) {
    comment.submitter = name;
    EXPECT_EQ(to_text(comment), to_text(some_comment())) << name;
  }
}

TEST(SlurmJobComment, ListsEndedHostsAndTheReason) {
  const auto comment = read_job_comment(to_text(some_comment()) +
                                        " ended=1:137,0:1 why=srun: error: n2: Killed seal=x");
  ASSERT_TRUE(comment) << comment.error().message;
  EXPECT_EQ(comment->ended, (std::map<domain::HostIndex, int>{{0, 1}, {1, 137}}));
  EXPECT_EQ(comment->why, "srun: error: n2: Killed seal=x");
  EXPECT_EQ(comment->seal, "AbC+/=") << "the last words are not members";
}

TEST(SlurmJobComment, RejectsTheCommentsOfOthers) {
  EXPECT_FALSE(is_job_comment("my job"));
  const std::string good = to_text(some_comment());
  for (const std::string& wrong :
       {std::string("my job"), std::string("trainyard/2") + good.substr(11), good.substr(0, 18),
        std::string("trainyard/1 3fa91c j17a2"), good + " hosts=0", good + " hosts=100000",
        good + " ended=1", good + " ended=1:999", good + " net=10.201.0.1/28"})
    EXPECT_EQ(read_job_comment(wrong).error().kind == Kind::corrupt ||
                  read_job_comment(wrong).error().kind == Kind::invalid,
              true)
        << wrong;
}

}  // namespace
}  // namespace trainyard::launch
