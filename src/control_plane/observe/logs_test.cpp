#include "observe/logs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::observe {
namespace {

namespace fs = std::filesystem;

const StreamKey kKey{"eu-west-1", "/aws/sagemaker/TrainingJobs", "digits/algo-1-1763632000"};

LogEvent line(int64_t at, std::string message) {
  return {from_milliseconds(at), Instant{}, std::move(message)};
}

std::vector<std::string> messages(const std::vector<LogEvent>& events) {
  std::vector<std::string> found;
  for (const auto& event : events) found.push_back(event.message);
  return found;
}

using Messages = std::vector<std::string>;

struct World {
  TemporaryDirectory directory;
  TestClock clock;
  LogSettings settings;
  std::unique_ptr<Logs> logs = open();

  std::unique_ptr<Logs> open() {
    auto opened = open_logs(directory.path(), clock, settings);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  void restart() {
    logs.reset();
    logs = open();
  }
};

TEST(Logs, ReadAppendedLinesAfterARestart) {
  World world;
  ASSERT_OK(world.logs->ensure_stream(kKey));
  ASSERT_OK(world.logs->append(kKey, {line(1000, "one"), line(1001, "two")}));
  world.restart();
  ASSERT_OK(world.logs->append(kKey, {line(1002, "three")}));
  const auto page = world.logs->read(kKey, {});
  ASSERT_OK(page);
  EXPECT_EQ(messages(page->events), (Messages{"one", "two", "three"}));
  EXPECT_EQ(page->events[0].at, from_milliseconds(1000));
  EXPECT_EQ(page->events[0].ingested, world.clock.now());
}

TEST(Logs, ContinueWhereThePageEnded) {
  World world;
  ASSERT_OK(world.logs->ensure_stream(kKey));
  ASSERT_OK(world.logs->append(kKey, {line(1, "a"), line(2, "b"), line(3, "c")}));
  auto page = world.logs->read(kKey, {.events_max = 2});
  ASSERT_OK(page);
  EXPECT_EQ(messages(page->events), (Messages{"a", "b"}));
  page = world.logs->read(kKey, {.position = page->end, .events_max = 2});
  EXPECT_EQ(messages(page->events), (Messages{"c"}));
  const uint64_t end = page->end;
  page = world.logs->read(kKey, {.position = end});
  EXPECT_TRUE(page->events.empty());
  EXPECT_EQ(page->end, end) << "the position does not change at the end";
  ASSERT_OK(world.logs->append(kKey, {line(4, "d")}));
  page = world.logs->read(kKey, {.position = end});
  EXPECT_EQ(messages(page->events), (Messages{"d"}));
}

TEST(Logs, LimitThePageByBytesButReturnOneEvent) {
  World world;
  ASSERT_OK(world.logs->ensure_stream(kKey));
  ASSERT_OK(
      world.logs->append(kKey, {line(1, std::string(1000, 'x')), line(2, "b"), line(3, "c")}));
  const auto page = world.logs->read(kKey, {.bytes_max = 100});
  EXPECT_EQ(page->events.size(), 1u);
  EXPECT_EQ(world.logs->read(kKey, {.position = page->end, .bytes_max = 100})->events.size(), 2u);
  const auto last = world.logs->read(kKey, {.forward = false, .bytes_max = 60});
  EXPECT_EQ(messages(last->events), (Messages{"b", "c"}));
}

TEST(Logs, RejectMissingAndExistingNames) {
  World world;
  EXPECT_EQ(world.logs->read(kKey, {}).error().message,
            "log group '/aws/sagemaker/TrainingJobs' does not exist");
  ASSERT_OK(world.logs->create_group(kKey.region, kKey.group));
  EXPECT_EQ(world.logs->create_group(kKey.region, kKey.group).error().kind, Kind::conflict);
  EXPECT_EQ(world.logs->read(kKey, {}).error().message,
            "log stream 'digits/algo-1-1763632000' does not exist");
  EXPECT_EQ(world.logs->append(kKey, {line(1, "x")}).error().kind, Kind::not_found);
  ASSERT_OK(world.logs->create_stream(kKey));
  EXPECT_EQ(world.logs->create_stream(kKey).error().kind, Kind::conflict);
  EXPECT_EQ(world.logs->create_stream({"eu-west-1", "other", "s"}).error().kind, Kind::not_found);
  EXPECT_EQ(world.logs->create_group("r", "").error().kind, Kind::invalid);
  EXPECT_EQ(world.logs->create_group("r", std::string(3000, 'x')).error().kind, Kind::invalid);
}

TEST(Logs, AcceptAnyTextAsName) {
  World world;
  const std::vector<std::string> names = {
      "../../etc/passwd",     "a/b//c",  std::string("nul\0byte", 8), "%2e%2e", "Zug \xc3\xbc",
      std::string(2048, 'n'), "\xff\xff"};
  for (const auto& name : names) {
    ASSERT_OK(world.logs->ensure_stream({"r", name, name}));
    ASSERT_OK(world.logs->append({"r", name, name}, {line(1, name)}));
  }
  world.restart();
  for (const auto& name : names) {
    EXPECT_EQ(messages(world.logs->read({"r", name, name}, {})->events), Messages{name});
    EXPECT_EQ((*world.logs->streams("r", name, name)).size(), 1u);
  }
  EXPECT_EQ(world.logs->groups("r", "")->size(), names.size());
  EXPECT_EQ(world.logs->groups("r", "a/")->size(), 1u);
  EXPECT_TRUE(world.logs->groups("elsewhere", "")->empty());
}

TEST(Logs, AppendABatchOnce) {
  World world;
  ASSERT_OK(world.logs->ensure_stream(kKey));
  EXPECT_EQ(*world.logs->last_batch(kKey), 0u);
  ASSERT_OK(world.logs->append(kKey, {line(1, "a")}, 1));
  ASSERT_OK(world.logs->append(kKey, {line(1, "a")}, 1));
  ASSERT_OK(world.logs->append(kKey, {line(2, "put by a user")}));
  ASSERT_OK(world.logs->append(kKey, {}, 2));  // a batch without lines counts too
  world.restart();
  EXPECT_EQ(*world.logs->last_batch(kKey), 2u);
  ASSERT_OK(world.logs->append(kKey, {line(1, "never")}, 2));
  ASSERT_OK(world.logs->append(kKey, {line(3, "b")}, 3));
  EXPECT_EQ(messages(world.logs->read(kKey, {})->events), (Messages{"a", "put by a user", "b"}));
}

TEST(Logs, StoreLongMessagesInPieces) {
  World world;
  ASSERT_OK(world.logs->ensure_stream(kKey));
  std::string message;
  while (message.size() < 600'000) message += "\xe2\x82\xac";
  ASSERT_OK(world.logs->append(kKey, {line(1, message), line(2, "")}));
  const auto page = world.logs->read(kKey, {});
  ASSERT_EQ(page->events.size(), 4u);
  EXPECT_EQ(page->events[0].message + page->events[1].message + page->events[2].message, message);
  for (const auto& event : page->events)
    EXPECT_EQ(event.message.size() % 3, 0u) << "cut inside a character";
  EXPECT_EQ(world.logs->append(kKey, {line(1, std::string(33 << 20, 'x'))}).error().kind,
            Kind::invalid);
}

TEST(Logs, ReportTimesOfOpenAndClosedStreams) {
  World world;
  ASSERT_OK(world.logs->ensure_stream(kKey));
  ASSERT_OK(world.logs->ensure_stream({kKey.region, kKey.group, "digits/algo-2"}));
  ASSERT_OK(world.logs->ensure_stream({kKey.region, kKey.group, "other/algo-1"}));
  ASSERT_OK(world.logs->append(kKey, {line(20, "late"), line(10, "early")}));
  for (const bool restarted : {false, true}) {
    if (restarted) world.restart();
    const auto streams = world.logs->streams(kKey.region, kKey.group, "digits/");
    ASSERT_OK(streams);
    ASSERT_EQ(streams->size(), 2u);
    EXPECT_EQ((*streams)[0].name, kKey.stream);
    EXPECT_EQ((*streams)[0].first_event, from_milliseconds(10));
    EXPECT_EQ((*streams)[0].last_event, from_milliseconds(20));
    EXPECT_EQ((*streams)[0].last_ingestion, world.clock.now());
    EXPECT_GT((*streams)[0].stored_bytes, 0u);
    EXPECT_FALSE((*streams)[1].first_event);
    EXPECT_EQ(world.logs->groups(kKey.region, "")->at(0).stored_bytes, (*streams)[0].stored_bytes);
  }
}

TEST(Logs, CloseIdleStreamsAndReopenThem) {
  World world;
  world.settings.streams_open_max = 3;
  world.restart();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) {
      const StreamKey key{"r", "g", "s" + std::to_string(i)};
      ASSERT_OK(world.logs->ensure_stream(key));
      ASSERT_OK(
          world.logs->append(key, {line(round, "x" + std::to_string(i))}, uint64_t(round) + 1));
      world.clock.advance(7min);
    }
  }
  for (int i = 0; i < 20; ++i) {
    const StreamKey key{"r", "g", "s" + std::to_string(i)};
    EXPECT_EQ(world.logs->read(key, {})->events.size(), 3u);
    EXPECT_EQ(*world.logs->last_batch(key), 3u);
  }
}

// The reference has all events of a stream in a vector.
struct Reference {
  std::vector<LogEvent> events;
  std::vector<LogEvent> between(int64_t from, int64_t to) const {
    std::vector<LogEvent> found;
    for (const auto& event : events)
      if (to_milliseconds(event.at) >= from && to_milliseconds(event.at) < to)
        found.push_back(event);
    return found;
  }
};

TEST(Logs, ReadLikeAVectorOverManySegmentsAndBlocks) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SeededRandom random(seed);
    World world;
    world.settings.segment_bytes = 1000 + random.below(3000);
    world.settings.block_bytes = 100 + random.below(500);
    world.restart();
    ASSERT_OK(world.logs->ensure_stream(kKey));
    Reference reference;
    int64_t now = 1000;
    for (int i = 0; i < 60; ++i) {
      std::vector<LogEvent> events;
      for (uint64_t n = random.below(8); n-- > 0;)
        events.push_back(line(now + int64_t(random.below(50)),
                              std::string(random.below(60), char('a' + i % 26))));
      now += int64_t(random.below(30));
      ASSERT_OK(world.logs->append(kKey, events, uint64_t(i) + 1));
      reference.events.insert(reference.events.end(), events.begin(), events.end());
      if (random.chance(15)) world.restart();
    }
    if (random.chance(2))
      for (const auto& entry : fs::recursive_directory_iterator(world.directory.path()))
        if (entry.path().extension() == ".index") fs::remove(entry.path());
    if (random.chance(2)) world.restart();
    for (int question = 0; question < 20; ++question) {
      const int64_t from = 1000 + int64_t(random.below(800)),
                    to = from + int64_t(random.below(800));
      const auto expected = reference.between(from, to);
      const size_t events_max = 1 + random.below(40);
      ReadQuery query{.from = from_milliseconds(from),
                      .to = from_milliseconds(to),
                      .forward = random.chance(2),
                      .events_max = events_max};
      std::vector<LogEvent> found;
      for (int pages = 0; pages < 1000; ++pages) {
        const auto page = world.logs->read(kKey, query);
        ASSERT_OK(page);
        EXPECT_LE(page->events.size(), events_max);
        found.insert(query.forward ? found.end() : found.begin(), page->events.begin(),
                     page->events.end());
        const uint64_t next = query.forward ? page->end : page->begin;
        if (query.position == next) break;
        query.position = next;
      }
      ASSERT_EQ(messages(found), messages(expected))
          << "seed " << seed << (query.forward ? " forward" : " backward");
    }
  }
}

