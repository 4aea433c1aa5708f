#include "observe/filter_pattern.hpp"

#include <gtest/gtest.h>

#include "observe/field_pattern.hpp"

namespace trainyard::observe {
namespace {

TEST(FilterPattern, MatchesMessages) {
  const std::string json =
      R"({"step": 12, "loss": 0.25, "host": "algo-2", "ok": true, "error": null, "tags": ["a", "b"], "deep": {"x y": [1, {"z": -3e2}]}})";
  const struct {
    const char* pattern;
    std::string message;
    bool matches;
  } kTable[] = {
      {"", "anything", true},
      {"*", "anything", true},
      {"   ", "anything", true},
      {"ERROR", "an ERROR here", true},
      {"ERROR", "an error here", false},
      {"ERROR disk", "disk: ERROR", true},
      {"ERROR disk", "ERROR", false},
      {R"("disk full")", "the disk full again", true},
      {R"("disk full")", "full disk", false},
      {R"("say \"hi\"")", R"(say "hi")", true},
      {"?ERROR ?WARN", "WARN: x", true},
      {"?ERROR ?WARN", "INFO: x", false},
      {"?ERROR INFO", "INFO only", true},
      {"ERROR -retry", "ERROR retry", false},
      {"ERROR -retry", "ERROR", true},
      {R"(-"exit code")", "exit code 1", false},
      {"-debug", "info", true},
      {"loss=0.5;", "step 1 loss=0.5; done", true},
      {"{ $.step = 12 }", json, true},
      {"{ $.step != 12 }", json, false},
      {"{ $.step > 11 && $.loss < 0.3 }", json, true},
      {"{ $.step >= 13 || $.loss <= 0.25 }", json, true},
      {"{ ($.step >= 13 || $.loss <= 0.25) && $.host = algo-1 }", json, false},
      {R"({ $.host = "algo-*" })", json, true},
      {R"({ $.host = "*-3" })", json, false},
      {"{ $.host = algo-* }", json, true},
      {R"({ $.step = "12" })", json, false},
      {"{ $.ok IS TRUE }", json, true},
      {"{ $.ok is false }", json, false},
      {"{ $.ok = true }", json, true},
      {"{ $.error IS NULL }", json, true},
      {"{ $.missing IS NULL }", json, false},
      {"{ $.missing NOT EXISTS }", json, true},
      {"{ $.step NOT EXISTS }", json, false},
      {"{ $.missing != 1 }", json, false},
      {R"({ $.tags[1] = "b" })", json, true},
      {R"({ $.tags[*] = "a" })", json, true},
      {R"({ $.tags[7] = "a" })", json, false},
      {"{ $.deep['x y'][1].z = -300 }", json, true},
      {"{ $.step = 12 }", "step = 12", false},
      {"{ $.step = 12 }", "{ broken", false},
      {"{ $.a = 1.5e1 }", R"({"a": 15})", true},
      {R"({ $.a = "a\"b" })", R"({"a": "a\"b"})", true},
      {"{ $.step = * }", json, true},
      {"{ $.missing = * }", json, false},
  };
  for (const auto& row : kTable) {
    const auto pattern = FilterPattern::parse(row.pattern);
    ASSERT_TRUE(pattern) << row.pattern << ": " << pattern.error().message;
    EXPECT_EQ(pattern->matches(row.message), row.matches) << row.pattern << " on " << row.message;
  }
}

TEST(FilterPattern, RejectsInvalidPatterns) {
  const std::pair<std::string, const char*> kTable[] = {
      {R"("open)", "quotation mark"},
      {"[a b]", "invalid field name"},
      {"%x+%", "regular expressions"},
      {"{ $.a = %x% }", "regular expressions"},
      {"{ $.a = 1", "'}'"},
      {"{ $.a = 1 } more", "the end of the pattern"},
      {"{ a = 1 }", "$.name"},
      {"{ $ = 1 }", "$.name"},
      {"{ $. = 1 }", "the name of a property"},
      {"{ $.a[x] = 1 }", "an index"},
      {"{ $.a['x = 1 }", "ends with '"},
      {"{ $.a[1 = 1 }", "']'"},
      {"{ $.a }", "an operator"},
      {"{ $.a > b }", "a number"},
      {"{ $.a = }", "a value"},
      {"{ $.a IS }", "NULL"},
      {"{ $.a NOT }", "EXISTS"},
      {"{ ($.a = 1 }", "')'"},
      {"{ $.a = \"x }", "closing"},
      {"{ " + std::string(200, '(') + "$.a = 1" + std::string(200, ')') + " }", "nested"},
      {std::string(1025, 'x'), "1024"},
  };
  for (const auto& [text, says] : kTable) {
    const auto pattern = FilterPattern::parse(text);
    ASSERT_FALSE(pattern) << text;
    EXPECT_NE(pattern.error().message.find(says), std::string::npos)
        << text << ": " << pattern.error().message;
  }
}

TEST(FilterPattern, MatchesFields) {
  const struct {
    const char* pattern;
    const char* message;
    bool matches;
  } kTable[] = {
      {"[a, b]", "1 2", true},
      {"[a, b]", "1 2 3", false},
      {"[a, ...]", "1 2 3", true},
      {"[..., a = 3]", "1 2 3", true},
      {"[..., a = 2]", "1 2 3", false},
      {"[a, b]", R"("x y" [z z])", true},
      {"[a, b != 2]", "1 2", false},
      {"[a, b > 1 && b < 3]", "1 2", true},
      {"[a, b = 4* || b = 5*]", "1 503", true},
      {"[a, b = 4* || b = 5*]", "1 200", false},
      {R"([a = "x, y", b])", R"("x, y" 2)", true},
      {"[]", "1", true},
      {"[,]", "1 2", true},
  };
  for (const auto& row : kTable)
    EXPECT_EQ(FilterPattern::parse(row.pattern)->matches(row.message), row.matches) << row.pattern;
}

TEST(FilterPattern, ExtractsTheValuesOfItsSelectors) {
  const auto extracted = [](const char* pattern, const char* message) {
    const auto values = FilterPattern::parse(pattern)->extract(message);
    if (!values) return std::string("no match");
    std::string out;
    for (const auto& [name, value] : *values) out += name + "=" + value + ";";
    return out;
  };
  EXPECT_EQ(extracted("[ip, , size > 1]", "1.2.3.4 GET 17"), "$2=GET;$ip=1.2.3.4;$size=17;");
  EXPECT_EQ(extracted("[ip, , size > 17]", "1.2.3.4 GET 17"), "no match");
  EXPECT_EQ(extracted("{ $.a.b = 1 || $.c = \"x\" }", R"({"a": {"b": 2}, "c": "x"})"),
            "$.a.b=2;$.c=x;");
  EXPECT_EQ(extracted("ERROR", "ERROR 1"), "");
  EXPECT_EQ(extracted("ERROR", "fine"), "no match");
}

TEST(FilterPattern, RejectsInvalidPatternsOfFields) {
  for (const char* pattern :
       {"[a", "[a, ..., ...]", "[a b]", "[a = 1 && c = 2]", "[a > x]", "[a = %x%]", "[= 1]"}) {
    const auto parsed = FilterPattern::parse(pattern);
    EXPECT_EQ(bool(parsed), std::string_view(pattern) == "[= 1]") << pattern;
  }
}

// The slow reference: matches by trying every length of every star.
bool matches_slowly(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*')
    return !text.empty() && text[0] == pattern[0] &&
           matches_slowly(pattern.substr(1), text.substr(1));
  for (size_t length = 0; length <= text.size(); ++length)
    if (matches_slowly(pattern.substr(1), text.substr(length))) return true;
  return false;
}

// Returns all texts of the letters up to a length.
std::vector<std::string> all_texts(std::string_view letters, size_t length_max) {
  std::vector<std::string> all{""};
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string begin = all[i];
    if (begin.size() < length_max)
      for (const char letter : letters) all.push_back(begin + letter);
  }
  return all;
}

TEST(Wildcards, MatchAsTheSlowReferenceDoes) {
  const auto texts = all_texts("ab", 6);
  for (const std::string& pattern : all_texts("ab*", 5))
    for (const std::string& text : texts)
      ASSERT_EQ(matches_wildcards(pattern, text), matches_slowly(pattern, text))
          << "'" << pattern << "' on '" << text << "'";
}

TEST(Wildcards, MatchLongTextsInLinearTime) {
  const std::string text(256 << 10, 'a'), part(1'000, 'a');
  const auto fields = FilterPattern::parse("{ $.x = \"*" + part + "b\" }");
  ASSERT_TRUE(fields);
  const std::string message = "{\"x\":\"" + text + "\"}";
  // A matcher that restarts at each byte would compare some 10^10 bytes.
  for (int i = 0; i < 40; ++i) {
    EXPECT_FALSE(matches_wildcards("*" + part + "b*", text));
    EXPECT_TRUE(matches_wildcards("*" + part + "*" + part, text));
  }
  EXPECT_FALSE(fields->matches(message));
  EXPECT_FALSE(FilterPattern::parse(part + "b")->matches(message));
}

}  // namespace
}  // namespace trainyard::observe
