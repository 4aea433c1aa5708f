#include "objects/s3_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "net/http_server.hpp"
#include "objects/checksum.hpp"
#include "os/machine_clock.hpp"

namespace trainyard::objects {
namespace {

// An endpoint that answers by a function of the test, and records the requests.
class Endpoint final : public net::Handler {
 public:
  using Answer = std::function<void(net::Stream&, const std::string& body)>;

  explicit Endpoint(Answer answer) : answer_(std::move(answer)) {
    auto server = net::serve_http({.listen = "127.0.0.1:0"}, *this);
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  ~Endpoint() override { server_->stop(0ms); }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  std::vector<std::string> requested() {
    MutexLock lock(mutex_);
    return requested_;
  }

  Choice choose(const net::RequestHead&) override { return {net::Intake::streamed, 0}; }
  void handle(net::Request, std::unique_ptr<net::Responder>) override {}
  void stream(net::Stream& stream) override {
    std::string body;
    char buffer[4096];
    for (;;) {
      const auto bytes = stream.read(buffer);
      if (!bytes || *bytes == 0) break;
      body.append(buffer, *bytes);
    }
    {
      MutexLock lock(mutex_);
      requested_.push_back(stream.head().method + " " + stream.head().target);
    }
    answer_(stream, body);
  }

 private:
  const Answer answer_;
  Mutex mutex_;
  std::vector<std::string> requested_ GUARDED_BY(mutex_);
  std::unique_ptr<net::HttpServer> server_;
};

void reply(net::Stream& stream, int status, std::string body = "",
           std::initializer_list<std::pair<const char*, std::string>> headers = {}) {
  net::Response response;
  response.status = status;
  for (const auto& [name, value] : headers) response.headers.add(name, value);
  response.body = std::move(body);
  EXPECT_TRUE(stream.reply(response));
}

std::string error_xml(const std::string& code, const std::string& message) {
  return "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code><Message>" + message +
         "</Message></Error>";
}

class S3ClientTest : public testing::Test {
 protected:
  std::unique_ptr<Objects> client_of(const std::string& url, int attempts_max = 4) {
    S3Settings settings;
    settings.endpoint = url;
    settings.region = "eu-west-1";
    settings.keys = [] { return signing::Keys{"AKID", "SECRET", "TOKEN"}; };
    settings.attempts_max = attempts_max;
    settings.first_pause = 1ms;
    settings.pause_max = 2ms;
    auto opened = open_s3(settings, clock_);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  os::MachineClock clock_;
};

TEST_F(S3ClientTest, SignsEveryRequestAndSendsKeysAsTheyAre) {
  bool verified = false;
  Endpoint endpoint([&](net::Stream& stream, const std::string& body) {
    const auto& head = stream.head();
    signing::HeaderList headers = head.headers.fields();
    const auto claim = signing::read_claim(head.target, headers);
    ASSERT_TRUE(claim && *claim) << claim.error().message;
    EXPECT_EQ((*claim)->access_key_id, "AKID");
    EXPECT_EQ((*claim)->session_token, "TOKEN");
    EXPECT_EQ((*claim)->scope.region, "eu-west-1");
    EXPECT_EQ((*claim)->payload_sha256, signing::sha256_hex(body));
    const auto valid =
        signing::verify(head.method, head.target, headers, **claim, "SECRET", clock_.now());
    EXPECT_TRUE(valid) << valid.error().message;
    verified = valid && body == "bytes";
    reply(stream, 200, "", {{"ETag", "\"abc\""}});
  });
  auto objects = client_of(endpoint.url());
  PutOptions options;
  options.metadata = {{"empty", ""}, {"a", "b  c"}};
  const auto info = write_all(*objects, "bucket", "a/../b//c d+e?\xc3\xbc", "bytes", options);
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->etag, "abc");
  EXPECT_TRUE(verified);
  EXPECT_EQ(endpoint.requested(),
            std::vector<std::string>{"PUT /bucket/a/../b//c%20d%2Be%3F%C3%BC"});
}

TEST_F(S3ClientTest, RetriesTemporaryFailures) {
  int requested = 0;
  Endpoint endpoint([&](net::Stream& stream, const std::string& body) {
    EXPECT_EQ(body, "bytes");
    if (++requested == 1)
      return reply(stream, 503, error_xml("SlowDown", "Please reduce your request rate."));
    if (requested == 2) return reply(stream, 500);
    reply(stream, 200, "", {{"ETag", "\"abc\""}});
  });
  auto objects = client_of(endpoint.url());
  EXPECT_TRUE(write_all(*objects, "bucket", "key", "bytes"));
  EXPECT_EQ(requested, 3);
}

TEST_F(S3ClientTest, FailsWithTheEndpointsMessage) {
  Endpoint endpoint([&](net::Stream& stream, const std::string&) {
    reply(stream, 503, error_xml("SlowDown", "Please reduce your request rate."));
  });
  auto objects = client_of(endpoint.url());
  const auto info = objects->get("bucket", "key");
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().kind, Kind::unavailable);
  EXPECT_EQ(info.error().message,
            "GET s3://bucket/key: 503 SlowDown: Please reduce your request rate. (4 attempts)");
  EXPECT_EQ(endpoint.requested().size(), 4u);
}

TEST_F(S3ClientTest, DoesNotRepeatRequestsThatMayHaveSucceeded) {
  Endpoint endpoint([&](net::Stream& stream, const std::string&) { reply(stream, 500); });
  auto objects = client_of(endpoint.url());
  EXPECT_EQ(
      write_all(*objects, "bucket", "key", "x", PutOptions{.only_if_absent = true}).error().kind,
      Kind::unavailable);
  EXPECT_EQ(endpoint.requested().size(), 1u);
}

TEST_F(S3ClientTest, ErrorsKeepTheirKinds) {
  struct Case {
    int status;
    const char* code;
    Kind kind;
    std::optional<Fault> fault;
  };
  for (const Case& one :
       {Case{404, "NoSuchBucket", Kind::not_found, Fault::bucket_missing},
        Case{404, "NoSuchKey", Kind::not_found, Fault::key_missing},
        Case{403, "AccessDenied", Kind::denied, {}}, Case{403, "SomethingNew", Kind::denied, {}},
        Case{416, "InvalidRange", Kind::invalid, Fault::bad_range},
        Case{507, "InsufficientStorage", Kind::exhausted, {}},
        Case{301, "PermanentRedirect", Kind::invalid, {}}}) {
    Endpoint endpoint([&](net::Stream& stream, const std::string&) {
      reply(stream, one.status, error_xml(one.code, "message of the endpoint"));
    });
    const auto got = client_of(endpoint.url())->get("bucket", "key");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().kind, one.kind) << one.code;
    EXPECT_EQ(got.error().detail.as<Fault>(), one.fault);
    EXPECT_NE(got.error().message.find("message of the endpoint"), std::string::npos);
    EXPECT_EQ(endpoint.requested().size(), 1u);
  }
}

TEST_F(S3ClientTest, HeadDistinguishesAMissingKeyFromAMissingBucket) {
  bool bucket_there = true;
  Endpoint endpoint([&](net::Stream& stream, const std::string&) {
    reply(stream, stream.head().target == "/bucket" && bucket_there ? 200 : 404);
  });
  auto objects = client_of(endpoint.url());
  EXPECT_TRUE(objects->head("bucket", "key").error().is(Fault::key_missing));
  bucket_there = false;
  EXPECT_TRUE(objects->head("bucket", "key").error().is(Fault::bucket_missing));
}

TEST_F(S3ClientTest, ABrokenGetContinuesAtTheSameByte) {
  std::string whole(3 << 20, '\0');
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = char(i / 1000);
  std::vector<std::string> ranges;
  std::string etag = "\"first\"";
  Endpoint endpoint([&](net::Stream& stream, const std::string&) {
    const std::string range(stream.head().headers.get("Range"));
    ranges.push_back(range);
    EXPECT_EQ(stream.head().headers.get("If-Match"), range.empty() ? "" : "\"first\"");
    if (!range.empty() && etag != "\"first\"")
      return reply(stream, 412, error_xml("PreconditionFailed", "changed"));
    const size_t from =
        range.empty() ? 0 : size_t(*parse_int(range.substr(6, range.find('-') - 6)));
    net::Headers headers;
    headers.add("ETag", etag);
    if (!range.empty())
      headers.add("Content-Range", "bytes " + std::to_string(from) + "-" +
                                       std::to_string(whole.size() - 1) + "/" +
                                       std::to_string(whole.size()));
    if (!stream.start(range.empty() ? 200 : 206, headers, whole.size() - from)) return;
    // The connection breaks after a megabyte.
    (void)!!stream.write(
        std::span(whole).subspan(from, std::min<size_t>(whole.size() - from, 1'000'000)));
  });
  auto objects = client_of(endpoint.url());
  const auto read = read_all(*objects, "bucket", "key", 16 << 20);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(*read == whole);
  EXPECT_GE(ranges.size(), 4u);

  auto reader = objects->get("bucket", "key");
  ASSERT_TRUE(reader);
  etag = "\"second\"";
  std::vector<char> buffer(1 << 20);
  Result<size_t> bytes = size_t(1);
  while (bytes && *bytes > 0) bytes = (*reader)->read(buffer);
  ASSERT_FALSE(bytes);
  EXPECT_NE(bytes.error().message.find("was replaced while it was read"), std::string::npos);
}

TEST_F(S3ClientTest, SendsALongPutInPartsAndAbortsItAsAWhole) {
  Mutex mutex;  // several parts arrive at once
  std::map<std::string, size_t> parts;
  std::atomic<bool> refuse = false;
  Endpoint endpoint([&](net::Stream& stream, const std::string& body) {
    const std::string target = stream.head().target, method = stream.head().method;
    if (target.ends_with("?uploads=")) return reply(stream, 200, "<R><UploadId>up</UploadId></R>");
    if (method == "PUT") {
      if (refuse) return reply(stream, 403, error_xml("AccessDenied", "no"));
      const MutexLock lock(mutex);
      parts[target] = body.size();
      return reply(stream, 200, "", {{"ETag", "\"e\""}});
    }
    if (method == "DELETE") return reply(stream, 204);
    EXPECT_NE(body.find("<PartNumber>3</PartNumber>"), std::string::npos);
    reply(stream, 200, "<R><ETag>&quot;whole-3&quot;</ETag></R>");
  });
  auto objects = client_of(endpoint.url());
  const auto put = [&]() -> Result<ObjectInfo> {
    auto writer = TRY(objects->put("bucket", "key"));
    const std::string block(1 << 20, 'x');
    for (int i = 0; i < 20; ++i) TRY(writer->write(block));
    return writer->commit();
  };
  const auto info = put();
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->etag, "whole-3");
  EXPECT_EQ(info->bytes, 20u << 20);
  EXPECT_EQ(parts,
            (std::map<std::string, size_t>{{"/bucket/key?partNumber=1&uploadId=up", 8 << 20},
                                           {"/bucket/key?partNumber=2&uploadId=up", 8 << 20},
                                           {"/bucket/key?partNumber=3&uploadId=up", 4 << 20}}));
  refuse = true;
  EXPECT_EQ(put().error().kind, Kind::denied);
  EXPECT_EQ(endpoint.requested().back(), "DELETE /bucket/key?uploadId=up");
}

