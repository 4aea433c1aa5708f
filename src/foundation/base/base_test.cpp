#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "base/time.hpp"

namespace trainyard {
namespace {

Result<int> half(int n) {
  if (n % 2) return invalid(std::to_string(n) + " is odd");
  return n / 2;
}
Result<int> quarter(int n) { return TRY(half(TRY(half(n)))); }

TEST(Result, TryAddsContextToErrors) {
  EXPECT_EQ(*quarter(12), 3);
  const auto failed = quarter(6).in("quartering 6");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, Kind::invalid);
  EXPECT_EQ(failed.error().message, "quartering 6: 3 is odd");
}

enum class FileFault { missing, empty };
enum class NetFault { missing };

TEST(Result, DetailsDistinguishErrorsOfOneKind) {
  const Error error =
      not_found("file a not found", FileFault::missing).in("reading b").in("starting");
  EXPECT_EQ(error.message, "starting: reading b: file a not found");
  EXPECT_EQ(error.cause(), "file a not found");
  EXPECT_EQ(error.detail.as<FileFault>(), FileFault::missing);
  EXPECT_TRUE(error.is(FileFault::missing));
  EXPECT_FALSE(error.is(FileFault::empty));
  EXPECT_FALSE(error.is(NetFault::missing)) << "an equal value of another enum";
  EXPECT_FALSE(not_found("file a not found").is(FileFault::missing)) << "no detail";
}

TEST(Result, ErrnoBecomesAKindAndAMessage) {
  EXPECT_EQ(from_errno("writing x", ENOSPC).kind, Kind::exhausted);
  EXPECT_EQ(from_errno("opening x", ENOENT).message, "opening x: No such file or directory");
}

TEST(Time, FormatsRoundTrip) {
  const Instant instant = from_milliseconds(1'795'167'900'123);
  EXPECT_EQ(to_iso8601(instant), "2026-11-20T09:45:00.123Z");
  EXPECT_EQ(to_basic_iso8601(instant), "20261120T094500Z");
  EXPECT_EQ(to_http_date(instant), "Fri, 20 Nov 2026 09:45:00 GMT");
  EXPECT_EQ(*parse_iso8601("2026-11-20T09:45:00.123Z"), instant);
  EXPECT_EQ(*parse_iso8601("2026-11-20T10:45:00.123+01:00"), instant);
  EXPECT_EQ(*parse_basic_iso8601("20261120T094500Z"), instant - 123ms);
  EXPECT_EQ(*parse_http_date("Fri, 20 Nov 2026 09:45:00 GMT"), instant - 123ms);
}

TEST(Time, RandomInstantsRoundTrip) {
  SeededRandom random(1);
  for (int i = 0; i < 1000; ++i) {
    const Instant instant = from_milliseconds(int64_t(random.below(253'402'300'800'000)));
    const std::string text = to_iso8601(instant);
    EXPECT_EQ(*parse_iso8601(text), instant) << text;
    EXPECT_EQ(to_iso8601(instant, false), text.substr(0, 19) + "Z");
  }
  EXPECT_EQ(to_iso8601(from_milliseconds(253'402'300'800'000)), "10000-01-01T00:00:00.000Z");
  EXPECT_EQ(to_iso8601(from_milliseconds(-62'198'755'200'000)), "-001-01-01T00:00:00.000Z");
}

TEST(Time, RefusesInvalidDates) {
  for (const char* text :
       {"", "20261320T094500Z", "2026-11-20", "20261120T096500Z", "2026112OT094500Z"})
    EXPECT_FALSE(parse_basic_iso8601(text)) << text;
  for (const char* text :
       {"2026-02-30T00:00:00Z", "2026-11-20T09:45:00", "2026-11-20T09:45:00+1:00"})
    EXPECT_FALSE(parse_iso8601(text)) << text;
}

TEST(Text, EncodingsRoundTripOverAllBytes) {
  std::string bytes;
  for (int size = 0; size < 260; ++size) {
    EXPECT_EQ(*from_hex(to_hex(bytes)), bytes);
    EXPECT_EQ(*from_base64(to_base64(bytes)), bytes);
    EXPECT_EQ(*percent_decode(percent_encode(bytes)), bytes);
    bytes += char(size);
  }
}

TEST(Text, RefusesBrokenEncodings) {
  EXPECT_FALSE(from_hex("abc"));
  EXPECT_FALSE(from_hex("zz"));
  EXPECT_FALSE(from_base64("abc"));
  EXPECT_FALSE(from_base64("a==="));
  EXPECT_FALSE(from_base64("ab=c"));
  EXPECT_FALSE(percent_decode("%4"));
  EXPECT_FALSE(percent_decode("%zz"));
  EXPECT_FALSE(parse_int("12x"));
  EXPECT_FALSE(parse_int("99999999999999999999"));
}

TEST(Text, Utf8) {
  EXPECT_TRUE(is_utf8("gr\xc3\xbc\xc3\x9f"));
  EXPECT_FALSE(is_utf8("\xc0\xaf"));
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));
  EXPECT_EQ(to_utf8("a\xff"
                    "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(shorten("gr\xc3\xbc\xc3\x9f Gott", 6), "gr...");
}

TEST(Text, CountsCodePoints) {
  EXPECT_EQ(count_characters(""), 0u);
  EXPECT_EQ(count_characters("gr\xc3\xbc\xc3\x9f"), 4u);
}

TEST(Text, JoinsTexts) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(join(std::set<std::string_view>{"b", "a"}, ","), "a,b");
}