TEST(Logs, RejectPositionsInsideAnEvent) {
  World world;
  ASSERT_OK(world.logs->ensure_stream(kKey));
  ASSERT_OK(world.logs->append(kKey, {line(1, "one"), line(2, "two")}));
  const uint64_t end = world.logs->read(kKey, {})->end;
  const uint64_t second = world.logs->read(kKey, {.events_max = 1})->end;
  for (uint64_t position = 1; position < end; ++position) {
    const auto forward = world.logs->read(kKey, {.position = position});
    if (forward) {
      EXPECT_TRUE(position == second || forward->events.empty()) << position;
    } else {
      EXPECT_EQ(forward.error().kind, Kind::invalid);
    }
    const auto backward = world.logs->read(kKey, {.position = position, .forward = false});
    if (!backward) {
      EXPECT_EQ(backward.error().kind, Kind::invalid);
    }
  }
  EXPECT_EQ(world.logs->read(kKey, {.position = end + 1}).error().kind, Kind::invalid);
  EXPECT_EQ(world.logs->read(kKey, {.position = UINT64_MAX, .forward = false}).error().kind,
            Kind::invalid);
}

struct Expected {
  int64_t at;
  size_t stream;
  size_t order;
  std::string message;
};

// Appends events to five streams. Returns them in the order of a filter.
std::vector<Expected> append_randomly(World& world, SeededRandom& random) {
  std::vector<Expected> all;
  for (size_t s = 0; s < 5; ++s) {
    const StreamKey key{"r", "g", "s" + std::to_string(s)};
    EXPECT_TRUE(world.logs->ensure_stream(key));
    int64_t now = 1000 + int64_t(random.below(300));
    for (int i = 0; i < 12; ++i) {
      std::vector<LogEvent> events;
      for (uint64_t n = random.below(6); n-- > 0;) {
        const int64_t at = now + int64_t(random.below(40));
        events.push_back(
            line(at, (random.chance(2) ? "loss " : "step ") + std::to_string(all.size())));
        all.push_back({at, s, all.size(), events.back().message});
      }
      now += int64_t(random.below(40));
      EXPECT_TRUE(world.logs->append(key, events));
    }
  }
  std::ranges::stable_sort(all, [](const Expected& a, const Expected& b) {
    return std::tie(a.at, a.stream, a.order) < std::tie(b.at, b.stream, b.order);
  });
  return all;
}