// The endpoint answers no part before it has received four of them, and then the last one first.
TEST_F(S3ClientTest, SendsFourPartsAtOnceAndListsThemInOrder) {
  Mutex mutex;
  ConditionVariable changed;
  int received = 0, answered = 0;
  std::string completed;
  Endpoint endpoint([&](net::Stream& stream, const std::string& body) {
    const std::string target = stream.head().target;
    if (target.ends_with("?uploads=")) return reply(stream, 200, "<R><UploadId>up</UploadId></R>");
    if (stream.head().method != "PUT") {
      completed = body;
      return reply(stream, 200, "<R><ETag>&quot;whole-4&quot;</ETag></R>");
    }
    const int number = target[target.find("partNumber=") + 11] - '0';
    {
      MutexLock lock(mutex);
      ++received;
      changed.notify_all();
      EXPECT_TRUE(changed.wait_for(lock, 60s, [&] {
        return received == 4 && answered == 4 - number;
      })) << number;
    }
    reply(stream, 200, "", {{"ETag", "\"e" + std::to_string(number) + "\""}});
    const MutexLock lock(mutex);
    ++answered;
    changed.notify_all();
  });
  auto objects = client_of(endpoint.url());
  const auto info = write_all(*objects, "bucket", "key", std::string(32 << 20, 'x'));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->bytes, 32u << 20);
  size_t at = 0;
  for (const char* etag : {"e1", "e2", "e3", "e4"}) {
    at = completed.find("<ETag>" + std::string(etag) + "</ETag>", at);
    EXPECT_NE(at, std::string::npos) << etag << " in " << completed;
  }
}