TEST(Text, ConvertsOnlyTheCaseOfAscii) {
  EXPECT_EQ(to_upper("az_Z{\xc3\xa4"), "AZ_Z{\xc3\xa4");
  EXPECT_EQ(to_lower("AZ_z[\xc3\x84"), "az_z[\xc3\x84");
}

TEST(Json, ReadsOptionalMembers) {
  const Json object = *parse_json(R"({"a": "text", "b": 1.5, "c": null})");
  EXPECT_EQ(string_or(object, "a"), "text");
  EXPECT_EQ(string_or(object, "b"), "");
  EXPECT_EQ(string_or(object, "d", "otherwise"), "otherwise");
  EXPECT_EQ(string_or(Json("text"), "a"), "");
  EXPECT_EQ(double_or(object, "b"), 1.5);
  EXPECT_EQ(double_or(object, "a", 2), 2);
  EXPECT_EQ(string_or_dump(object["a"]), "text");
  EXPECT_EQ(string_or_dump(object["b"]), "1.5");
}

TEST(Json, ReportsFaultsAsErrors) {
  EXPECT_FALSE(parse_json("{"));
  EXPECT_FALSE(parse_json(std::string(200, '[') + std::string(200, ']')));
  const Json object = *parse_json(R"({"a": 1})");
  EXPECT_EQ(*int_at(object, "a"), 1);
  EXPECT_EQ(*int_at({{"a", INT64_MAX}}, "a"), INT64_MAX);
  EXPECT_FALSE(int_at({{"a", uint64_t{1} << 63}}, "a")) << "it does not fit in 64 bits with a sign";
  EXPECT_EQ(string_at(object, "a").error().message, "'a' must be a string, not 1");
  EXPECT_EQ(string_at(object, "b").error().message, "'b' must be a string, but it is missing");
}

TEST(SeededRandom, GeneratesUuids) {
  const std::string digits = SeededRandom(7).hex(16);
  const std::string uuid = SeededRandom(7).uuid();
  EXPECT_EQ(uuid.size(), 36u);
  for (const size_t dash : {8, 13, 18, 23}) EXPECT_EQ(uuid[dash], '-');
  std::string rest = uuid;
  std::erase(rest, '-');
  EXPECT_EQ(rest, digits);
}

TEST(SeededRandom, EqualSeedsGiveEqualBytes) {
  SeededRandom one(7), two(7), three(8);
  EXPECT_EQ(one.hex(16), two.hex(16));
  EXPECT_NE(one.hex(16), three.hex(16));
}

}  // namespace
}  // namespace trainyard
