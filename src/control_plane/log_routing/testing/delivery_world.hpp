// DeliveryWorld is the fixture of the delivery tests: logs, a bucket, a webhook whose responses a
// test sets, and Deliveries. It may reopen the directory of an earlier fixture.
//
// Threads: confined to one thread, except for the webhook.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "base/text.hpp"
#include "log_routing/deliveries.hpp"
#include "objects/directory.hpp"
#include "observe/testing/test_world.hpp"
#include "observe/watched_logs.hpp"

namespace trainyard::log_routing {

inline constexpr Duration kDeliveryDeadline = 120s;
inline const std::string kDeliveryRegion = "eu-west-1";
inline const std::string kDeliveryAccount = "123456789012";
inline const std::string kGroupArns =
    "arn:aws:logs:" + kDeliveryRegion + ":" + kDeliveryAccount + ":log-group:";
inline const std::string kStreamArn = "arn:aws:firehose:eu-west-1:123456789012:deliverystream/d";
inline const std::string kExternalArn = "arn:aws:cloudfront::123456789012:distribution/E1";

// Decompresses gzip.
inline std::string unpack(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(8 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = uInt(out.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::inflateEnd(&stream);
  return out;
}

struct DeliveryWorld {
  std::string path;
  TestClock clock;
  SeededRandom random;
  FileFaults* object_faults = nullptr;
  std::string log_files;  // of a FileWatch
  std::vector<ExternalSource> external{{kExternalArn, "ACCESS_LOGS", "cdn"}};
  std::unique_ptr<objects::Objects> objects;
  std::unique_ptr<observe::Logs> logs;
  LogTargets targets{kDeliveryAccount, {{"hook", "http://127.0.0.1:1/", "", "", {kStreamArn}}}};
  std::atomic<int> status = 200;
  Mutex mutex;
  std::vector<std::string> bodies GUARDED_BY(mutex);
  // Called by the delivery's thread during each request to the webhook. Set while no delivery runs.
  std::function<void()> on_post;
  DeliveriesSettings delivery_settings{.object_interval = 0ms, .tick = 10ms, .first_pause = 0ms};
  std::unique_ptr<Deliveries> all;

  explicit DeliveryWorld(std::string directory, uint64_t seed = 1)
      : path(std::move(directory)), random(seed) {}
  ~DeliveryWorld() { all.reset(); }

  Result<void> open() {
    objects =
        TRY(objects::open_directory(path + "/objects", clock, random, {.faults = object_faults}));
    observe::LogSettings settings;
    settings.appended = [this](const auto& key, const auto&) {
      if (all) all->notify(key);
    };
    logs = TRY(observe::open_watched_logs(path + "/logs", clock, settings, log_files));
    return start_deliveries();
  }

  // Starts the deliveries again after all.reset().
  Result<void> start_deliveries() {
    all = TRY(Deliveries::start(
        *logs, *objects, targets, external,
        [this](const Webhook&, const std::string& body) -> Result<int> {
          const int answer = status;
          if (answer != 200) return answer;
          {
            const MutexLock lock(mutex);
            bodies.push_back(body);
          }
          if (on_post) on_post();
          return answer;
        },
        clock, random, delivery_settings));
    return ok();
  }

  // Opens the world, and creates a bucket and the streams "s" of the groups "g" and "to".
  void start() {
    ASSERT_OK(open());
    ASSERT_OK(objects->create_bucket("bucket", kDeliveryRegion));
    for (const char* group : {"g", "to"})
      ASSERT_OK(logs->ensure_stream({kDeliveryRegion, group, "s"}));
  }

  void append(const std::vector<std::string>& messages, const std::string& stream = "s",
              const std::string& group = "g") {
    std::vector<observe::LogEvent> events;
    for (const auto& message : messages) events.push_back({clock.now(), clock.now(), message});
    ASSERT_OK(logs->append({kDeliveryRegion, group, stream}, events));
  }

  Result<std::string> deliver(const std::string& resource_arn, DeliveryOptions options = {},
                              std::optional<DeliveryFormat> format = {},
                              const std::string& group = "g") {
    auto& catalogue = all->catalogue();
    TRY(catalogue.put_source(kDeliveryRegion, group,
                             {.resource_arn = kGroupArns + group, .log_type = "APPLICATION_LOGS"}));
    const std::string name = "to-" + std::to_string(std::hash<std::string>()(resource_arn));
    TRY(catalogue.put_destination(kDeliveryRegion, name,
                                  {.resource_arn = resource_arn, .format = format}));
    auto id = TRY(catalogue.create(kDeliveryRegion, {.source = group,
                                                     .destination = name,
                                                     .options = std::move(options),
                                                     .created = clock.now()}));
    TRY(all->reload());
    return id;
  }

  // The texts of the objects, by key.
  std::map<std::string, std::string> texts() {
    std::map<std::string, std::string> found;
    objects::ListQuery query;
    do {
      const auto page = objects->list("bucket", query);
      EXPECT_TRUE(page);
      for (const auto& each : page->objects)
        found[each.key] = unpack(*objects::read_all(*objects, "bucket", each.key, 64 << 20));
      query.start_after = page->next;
    } while (!query.start_after.empty());
    return found;
  }
  std::string all_text() {
    std::string out;
    for (const auto& [key, text] : texts()) out += text;
    return out;
  }

  // The records of each request to the webhook.
  std::vector<std::vector<std::string>> posts() {
    std::vector<std::vector<std::string>> found;
    const MutexLock lock(mutex);
    for (const std::string& body : bodies) {
      auto& records = found.emplace_back();
      const auto request = *parse_json(body);
      for (const Json& record : request.at("records"))
        records.push_back(*from_base64(record.at("data").get<std::string>()));
    }
    return found;
  }

  std::vector<std::string> messages(const std::string& group, const std::string& stream = "s") {
    std::vector<std::string> found;
    observe::ReadQuery query{.position = 0};
    for (;;) {
      const auto page = logs->read({kDeliveryRegion, group, stream}, query);
      if (!page || page->events.empty()) return found;
      for (const auto& event : page->events) found.push_back(event.message);
      query.position = page->end;
    }
  }
};

}  // namespace trainyard::log_routing
