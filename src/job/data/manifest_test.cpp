#include "data/manifest.hpp"

#include <gtest/gtest.h>

namespace trainyard::data {
namespace {

std::string text_of(const Result<Manifest>& manifest) {
  if (!manifest) return manifest.error().message;
  std::string text;
  for (const auto& entry : manifest->entries)
    text += entry.from.bucket + ":" + entry.from.key + "|" + entry.rest + " ";
  return text;
}

TEST(Manifest, PrefixAndRestFormTheKey) {
  EXPECT_EQ(text_of(read_manifest(R"([{"prefix":"s3://b/some/"},"a/1","2"])")),
            "b:some/a/1|a/1 b:some/2|2 ");
  EXPECT_EQ(text_of(read_manifest(R"([{"prefix":"s3://b/part-"},"1"])")), "b:part-1|1 ");
  EXPECT_EQ(text_of(read_manifest(R"([{"prefix":"s3://b"},"k"])")), "b:k|k ");
}

TEST(Manifest, ReportsInvalidManifests) {
  const std::pair<const char*, const char*> faults[] = {
      {"", "not JSON"},
      {"{}", "must be a JSON array"},
      {"[]", "must be a JSON array"},
      {R"(["a"])", "first entry"},
      {R"([{"prefix":1},"a"])", "prefix"},
      {R"([{"prefix":"/b/"},"a"])", "s3://"},
      {R"([{"prefix":"s3://b/"}])", "must list at least one object"},
      {R"([{"prefix":"s3://b/"},7])", "entry 1"},
      {R"([{"prefix":"s3://b/"},"a",""])", "entry 2"},
  };
  for (const auto& [text, expected] : faults) {
    const auto manifest = read_manifest(text);
    ASSERT_FALSE(manifest) << text;
    EXPECT_EQ(manifest.error().kind, Kind::invalid);
    EXPECT_NE(manifest.error().message.find(expected), std::string::npos)
        << manifest.error().message;
  }
}

std::string text_of(const Result<std::vector<Attribute>>& attributes) {
  if (!attributes) return attributes.error().message;
  std::string text;
  for (const auto& each : *attributes)
    text += (each.from ? "@" + each.from->bucket + ":" + each.from->key : each.text) + " ";
  return text;
}

TEST(AugmentedManifest, AttributesAreInTheRequestedOrder) {
  const char* line =
      R"({"class":1,"source-ref":"s3://b/1.jpg","name":"cat","box":{"x":[1,2]},"no":null})";
  EXPECT_EQ(text_of(read_augmented_line(line, {"source-ref", "class"})), "@b:1.jpg 1 ");
  EXPECT_EQ(text_of(read_augmented_line(line, {"name", "box", "no"})), "cat {\"x\":[1,2]} null ");
  EXPECT_EQ(text_of(read_augmented_line(line, {})), "");
  EXPECT_EQ(text_of(read_augmented_line(line, {"label"})), "attribute label not found");
  EXPECT_EQ(text_of(read_augmented_line("[]", {"a"})), "not a JSON object");
  EXPECT_NE(text_of(read_augmented_line(R"({"a-ref":"b/c"})", {"a-ref"})).find("s3://"),
            std::string::npos);
  EXPECT_NE(text_of(read_augmented_line(R"({"a-ref":"s3://b/"})", {"a-ref"})).find("has no key"),
            std::string::npos);
  EXPECT_NE(text_of(read_augmented_line("{", {"a"})).find("not JSON"), std::string::npos);
}

TEST(AugmentedManifest, BlankLinesAreSkipped) {
  EXPECT_EQ(*split_lines("{\"a\":1}\r\n\n  \n{}"),
            (std::vector<std::string_view>{"{\"a\":1}", "{}"}));
  EXPECT_EQ(split_lines("\n \n").error().message, "the manifest has no lines");
  EXPECT_FALSE(split_lines(std::string(kAugmentedLineBytesMax + 1, 'x')));
}

}  // namespace
}  // namespace trainyard::data
