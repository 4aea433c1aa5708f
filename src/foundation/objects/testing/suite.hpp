// ObjectsSuite tests the contract of Objects for any implementation. A test program includes this
// header and calls INSTANTIATE_TEST_SUITE_P(.., ObjectsSuite, ..) with its implementations:
// suite_test.cpp with memory and directory, api/operations with the S3 client.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <thread>

#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "base/text.hpp"
#include "objects/checksum.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

// An empty Objects, and the resources that must outlive it.
struct Subject {
  std::shared_ptr<void> resources;
  std::unique_ptr<Objects> objects;
};
struct Maker {
  std::string name;
  std::function<Subject(Clock&, Random&)> make;
  friend void PrintTo(const Maker& maker, std::ostream* out) { *out << maker.name; }
};

// Returns the text of the error's Fault: "key_missing"; "": the error has none.
inline std::string fault_text(const Error& error) {
  const auto fault = error.detail.as<Fault>();
  return fault ? std::string(to_string(*fault)) : "";
}

class ObjectsSuite : public testing::TestWithParam<Maker> {
 protected:
  void SetUp() override {
    subject_ = GetParam().make(clock_, random_);
    if (!subject_.objects) GTEST_SKIP() << "cannot be made on this machine";
    ASSERT_TRUE(objects().create_bucket("bucket", "eu-west-1"));
  }
  void TearDown() override { subject_.objects.reset(); }

  Objects& objects() { return *subject_.objects; }
  ObjectInfo put(const std::string& key, const std::string& bytes, const PutOptions& options = {}) {
    auto info = write_all(objects(), "bucket", key, bytes, options);
    EXPECT_TRUE(info) << key << ": " << info.error().message;
    return info ? *info : ObjectInfo{};
  }
  std::string get(const std::string& key) {
    auto bytes = read_all(objects(), "bucket", key, 256 << 20);
    return bytes ? *bytes : fault_text(bytes.error());
  }
  // Lists all pages: keys and [common prefixes], one line each, with a blank line between pages.
  std::string pages(ListQuery query) {
    std::string text;
    for (int page = 0; page < 10'000; ++page) {
      auto got = objects().list("bucket", query);
      if (!got) return got.error().message;
      for (const auto& object : got->objects) text += object.key + "\n";
      for (const auto& prefix : got->prefixes) text += "[" + prefix + "]\n";
      if (got->next.empty()) return text;
      text += "\n";
      query.start_after = got->next;
    }
    return "endless";
  }

  TestClock clock_{from_milliseconds(1'795'000'000'123)};
  SeededRandom random_{7};
  Subject subject_;
};

inline std::string result_text(const auto& result) {
  if (result) return "ok";
  return std::string(to_string(result.error().kind)) + " " + fault_text(result.error());
}

inline std::string many_bytes(size_t bytes, uint64_t seed) {
  SeededRandom random(seed);
  std::string text(bytes, '\0');
  random.fill(std::as_writable_bytes(std::span(text)));
  return text;
}

TEST_P(ObjectsSuite, CreatesListsAndDeletesBuckets) {
  EXPECT_EQ(result_text(objects().create_bucket("bucket", "eu-west-1")), "conflict bucket_exists");
  EXPECT_TRUE(objects().create_bucket("another", "eu-west-1"));
  const auto all = objects().list_buckets();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].name, "another");
  EXPECT_EQ((*all)[1].name, "bucket");
  EXPECT_EQ(objects().head_bucket("bucket")->region, "eu-west-1");
  put("key", "x");
  EXPECT_EQ(result_text(objects().delete_bucket("bucket")), "conflict bucket_not_empty");
  ASSERT_TRUE(objects().remove("bucket", "key"));
  EXPECT_TRUE(objects().delete_bucket("bucket"));
  EXPECT_EQ(result_text(objects().head_bucket("bucket")), "not_found bucket_missing");
  EXPECT_EQ(result_text(objects().delete_bucket("bucket")), "not_found bucket_missing");
}

TEST_P(ObjectsSuite, RejectsInvalidBucketNames) {
  for (const char* name :
       {"", "ab", "Upper", "under_score", "-begin", "end-", "two..dots", "10.0.0.1", "a/b", ".",
        "..", "0123456789012345678901234567890123456789012345678901234567890123"})
    EXPECT_EQ(result_text(objects().create_bucket(name, "r")), "invalid bad_bucket_name") << name;
}