TEST(Logs, FilterLikeASortedVector) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SeededRandom random(seed);
    World world;
    world.settings.segment_bytes = 1000 + random.below(3000);
    world.settings.block_bytes = 100 + random.below(500);
    world.settings.filter_scan_bytes_max = 1 + random.below(2000);
    world.settings.scan_held_bytes_max = random.below(3000);
    world.restart();
    const std::vector<Expected> all = append_randomly(world, random);
    if (random.chance(2)) world.restart();
    for (int question = 0; question < 10; ++question) {
      const int64_t from = 1000 + int64_t(random.below(400)),
                    to = from + int64_t(random.below(600));
      FilterQuery query{.pattern = random.chance(2) ? "loss" : "",
                        .from = from_milliseconds(from),
                        .to = from_milliseconds(to),
                        .events_max = 1 + random.below(30)};
      Messages expected, found;
      for (const auto& each : all)
        if (each.at >= from && each.at < to &&
            each.message.find(query.pattern) != std::string::npos)
          expected.push_back(each.message);
      bool ended = false;
      for (int pages = 0; pages < 2000 && !ended; ++pages) {
        const auto page = world.logs->filter("r", "g", query);
        ASSERT_OK(page);
        EXPECT_LE(page->events.size(), query.events_max);
        for (const auto& each : page->events) found.push_back(each.event.message);
        ended = page->next_token.empty();
        query.token = page->next_token;
      }
      EXPECT_TRUE(ended) << "paging does not end";
      ASSERT_EQ(found, expected) << "seed " << seed;
    }
  }
}

