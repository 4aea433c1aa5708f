#include "signing/sealed_text.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace trainyard::signing {
namespace {

const std::string kKey(kSealingKeyBytes, 'k');

TEST(SealedText, DecryptsOnlyWithTheSameKeyAndContext) {
  SeededRandom random(1);
  const std::string sealed = seal(kKey, "secret", "AKIA1", random);
  EXPECT_EQ(*unseal(kKey, sealed, "AKIA1"), "secret");
  EXPECT_EQ(unseal(std::string(kSealingKeyBytes, 'x'), sealed, "AKIA1").error().kind,
            Kind::corrupt);
  EXPECT_EQ(unseal(kKey, sealed, "AKIA2").error().kind, Kind::corrupt);
  EXPECT_EQ(*unseal(kKey, seal(kKey, "", "", random), ""), "");
}

TEST(SealedText, HidesTheTextAndDiffersEachTime) {
  SeededRandom random(1);
  const std::string sealed = seal(kKey, "secret", "AKIA1", random);
  EXPECT_EQ(from_base64(sealed)->find("secret"), std::string::npos);
  EXPECT_NE(sealed, seal(kKey, "secret", "AKIA1", random));
}

TEST(SealedText, DetectsEachChangedByte) {
  SeededRandom random(1);
  const std::string bytes = *from_base64(seal(kKey, "secret", "AKIA1", random));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = char(changed[i] ^ 1);
    EXPECT_FALSE(unseal(kKey, to_base64(changed), "AKIA1")) << i;
    EXPECT_FALSE(unseal(kKey, to_base64(bytes.substr(0, i)), "AKIA1")) << i;
  }
  EXPECT_FALSE(unseal(kKey, "not base64!", "AKIA1"));
  EXPECT_FALSE(unseal(kKey, std::string(kSealedTextBytesMax + 1, 'A'), "AKIA1"));
}

}  // namespace
}  // namespace trainyard::signing