TEST_P(ObjectsSuite, GetReturnsThePutObject) {
  PutOptions options;
  options.content_type = "text/plain";
  options.headers = {{"cache-control", "no-cache"}};
  options.metadata = {{"colour", "gr\xc3\xbcn"}, {"empty", ""}};
  const ObjectInfo put_info = put("some/key", "hello", options);
  EXPECT_EQ(put_info.etag, "5d41402abc4b2a76b9719d911017c592");
  auto reader = objects().get("bucket", "some/key");
  ASSERT_TRUE(reader);
  const ObjectInfo& info = (*reader)->info();
  EXPECT_EQ(info.key, "some/key");
  EXPECT_EQ(info.bytes, 5u);
  EXPECT_EQ(info.etag, put_info.etag);
  EXPECT_EQ(info.content_type, "text/plain");
  EXPECT_EQ(info.headers, options.headers);
  EXPECT_EQ(info.metadata, options.metadata);
  EXPECT_EQ(get("some/key"), "hello");
  EXPECT_EQ(objects().head("bucket", "some/key")->etag, put_info.etag);
}

TEST_P(ObjectsSuite, ListingsContainTheStorageClass) {
  PutOptions options;
  options.headers = {{"cache-control", "no-cache"}, {kStorageClassHeader, "STANDARD_IA"}};
  put("rare", "hello", options);
  put("usual", "hello", {});
  const auto page = objects().list("bucket", {});
  ASSERT_TRUE(page);
  ASSERT_EQ(page->objects.size(), 2u);
  using Headers = std::map<std::string, std::string>;
  EXPECT_EQ(page->objects[0].headers, (Headers{{kStorageClassHeader, "STANDARD_IA"}}));
  EXPECT_EQ(page->objects[1].headers, Headers());
  EXPECT_EQ(objects().head("bucket", "rare")->headers.at(kStorageClassHeader), "STANDARD_IA");
}

TEST_P(ObjectsSuite, ErrorsNameMissingBucketsAndKeys) {
  EXPECT_EQ(result_text(objects().get("bucket", "no")), "not_found key_missing");
  EXPECT_EQ(result_text(objects().head("bucket", "no")), "not_found key_missing");
  EXPECT_EQ(result_text(objects().get("nobucket", "no")), "not_found bucket_missing");
  EXPECT_EQ(result_text(write_all(objects(), "nobucket", "no", "x")), "not_found bucket_missing");
  EXPECT_EQ(result_text(objects().list("nobucket", {})), "not_found bucket_missing");
  EXPECT_EQ(result_text(objects().remove("bucket", "no")), "ok");
  EXPECT_EQ(result_text(objects().remove("nobucket", "no")), "not_found bucket_missing");
}

TEST_P(ObjectsSuite, AcceptsAnyUtf8AsKeyWithinItsBucket) {
  const std::vector<std::string> keys = {"a",
                                         "a/b",
                                         "a/",
                                         "a//b",
                                         "/",
                                         "//",
                                         "/a",
                                         "..",
                                         "../x",
                                         "../../etc/passwd",
                                         ".",
                                         "./a",
                                         "a/../b",
                                         "a/./b",
                                         "da/ob",
                                         "oa",
                                         "da",
                                         "c",
                                         "a b+c%20d",
                                         "q?x=1&y#z",
                                         "\xc3\xbc/\xe2\x82\xac",
                                         "new\nline",
                                         "\x01\x1f\x7f",
                                         "'\"<>&",
                                         "\\",
                                         "x/" + std::string(199, 'y'),
                                         "x/" + std::string(200, 'y'),
                                         "x/" + std::string(201, 'y'),
                                         "x/" + std::string(200, 'y') + "/z",
                                         "x/" + std::string(200, 'y') + "!",
                                         "x/" + std::string(400, 'y'),
                                         std::string(1024, 'k'),
                                         std::string(1024, '/'),
                                         std::string(1022, '/') + "ab"};
  for (const auto& key : keys) put(key, "bytes of " + key);
  for (const auto& key : keys) EXPECT_EQ(get(key), "bytes of " + key) << to_hex(key);

  std::vector<std::string> ordered = keys;
  std::sort(ordered.begin(), ordered.end());
  std::string expected;
  for (const auto& key : ordered) expected += key + "\n";
  EXPECT_EQ(pages({}), expected);

  for (const auto& key : keys) ASSERT_TRUE(objects().remove("bucket", key));
  EXPECT_EQ(pages({}), "");
  EXPECT_TRUE(objects().delete_bucket("bucket"));
}

