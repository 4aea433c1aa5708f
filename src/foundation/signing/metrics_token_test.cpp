#include "signing/metrics_token.hpp"

#include <gtest/gtest.h>

namespace trainyard::signing {
namespace {

TEST(MetricsToken, DependsOnKeySecretAndUse) {
  const std::string token = metrics_token("AKIA1", "secret", TokenUse::scrape);
  EXPECT_EQ(token.substr(0, 23), "trainyard-scrape.AKIA1.");
  EXPECT_EQ(token.size(), 23U + 64);
  EXPECT_EQ(token, metrics_token("AKIA1", "secret", TokenUse::scrape));
  for (const auto& other : {metrics_token("AKIA2", "secret", TokenUse::scrape),
                            metrics_token("AKIA1", "other", TokenUse::scrape),
                            metrics_token("AKIA1", "secret", TokenUse::write)})
    EXPECT_NE(token.substr(token.size() - 64), other.substr(other.size() - 64));
}

TEST(MetricsToken, ParsesItsParts) {
  const auto parsed = parse_metrics_token(metrics_token("a.b", "secret", TokenUse::write));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->use, TokenUse::write);
  EXPECT_EQ(parsed->access_key_id, "a.b");
  const std::string digits(64, '0');
  for (const std::string& text :
       {std::string(), std::string("trainyard-scrape."), "trainyard-scrape." + digits,
        "trainyard-scrape.." + digits, "trainyard-admin.AKIA1." + digits,
        "trainyard-scrape.AKIA1." + digits + "0", "other-scrape.AKIA1." + digits,
        "trainyard-scrape." + std::string(2000, 'A') + "." + digits})
    EXPECT_FALSE(parse_metrics_token(text)) << text;
}

}  // namespace
}  // namespace trainyard::signing
