// Tests the certificates of agents: each attempt gets its own, and the ledger notes that it has
// one.
#include <gtest/gtest.h>

#include "control/gang.hpp"
#include "control/testing/test_cluster.hpp"
#include "wire/codec.hpp"

namespace trainyard::control {
namespace {

struct CertificateCluster : test::TestCluster {
  std::vector<std::string> issued;

  void use_certificates() {
    settings.authority = "AUTHORITY";
    settings.issue_certificate = [this](const std::string& name) -> Result<wire::AgentIdentity> {
      issued.push_back(name);
      return wire::AgentIdentity{"certificate of " + name, "KEY"};
    };
    restart();
  }
  Result<wire::Order> order() {
    const auto job = find("n");
    ImageResolver images(settings.images);
    const auto gang = TRY(gang_of(settings, images, *job, {job->number, 1}, clock.now()));
    return wire::decode_order(gang.members.front().order);
  }
};

TEST(Certificates, AreOfOneAttempt) {
  CertificateCluster cluster;
  cluster.use_certificates();
  ASSERT_TRUE(cluster.create(cluster.job("n")));
  cluster.run();
  EXPECT_TRUE(cluster.find("n")->attempt()->mutual_tls);
  const auto order = cluster.order();
  ASSERT_TRUE(order) << order.error().message;
  const std::string name = "agent of " + order->attempt.text();
  EXPECT_EQ(order->authority, "AUTHORITY");
  ASSERT_TRUE(order->identity);
  EXPECT_EQ(order->identity->certificate, "certificate of " + name);
  EXPECT_EQ(order->identity->key, "KEY");
  EXPECT_EQ(cluster.issued.back(), name);
}

// A server of an earlier release started it, or this one while agents were on its own machine.
TEST(Certificates, AreNotIssuedToAttemptsThatBeganWithoutThem) {
  CertificateCluster cluster;
  ASSERT_TRUE(cluster.create(cluster.job("n")));
  cluster.run();
  cluster.use_certificates();
  EXPECT_FALSE(cluster.find("n")->attempt()->mutual_tls);
  EXPECT_FALSE(cluster.order()->identity);
  EXPECT_TRUE(cluster.issued.empty());
}

TEST(Certificates, AFailureToIssueOneIsAnErrorOfTheGang) {
  CertificateCluster cluster;
  cluster.use_certificates();
  ASSERT_TRUE(cluster.create(cluster.job("n")));
  cluster.run();
  cluster.settings.issue_certificate = [](const std::string&) -> Result<wire::AgentIdentity> {
    return internal("no randomness");
  };
  EXPECT_EQ(cluster.order().error().message,
            "issuing the certificate of the attempt: no randomness");
}

}  // namespace
}  // namespace trainyard::control