TEST_P(ObjectsSuite, RejectsInvalidKeys) {
  EXPECT_EQ(result_text(write_all(objects(), "bucket", std::string(1025, 'k'), "")),
            "invalid key_too_long");
  EXPECT_EQ(write_all(objects(), "bucket", "", "").error().kind, Kind::invalid);
}

TEST_P(ObjectsSuite, GetReturnsRanges) {
  put("digits", "0123456789");
  const auto cut = [&](Range range) {
    auto reader = objects().get("bucket", "digits", range);
    if (!reader) return result_text(reader);
    char buffer[32];
    std::string text;
    for (int i = 0; i < 32; ++i) {
      const auto read = (*reader)->read(std::span(buffer, 3));
      if (!read || *read == 0) break;
      text.append(buffer, *read);
    }
    return text + " of " + std::to_string((*reader)->range().first) + "-" +
           std::to_string((*reader)->range().last);
  };
  EXPECT_EQ(cut({0, 0, {}}), "0 of 0-0");
  EXPECT_EQ(cut({2, 5, {}}), "2345 of 2-5");
  EXPECT_EQ(cut({8, 100, {}}), "89 of 8-9");
  EXPECT_EQ(cut({7, UINT64_MAX, {}}), "789 of 7-9");
  EXPECT_EQ(cut({0, 0, 3}), "789 of 7-9");
  EXPECT_EQ(cut({0, 0, 100}), "0123456789 of 0-9");
  EXPECT_EQ(cut({10, 20, {}}), "invalid bad_range");
  EXPECT_EQ(cut({0, 0, 0}), "invalid bad_range");
  put("empty", "");
  EXPECT_EQ(get("empty"), "");
  EXPECT_EQ(result_text(objects().get("bucket", "empty", Range{0, 5, {}})), "invalid bad_range");
}

TEST_P(ObjectsSuite, PutIsVisibleAsAWholeOrNotAtAll) {
  {
    auto writer = objects().put("bucket", "key");
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->write(std::string_view("half")));
    EXPECT_EQ(get("key"), "key_missing");
  }
  EXPECT_EQ(get("key"), "key_missing");
  EXPECT_EQ(pages({}), "");
  put("key", "old");
  auto reader = objects().get("bucket", "key");
  auto writer = objects().put("bucket", "key");
  ASSERT_TRUE((*writer)->write(std::string_view("new")));
  EXPECT_EQ(get("key"), "old");
  ASSERT_TRUE((*writer)->commit());
  EXPECT_EQ(get("key"), "new");
  ASSERT_TRUE(objects().remove("bucket", "key"));
  char buffer[8];
  const auto read = (*reader)->read(buffer);
  ASSERT_TRUE(read);
  EXPECT_EQ(std::string(buffer, *read), "old") << "a reader reads the object that it opened";
}

TEST_P(ObjectsSuite, VerifiesAndStoresChecksums) {
  // Known values for "123456789", from the catalogues of CRCs and RFCs.
  PutOptions options;
  options.checksums = {{"crc32", "y/Q5Jg=="},
                       {"crc32c", "4waSgw=="},
                       {"crc64nvme", "rosUhgp5mIg="},
                       {"sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="},
                       {"sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="}};
  options.md5 = "JfnnlDI7RTiF9RgfG2JNCw==";
  EXPECT_EQ(put("sum", "123456789", options).checksums.size(), 5u);
  EXPECT_EQ(objects().head("bucket", "sum")->checksums, options.checksums);
  for (const auto& [algorithm, value] : options.checksums) {
    PutOptions one;
    one.checksums = {{algorithm, value}};
    EXPECT_EQ(result_text(write_all(objects(), "bucket", "bad", "12345678X", one)),
              "corrupt checksum_mismatch");
    auto writer = objects().put("bucket", "trailer", PutOptions{.checksums = {{algorithm, ""}}});
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->write(std::string_view("123456789")));
    (*writer)->expect_checksum(algorithm, value);
    const auto info = (*writer)->commit();
    ASSERT_TRUE(info) << info.error().message;
    EXPECT_EQ(info->checksums.at(algorithm), value);
    writer = objects().put("bucket", "trailer", PutOptions{.checksums = {{algorithm, ""}}});
    ASSERT_TRUE((*writer)->write(std::string_view("12345678X")));
    (*writer)->expect_checksum(algorithm, value);
    EXPECT_EQ(result_text((*writer)->commit()), "corrupt checksum_mismatch");
  }
  PutOptions md5;
  md5.md5 = options.md5;
  EXPECT_EQ(result_text(write_all(objects(), "bucket", "bad", "12345678X", md5)),
            "corrupt checksum_mismatch");
  EXPECT_EQ(get("bad"), "key_missing");
  PutOptions unknown;
  unknown.checksums = {{"crc16", "AAAA"}};
  EXPECT_EQ(write_all(objects(), "bucket", "bad", "x", unknown).error().kind, Kind::invalid);
}

