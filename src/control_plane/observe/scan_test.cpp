// Compares scans with a sorted vector, and counts the bytes that they read.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "observe/logs.hpp"
#include "observe/segment.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::observe {
namespace {

namespace fs = std::filesystem;
using Messages = std::vector<std::string>;

const StreamKey kScanned{"r", "g", "s"};

struct ScanWorld {
  TemporaryDirectory directory;
  TestClock clock;
  LogSettings settings;
  std::unique_ptr<Logs> logs = nullptr;

  void open() {
    logs.reset();
    auto opened = open_logs(directory.path(), clock, settings);
    ASSERT_OK(opened);
    logs = *std::move(opened);
  }
  fs::path file(const std::string& extension) const {
    for (const auto& entry : fs::recursive_directory_iterator(directory.path()))
      if (entry.path().extension() == extension) return entry.path();
    return {};
  }
};

// Returns `count` events, one second apart.
std::vector<LogEvent> seconds(int64_t count) {
  std::vector<LogEvent> events;
  for (int64_t i = 0; i < count; ++i)
    events.push_back({from_milliseconds(i * 1000), {}, "step " + std::to_string(i)});
  return events;
}

struct Scanned {
  Messages messages;
  ScanPage last;
  size_t pages = 0;
};
Scanned scan_all(Logs& logs, const ScanQuery& query) {
  Scanned found;
  auto scan = logs.scan("r", "g", query);
  EXPECT_TRUE(scan);
  Instant reached{};
  while (scan && !found.last.ended && found.pages < 100'000) {
    auto page = (*scan)->next();
    EXPECT_TRUE(page);
    if (!page) break;
    for (const auto& each : page->events) {
      EXPECT_GE(each.event.at, reached);
      found.messages.push_back(each.event.message);
    }
    reached = page->reached;
    found.last = *std::move(page);
    ++found.pages;
  }
  EXPECT_TRUE(found.last.ended);
  return found;
}

struct Stored {
  int64_t at;
  size_t stream, order;
  std::string message;
};

// Appends events to five streams. Returns them in the order of a scan.
std::vector<Stored> append_to_streams(Logs& logs, SeededRandom& random) {
  std::vector<Stored> all;
  for (size_t s = 0; s < 5; ++s) {
    const StreamKey key{"r", "g", "s" + std::to_string(s)};
    EXPECT_TRUE(logs.ensure_stream(key));
    int64_t now = 1000 + int64_t(random.below(300));
    for (int i = 0; i < 12; ++i) {
      std::vector<LogEvent> events;
      for (uint64_t n = random.below(20); n-- > 0;) {
        const int64_t at = now + int64_t(random.below(40));
        const std::string message =
            (random.chance(2) ? "loss " : "step ") + std::to_string(all.size());
        events.push_back({from_milliseconds(at), {}, message});
        all.push_back({at, s, all.size(), message});
      }
      now += int64_t(random.below(40));
      EXPECT_TRUE(logs.append(key, events));
    }
  }
  std::ranges::stable_sort(all, [](const Stored& a, const Stored& b) {
    return std::tie(a.at, a.stream, a.order) < std::tie(b.at, b.stream, b.order);
  });
  return all;
}

TEST(LogScan, AgreesWithASortedVector) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SeededRandom random(seed);
    ScanWorld world;
    world.settings.segment_bytes = 1000 + random.below(3000);
    world.settings.block_bytes = 100 + random.below(500);
    world.settings.filter_scan_bytes_max = 1 + random.below(2000);
    world.settings.scan_held_bytes_max = random.below(3000);
    world.open();
    const auto all = append_to_streams(*world.logs, random);
    if (random.chance(2)) world.open();
    for (int question = 0; question < 10; ++question) {
      const int64_t from = 1000 + int64_t(random.below(400)),
                    to = from + int64_t(random.below(600));
      const std::string wanted = random.chance(2) ? "loss" : "";
      Messages expected;
      uint64_t events = 0, bytes = 0;
      for (const Stored& each : all) {
        if (each.at < from || each.at >= to) continue;
        ++events;
        bytes += each.message.size();
        if (each.message.find(wanted) != std::string::npos) expected.push_back(each.message);
      }
      ScanQuery query{.from = from_milliseconds(from), .to = from_milliseconds(to)};
      if (!wanted.empty())
        query.wanted = [&wanted](std::string_view message) {
          return message.find(wanted) != std::string_view::npos;
        };
      const Scanned found = scan_all(*world.logs, query);
      ASSERT_EQ(found.messages, expected) << "seed " << seed;
      EXPECT_EQ(found.last.scanned, events) << "each event is counted once";
      EXPECT_EQ(found.last.scanned_bytes, bytes);
    }
  }
}

