#include "agent/report/spool.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/file_faults.hpp"
#include "base/testing/test_clock.hpp"
#include "base/text.hpp"
#include "os/files.hpp"
#include "os/machine_files.hpp"
#include "os/temporary_directory.hpp"
#include "wire/codec.hpp"

namespace trainyard::agent {
namespace {

class Away final : public SpoolReason {
 public:
  std::string reason() override { return "because the server was unavailable"; }
};

class SpoolTest : public testing::Test {
 protected:
  std::unique_ptr<Spool> open(const SpoolLimits& limits = {}) {
    auto spool = open_spool(files_, directory_.path(), clock_, away_, limits);
    EXPECT_TRUE(spool) << spool.error().message;
    return std::move(*spool);
  }
  static wire::StateFact fact(std::string message) {
    wire::StateFact fact;
    fact.message = std::move(message);
    return fact;
  }
  static void add_line(Spool& spool, std::string text) {
    spool.add_logs({{from_milliseconds(5), std::move(text)}});
  }
  // Returns "1:text" of the next batch's first line; "" when there is none.
  static std::string take(Spool& spool) {
    const auto payload = spool.take_data();
    if (!payload) return "";
    const auto message = wire::decode(*payload);
    if (const auto* metrics = std::get_if<wire::MetricBatch>(&*message))
      return std::to_string(metrics->number) + ":metrics";
    const auto& batch = std::get<wire::LogBatch>(*message);
    return std::to_string(batch.number) + ":" + batch.lines.at(0).text;
  }