TEST_P(ObjectsSuite, RejectsALengthThatDiffersFromTheDeclaredOne) {
  for (const uint64_t announced : {2u, 9u}) {
    auto writer = objects().put("bucket", "key", PutOptions{.bytes = announced});
    ASSERT_TRUE(writer);
    // Either call may fail, depending on the implementation.
    auto written = (*writer)->write(std::string_view("hello"));
    if (written)
      written = [&]() -> Result<void> {
        TRY((*writer)->commit());
        return ok();
      }();
    EXPECT_EQ(result_text(written), "corrupt length_mismatch");
  }
  EXPECT_EQ(get("key"), "key_missing");
}

TEST_P(ObjectsSuite, OnlyIfAbsentNeverReplaces) {
  put("key", "first", PutOptions{.only_if_absent = true});
  EXPECT_EQ(result_text(write_all(objects(), "bucket", "key", "second",
                                  PutOptions{.only_if_absent = true})),
            "conflict key_exists");
  EXPECT_EQ(get("key"), "first");
}

TEST_P(ObjectsSuite, OnlyIfEtagReplacesThatObjectOnly) {
  const auto replace = [&](const std::string& etag, const std::string& bytes) {
    return result_text(
        write_all(objects(), "bucket", "key", bytes, PutOptions{.only_if_etag = etag}));
  };
  EXPECT_EQ(replace("*", "x"), "not_found key_missing");
  EXPECT_EQ(replace(std::string(32, '0'), "x"), "not_found key_missing");
  const std::string first = put("key", "first").etag;
  EXPECT_EQ(replace(std::string(32, '0'), "x"), "conflict etag_differs");
  EXPECT_EQ(get("key"), "first");
  EXPECT_EQ(replace(first, "second"), "ok");
  EXPECT_EQ(replace(first, "third"), "conflict etag_differs");
  EXPECT_EQ(replace("*", "third"), "ok");
  EXPECT_EQ(get("key"), "third");

  const auto id = objects().start_upload("bucket", "key");
  ASSERT_TRUE(id);
  auto writer = objects().put_part("bucket", "key", *id, 1, PutOptions{.bytes = 4});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->write(std::string_view("part")));
  const std::vector<PartInfo> parts{{1, (*writer)->commit()->etag}};
  const auto complete = [&](const std::string& etag) {
    return result_text(
        objects().complete_upload("bucket", "key", *id, parts, {.only_if_etag = etag}));
  };
  EXPECT_EQ(complete(first), "conflict etag_differs");
  EXPECT_EQ(complete(objects().head("bucket", "key")->etag), "ok");
  EXPECT_EQ(get("key"), "part");
}

TEST_P(ObjectsSuite, BucketsHaveTags) {
  ASSERT_TRUE(objects().set_bucket_tags("bucket", {{"team", "blue"}}));
  ASSERT_TRUE(objects().set_bucket_tags("bucket", {}));
  EXPECT_EQ(objects().head_bucket("bucket")->region, "eu-west-1");
  EXPECT_EQ(result_text(objects().set_bucket_tags("no-bucket", {})), "not_found bucket_missing");
}

