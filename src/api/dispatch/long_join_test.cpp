// Tests CompleteMultipartUpload on a slow disk: the client is kept connected, and its retry finds
// the same join.
#include <gtest/gtest.h>

#include <future>

#include "base/file_faults.hpp"
#include "base/thread_safety.hpp"
#include "dispatch/api.hpp"
#include "dispatch/testing/in_memory.hpp"
#include "objects/directory.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::api {
namespace {

// Blocks renames to a key until the test releases the disk.
class SlowDisk final : public FileFaults {
 public:
  FileFault before(FileStep step, const std::string& path, size_t) override {
    if (step != FileStep::rename || path.find("/keys/") == std::string::npos) return {};
    MutexLock lock(mutex_);
    ++renames_;
    changed_.notify_all();
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return !slow_; });
    return {failing_ ? 5 : 0, 0};
  }
  void set_slow() {
    const MutexLock lock(mutex_);
    slow_ = true;
  }
  void wait_for_rename() {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return renames_ > 0; });
  }
  void let_go(bool failing = false) {
    const MutexLock lock(mutex_);
    failing_ = failing;
    slow_ = false;
    changed_.notify_all();
  }
  int joins() const { return renames_; }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool slow_ = false, failing_ = false;
  int renames_ = 0;
};

// A client that the test can observe during the response, and that can disconnect.
class WatchedStream final : public net::Stream {
 public:
  explicit WatchedStream(net::Request request) : request_(std::move(request)) {}
  const net::RequestHead& head() const override { return request_; }
  Result<size_t> read(std::span<char> buffer) override {
    const size_t count = std::min(buffer.size(), request_.body.size() - taken_);
    std::memcpy(buffer.data(), request_.body.data() + taken_, count);
    taken_ += count;
    return count;
  }
  Result<void> start(int status, const net::Headers& headers,
                     std::optional<uint64_t> length) override {
    const MutexLock lock(mutex_);
    EXPECT_EQ(status_, 0);
    status_ = status;
    chunked_ = !length;
    type_ = headers.get("Content-Type");
    return ok();
  }
  Result<void> write(std::span<const char> bytes) override {
    const MutexLock lock(mutex_);
    ++writes_;
    changed_.notify_all();
    if (left_) return unavailable("the client left");
    body_.append(bytes.data(), bytes.size());
    return ok();
  }
  Result<void> reply(const net::Response& response) override {
    TRY(start(response.status, response.headers, response.body.size()));
    return write(response.body);
  }
  Result<std::unique_ptr<net::Upgraded>> upgrade(std::string_view) override {
    return invalid("never");
  }

  void wait_for_writes(int count) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return writes_ >= count; });
  }
  void leave() {
    const MutexLock lock(mutex_);
    left_ = true;
  }
  int status() const { return status_; }
  bool chunked() const { return chunked_; }
  const std::string& body() const { return body_; }
  const std::string& type() const { return type_; }

 private:
  net::Request request_;
  size_t taken_ = 0;
  Mutex mutex_;
  ConditionVariable changed_;
  int status_ = 0, writes_ = 0;
  bool chunked_ = false, left_ = false;
  std::string body_, type_;
};

struct SlowServer {
  TestClock clock{in_memory::kStart};
  SeededRandom random{7};
  os::TemporaryDirectory directory;
  SlowDisk disk;
  in_memory::PlainControl control{clock};
  std::unique_ptr<observe::Logs> logs = *observe::open_logs(directory.path() + "/logs", clock);
  std::unique_ptr<observe::Metrics> metrics = *observe::open_metrics(directory.path() + "/metrics");
  std::unique_ptr<objects::Objects> objects =
      *objects::open_directory(directory.path() + "/objects", clock, random, {.faults = &disk});
  Settings settings{.account = "123456789012",
                    .keys = {{"AKIAOWNER", "owner-secret"}},
                    .temporary_key_secret = std::string(32, 's'),
                    .blank_interval = 1ms};
  Services services{control, *logs, *metrics, *objects, clock, random};
  std::unique_ptr<net::Handler> api = make_api(settings, services);
  std::string upload, etag;