TEST(Logs, FilterSelectedStreamsAndRejectInvalidQueries) {
  World world;
  for (const char* name : {"a/1", "a/2", "b/1"}) {
    ASSERT_OK(world.logs->ensure_stream({"r", "g", name}));
    ASSERT_OK(world.logs->append({"r", "g", name}, {line(5, name)}));
  }
  EXPECT_EQ(world.logs->filter("r", "g", {.stream_prefix = "a/"})->events.size(), 2u);
  const auto one = world.logs->filter("r", "g", {.streams = {"b/1"}});
  ASSERT_EQ(one->events.size(), 1u);
  EXPECT_EQ(one->events[0].stream, "b/1");
  EXPECT_EQ(one->events[0].id.size(), 56u);
  EXPECT_EQ(world.logs->filter("r", "g", {.streams = {"c"}}).error().kind, Kind::not_found);
  EXPECT_EQ(world.logs->filter("r", "none", {}).error().kind, Kind::not_found);
  EXPECT_EQ(world.logs->filter("r", "g", {.pattern = "{ $.a"}).error().kind, Kind::invalid);
  EXPECT_EQ(world.logs->filter("r", "g", {.token = "nonsense"}).error().kind, Kind::invalid);
}

TEST(Logs, RemoveOldSegmentsAndEndedStreams) {
  World world;
  world.settings.retention = 24h;
  world.settings.segment_bytes = 500;
  world.settings.block_bytes = 100;
  world.restart();
  const StreamKey ended{"r", "g", "ended"}, live{"r", "g", "live"};
  for (const auto& key : {ended, live}) ASSERT_OK(world.logs->ensure_stream(key));
  const int64_t start = to_milliseconds(world.clock.now());
  for (int hour = 0; hour < 48; ++hour) {
    ASSERT_OK(world.logs->append(
        live, {line(start + hour * 3'600'000, std::to_string(hour) + std::string(80, '.'))}));
    if (hour < 2) ASSERT_OK(world.logs->append(ended, {line(start + hour * 3'600'000, "x")}));
    world.clock.advance(1h);
  }
  const uint64_t begin = world.logs->read(live, {.events_max = 1})->end;
  world.restart();
  ASSERT_OK(world.logs->retire(world.clock.now()));
  EXPECT_EQ(world.logs->read(ended, {}).error().kind, Kind::not_found);
  for (const bool restarted : {false, true}) {
    if (restarted) world.restart();
    const auto page = world.logs->read(live, {});
    ASSERT_OK(page);
    EXPECT_GE(page->events.size(), 24u);
    EXPECT_LT(page->events.size(), 32u);
    EXPECT_EQ(page->events.back().message.substr(0, 3), "47.");
    EXPECT_EQ(world.logs->read(live, {.position = begin})->events.size(), page->events.size())
        << "a read from a removed position continues at the first remaining event";
    EXPECT_EQ(world.logs->read(live, {.position = page->end, .forward = false})->events.size(),
              page->events.size());
  }
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(world.directory.path()))
    files += entry.path().extension() == ".log";
  EXPECT_LT(files, 10u);
}