TEST_P(ObjectsSuite, SetTagsChangesOnlyTheTags) {
  const std::map<std::string, std::string> tags{{"team", "blue"}, {"run \xc3\xbc", "a+b=c/d"}};
  const ObjectInfo before = put("key", "bytes", PutOptions{.metadata = {{"a", "b"}}});
  auto reader = objects().get("bucket", "key");
  ASSERT_TRUE(objects().set_tags("bucket", "key", tags));
  ASSERT_TRUE(objects().set_tags("bucket", "key", {{"team", "red"}}));
  const auto after = objects().head("bucket", "key");
  ASSERT_TRUE(after);
  EXPECT_EQ(after->etag, before.etag);
  EXPECT_EQ(after->metadata, before.metadata);
  EXPECT_EQ(get("key"), "bytes");
  EXPECT_EQ(objects().list("bucket", {})->objects.size(), 1u);
  char buffer[8];
  EXPECT_EQ(*(*reader)->read(buffer), 5u) << "a reader reads the object that it opened";
  EXPECT_EQ(result_text(objects().set_tags("bucket", "no", tags)), "not_found key_missing");
  put("tagged", "x", PutOptions{.tags = tags});
  EXPECT_EQ(get("tagged"), "x");
}

TEST_P(ObjectsSuite, ListsInKeyOrderWithPrefixAndDelimiter) {
  for (const char* key : {"a", "a!", "a/b", "a/c/d", "a/c/e", "a0", "b/x", "b/y/z", "c"})
    put(key, key);
  EXPECT_EQ(pages({}), "a\na!\na/b\na/c/d\na/c/e\na0\nb/x\nb/y/z\nc\n");
  EXPECT_EQ(pages({.delimiter = "/"}), "a\na!\na0\nc\n[a/]\n[b/]\n");
  EXPECT_EQ(pages({.prefix = "a/", .delimiter = "/"}), "a/b\n[a/c/]\n");
  EXPECT_EQ(pages({.prefix = "a/c", .delimiter = "/"}), "[a/c/]\n");
  EXPECT_EQ(pages({.prefix = "a"}), "a\na!\na/b\na/c/d\na/c/e\na0\n");
  EXPECT_EQ(pages({.prefix = "nothing"}), "");
  EXPECT_EQ(pages({.start_after = "a/c/d"}), "a/c/e\na0\nb/x\nb/y/z\nc\n");
  EXPECT_EQ(pages({.start_after = "a/zzz"}), "a0\nb/x\nb/y/z\nc\n");
  EXPECT_EQ(pages({.delimiter = "c/"}), "a\na!\na/b\na0\nb/x\nb/y/z\nc\n[a/c/]\n");
  EXPECT_EQ(pages({.keys_max = 4}), "a\na!\na/b\na/c/d\n\na/c/e\na0\nb/x\nb/y/z\n\nc\n");
  EXPECT_EQ(pages({.delimiter = "/", .keys_max = 2}), "a\na!\n\na0\n[a/]\n\nc\n[b/]\n");
  EXPECT_EQ(pages({.delimiter = "/", .keys_max = 1}), "a\n\na!\n\n[a/]\n\na0\n\n[b/]\n\nc\n");
  const auto page = objects().list("bucket", {.prefix = "a/b"});
  ASSERT_EQ(page->objects.size(), 1u);
  EXPECT_EQ(page->objects[0].bytes, 3u);
  EXPECT_EQ(page->objects[0].etag, objects().head("bucket", "a/b")->etag);
}

TEST_P(ObjectsSuite, ListingEqualsTheSimpleReference) {
  SeededRandom random(11);
  std::set<std::string> keys;
  for (int i = 0; i < 150; ++i) {
    std::string key;
    for (uint64_t n = 1 + random.below(8); n > 0; --n) key += "ab/!~"[random.below(5)];
    if (random.chance(10))
      key += std::string(198 + random.below(4), 'x') + (random.chance(2) ? "/y" : "z");
    keys.insert(key);
    put(key, "");
  }
  for (int i = 0; i < 60; ++i) {
    ListQuery query;
    for (uint64_t n = random.below(4); n > 0; --n) query.prefix += "ab/!"[random.below(4)];
    if (random.chance(2)) query.delimiter = random.chance(4) ? "b" : "/";
    if (random.chance(3))
      query.start_after = *std::next(keys.begin(), long(random.below(keys.size())));
    query.keys_max = 1 + random.below(9);
    std::set<std::string> expected, found;
    for (const auto& key : keys) {
      if (!key.starts_with(query.prefix) || key <= query.start_after) continue;
      const size_t at =
          query.delimiter.empty() ? key.npos : key.find(query.delimiter, query.prefix.size());
      const std::string shown =
          at == key.npos ? key : "[" + key.substr(0, at + query.delimiter.size()) + "]";
      if (shown != "[" + query.start_after + "]") expected.insert(shown);
    }
    const std::string listed = pages(query);
    for (const auto line : split(listed, '\n'))
      EXPECT_TRUE(line.empty() || found.emplace(line).second) << "twice: " << line;
    EXPECT_EQ(found, expected) << "prefix '" << query.prefix << "' delimiter '" << query.delimiter
                               << "' after '" << query.start_after << "' max " << query.keys_max;
  }
}