  os::TemporaryDirectory directory_;
  os::MachineFiles files_;
  TestClock clock_{from_milliseconds(1'000)};
  Away away_;
};

TEST_F(SpoolTest, FactsAreTakenInOrderUntilAcknowledged) {
  auto spool = open();
  ASSERT_TRUE(spool->add_state(fact("a")));
  ASSERT_TRUE(spool->add_state(fact("b")));
  EXPECT_EQ(spool->take_state()->number, 1u);
  EXPECT_EQ(spool->take_state()->number, 2u);
  EXPECT_FALSE(spool->take_state());
  spool->acknowledge(wire::Track::state, 1);
  spool->rewind(1, 0);  // a new connection
  EXPECT_EQ(spool->take_state()->message, "b");
  spool->acknowledge(wire::Track::state, 2);
  EXPECT_TRUE(spool->states_empty());
}

TEST_F(SpoolTest, DataIsResentWithItsNumbers) {
  auto spool = open();
  add_line(*spool, "one");
  spool->add_metrics({{"loss", {}, 1, false}});
  add_line(*spool, "three");
  EXPECT_EQ(take(*spool), "1:one");
  EXPECT_EQ(take(*spool), "2:metrics");
  EXPECT_GT(spool->data_in_flight_bytes(), 0u);
  spool->rewind(0, 1);
  EXPECT_EQ(spool->data_in_flight_bytes(), 0u);
  EXPECT_EQ(take(*spool), "2:metrics");
  EXPECT_EQ(take(*spool), "3:three");
  EXPECT_EQ(take(*spool), "");
  spool->acknowledge(wire::Track::data, 3);
  EXPECT_TRUE(spool->data_empty());
}

// Without the repair, a partly written fact would hide all later ones from the next agent, and a
// missing one would leave a gap, at which the server rejects all later ones.
TEST_F(SpoolTest, KeepsAllFactsUpToTheLastAcceptedOneOnAFailingDisk) {
  for (const int error_number : {EIO, ENOSPC}) {
    for (uint64_t nth = 1;; ++nth) {
      const std::string directory =
          directory_.path() + "/" + std::to_string(error_number * 1000 + int(nth));
      NthFileFault faults(nth, error_number);
      os::MachineFiles files(&faults);
      auto spool = open_spool(files, directory, clock_, away_);
      ASSERT_TRUE(spool) << spool.error().message;
      faults.arm();
      const std::vector<std::string> names = {"a", "b", "c"};
      size_t said = 0, written = 0;
      for (size_t i = 0; i < names.size(); ++i) {
        if ((*spool)->add_state(fact(names[i]))) ++said, written = i + 1;
        add_line(**spool, "line " + names[i]);
      }
      EXPECT_GE(said, 2u) << nth;
      // All are still sent here.
      for (const std::string& name : names) EXPECT_EQ((*spool)->take_state()->message, name);
      for (std::string line; !(line = take(**spool)).empty();)
        EXPECT_TRUE(line.find("line ") != line.npos || line.find("dropped") != line.npos) << line;
      spool = open_spool(files_, directory, clock_, away_);
      ASSERT_TRUE(spool) << spool.error().message;
      for (size_t i = 0; i < written; ++i) {
        const auto found = (*spool)->take_state();
        ASSERT_TRUE(found) << nth;
        EXPECT_EQ(found->message, names[i]) << nth;
        EXPECT_EQ(found->number, i + 1) << nth;
      }
      EXPECT_FALSE((*spool)->take_state());
      if (!faults.struck()) break;
      ASSERT_LT(nth, 100u);
    }
  }
}

// Neither the write nor the cut succeeds at first.
TEST_F(SpoolTest, RemovesAnIncompleteFactWhenTheDiskRecovers) {
  class Twice final : public FileFaults {
   public:
    FileFault before(FileStep step, const std::string&, size_t bytes) override {
      if (left_ == 0) return {};
      --left_;
      return {EIO, step == FileStep::write ? bytes / 2 : 0};
    }
    int left_ = 0;
  } faults;
  os::MachineFiles files(&faults);
  auto spool = *open_spool(files, directory_.path(), clock_, away_);
  ASSERT_TRUE(spool->add_state(fact("a")));
  faults.left_ = 2;
  EXPECT_FALSE(spool->add_state(fact("b")));
  EXPECT_TRUE(spool->add_state(fact("c")));
  spool = open();
  for (const std::string name : {"a", "b", "c"}) EXPECT_EQ(spool->take_state()->message, name);
}

TEST_F(SpoolTest, DropsTheOldestUnsentDataAtTheLimitAndReportsIt) {
  SpoolLimits limits;
  limits.data_bytes_max = 64 << 10;
  limits.segment_bytes = 8 << 10;
  auto spool = open(limits);
  const std::string text(1000, 'x');
  add_line(*spool, "first");
  EXPECT_EQ(take(*spool), "1:first");  // sent: stays
  for (int i = 0; i < 200; ++i) add_line(*spool, text + std::to_string(i));
  uint64_t on_disk = 0;
  const auto names = os::list_directory(directory_.path());
  for (const auto& name : *names) {
    on_disk += os::read_file(directory_.path() + "/" + name)->size();
  }
  EXPECT_LE(on_disk, limits.data_bytes_max + limits.segment_bytes);
  // The batches in the segment of "first" are there; then the notice; then the newest, to the end,
  // without a gap.
  std::vector<std::string> lines;
  for (std::string line; !(line = take(*spool)).empty();) lines.push_back(line);
  uint64_t dropped = 0, kept = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(lines[i].starts_with(std::to_string(i + 2) + ":")) << lines[i];
    const auto text_of = lines[i].substr(lines[i].find(':') + 1);
    if (text_of.starts_with("trainyard: ")) {
      EXPECT_EQ(dropped, 0u) << "one notice covers all";
      dropped = std::stoull(text_of.substr(11));
      EXPECT_NE(text_of.find("bytes of log were dropped here because the server was unavailable"),
                std::string::npos);
    } else {
      kept += text_of.size() + 1;
    }
  }
  uint64_t all = 0;
  for (int i = 0; i < 200; ++i) all += text.size() + std::to_string(i).size() + 1;
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(kept + dropped, all);
  EXPECT_TRUE(lines.back().ends_with("x199"));
}

TEST_F(SpoolTest, ABatchLargerThanAFrameIsReportedAsDropped) {
  auto spool = open();
  add_line(*spool, "before");
  const wire::MetricPoint point{std::string(1000, 'n'), from_milliseconds(5), 1, false};
  spool->add_metrics(std::vector<wire::MetricPoint>(wire::kFrameBytesMax / 1000 + 1, point));
  add_line(*spool, "after");
  EXPECT_EQ(take(*spool), "1:before");
  const std::string notice = take(*spool);
  EXPECT_NE(notice.find("metric points were dropped here"), std::string::npos) << notice;
  EXPECT_EQ(take(*spool), "3:after");
}

TEST_F(SpoolTest, RemovesAcknowledgedSegments) {
  SpoolLimits limits;
  limits.segment_bytes = 100;
  auto spool = open(limits);
  for (int i = 0; i < 50; ++i) {
    add_line(*spool, std::string(90, 'y'));
    ASSERT_NE(take(*spool), "");
    spool->acknowledge(wire::Track::data, static_cast<uint64_t>(i) + 1);
  }
  EXPECT_LE(os::list_directory(directory_.path())->size(),
            3u);  // the version, the state file, the segment being written
}

// An agent may be killed at any byte of a write: complete records are read again, an incomplete one
// is not, and writing continues in its place.
TEST_F(SpoolTest, ACrashAtAnyByteLosesOnlyTheIncompleteRecord) {
  {
    auto spool = open();
    for (const char* text : {"a", "bb", "ccc"}) ASSERT_TRUE(spool->add_state(fact(text)));
    for (const char* text : {"one", "two"}) add_line(*spool, text);
  }
  const std::string state_path = directory_.path() + "/state",
                    data_path = directory_.path() + "/data-1";
  const auto state_bytes = *os::read_file(state_path), data_bytes = *os::read_file(data_path);
  size_t facts_before = 0;
  for (size_t cut = 0; cut <= state_bytes.size(); ++cut) {
    ASSERT_TRUE(os::write_file(state_path, state_bytes.substr(0, cut)));
    size_t facts = 0;
    {
      auto spool = open();
      while (spool->take_state()) ++facts;
      EXPECT_GE(facts, facts_before);
      facts_before = facts;
      EXPECT_EQ(spool->found_facts(), facts > 0);
      ASSERT_TRUE(spool->add_state(fact("after")));
    }
    auto spool = open();
    while (const auto fact = spool->take_state()) {
      EXPECT_EQ(fact->number == facts + 1, fact->message == "after");
    }
  }
  EXPECT_EQ(facts_before, 3u);
  size_t batches_before = 0;
  for (size_t cut = 0; cut <= data_bytes.size(); ++cut) {
    ASSERT_TRUE(os::write_file(data_path, data_bytes.substr(0, cut)));
    auto spool = open();
    size_t batches = 0;
    while (!take(*spool).empty()) ++batches;
    EXPECT_GE(batches, batches_before);
    batches_before = batches;
  }
  EXPECT_EQ(batches_before, 2u);
}

TEST_F(SpoolTest, ContinuesASpoolOfTheFirstRelease) {
  ASSERT_TRUE(open()->add_state(fact("a")));
  const std::string path = directory_.path() + "/version";
  EXPECT_EQ(*os::read_file(path), "1\n");
  ASSERT_TRUE(os::remove_all(path));
  EXPECT_EQ(open()->take_state()->message, "a");
  ASSERT_TRUE(os::write_file(path, "2\n"));
  const auto refused = open_spool(files_, directory_.path(), clock_, away_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::conflict);
  EXPECT_NE(refused.error().message.find("this agent reads version 1"), std::string::npos)
      << refused.error().message;
}

TEST_F(SpoolTest, SkipsFactsOfLaterVersions) {
  ASSERT_TRUE(open()->add_state(fact("a")));
  const std::string path = directory_.path() + "/state";
  ASSERT_TRUE(os::write_file(path, *os::read_file(path) + spool_record("\x7f later")));
  ASSERT_TRUE(open()->add_state(fact("b")));
  auto spool = open();
  EXPECT_EQ(spool->take_state()->message, "a");
  EXPECT_EQ(spool->take_state()->message, "b");
  EXPECT_FALSE(spool->take_state());
}

TEST_F(SpoolTest, GoldenBytes) {
  // u32 length | u32 CRC-32 (IEEE: that of "123456789" is cbf43926) | payload.
  // docs/formats/spool.md.
  EXPECT_EQ(to_hex(spool_record("123456789")),
            "09000000"
            "2639f4cb"
            "313233343536373839");
}

TEST_F(SpoolTest, ReadsUpToARecordWithAFlippedBit) {
  const std::string records = spool_record("first") + spool_record("second");
  for (size_t bit = 0; bit < records.size() * 8; ++bit) {
    std::string flipped = records;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_LT(read_spool_records(flipped).payloads.size(), 2u);
  }
}

}  // namespace
}  // namespace trainyard::agent
