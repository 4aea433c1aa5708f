#include "insights/parser.hpp"

#include "insights/testing/test_pipeline.hpp"

namespace trainyard::insights {
namespace {

std::string fault_of(const std::string& text) {
  const auto query = parse_query(text);
  const auto* fault = std::get_if<QueryFault>(&query);
  return fault ? describe_fault(text, *fault) : "none";
}

TEST(QueryParser, ReportsErrorsWithTheirPositions) {
  const struct {
    const char* text;
    const char* fault;
  } kTable[] = {
      {"", "unexpected end of the query at line 1 and position 1"},
      {"test", "unexpected symbol found test at line 1 and position 1"},
      {"fields", "unexpected end of the query at line 1 and position 7"},
      {"fields @message |", "unexpected end of the query at line 1 and position 18"},
      {"fields @message\n| filterr x = 1",
       "unexpected symbol found filterr at line 2 and position 3"},
      {"filter a =", "unexpected end of the query at line 1 and position 11"},
      {"filter (a = 1", "unexpected end of the query at line 1 and position 14"},
      {"filter a like b", "unexpected symbol found b at line 1 and position 15"},
      {"filter a like /(/", "invalid regular expression: missing ): ( at line 1 and position 15"},
      {"filter foo(a)", "unknown function: foo at line 1 and position 8"},
      {"filter count(a) > 1",
       "a function of stats is used in another command: count at line 1 and position 8"},
      {"fields substr(a)", "wrong number of arguments of substr at line 1 and position 8"},
      {"fields 'x", "a quotation mark is not closed at line 1 and position 8"},
      {"limit 0", "limit takes a whole number from 1 to 10000 at line 1 and position 7"},
      {"limit 10001", "limit takes a whole number from 1 to 10000 at line 1 and position 7"},
      {"limit 1.5", "limit takes a whole number from 1 to 10000 at line 1 and position 7"},
      {"limit x", "unexpected symbol found x at line 1 and position 7"},
      {"parse @message '*'",
       "each * of the pattern needs a name after as at line 1 and position 19"},
      {"parse @message '* *' as a",
       "parse has fewer names than its pattern has groups at line 1 and position 26"},
      {"parse @message '*' as a, b",
       "parse has more names than its pattern has groups at line 1 and position 27"},
      {"parse @message /(a)/",
       "each group of the regular expression needs a name at line 1 and position 21"},
      {"stats pct(a)", "unexpected symbol found ) at line 1 and position 12"},
      {"stats pct(a, 101)", "pct needs a number from 0 to 100 at line 1 and position 14"},
      {"stats a by b", "unexpected symbol found a at line 1 and position 7"},
      {"stats count(*) by", "unexpected end of the query at line 1 and position 18"},
      {"sort", "unexpected end of the query at line 1 and position 5"},
      {"fields a by b", "unexpected symbol found by at line 1 and position 10"},
      {"fields 5x", "unknown unit of time at line 1 and position 8"},
      {"fields ?", "unexpected character at line 1 and position 8"},
      {"filter a in [1, 2", "unexpected end of the query at line 1 and position 18"},
  };
  for (const auto& row : kTable) EXPECT_EQ(fault_of(row.text), row.fault) << row.text;
}

TEST(QueryParser, LimitsQueries) {
  EXPECT_EQ(fault_of("filter " + std::string(500, '(') + "a"),
            "expressions are nested too deeply at line 1 and position 73");
  EXPECT_NE(fault_of("filter " + std::string(500, '-') + "a"), "none");
  std::string nots = "filter ", powers = "fields 1", sums = "fields 1", commands = "limit 1";
  for (int i = 0; i < 300; ++i) nots += "not ";
  for (int i = 0; i < 300; ++i) powers += "^1";
  for (int i = 0; i < 2000; ++i) sums += "+1";
  for (int i = 0; i < 100; ++i) commands += "|limit 1";
  EXPECT_NE(fault_of(nots + "a"), "none");
  EXPECT_NE(fault_of(powers), "none");
  EXPECT_NE(fault_of(sums).find("the query has too many parts"), std::string::npos);
  EXPECT_NE(fault_of(commands).find("the query has more than 64 commands"), std::string::npos);
  EXPECT_NE(fault_of("fields " + std::string(10'000, 'a')).find("is longer than 10000 bytes"),
            std::string::npos);
}

TEST(QueryParser, AcceptsKeywordsInAnyCaseAndComments) {
  for (const char* text : {
           "FIELDS @message | FILTER a LIKE 'x' AND NOT b IN [1, 2] | SORT a DESC | LIMIT 5",
           "# all\nfields @message # these\n| limit 1",
           "| fields `a b`, a.b.0 as c",
           "filter @message like /a\\/b/ or @message =~ 'x' or a not like /x/ or a not in ['y']",
           "parse @message /(?<name>x)/",
           "parse @message /(x)/ as name",
           "parse \"user=*\" as user",
           "stats count(), count(*) as n, avg(a / 2), pct(a, 99.9) by bin(5m), b as c",
           "fields 6 / 2 / 3, (a) / 2",
           "dedup a, b",
       })
    EXPECT_EQ(fault_of(text), "none") << text;
}

}  // namespace
}  // namespace trainyard::insights