// Returns the bytes of a part of an object of the test's bucket, or the error.
inline std::string get_part(Objects& objects, const std::string& key, uint32_t number) {
  const auto reader = objects.get("bucket", key, Range{.part = number});
  if (!reader) return result_text(reader);
  const Range range = (*reader)->range();
  std::string bytes(range.last + 1 - range.first, '\0');
  size_t at = 0;
  while (at < bytes.size())
    if (const auto read = *(*reader)->read(std::span(bytes).subspan(at)); read > 0)
      at += read;
    else
      break;
  EXPECT_EQ(bytes.size(), at);
  return bytes;
}

TEST_P(ObjectsSuite, CompletingAnUploadMakesOneObject) {
  const std::string first = many_bytes(kPartBytesMin, 1),
                    second = many_bytes(kPartBytesMin + 77, 2), last = "the end";
  PutOptions options;
  options.content_type = "application/x-tar";
  options.metadata = {{"a", "b"}};
  options.checksums = {{"crc32", ""}};
  const auto id = objects().start_upload("bucket", "big", options);
  ASSERT_TRUE(id) << id.error().message;
  std::vector<PartInfo> parts;
  const auto put_part = [&](uint32_t number, const std::string& bytes) {
    auto writer =
        objects().put_part("bucket", "big", *id, number, PutOptions{.bytes = bytes.size()});
    ASSERT_TRUE(writer) << writer.error().message;
    ASSERT_TRUE((*writer)->write(bytes));
    const auto info = (*writer)->commit();
    ASSERT_TRUE(info) << info.error().message;
    parts.push_back({number, info->etag});
  };
  put_part(1, first);
  put_part(5, second);
  put_part(7, last);
  EXPECT_EQ(get("big"), "key_missing");
  EXPECT_EQ(objects().list_uploads("bucket", "b")->size(), 1u);
  EXPECT_EQ(objects().list_uploads("bucket", "c")->size(), 0u);
  const auto listed = objects().list_parts("bucket", "big", *id);
  ASSERT_EQ(listed->size(), 3u);
  EXPECT_EQ((*listed)[1].number, 5u);
  EXPECT_EQ((*listed)[1].bytes, second.size());
  EXPECT_EQ((*listed)[1].etag, parts[1].etag);

  const auto info = objects().complete_upload("bucket", "big", *id, parts);
  ASSERT_TRUE(info) << info.error().message;
  const std::string md5s =
      checksum_of("md5", first) + checksum_of("md5", second) + checksum_of("md5", last);
  EXPECT_EQ(info->etag, to_hex(checksum_of("md5", md5s)) + "-3");
  EXPECT_EQ(get("big"), first + second + last);
  const auto head = objects().head("bucket", "big");
  EXPECT_EQ(head->content_type, "application/x-tar");
  EXPECT_EQ(head->metadata, options.metadata);
  EXPECT_EQ(head->bytes, first.size() + second.size() + last.size());
  EXPECT_TRUE(get_part(objects(), "big", 1) == first);
  EXPECT_TRUE(get_part(objects(), "big", 5) == second) << "parts keep their numbers";
  EXPECT_EQ(get_part(objects(), "big", 7), last);
  EXPECT_EQ(get_part(objects(), "big", 2), "invalid part_missing");
  put("plain", "in one piece");
  EXPECT_EQ(get_part(objects(), "plain", 1), "in one piece");
  EXPECT_EQ(get_part(objects(), "plain", 2), "invalid part_missing");
  const std::string sums =
      checksum_of("crc32", first) + checksum_of("crc32", second) + checksum_of("crc32", last);
  EXPECT_EQ(head->checksums.at("crc32"), to_base64(checksum_of("crc32", sums)) + "-3");
  EXPECT_EQ(objects().list_uploads("bucket", "")->size(), 0u);
  const auto again = objects().complete_upload("bucket", "big", *id, parts);
  ASSERT_TRUE(again) << "a client that missed the answer repeats the request";
  EXPECT_EQ(again->etag, info->etag);
}