// No part is ever accepted: without the abort, the attempts would continue for hours.
TEST_F(S3ClientTest, ADestroyedWriterEndsAttemptsBeforeItAborts) {
  std::atomic<int> parts = 0;
  Endpoint endpoint([&](net::Stream& stream, const std::string&) {
    if (stream.head().target.ends_with("?uploads="))
      return reply(stream, 200, "<R><UploadId>up</UploadId></R>");
    if (stream.head().method == "DELETE") return reply(stream, 204);
    ++parts;
    reply(stream, 503, error_xml("SlowDown", "Please reduce your request rate."));
  });
  auto objects = client_of(endpoint.url(), 10'000'000);
  {
    auto writer = objects->put("bucket", "key");
    ASSERT_TRUE(writer);
    const std::string block(1 << 20, 'x');
    for (int i = 0; i < 17; ++i) ASSERT_TRUE((*writer)->write(block));
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (parts < 3 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  EXPECT_GE(parts, 3);
  EXPECT_EQ(endpoint.requested().back(), "DELETE /bucket/key?uploadId=up");
}

class S3ChecksumTest : public S3ClientTest {
 protected:
  const std::string content_ = std::string(300'000, 'c');
  std::string sent_ = content_;
  std::map<std::string, std::string> headers_;
  std::atomic<bool> is_down_ = false;
  std::atomic<size_t> cut_after_ = SIZE_MAX;

  // Answers with sent_, or the requested range of it, and with headers_.
  Endpoint endpoint_{[this](net::Stream& stream, const std::string&) {
    EXPECT_EQ(stream.head().headers.get("x-amz-checksum-mode"),
              stream.head().headers.get("If-Match").empty() ? "ENABLED" : "");
    if (is_down_)
      return reply(stream, 503, error_xml("SlowDown", "Please reduce your request rate."));
    const std::string range(stream.head().headers.get("Range"));
    size_t first = 0, last = sent_.size() - 1;
    if (!range.empty()) {
      first = size_t(*parse_int(range.substr(6, range.find('-') - 6)));
      last = size_t(*parse_int(range.substr(range.find('-') + 1)));
    }
    net::Headers headers;
    headers.add("ETag", "\"e\"");
    for (const auto& [name, value] : headers_) headers.add(name, value);
    if (!range.empty())
      headers.add("Content-Range", "bytes " + std::to_string(first) + "-" + std::to_string(last) +
                                       "/" + std::to_string(sent_.size()));
    const bool partial = !range.empty() || headers_.contains("Content-Range");
    if (!stream.start(partial ? 206 : 200, headers, last + 1 - first)) return;
    const auto bytes = std::span(sent_).subspan(first, last + 1 - first);
    (void)!!stream.write(bytes.first(std::min(bytes.size(), cut_after_.load())));
  }};
};

TEST_F(S3ChecksumTest, ComparesAWholeObject) {
  auto objects = client_of(endpoint_.url());
  for (const char* algorithm : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}) {
    headers_ = {
        {std::string("x-amz-checksum-") + algorithm, to_base64(checksum_of(algorithm, content_))},
        {"x-amz-checksum-type", "FULL_OBJECT"}};
    sent_ = content_;
    EXPECT_EQ(*read_all(*objects, "bucket", "key", 1 << 20), content_);
    sent_[123'456] ^= 1;
    const auto failed = read_all(*objects, "bucket", "key", 1 << 20);
    ASSERT_FALSE(failed) << algorithm;
    EXPECT_TRUE(failed.error().is(Fault::bytes_damaged));
    EXPECT_EQ(failed.error().message,
              "GET s3://bucket/key: the bytes do not match the object's checksum (" +
                  std::string(algorithm) + " " + to_base64(checksum_of(algorithm, content_)) +
                  ", received " + to_base64(checksum_of(algorithm, sent_)) +
                  "); read the object again, and if the error repeats, upload it again");
  }
  EXPECT_EQ(endpoint_.requested().size(), 3u * 5) << "a damaged object is read twice";
}

TEST_F(S3ChecksumTest, ComparesAPartButNeitherARangeNorACompositeChecksum) {
  auto objects = client_of(endpoint_.url());
  const auto reading = [&](std::optional<Range> range) {
    auto reader = objects->get("bucket", "key", range);
    EXPECT_TRUE(reader) << reader.error().message;
    std::vector<char> buffer(1 << 20);
    Result<size_t> bytes = size_t(1);
    while (bytes && *bytes > 0) bytes = (*reader)->read(buffer);
    return bool(bytes);
  };
  headers_["x-amz-checksum-crc32"] = to_base64(checksum_of("crc32", content_));
  EXPECT_TRUE(reading(Range{0, 99, {}}));
  sent_[1] ^= 1;
  EXPECT_FALSE(reading({}));
  EXPECT_TRUE(reading(Range{0, 299'999, {}}));
  headers_["Content-Range"] = "bytes 0-299999/600000";
  EXPECT_FALSE(reading(Range{.part = 1}));
  sent_ = content_;
  EXPECT_TRUE(reading(Range{.part = 1}));
  headers_ = {{"x-amz-checksum-crc32", "AAAAAA==-2"}, {"x-amz-checksum-type", "COMPOSITE"}};
  EXPECT_TRUE(reading({}));
}

// The first answer breaks, and the endpoint is then away for longer than all attempts of one read.
TEST_F(S3ChecksumTest, ComparesAnObjectThatIsReadAcrossAnOutage) {
  auto objects = client_of(endpoint_.url());
  // Longer than what a connection buffers, so that the first answer breaks while it is read.
  const std::string content(2'000'000, 'c');
  headers_["x-amz-checksum-crc64nvme"] = to_base64(checksum_of("crc64nvme", content));
  for (const bool damaged : {false, true}) {
    is_down_ = false;
    sent_ = content;
    cut_after_ = 1'000'000;
    auto reader = objects->get("bucket", "key");
    ASSERT_TRUE(reader) << reader.error().message;
    is_down_ = true;
    std::vector<char> buffer(50'000);
    std::string got;
    const auto read_on = [&] {
      for (;;) {
        const auto bytes = (*reader)->read(buffer);
        if (!bytes) return std::optional(bytes.error());
        if (*bytes == 0) return std::optional<Error>();
        got.append(buffer.data(), *bytes);
      }
    };
    for (int i = 0; i < 2; ++i) {
      const auto failed = read_on();
      ASSERT_TRUE(failed);
      EXPECT_EQ(failed->kind, Kind::unavailable);
    }
    EXPECT_GT(got.size(), 0u);
    EXPECT_LE(got.size(), 1'000'000u);
    if (damaged) sent_[1'500'000] ^= 1;
    cut_after_ = SIZE_MAX;
    is_down_ = false;
    const auto failed = read_on();
    EXPECT_EQ(failed.has_value(), damaged);
    if (damaged)
      EXPECT_TRUE(failed->is(Fault::bytes_damaged));
    else
      EXPECT_TRUE(got == content);
  }
}

TEST_F(S3ClientTest, ReportsAnErrorInTheBodyOfStatus200) {
  Endpoint endpoint([&](net::Stream& stream, const std::string&) {
    reply(stream, 200,
          error_xml("InvalidPart", "One or more of the specified parts could not be found."));
  });
  auto objects = client_of(endpoint.url());
  const auto info = objects->complete_upload("bucket", "key", "up", {{1, "e"}});
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().kind, Kind::invalid);
  EXPECT_TRUE(info.error().is(Fault::part_invalid));
}

TEST_F(S3ClientTest, ReportsAnUnreachableEndpointAsUnavailable) {
  std::string url;
  {
    Endpoint endpoint([](net::Stream&, const std::string&) {});
    url = endpoint.url();
  }
  const auto got = client_of(url)->head("bucket", "key");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, Kind::unavailable);
  EXPECT_NE(got.error().message.find(url), std::string::npos);
}

TEST_F(S3ClientTest, RejectsInvalidEndpoints) {
  for (const char* endpoint :
       {"", "ftp://x", "http://", "127.0.0.1:80", "http://a/b", "http://user@host"})
    EXPECT_FALSE(open_s3({.endpoint = endpoint}, clock_)) << endpoint;
}

TEST_F(S3ClientTest, ChecksNumbersInAnswers) {
  std::string size, part = "1";
  Endpoint endpoint([&](net::Stream& stream, const std::string&) {
    const std::string of_all =
        "<Size>" + size + "</Size><LastModified>2026-11-20T09:45:00Z</LastModified>";
    reply(
        stream, 200,
        stream.head().target.find("uploadId") == std::string::npos
            ? "<ListBucketResult><Contents><Key>k</Key>" + of_all + "</Contents></ListBucketResult>"
            : "<ListPartsResult><Part><PartNumber>" + part + "</PartNumber>" + of_all +
                  "</Part></ListPartsResult>");
  });
  auto objects = client_of(endpoint.url());
  for (const char* good : {"0", "2147483648", "4294967296", "1125899906842624"}) {
    size = good;
    const auto listed = objects->list("bucket", {});
    ASSERT_TRUE(listed) << listed.error().message;
    EXPECT_EQ(std::to_string(listed->objects.at(0).bytes), good);
    EXPECT_TRUE(objects->list_parts("bucket", "k", "upload"));
  }
  for (const char* bad :
       {"", "-1", "1125899906842625", "9223372036854775807", "18446744073709551615", "1e3"}) {
    size = bad;
    const auto listed = objects->list("bucket", {});
    ASSERT_FALSE(listed) << bad;
    EXPECT_EQ(listed.error().kind, Kind::corrupt);
    EXPECT_NE(listed.error().message.find("length"), std::string::npos) << listed.error().message;
    EXPECT_FALSE(objects->list_parts("bucket", "k", "upload")) << bad;
  }
  size = "1";
  // The last number would be 1 in 32 bits.
  for (const char* bad :
       {"0", "-1", "10001", "2147483648", "4294967296", "9223372036854775807", "4294967297"}) {
    part = bad;
    const auto listed = objects->list_parts("bucket", "k", "upload");
    ASSERT_FALSE(listed) << bad;
    EXPECT_NE(listed.error().message.find("part number"), std::string::npos)
        << listed.error().message;
  }
}

TEST_F(S3ClientTest, RejectsLengthsBeyondTheLimit) {
  std::string total;
  Endpoint endpoint([&](net::Stream& stream, const std::string&) {
    reply(stream, 206, "1234567890", {{"Content-Range", "bytes 0-9/" + total}, {"ETag", "\"e\""}});
  });
  auto objects = client_of(endpoint.url());
  const Range range{0, 9, {}};
  total = "1125899906842624";
  EXPECT_TRUE(objects->get("bucket", "key", range));
  for (const char* bad :
       {"", "*", "-1", "1125899906842625", "9223372036854775807", "18446744073709551616"}) {
    total = bad;
    const auto got = objects->get("bucket", "key", range);
    ASSERT_FALSE(got) << bad;
    EXPECT_EQ(got.error().kind, Kind::corrupt) << bad;
  }
}

}  // namespace
}  // namespace trainyard::objects
