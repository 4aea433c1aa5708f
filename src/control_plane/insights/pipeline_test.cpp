#include "insights/pipeline.hpp"

#include <span>

#include "insights/testing/test_pipeline.hpp"

namespace trainyard::insights {
namespace {

struct ExpressionRow {
  const char* expression;
  const char* value;
};

void expect_values(std::span<const ExpressionRow> rows) {
  const std::vector<std::string> message{
      R"({"n": 12, "f": 0.5, "t": "12", "s": "Hello", "e": "", "b": true, "z": null, "l": [1, {"k": "v"}], "ip": "10.1.2.3"})"};
  for (const auto& row : rows) {
    const std::string value = row.value;
    // An empty text is a value, and nothing has no column.
    EXPECT_EQ(shown(run_query(std::string("fields ") + row.expression + " as v", message)),
              value.empty()      ? ""
              : value == "EMPTY" ? "v="
                                 : "v=" + value)
        << row.expression;
  }
}

TEST(Pipeline, ComputesExpressions) {
  const ExpressionRow kTable[] = {
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"2 ^ 3 ^ 2", "512"},
      {"-2 ^ 2", "4"},
      {"10 / 4", "2.5"},
      {"1 / 3", "0.3333"},
      {"1 / 0", ""},
      {"n % 5", "2"},
      {"n + t", "24"},
      {"n + s", ""},
      {"missing + 1", ""},
      {"n = t", "1"},
      {"n = 12.0", "1"},
      {"s = 'Hello'", "1"},
      {"s = 'hello'", "0"},
      {"missing = 1", "0"},
      {"missing != 1", "0"},
      {"not missing = 1", "1"},
      {"n > 9", "1"},
      {"'b' > 'a'", "1"},
      {"n in [1, 12]", "1"},
      {"n not in [1, 12]", "0"},
      {"s like 'ell'", "1"},
      {"s like /(?i)HELLO/", "1"},
      {"s =~ /^ello/", "0"},
      {"s not like /z/", "1"},
      {"b = 'true' and n = 12 or e = 'x'", "1"},
      {"l.0 + 1", "2"},
      {"l.1.k", "v"},
      {"ispresent(z)", "0"},
      {"isPresent(n)", "1"},
      {"isempty(e)", "1"},
      {"isblank('  ')", "1"},
      {"coalesce(missing, z, s)", "Hello"},
  };
  expect_values(kTable);
}

TEST(Pipeline, CallsFunctions) {
  const ExpressionRow kTable[] = {
      {"strlen('h\xc3\xa9llo')", "5"},
      {"toupper(s)", "HELLO"},
      {"lower(s)", "hello"},
      {"substr(s, 1, 3)", "ell"},
      {"substr(s, 9)", "EMPTY"},
      {"substr('h\xc3\xa9llo', 1, 1)", "\xc3\xa9"},
      {"concat(s, ' ', n)", "Hello 12"},
      {"trim('  a ')", "a"},
      {"ltrim('xxa', 'x')", "a"},
      {"rtrim('a  ')", "a"},
      {"replace(s, 'l', 'LL')", "HeLLLLo"},
      {"strcontains(s, 'lo')", "1"},
      {"abs(-3)", "3"},
      {"ceil(0.2) + floor(0.8)", "1"},
      {"greatest(1, n, 3)", "12"},
      {"least(5, n, 3)", "3"},
      {"sqrt(16)", "4"},
      {"sqrt(-1)", ""},
      {"@timestamp", "2026-11-20 09:45:00.000"},
      {"bin(1h)", "2026-11-20 09:00:00.000"},
      {"datefloor(@timestamp, 1d)", "2026-11-20 00:00:00.000"},
      {"dateceil(@timestamp, 1h)", "2026-11-20 10:00:00.000"},
      {"fromMillis(0)", "1970-01-01 00:00:00.000"},
      {"toMillis(@timestamp)", "1795167900000"},
      {"now()", "1795167900"},
      {"fromMillis(1e300)", ""},
      {"isValidIp(ip)", "1"},
      {"isIpv4('1.2.3.256')", "0"},
      {"isValidIpV6('::1')", "1"},
      {"isValidIpV6('1:::2')", "0"},
      {"isIpv4InSubnet(ip, '10.1.0.0/16')", "1"},
      {"isIpv4InSubnet(ip, '10.2.0.0/16')", "0"},
      {"isIpv4InSubnet(ip, 'x/99')", "0"},
      {"@logStream", "job/algo-1"},
      {"@log", "123456789012:group"},
  };
  expect_values(kTable);
}

TEST(Pipeline, ShowsTheColumnsOfTheLastCommands) {
  const std::vector<std::string> messages{R"({"a": 1, "b": 2})"};
  const std::string at = "@timestamp=2026-11-20 09:45:00.000 @message=" + messages[0];
  EXPECT_EQ(shown(run_query("limit 1", messages)), at);
  EXPECT_EQ(shown(run_query("filter a = 1", messages)), at);
  EXPECT_EQ(shown(run_query("fields a | fields b, a + b", messages)), "a=1 b=2 a + b=3");
  EXPECT_EQ(shown(run_query("fields a, b | display b", messages)), "b=2");
  EXPECT_EQ(shown(run_query("fields a | parse @message '{*:' as key", messages)), "a=1 key=\"a\"");
  EXPECT_EQ(shown(run_query("fields missing", messages)), "");
  const auto rows = run_query("fields a", messages);
  ASSERT_TRUE(rows);
  EXPECT_EQ((*rows)[0].back().first, "@ptr");
}

TEST(Pipeline, ParsesMessages) {
  const std::vector<std::string> messages{"user=ann, method:get, latency := 25",
                                          "user=bob, method:put, latency := 75", "other"};
  EXPECT_EQ(shown(run_query("parse @message 'user=*, method:*, latency := *' as u, m, l | "
                            "stats avg(l) as average, max(l) by m",
                            messages)),
            "m=get average=25 max(l)=25; m=put average=75 max(l)=75; ");
  EXPECT_EQ(shown(run_query("parse @message /user=(?<u>\\w+).*:= (?<l>\\d+)/ | filter l > 50 | "
                            "display u, l",
                            messages)),
            "u=bob l=75");
  EXPECT_EQ(
      shown(run_query("parse 'user=*,' as u | parse u /(.)$/ as last | display last", messages)),
      "last=n; last=b; ");
}

TEST(Pipeline, ComputesAggregates) {
  std::vector<std::string> messages;
  for (const char* value : {"3", "1", "2", "10"})
    messages.push_back(std::string(R"({"v": )") + value + "}");
  messages.push_back("text");
  const struct {
    const char* function;
    const char* value;
  } kTable[] = {
      {"count(*)", "5"},
      {"count(v)", "4"},
      {"count_distinct(v)", "4"},
      {"sum(v)", "16"},
      {"avg(v)", "4"},
      {"min(v)", "1"},
      {"max(v)", "10"},
      {"pct(v, 50)", "2.5"},
      {"pct(v, 0)", "1"},
      {"pct(v, 100)", "10"},
      {"stddev(v)", "3.5355"},
      {"earliest(v)", "3"},
      {"latest(v)", "10"},
      {"sortsFirst(v)", "1"},
      {"sortsLast(v)", "10"},
      {"max(@timestamp)", "2026-11-20 09:45:04.000"},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(shown(run_query(std::string("stats ") + row.function + " as r", messages)),
              std::string("r=") + row.value)
        << row.function;
    EXPECT_EQ(
        shown(run_query(std::string("filter v > 99 | stats ") + row.function + " as r", messages)),
        std::string(row.function).starts_with("count") ? "r=0" : "")
        << row.function;
  }
  EXPECT_EQ(shown(run_query("stats count(*) by bin(2s)", messages)),
            "bin(2s)=2026-11-20 09:45:00.000 count(*)=2; bin(2s)=2026-11-20 09:45:02.000 "
            "count(*)=2; bin(2s)=2026-11-20 09:45:04.000 count(*)=1");
  EXPECT_EQ(shown(run_query("stats count(*) as n by v > 2 as large | stats max(n)", messages)),
            "max(n)=3");
}

TEST(Pipeline, SortsLimitsAndRemovesDuplicates) {
  std::vector<std::string> messages;
  for (const char* value : {"b", "10", "a", "9", "b", "9"})
    messages.push_back(std::string(R"({"v": ")") + value + "\"}");
  EXPECT_EQ(shown(run_query("fields v | sort v", messages)), "v=9; v=9; v=10; v=a; v=b; v=b");
  EXPECT_EQ(shown(run_query("fields v | sort v desc | limit 2", messages)), "v=b; v=b");
  EXPECT_EQ(shown(run_query("fields v | dedup v | sort v desc", messages)), "v=b; v=a; v=10; v=9");
  EXPECT_EQ(shown(run_query("fields v | limit 3 | filter v != 'b'", messages)), "v=10; v=a");
  EXPECT_EQ(shown(run_query("fields v | sort @timestamp desc | dedup v | limit 2", messages)),
            "v=9; v=b");
  EXPECT_EQ(shown(run_query("stats count(*) as n by v | sort n desc, v | limit 2", messages)),
            "v=9 n=2; v=b n=2");
}

TEST(Pipeline, SortsWithMemoryForItsLimitOnly) {
  // Each row needs half of the memory.
  Limits limits{.memory_bytes_max = 400'000};
  std::vector<std::string> messages;
  for (int i = 0; i < 2'000; ++i) messages.push_back("m" + std::to_string(i % 1000));
  EXPECT_EQ(shown(run_query("fields @message | sort @message desc | limit 1", messages, limits)),
            "@message=m999");
  EXPECT_EQ(shown(run_query("fields @message | sort @message desc | dedup @message", messages,
                            {.memory_bytes_max = 100'000})),
            "error: the query needs more memory than the 97.7 KiB that one may use");
}

TEST(Pipeline, SkipsAndCountsEventsOfGroupsBeyondTheLimit) {
  const Query query = parsed("stats count(*) by @message");
  Pipeline pipeline(query, from_milliseconds(kStart), {.groups_max = 2});
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(pipeline.take(
        std::make_shared<const Event>(Event{.at = kStart, .message = std::to_string(i)})));
  const auto rows = pipeline.finish();
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->size(), 2u);
  EXPECT_EQ(pipeline.skipped(), 3u);
  EXPECT_EQ(pipeline.matched(), 5u);
}

TEST(Pipeline, EndsWhenNoLaterEventCanChangeTheResult) {
  const auto taken = [](const std::string& text, const Limits& limits = {}) {
    const Query query = parsed(text);
    Pipeline pipeline(query, from_milliseconds(kStart), limits);
    for (int i = 1; i <= 100; ++i) {
      const auto more =
          pipeline.take(std::make_shared<const Event>(Event{.at = kStart, .message = "m"}));
      EXPECT_TRUE(more);
      if (!more || !*more) return i;
    }
    return 100;
  };
  EXPECT_EQ(taken("fields @message | limit 3"), 3);
  EXPECT_EQ(taken("fields @message", {.rows_max = 7}), 7);
  EXPECT_EQ(taken("limit 3 | stats count(*)"), 3);
  EXPECT_EQ(taken("sort @message | limit 3"), 100);
  EXPECT_EQ(taken("stats count(*) | limit 3"), 100);
}

TEST(Pipeline, KeepsEscapesAndMarkupAsText) {
  const std::string hostile = "\x1b[2J<script>alert(1)</script>\x07";
  EXPECT_EQ(shown(run_query("fields @message | filter @message like '<script>'", {hostile})),
            "@message=" + hostile);
}

}  // namespace
}  // namespace trainyard::insights