  SlowServer() {
    EXPECT_TRUE(objects->create_bucket("data", "eu-west-1"));
    upload = *objects->start_upload("data", "big");
    const auto writer = *objects->put_part("data", "big", upload, 1);
    EXPECT_TRUE(writer->write(std::string_view("the only part")));
    etag = writer->commit()->etag;
    disk.set_slow();
  }

  std::unique_ptr<WatchedStream> complete() {
    net::Request request = in_memory::signed_request(
        "POST", "/data/big?uploadId=" + upload, {},
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" + etag +
            "</ETag></Part></CompleteMultipartUpload>",
        "s3", clock.now());
    request.content_length = request.body.size();
    auto choice = api->choose(request);
    EXPECT_FALSE(choice.refusal);
    request.finding = std::move(choice.finding);
    return std::make_unique<WatchedStream>(std::move(request));
  }
  std::future<void> run(WatchedStream& stream) {
    return std::async(std::launch::async, [&] { api->stream(stream); });
  }
};

TEST(LongJoin, SendsBlanksUntilTheResultAndSharesItWithARetry) {
  SlowServer world;
  const auto first = world.complete(), retry = world.complete();
  auto of_first = world.run(*first);
  world.disk.wait_for_rename();
  auto of_retry = world.run(*retry);
  first->wait_for_writes(4);
  retry->wait_for_writes(4);
  world.disk.let_go();
  of_first.get();
  of_retry.get();
  for (const auto* stream : {first.get(), retry.get()}) {
    EXPECT_EQ(stream->status(), 200);
    EXPECT_TRUE(stream->chunked());
    EXPECT_EQ(stream->type(), "application/xml");
    const std::string declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n ";
    EXPECT_TRUE(stream->body().starts_with(declaration)) << stream->body();
    const size_t begin = stream->body().find_first_not_of(' ', declaration.size());
    EXPECT_TRUE(stream->body().substr(begin).starts_with("<CompleteMultipartUploadResult"))
        << stream->body();
    EXPECT_NE(stream->body().find("-1&quot;</ETag>"), std::string::npos) << stream->body();
  }
  EXPECT_EQ(world.disk.joins(), 1);
  EXPECT_EQ(objects::read_all(*world.objects, "data", "big", 100).value(), "the only part");
}

TEST(LongJoin, ContinuesAfterTheClientDisconnects) {
  SlowServer world;
  const auto first = world.complete();
  auto of_first = world.run(*first);
  world.disk.wait_for_rename();
  first->wait_for_writes(2);
  first->leave();
  const auto retry = world.complete();
  auto of_retry = world.run(*retry);
  retry->wait_for_writes(2);
  world.disk.let_go();
  of_first.get();
  of_retry.get();
  EXPECT_NE(retry->body().find("<CompleteMultipartUploadResult"), std::string::npos);
  EXPECT_EQ(world.disk.joins(), 1);
}

TEST(LongJoin, ReportsAnErrorAfterTheHeadInTheDocument) {
  SlowServer world;
  const auto stream = world.complete();
  auto done = world.run(*stream);
  stream->wait_for_writes(3);
  world.disk.let_go(true);
  done.get();
  EXPECT_EQ(stream->status(), 200);
  EXPECT_NE(stream->body().find("  <Error><Code>"), std::string::npos) << stream->body();
}

TEST(LongJoin, ReportsAnEarlyErrorByItsStatus) {
  SlowServer world;
  world.disk.let_go();
  world.etag = std::string(32, '0');
  world.settings.blank_interval = 60s;
  world.api = make_api(world.settings, world.services);
  const auto stream = world.complete();
  world.run(*stream).get();
  EXPECT_EQ(stream->status(), 400);
  EXPECT_NE(stream->body().find("<Code>InvalidPart</Code>"), std::string::npos) << stream->body();
  EXPECT_FALSE(stream->chunked());
}

}  // namespace
}  // namespace trainyard::api
