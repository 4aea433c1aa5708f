#include "insights/pattern.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace trainyard::insights {
namespace {

template <class Parts>
std::string joined(SeededRandom& random, const Parts& parts, size_t count_max) {
  std::string text;
  for (uint64_t left = random.below(count_max + 1); left > 0; --left)
    text += parts[random.below(std::size(parts))];
  return text;
}

// A group has no text that each match begins with, so the second form is searched by RE2 alone.
TEST(Pattern, FindsWhatRe2Finds) {
  constexpr std::string_view kParts[] = {"a",   "b",        "ab",      "\xc3\xa9", "?", "*",
                                         "+",   "{0}",      ".",       "|",        "^", "$",
                                         "(a)", "(?i)b",    "[",       "]",        "}", "\\",
                                         "\\.", "\\Qa?\\E", "(?:a|b)", "{1,2}",    " ", "\\b"};
  constexpr std::string_view kText[] = {"a",        "b",    "A", "ab", ".",
                                        "\xc3\xa9", "\xc3", " ", "?",  "\n"};
  SeededRandom random(1);
  size_t valid = 0, found = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string expression = joined(random, kParts, 5);
    const auto pattern = Pattern::regex(expression);
    const auto by_re2 = Pattern::regex("(?:" + expression + ")");
    if (!pattern || !by_re2) continue;
    ++valid;
    for (int k = 0; k < 10; ++k) {
      const std::string text = joined(random, kText, 6);
      const bool expected = (*by_re2)->found_in(text);
      found += expected;
      ASSERT_EQ((*pattern)->found_in(text), expected) << expression << " in " << text;
    }
  }
  EXPECT_GT(valid, 5'000u);
  EXPECT_GT(found, 10'000u);
}

TEST(Pattern, OfOneTextFindsIt) {
  for (const auto& pattern : {*Pattern::regex("needle"), Pattern::literal("needle")}) {
    EXPECT_TRUE(pattern->found_in("a needle"));
    EXPECT_FALSE(pattern->found_in("NEEDLE"));
    EXPECT_FALSE(pattern->found_in(""));
    EXPECT_EQ(pattern->groups(), 0u);
    EXPECT_EQ(pattern->replaced("a needle", "pin", 100), "a pin");
  }
  const std::string all(100, 'a');
  EXPECT_TRUE((*Pattern::regex(all))->found_in(all + "a"));
  EXPECT_FALSE((*Pattern::regex(all))->found_in(all.substr(1)));
  EXPECT_TRUE((*Pattern::regex(""))->found_in(""));
  EXPECT_TRUE(Pattern::literal("")->found_in(""));
}

}  // namespace
}  // namespace trainyard::insights