TEST(LogScan, ReadsOnlyTheEndOfALongStream) {
  for (const int64_t count : {2'000, 20'000}) {
    ScanWorld world;
    world.settings.block_bytes = 1000;
    world.settings.segment_bytes = 50'000;
    world.open();
    ASSERT_OK(world.logs->ensure_stream(kScanned));
    const auto events = seconds(count);
    ASSERT_OK(
        world.logs->append(kScanned, events));  // one append, which is much longer than a block
    for (const bool restarted : {false, true}) {
      if (restarted) world.open();
      const Scanned found = scan_all(*world.logs, {.from = events[size_t(count) - 100].at});
      EXPECT_EQ(found.messages.size(), 100u);
      EXPECT_EQ(found.last.scanned, 100u);
      // 100 events have some 3,500 bytes.
      EXPECT_LT(found.last.read_bytes, 6'000u) << count << " events";
    }
  }
}

TEST(LogScan, ReadsEachBlockOnceUnlessItsMemoryIsSmall) {
  ScanWorld world;
  world.settings.block_bytes = 1000;
  world.open();
  for (int s = 0; s < 10; ++s) {
    const StreamKey key{"r", "g", std::to_string(s)};
    ASSERT_OK(world.logs->ensure_stream(key));
    ASSERT_OK(world.logs->append(key, seconds(300)));
  }
  const uint64_t stored = world.logs->groups("r", "g")->at(0).stored_bytes;
  const Scanned whole = scan_all(*world.logs, {});
  EXPECT_EQ(whole.messages.size(), 3000u);
  EXPECT_EQ(whole.last.read_bytes, stored);
  world.settings.scan_held_bytes_max = 8'000;  // less than one block of each stream
  world.open();
  const Scanned small = scan_all(*world.logs, {});
  EXPECT_EQ(small.messages, whole.messages);
  EXPECT_GT(small.last.read_bytes, stored);
  EXPECT_EQ(small.last.scanned, 3000u);
}

TEST(LogScan, ContinuesWhenAStreamIsDeleted) {
  ScanWorld world;
  world.settings.filter_scan_bytes_max = 1;
  world.settings.block_bytes = 1000;
  world.open();
  for (const char* name : {"a", "b"}) {
    ASSERT_OK(world.logs->ensure_stream({"r", "g", name}));
    ASSERT_OK(world.logs->append({"r", "g", name}, seconds(300)));
  }
  auto scan = world.logs->scan("r", "g", {});
  ASSERT_OK(scan);
  ASSERT_OK((*scan)->next());
  ASSERT_OK(world.logs->delete_stream({"r", "g", "a"}));
  size_t events = 0;
  for (bool ended = false; !ended;) {
    const auto page = (*scan)->next();
    ASSERT_OK(page);
    events += size_t(std::ranges::count(page->events, "b", &FilteredEvent::stream));
    ended = page->ended;
  }
  EXPECT_EQ(events, 300u);
  EXPECT_EQ(world.logs->scan("r", "none", {}).error().kind, Kind::not_found);
}

TEST(LogScan, LeavesOutAStreamThatWasCreatedAgain) {
  ScanWorld world;
  world.settings.filter_scan_bytes_max = 1;
  world.settings.block_bytes = 1000;
  world.open();
  ASSERT_OK(world.logs->ensure_stream(kScanned));
  ASSERT_OK(world.logs->append(kScanned, seconds(300)));
  auto scan = world.logs->scan("r", "g", {});
  ASSERT_OK(scan);
  const auto first = (*scan)->next();
  ASSERT_OK(first);
  EXPECT_FALSE(first->ended);
  ASSERT_OK(world.logs->delete_stream(kScanned));
  ASSERT_OK(world.logs->ensure_stream(kScanned));
  ASSERT_OK(world.logs->append(kScanned, seconds(3)));
  size_t events = first->events.size();
  for (bool ended = false; !ended;) {
    const auto page = (*scan)->next();
    ASSERT_OK(page);
    events += page->events.size();
    ended = page->ended;
  }
  EXPECT_LT(events, 50u) << "only events of blocks that were already read";
}

// A page that has reached its limit of bytes still returns the events that are in memory.
TEST(LogFilter, ReturnsManyEventsInPagesOfManyStreams) {
  ScanWorld world;
  world.settings.filter_scan_bytes_max = 1;
  world.settings.block_bytes = 1000;
  world.open();
  for (int s = 0; s < 10; ++s) {
    const StreamKey key{"r", "g", std::to_string(s)};
    ASSERT_OK(world.logs->ensure_stream(key));
    ASSERT_OK(world.logs->append(key, seconds(300)));
  }
  FilterQuery query{.from = from_milliseconds(0)};
  size_t events = 0, pages = 0;
  do {
    const auto page = world.logs->filter("r", "g", query);
    ASSERT_OK(page);
    events += page->events.size();
    query.token = page->next_token;
    ++pages;
  } while (!query.token.empty() && pages < 3000);
  EXPECT_EQ(events, 3000u);
  EXPECT_LT(pages, 300u);
}

TEST(LogIndex, HasManyBlocksOfALongAppend) {
  ScanWorld world;
  world.settings.block_bytes = 1000;
  world.open();
  ASSERT_OK(world.logs->ensure_stream(kScanned));
  ASSERT_OK(world.logs->append(kScanned, seconds(1000), 1));
  const auto entries = fs::file_size(world.file(".index")) / kIndexEntryBytes;
  EXPECT_GT(entries, fs::file_size(world.file(".log")) / 1500);
  // An index that is missing is rebuilt with the same blocks.
  world.logs.reset();
  fs::remove(world.file(".index"));
  world.open();
  EXPECT_EQ(*world.logs->last_batch(kScanned), 1u);
  EXPECT_EQ(fs::file_size(world.file(".index")) / kIndexEntryBytes, entries);
}

// Earlier releases ended blocks only at the ends of appends.
TEST(LogIndex, OfAnEarlierReleaseIsRead) {
  ScanWorld world;
  world.settings.block_bytes = 1000;
  world.open();
  ASSERT_OK(world.logs->ensure_stream(kScanned));
  const auto events = seconds(500);
  ASSERT_OK(world.logs->append(kScanned, events, 7));
  const uint64_t end = world.logs->read(kScanned, {})->end;
  world.logs.reset();
  std::string entry;
  encode_index_entry(entry, {.begin = 0,
                             .end = end,
                             .first = to_milliseconds(events.front().at),
                             .last = to_milliseconds(events.back().at),
                             .ingested = to_milliseconds(world.clock.now()),
                             .last_batch = 7});
  std::ofstream(world.file(".index"), std::ios::trunc) << entry;
  world.open();
  EXPECT_EQ(*world.logs->last_batch(kScanned), 7u);
  EXPECT_EQ(scan_all(*world.logs, {.from = events[400].at}).messages.size(), 100u);
  ASSERT_OK(world.logs->append(kScanned, seconds(100), 8));
  EXPECT_EQ(world.logs->read(kScanned, {})->events.size(), 600u);
  EXPECT_EQ((*world.logs->streams("r", "g", ""))[0].last_event, events.back().at);
}

// A disk loses data that it had synced: the index has blocks of an append that is incomplete.
TEST(LogIndex, HidesAnIncompleteAppend) {
  ScanWorld world;
  world.settings.block_bytes = 200;
  world.open();
  ASSERT_OK(world.logs->ensure_stream(kScanned));
  ASSERT_OK(world.logs->append(kScanned, seconds(20), 1));
  const size_t first = fs::file_size(world.file(".log"));
  ASSERT_OK(world.logs->append(kScanned, seconds(20), 2));
  const size_t length = fs::file_size(world.file(".log"));
  for (size_t cut = first; cut <= length; ++cut) {
    ScanWorld copy;
    copy.settings = world.settings;
    fs::copy(world.directory.path(), copy.directory.path(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    fs::resize_file(copy.file(".log"), cut);
    copy.open();
    const size_t whole = cut == length ? 40 : 20;
    ASSERT_EQ(copy.logs->read(kScanned, {})->events.size(), whole) << "cut at " << cut;
    ASSERT_EQ(*copy.logs->last_batch(kScanned), whole / 20);
    ASSERT_OK(copy.logs->append(kScanned, seconds(30), 3));
    copy.open();
    ASSERT_EQ(copy.logs->read(kScanned, {})->events.size(), whole + 30);
    ASSERT_EQ(scan_all(*copy.logs, {}).messages.size(), whole + 30);
  }
}

}  // namespace
}  // namespace trainyard::observe
