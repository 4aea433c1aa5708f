#include "notify/pattern.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/text.hpp"

namespace trainyard::notify {
namespace {

bool matches(const std::string& pattern, const std::string& document) {
  const auto compiled = Pattern::compile(pattern, 1 << 20);
  EXPECT_TRUE(compiled) << pattern << ": " << (compiled ? "" : compiled.error().message);
  if (!compiled) return false;
  const auto matched = compiled->matches(*parse_json(document));
  EXPECT_TRUE(matched) << pattern;
  return matched && *matched;
}

struct PatternRow {
  const char* pattern;
  const char* document;
  bool matches;
};

void check_rows(std::initializer_list<PatternRow> rows) {
  for (const auto& row : rows)
    EXPECT_EQ(matches(row.pattern, row.document), row.matches)
        << row.pattern << "  " << row.document;
}

// The example event of AWS's EventBridge guide: an instance was terminated.
constexpr const char* kInstance = R"({
  "version": "0", "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
  "detail-type": "EC2 Instance State-change Notification", "source": "aws.ec2",
  "account": "111122223333", "time": "2017-12-22T18:43:48Z", "region": "us-west-1",
  "resources": ["arn:aws:ec2:us-west-1:123456789012:instance/i-1234567890abcdef0"],
  "detail": {"instance-id": "i-1234567890abcdef0", "state": "terminated", "c-count": 5,
             "d-count": 3, "x-limit": 301.8, "source-ip": "10.0.0.33", "empty": "", "none": null,
             "flag": true}})";

TEST(Pattern, ComparesExactValues) {
  check_rows({
      {R"({"source": ["aws.ec2"]})", kInstance, true},
      {R"({"source": ["aws.s3"]})", kInstance, false},
      {R"({"source": ["aws.s3", "aws.ec2"]})", kInstance, true},
      {R"({"source": ["aws.ec2"], "detail": {"state": ["running"]}})", kInstance, false},
      {R"({"source": ["aws.ec2"], "detail": {"state": ["terminated"]}})", kInstance, true},
      {R"({"detail": {"state": ["Terminated"]}})", kInstance, false},
      {R"({"detail": {"empty": [""]}})", kInstance, true},
      {R"({"detail": {"none": [null]}})", kInstance, true},
      {R"({"detail": {"missing": [null]}})", kInstance, false},
      {R"({"detail": {"flag": [true]}})", kInstance, true},
      {R"({"detail": {"flag": [false]}})", kInstance, false},
      {R"({"detail": {"flag": ["true"]}})", kInstance, false},
      {R"({"detail": {"c-count": [5]}})", kInstance, true},
      {R"({"detail": {"c-count": ["5"]}})", kInstance, false},
      {R"({"detail": {"c-count": [5.0]}})", kInstance, false},  // compared as written
      {R"({"detail": {"x-limit": [301.8]}})", kInstance, true},
      {R"({"detail": {"state": {"deeper": ["terminated"]}}})", kInstance, false},
      {R"({"detail": ["terminated"]})", kInstance, false},  // an object is not a leaf
  });
}

TEST(Pattern, MatchesOneElementOfAnArray) {
  check_rows({
      {R"({"resources": ["arn:aws:ec2:us-west-1:123456789012:instance/i-1234567890abcdef0"]})",
       kInstance, true},
      {R"({"a": ["x"]})", R"({"a": ["w", "x"]})", true},
      {R"({"a": ["x"]})", R"({"a": ["w", ["x"]]})", true},
      {R"({"a": ["x"]})", R"({"a": []})", false},
      // Fields of one object must match in the same element.
      {R"({"a": {"b": [1], "c": [2]}})", R"({"a": [{"b": 1, "c": 2}]})", true},
      {R"({"a": {"b": [1], "c": [2]}})", R"({"a": [{"b": 1, "c": 3}, {"b": 0, "c": 2}]})", false},
      {R"({"a": {"b": [1]}})", R"({"a": [5, {"b": 1}]})", true},
      {R"({"a": {"b": [{"exists": false}]}})", R"({"a": [5]})", true},
  });
}

TEST(Pattern, ComparesTexts) {
  check_rows({
      {R"({"time": [{"prefix": "2017-12-"}]})", kInstance, true},
      {R"({"time": [{"prefix": "2018-"}]})", kInstance, false},
      {R"({"a": [{"prefix": {"equals-ignore-case": "EventB"}}]})", R"({"a": "eventbridge"})", true},
      {R"({"a": [{"prefix": {"equals-ignore-case": "EventB"}}]})", R"({"a": "event"})", false},
      {R"({"a": [{"suffix": ".png"}]})", R"({"a": "x.png"})", true},
      {R"({"a": [{"suffix": ".png"}]})", R"({"a": "png"})", false},
      {R"({"a": [{"suffix": {"equals-ignore-case": ".png"}}]})", R"({"a": "x.PNG"})", true},
      {R"({"detail-type": [{"equals-ignore-case": "ec2 instance State-change notification"}]})",
       kInstance, true},
      {R"({"a": [{"equals-ignore-case": "ab"}]})", R"({"a": "abc"})", false},
      {R"({"a": [{"prefix": "5"}]})", R"({"a": 5})", false},
  });
}