TEST(Logs, ContinueRetentionAfterADamagedStream) {
  World world;
  world.settings.retention = 24h;
  world.settings.segment_bytes = 500;
  world.settings.block_bytes = 100;
  world.restart();
  const StreamKey first{"r", "g", "1"}, damaged{"r", "g", "2"}, last{"r", "g", "3"};
  const int64_t start = to_milliseconds(world.clock.now());
  for (int hour = 0; hour < 48; ++hour) {
    for (const auto& key : {first, damaged, last}) {
      if (hour == 0) ASSERT_OK(world.logs->ensure_stream(key));
      ASSERT_OK(world.logs->append(key, {line(start + hour * 3'600'000, std::string(80, 'x'))}));
    }
    world.clock.advance(1h);
  }
  world.logs.reset();
  std::map<std::string, std::set<fs::path>> files;  // by number of the stream
  for (const auto& entry : fs::recursive_directory_iterator(world.directory.path())) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() == ".log")
      files[name.substr(0, name.find('-'))].insert(entry.path());
  }
  ASSERT_EQ(files.size(), 3u);
  const fs::path of_another = *files.begin()->second.begin();
  fs::copy_file(of_another, *std::next(files.begin())->second.begin(),
                fs::copy_options::overwrite_existing);
  world.logs = world.open();
  const auto retired = world.logs->retire(world.clock.now());
  ASSERT_FALSE(retired);
  EXPECT_EQ(retired.error().kind, Kind::corrupt);
  EXPECT_NE(retired.error().message.find("log stream 2"), std::string::npos);
  EXPECT_LT(world.logs->read(first, {})->events.size(), 32u);
  EXPECT_LT(world.logs->read(last, {})->events.size(), 32u);
}

