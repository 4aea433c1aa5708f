#include "console/session_table.hpp"

#include <gtest/gtest.h>

namespace trainyard::api::console {
namespace {

const Instant kNow = from_milliseconds(1'795'167'900'000);

SignedIn ann() {
  return {{PrincipalKind::user, "ann", "AIDAann"},
          "arn:aws:iam::123456789012:user/ann",
          "AKIAann",
          "eu-west-1",
          {}};
}

struct Sessions : ::testing::Test {
  SeededRandom random{1};
  SessionTable table{random};
};

TEST_F(Sessions, OpenOnceByToken) {
  const ConsoleToken token = table.issue_token(ann(), kNow);
  EXPECT_EQ(token.secret.size(), 64u);
  EXPECT_EQ(token.expires, kNow + kTokenLifetime);
  const auto who = table.redeem(token.secret, kNow);
  ASSERT_TRUE(who);
  EXPECT_EQ(who->arn, ann().arn);
  EXPECT_FALSE(table.redeem(token.secret, kNow)) << "it is used up";
}

TEST_F(Sessions, RejectExpiredTokens) {
  const ConsoleToken token = table.issue_token(ann(), kNow);
  EXPECT_FALSE(table.redeem(token.secret, kNow + kTokenLifetime));
  EXPECT_FALSE(table.redeem(token.secret, kNow)) << "a failed attempt uses it up as well";
}

TEST_F(Sessions, DoNotAcceptATokenAsId) {
  const ConsoleToken token = table.issue_token(ann(), kNow);
  EXPECT_FALSE(table.find(token.secret, kNow));
  const std::string session = table.open(ann(), kNow);
  EXPECT_FALSE(table.redeem(session, kNow));
}

TEST_F(Sessions, LastForTheirLifetime) {
  const std::string session = table.open(ann(), kNow);
  EXPECT_TRUE(table.find(session, kNow + kSessionLifetime - 1ms));
  EXPECT_FALSE(table.find(session, kNow + kSessionLifetime));
}

TEST_F(Sessions, EndWithTheirTemporaryKeys) {
  SignedIn who = ann();
  who.expires = kNow + 30min;
  const ConsoleToken token = table.issue_token(who, kNow);
  const auto redeemed = table.redeem(token.secret, kNow);
  ASSERT_TRUE(redeemed);
  const std::string session = table.open(*redeemed, kNow);
  EXPECT_TRUE(table.find(session, kNow + 29min));
  EXPECT_FALSE(table.find(session, kNow + 30min));
}

TEST_F(Sessions, CloseOneByOne) {
  const std::string one = table.open(ann(), kNow), other = table.open(ann(), kNow);
  table.close(one);
  EXPECT_FALSE(table.find(one, kNow));
  EXPECT_TRUE(table.find(other, kNow));
}

TEST_F(Sessions, RejectUnknownSecrets) {
  table.open(ann(), kNow);
  EXPECT_FALSE(table.find("", kNow));
  EXPECT_FALSE(table.find(std::string(64, 'a'), kNow));
  EXPECT_FALSE(table.find(std::string(1 << 20, 'a'), kNow));
  table.close("");
}

TEST_F(Sessions, EvictTheOldestOneOfAPrincipal) {
  SignedIn bob = ann();
  bob.arn = "arn:aws:iam::123456789012:user/bob";
  const std::string of_bob = table.open(bob, kNow);
  const std::string oldest = table.open(ann(), kNow);
  for (size_t i = 1; i < kSessionsPerPrincipal; ++i) table.open(ann(), kNow + 1s);
  EXPECT_TRUE(table.find(oldest, kNow + 2s));
  table.open(ann(), kNow + 2s);
  EXPECT_FALSE(table.find(oldest, kNow + 2s));
  EXPECT_TRUE(table.find(of_bob, kNow + 2s)) << "sessions of others stay";
}

}  // namespace
}  // namespace trainyard::api::console