TEST(Pattern, ComparesWildcards) {
  check_rows({
      {R"({"a": [{"wildcard": "dir/*.png"}]})", R"({"a": "dir/x/y.png"})", true},
      {R"({"a": [{"wildcard": "dir/*.png"}]})", R"({"a": "dir/x.jpg"})", false},
      {R"({"a": [{"wildcard": "*"}]})", R"({"a": ""})", true},
      {R"({"a": [{"wildcard": "a*b*c"}]})", R"({"a": "aXbYbZc"})", true},
      {R"({"a": [{"wildcard": "a*b*c"}]})", R"({"a": "aXbYbZ"})", false},
      {R"({"a": [{"wildcard": "a\\*b"}]})", R"({"a": "a*b"})", true},
      {R"({"a": [{"wildcard": "a\\*b"}]})", R"({"a": "aXb"})", false},
      {R"({"a": [{"wildcard": "a\\\\*"}]})", R"({"a": "a\\z"})", true},
      {R"({"a": [{"wildcard": "abc"}]})", R"({"a": "abcd"})", false},
  });
}

TEST(Pattern, ComparesAnythingBut) {
  check_rows({
      {R"({"detail": {"state": [{"anything-but": "initializing"}]}})", kInstance, true},
      {R"({"detail": {"state": [{"anything-but": ["terminated", "stopped"]}]}})", kInstance, false},
      {R"({"detail": {"x-limit": [{"anything-but": 123}]}})", kInstance, true},
      {R"({"detail": {"c-count": [{"anything-but": [5, 6]}]}})", kInstance, false},
      {R"({"detail": {"missing": [{"anything-but": "x"}]}})", kInstance, false},
      {R"({"detail": {"state": [{"anything-but": {"prefix": "init"}}]}})", kInstance, true},
      {R"({"detail": {"state": [{"anything-but": {"prefix": ["init", "term"]}}]}})", kInstance,
       false},
      {R"({"a": [{"anything-but": {"suffix": ".txt"}}]})", R"({"a": "x.txt"})", false},
      {R"({"a": [{"anything-but": {"suffix": [".txt", ".rtf"]}}]})", R"({"a": "x.png"})", true},
      {R"({"a": [{"anything-but": {"equals-ignore-case": ["init", "stop"]}}]})", R"({"a": "INIT"})",
       false},
      {R"({"a": [{"anything-but": {"wildcard": "*/lib/*"}}]})", R"({"a": "x/lib/y"})", false},
      {R"({"a": [{"anything-but": {"wildcard": ["*/lib/*", "*/bin/*"]}}]})", R"({"a": "x/y"})",
       true},
  });
}

TEST(Pattern, ComparesNumbers) {
  check_rows({
      {R"({"detail": {"c-count": [{"numeric": [">", 0, "<=", 5]}]}})", kInstance, true},
      {R"({"detail": {"d-count": [{"numeric": ["<", 10]}]}})", kInstance, true},
      {R"({"detail": {"x-limit": [{"numeric": ["=", 3.018e2]}]}})", kInstance, true},
      {R"({"detail": {"c-count": [{"numeric": [">", 5]}]}})", kInstance, false},
      {R"({"detail": {"c-count": [{"numeric": [">=", 5, "<", 6]}]}})", kInstance, true},
      {R"({"detail": {"state": [{"numeric": [">", 0]}]}})", kInstance, false},
      {R"({"a": [{"numeric": [">", 0]}]})", R"({"a": 6e9})", false},  // beyond the limit
  });
}

TEST(Pattern, ComparesExistenceAddressesAndAlternatives) {
  check_rows({
      {R"({"detail": {"state": [{"exists": true}]}})", kInstance, true},
      {R"({"detail": {"state": [{"exists": false}]}})", kInstance, false},
      {R"({"detail": {"missing": [{"exists": false}]}})", kInstance, true},
      {R"({"detail": {"none": [{"exists": true}]}})", kInstance, true},
      {R"({"missing": {"deeper": [{"exists": false}]}})", kInstance, true},
      {R"({"detail": [{"exists": true}]})", kInstance, false},  // not a leaf
      {R"({"detail": {"source-ip": [{"cidr": "10.0.0.0/24"}]}})", kInstance, true},
      {R"({"detail": {"source-ip": [{"cidr": "10.0.1.0/24"}]}})", kInstance, false},
      {R"({"a": [{"cidr": "2001:db8::/32"}]})", R"({"a": "2001:db8::5"})", true},
      {R"({"a": [{"cidr": "10.0.0.0/8"}]})", R"({"a": "not an address"})", false},
      {R"({"detail": {"$or": [{"c-count": [{"numeric": [">", 9]}]}, {"d-count": [3]}]}})",
       kInstance, true},
      {R"({"detail": {"$or": [{"c-count": [9]}, {"d-count": [9]}]}})", kInstance, false},
      {R"({"source": ["aws.ec2"], "$or": [{"region": ["x"]}, {"region": ["us-west-1"]}]})",
       kInstance, true},
      {R"({"$or": ["x"]})", R"({"$or": "x"})", true},  // a field named "$or"
  });
}

TEST(Pattern, RejectsInvalidPatterns) {
  for (const char* text : {"",
                           "[]",
                           "{}",
                           "5",
                           R"({"a": "x"})",
                           R"({"a": []})",
                           R"({"a": {}})",
                           R"({"a": [[1]]})",
                           R"({"a": [{}]})",
                           R"({"a": [{"prefix": 5}]})",
                           R"({"a": [{"unknown": "x"}]})",
                           R"({"a": [{"prefix": "x", "suffix": "y"}]})",
                           R"({"a": [{"exists": "true"}]})",
                           R"({"a": [{"numeric": [">"]}]})",
                           R"({"a": [{"numeric": ["!", 5]}]})",
                           R"({"a": [{"numeric": [">", "5"]}]})",
                           R"({"a": [{"numeric": [">", 5, ">", 6]}]})",
                           R"({"a": [{"numeric": [">", 6, "<", 5]}]})",
                           R"({"a": [{"numeric": ["=", 1e10]}]})",
                           R"({"a": [{"cidr": "10.0.0.0/40"}]})",
                           R"({"a": [{"anything-but": []}]})",
                           R"({"a": [{"anything-but": {"prefix": []}}]})",
                           R"({"a": [{"wildcard": "a**b"}]})",
                           R"({"a": [{"wildcard": "a\\b"}]})",
                           R"({"a": [{"wildcard": "a\\"}]})",
                           R"({"a": [{"anything-but": true}]})",
                           R"({"a": [{"anything-but": {"numeric": ["=", 1]}}]})"})
    EXPECT_FALSE(Pattern::compile(text, 1 << 20)) << text;
}

TEST(Pattern, LimitsSizesAndSteps) {
  EXPECT_EQ(Pattern::compile(R"({"a": ["x"]})", 5).error().kind, Kind::exhausted);
  Json values = Json::array();
  for (size_t i = 0; i < Pattern::kValuesMax + 1; ++i) values.push_back(i);
  EXPECT_EQ(Pattern::compile(dump(Json{{"a", values}}), 1 << 20).error().kind, Kind::exhausted);
  std::string deep = "[1]";
  for (size_t i = 0; i < Pattern::kDepthMax + 2; ++i) deep = "{\"a\":" + deep + "}";
  EXPECT_EQ(Pattern::compile(deep, 1 << 20).error().kind, Kind::exhausted);
  // The comparison of this wildcard would need as many steps as the product of the lengths.
  std::string wildcard;
  for (int i = 0; i < 100; ++i) wildcard += "*a";
  const auto slow = Pattern::compile(R"({"a": [{"wildcard": ")" + wildcard + R"(b"}]})", 1 << 20);
  ASSERT_TRUE(slow);
  Json many = Json::array();
  for (int i = 0; i < 5000; ++i) many.push_back(std::string(3000, 'a'));
  EXPECT_EQ(slow->matches(Json{{"a", many}}).error().kind, Kind::exhausted);
}

// The slow and obvious reference implementation.
bool slow_wildcard(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*')
    return slow_wildcard(pattern.substr(1), text) ||
           (!text.empty() && slow_wildcard(pattern, text.substr(1)));
  return !text.empty() && text[0] == pattern[0] && slow_wildcard(pattern.substr(1), text.substr(1));
}

TEST(Pattern, ComparesRandomWildcardsLikeTheReference) {
  SeededRandom random(5);
  int matched = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string pattern, text;
    for (uint64_t i = random.below(6); i-- > 0;) {
      const char c = "ab*"[random.below(3)];
      if (c != '*' || !pattern.ends_with('*')) pattern += c;
    }
    for (uint64_t i = random.below(7); i-- > 0;) text += "ab"[random.below(2)];
    const bool expected = slow_wildcard(pattern, text);
    matched += expected;
    EXPECT_EQ(
        matches(R"({"a": [{"wildcard": ")" + pattern + R"("}]})", R"({"a": ")" + text + R"("})"),
        expected)
        << pattern << " " << text;
  }
  EXPECT_GT(matched, 1000);
}

}  // namespace
}  // namespace trainyard::notify