// Simulates a power failure: copies a directory in use, and cuts its segment at every byte.
TEST(Logs, CutOffIncompleteAppends) {
  World world;
  ASSERT_OK(world.logs->ensure_stream(kKey));
  std::map<size_t, size_t> events_at;  // the number of complete events by length of the file
  size_t events = 0;
  fs::path segment;
  for (uint64_t batch = 1; batch <= 3; ++batch) {
    ASSERT_OK(world.logs->append(kKey, {line(1, "a"), line(2, "bb")}, batch));
    for (const auto& entry : fs::recursive_directory_iterator(world.directory.path()))
      if (entry.path().extension() == ".log") segment = entry.path();
    events_at[fs::file_size(segment)] = events += 2;
  }
  const size_t length = fs::file_size(segment);
  for (size_t cut = 0; cut <= length; cut += cut < 100 ? 7 : 1) {
    TemporaryDirectory copy;
    fs::copy(world.directory.path(), copy.path(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    const auto torn = fs::path(copy.path()) / fs::relative(segment, world.directory.path());
    fs::resize_file(torn, cut);
    if (cut % 3 == 0)
      // or adds other bytes
      std::ofstream(torn, std::ios::app) << std::string(length + 100 - cut, 'z');
    auto logs = open_logs(copy.path(), world.clock);
    ASSERT_OK(logs);
    const auto whole = events_at.upper_bound(cut);
    const size_t expected = whole == events_at.begin() ? 0 : std::prev(whole)->second;
    ASSERT_EQ((*logs)->read(kKey, {})->events.size(), expected) << "cut at " << cut;
    ASSERT_EQ(*(*logs)->last_batch(kKey), expected / 2);
    ASSERT_OK((*logs)->append(kKey, {line(3, "on")}, expected / 2 + 1));
    logs->reset();
    logs = open_logs(copy.path(), world.clock);
    ASSERT_EQ((*logs)->read(kKey, {})->events.size(), expected + 1);
  }
}

TEST(Logs, AppendAndReadFromManyThreads) {
  World world;
  world.settings.block_bytes = 500;
  world.settings.segment_bytes = 4000;
  world.restart();
  ASSERT_OK(world.logs->ensure_stream(kKey));
  constexpr int kThreads = 4, kAppends = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const StreamKey own{"r", "g", "own" + std::to_string(t)};
      EXPECT_TRUE(world.logs->ensure_stream(own));
      for (int i = 0; i < kAppends; ++i) {
        EXPECT_TRUE(
            world.logs->append(kKey, {line(i, std::to_string(t) + "/" + std::to_string(i))}));
        EXPECT_TRUE(world.logs->append(own, {line(i, "own")}, uint64_t(i) + 1));
        EXPECT_TRUE(world.logs->read(kKey, {.forward = false, .events_max = 5}));
        EXPECT_TRUE(world.logs->filter("r", "g", {.events_max = 10}));
        EXPECT_TRUE(world.logs->streams("r", "g", ""));
      }
    });
  for (auto& thread : threads) thread.join();
  std::map<std::string, int> next;
  const auto page = world.logs->read(kKey, {});
  EXPECT_EQ(page->events.size(), size_t(kThreads * kAppends));
  for (const auto& event : page->events) {
    const auto slash = event.message.find('/');
    EXPECT_EQ(event.message.substr(slash + 1),
              std::to_string(next[event.message.substr(0, slash)]++))
        << "the events of each writer are in order";
  }
}

}  // namespace
}  // namespace trainyard::observe