TEST_P(ObjectsSuite, UploadsMayHaveAChecksumOfTheWholeObject) {
  for (const char* algorithm : {"crc32", "crc32c", "crc64nvme"}) {
    const std::string first = many_bytes(kPartBytesMin + 3, 3), last = many_bytes(1234, 4);
    PutOptions options;
    options.checksums = {{algorithm, ""}};
    options.checksum_of_whole = true;
    const auto id = objects().start_upload("bucket", "big", options);
    ASSERT_TRUE(id);
    std::vector<PartInfo> parts;
    for (const auto& bytes : {first, last}) {
      auto writer = objects().put_part("bucket", "big", *id, uint32_t(parts.size() + 1),
                                       PutOptions{.bytes = bytes.size()});
      ASSERT_TRUE((*writer)->write(bytes));
      const auto info = (*writer)->commit();
      ASSERT_TRUE(info) << info.error().message;
      parts.push_back({uint32_t(parts.size() + 1), info->etag});
    }
    const auto info = objects().complete_upload("bucket", "big", *id, parts);
    ASSERT_TRUE(info) << info.error().message;
    EXPECT_EQ(objects().head("bucket", "big")->checksums.at(algorithm),
              to_base64(checksum_of(algorithm, first + last)));
  }
}

TEST_P(ObjectsSuite, RejectsInvalidUploads) {
  // The S3 client reports the error only after the part has been sent.
  const auto put_part = [&](const std::string& key, const std::string& upload_id,
                            uint32_t number) -> Result<ObjectInfo> {
    const auto writer = TRY(objects().put_part("bucket", key, upload_id, number));
    return writer->commit();
  };
  EXPECT_EQ(result_text(put_part("key", "../../../etc", 1)), "not_found upload_missing");
  EXPECT_EQ(result_text(objects().complete_upload("bucket", "key", "", {{1, "x"}})),
            "not_found upload_missing");
  EXPECT_EQ(result_text(objects().abort_upload("bucket", "key", std::string(32, '0'))),
            "not_found upload_missing");
  const std::string id = *objects().start_upload("bucket", "key");
  EXPECT_EQ(result_text(put_part("another", id, 1)), "not_found upload_missing");
  EXPECT_EQ(put_part("key", id, 0).error().kind, Kind::invalid);
  EXPECT_EQ(put_part("key", id, 10'001).error().kind, Kind::invalid);
  std::vector<PartInfo> parts;
  for (uint32_t number : {1u, 2u}) {
    auto writer = objects().put_part("bucket", "key", id, number, PutOptions{.bytes = 5});
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->write(std::string_view("small")));
    parts.push_back({number, (*writer)->commit()->etag});
  }
  const auto complete = [&](std::vector<PartInfo> requested) {
    return result_text(objects().complete_upload("bucket", "key", id, requested));
  };
  EXPECT_EQ(complete(parts), "invalid part_too_small");
  EXPECT_EQ(complete({parts[1], parts[0]}), "invalid part_order");
  EXPECT_EQ(complete({parts[0], parts[0]}), "invalid part_order");
  EXPECT_EQ(complete({{3, parts[0].etag}}), "invalid part_invalid");
  EXPECT_EQ(complete({{1, std::string(32, '0')}}), "invalid part_invalid");
  EXPECT_EQ(complete({parts[1]}), "ok") << "only the last part, which may be small";
  EXPECT_EQ(get("key"), "small");
  const std::string dropped = *objects().start_upload("bucket", "key");
  EXPECT_TRUE(objects().abort_upload("bucket", "key", dropped));
  EXPECT_EQ(result_text(objects().abort_upload("bucket", "key", dropped)),
            "not_found upload_missing");
}

TEST_P(ObjectsSuite, ManyThreadsPutAndRemoveConcurrently) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < 25; ++i) {
        // Keys in directories that other threads remove and make again.
        const std::string key = "shared/" + std::to_string(i % 3) + "/" + std::to_string(thread);
        const std::string bytes(100, char('a' + thread));
        auto info = write_all(objects(), "bucket", key, bytes);
        EXPECT_TRUE(info) << info.error().message;
        const auto read = read_all(objects(), "bucket", key, 1000);
        EXPECT_TRUE(read) << read.error().message;
        EXPECT_TRUE(read && *read == bytes);
        const auto listed = objects().list("bucket", {.prefix = key});
        EXPECT_TRUE(listed && listed->objects.size() == 1);
        EXPECT_TRUE(objects().remove("bucket", key));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pages({}), "");
}

}  // namespace trainyard::objects
