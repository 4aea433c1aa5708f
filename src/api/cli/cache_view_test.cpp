#include "cli/cache_view.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace trainyard::cli {
namespace {

const Instant kCacheNow = from_milliseconds(1'763'631'900'000);

CacheView example() {
  CacheView cache;
  cache.bytes = 3ull << 30, cache.bytes_max = 46ull << 30;
  cache.pinned_bytes = 2ull << 30, cache.pinned_bytes_max = 41ull << 30;
  cache.entries = {{"a-directory-of-keys-with-a-name-that-is-longer-than-a-line-of-a-terminal-is/",
                    118'000, 120'000, 2ull << 30, 2ull << 30, kCacheNow - 125s},
                   {"name\033]0;owned\a", 1, 1, 1 << 20, 0, kCacheNow}};
  cache.pins = {{"job pytorch-training-2026-11-24-08-21-03-815, channel train", true, 2ull << 30},
                {"s3://yard/in/", false, 1 << 20}};
  return cache;
}

TEST(CacheView, FitsEveryTerminal) {
  for (const int width : {60, 80, 120, 200}) {
    const OutputStyle style{.colours = true, .live = true, .unicode = true, .columns = width};
    const std::string page = cache_page(style, example(), kCacheNow);
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), width) << line;
    EXPECT_EQ(page.find("\033]"), std::string::npos) << page;
    EXPECT_NE(page.find("2.0 GiB"), std::string::npos) << page;
  }
}

TEST(CacheView, IsWholeWithoutATerminal) {
  const std::string page = cache_page({}, example(), kCacheNow);
  EXPECT_NE(page.find("a-name-that-is-longer-than-a-line-of-a-terminal-is/"), std::string::npos);
  EXPECT_NE(page.find("2m05s ago"), std::string::npos) << page;
  EXPECT_NE(page.find("3.0 GiB of 46.0 GiB used, 2.0 GiB of 41.0 GiB pinned"), std::string::npos)
      << page;
  EXPECT_EQ(cache_page({}, {}, kCacheNow), "0 B of 0 B used, 0 B of 0 B pinned\n");
}

TEST(CacheView, HasTheEntriesDirectlyBelowAPrefix) {
  const auto names = [](const std::string& bucket, const std::string& prefix) {
    CachedEntries entries(bucket, prefix);
    for (const char* key : {"in/a/1", "in/a/2", "in/b", "in/b", "into", "x"})
      entries.add({"yard", key, "v", 10, std::string_view(key) == "in/b", kCacheNow});
    entries.add({"other", "in/a/1", "v", 5, false, kCacheNow});
    std::string text;
    for (const auto& each : entries.all())
      text += each.name + " " + std::to_string(each.objects) + "/" + std::to_string(each.blocks) +
              " " + std::to_string(each.bytes) + "/" + std::to_string(each.pinned_bytes) + "\n";
    return text;
  };
  EXPECT_EQ(names("", ""), "s3://other/ 1/1 5/0\ns3://yard/ 5/6 60/20\n");
  EXPECT_EQ(names("yard", ""), "in/ 3/4 40/20\ninto 1/1 10/0\nx 1/1 10/0\n");
  EXPECT_EQ(names("yard", "in/"), "a/ 2/2 20/0\nb 1/2 20/20\n");
  EXPECT_EQ(names("yard", "in"), "in/ 3/4 40/20\ninto 1/1 10/0\n");
  EXPECT_EQ(names("yard", "in/a/1"), "1 1/1 10/0\n");
  EXPECT_EQ(names("yard", "y"), "");
}

TEST(CacheView, HasExactNumbersInJson) {
  const Json json = to_json(example());
  EXPECT_EQ(json["Entries"][0]["Bytes"], 2ull << 30);
  EXPECT_EQ(json["Entries"][0]["LastUsed"], 1'763'631'775.0);
  EXPECT_EQ(json["Pins"][0]["Running"], true);
  EXPECT_EQ(json["PinnedBytesMax"], 41ull << 30);
}

}  // namespace
}  // namespace trainyard::cli
