#include "observe/audit.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <thread>

#include "base/random.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::observe {
namespace {

const Instant kNoon = *parse_iso8601("2026-11-20T12:00:00Z");
constexpr Duration kDay = 24h;

std::string event(int number, Instant at, const std::string& name = "CreateTrainingJob",
                  const std::string& user = "ana") {
  return dump(Json{
      {"eventVersion", "1.08"},
      {"eventID", "id-" + std::to_string(number)},
      {"eventTime", to_iso8601(at, false)},
      {"eventName", name},
      {"eventSource", "sagemaker.amazonaws.com"},
      {"readOnly", name.starts_with("Describe")},
      {"userIdentity", {{"type", "IAMUser"}, {"userName", user}, {"accessKeyId", "AKIA" + user}}},
      {"resources", Json::array({{{"type", "AWS::SageMaker::TrainingJob"},
                                  {"ARN", "arn:aws:sagemaker:eu-west-1:1:training-job/job-" +
                                              std::to_string(number)}}})}});
}

std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().string());
  std::ranges::sort(names);
  return names;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Appends `count` records from number `first`, all on disk.
void fill(const std::string& directory, int first, int count, Instant at = kNoon,
          AuditLimits limits = {}) {
  auto log = open_audit_log(directory, limits);
  ASSERT_OK(log);
  for (int i = first; i < first + count; ++i) ASSERT_OK((*log)->append(event(i, at), at));
  ASSERT_OK((*log)->flush());
}

std::vector<std::string> ids(const AuditPage& page) {
  std::vector<std::string> list;
  for (const Json& one : page.events) list.push_back(one.at("eventID"));
  return list;
}

TEST(Audit, ChainsLinesOverFilesAndRestarts) {
  TemporaryDirectory directory;
  fill(directory.path(), 1, 3);
  fill(directory.path(), 4, 2);
  fill(directory.path(), 6, 2, kNoon + kDay);
  const auto files = files_in(directory.path());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_TRUE(files[0].ends_with("/00000001-2026-11-20.jsonl"));
  EXPECT_TRUE(files[1].ends_with("/00000002-2026-11-21.jsonl"));
  const auto verified = verify_audit_log(directory.path());
  ASSERT_OK(verified);
  EXPECT_EQ(verified->records, 7u);
  EXPECT_TRUE(verified->from_beginning);
  EXPECT_FALSE(verified->torn);
  const std::string last = read(files[1]);
  EXPECT_EQ(verified->digest,
            line_digest(last.substr(last.find('\n') + 1, last.size() - last.find('\n') - 2)));
}

TEST(Audit, BeginsAFileWhenOneIsFull) {
  TemporaryDirectory directory;
  fill(directory.path(), 1, 20, kNoon, {.file_bytes_max = 1'000});
  EXPECT_GT(files_in(directory.path()).size(), 4u);
  const auto verified = verify_audit_log(directory.path());
  ASSERT_OK(verified);
  EXPECT_EQ(verified->records, 20u);
}

TEST(Audit, RemovesTheOldestFilesBeyondItsSpaceAndAge) {
  TemporaryDirectory directory;
  constexpr AuditLimits kSmall{.file_bytes_max = 1'000, .total_bytes_max = 5'000, .retention = 48h};
  fill(directory.path(), 1, 40, kNoon, kSmall);
  EXPECT_LE(files_in(directory.path()).size(), 5u);
  auto verified = verify_audit_log(directory.path());
  ASSERT_OK(verified);
  EXPECT_LT(verified->records, 40u);
  EXPECT_FALSE(verified->from_beginning);
  fill(directory.path(), 41, 1, kNoon + 3 * kDay, kSmall);
  verified = verify_audit_log(directory.path());
  ASSERT_OK(verified);
  EXPECT_EQ(verified->records, 1u);
}

TEST(Audit, DetectsTampering) {
  const auto lines_of = [](std::string bytes) {
    std::vector<std::string> lines;
    for (size_t end; (end = bytes.find('\n')) != std::string::npos; bytes.erase(0, end + 1))
      lines.push_back(bytes.substr(0, end + 1));
    return lines;
  };
  using Lines = std::vector<std::string>;
  const std::pair<const char*, std::function<void(Lines&)>> kAttacks[] = {
      {"a changed name", [](Lines& lines) { lines[1].replace(lines[1].find("ana"), 3, "ben"); }},
      {"a removed line", [](Lines& lines) { lines.erase(lines.begin() + 1); }},
      {"a removed first line", [](Lines& lines) { lines.erase(lines.begin()); }},
      {"a removed last line of a complete file", [](Lines& lines) { lines.pop_back(); }},
      {"swapped lines", [](Lines& lines) { std::swap(lines[0], lines[1]); }},
      {"a line that occurs twice", [](Lines& lines) { lines.insert(lines.begin(), lines[0]); }},
      {"an inserted line", [](Lines& lines) { lines.insert(lines.begin() + 1, "{}\n"); }},
      {"a line that is not a record", [](Lines& lines) { lines[1] = "nonsense\n"; }},
      {"a blank", [](Lines& lines) { lines[1].insert(1, " "); }},
      {"a last line without its end", [](Lines& lines) { lines.back().pop_back(); }},
  };
  for (const auto& [says, attack] : kAttacks) {
    TemporaryDirectory directory;
    fill(directory.path(), 1, 3);
    fill(directory.path(), 4, 1, kNoon + kDay);
    ASSERT_OK(verify_audit_log(directory.path()));
    const std::string path = files_in(directory.path())[0];
    Lines lines = lines_of(read(path));
    attack(lines);
    std::string changed;
    for (const std::string& line : lines) changed += line;
    write(path, changed);
    const auto verified = verify_audit_log(directory.path());
    ASSERT_FALSE(verified) << says;
    EXPECT_EQ(verified.error().kind, Kind::corrupt) << says;
    EXPECT_NE(verified.error().message.find(".jsonl"), std::string::npos)
        << verified.error().message;
  }
}

TEST(Audit, ReportsMissingFiles) {
  TemporaryDirectory directory;
  for (int day = 0; day < 3; ++day) fill(directory.path(), day, 1, kNoon + day * kDay);
  const auto files = files_in(directory.path());
  const std::string middle = read(files[1]);
  std::filesystem::remove(files[1]);
  EXPECT_FALSE(verify_audit_log(directory.path()));
  write(files[1], middle);
  std::filesystem::remove(files[0]);
  const auto verified = verify_audit_log(directory.path());
  ASSERT_OK(verified);
  EXPECT_FALSE(verified->from_beginning)
      << "files that retention removed are reported, not an error";
  EXPECT_FALSE(verify_audit_log(directory.path() + "/absent"));
}

// A kill may leave any part of the last line, which is then cut off.
TEST(Audit, CutsOffAnIncompleteLine) {
  TemporaryDirectory directory;
  fill(directory.path(), 1, 2);
  const std::string path = files_in(directory.path())[0], whole = read(path);
  const size_t second = whole.find('\n') + 1;
  for (size_t length = 0; length < whole.size(); length += length < second ? 97 : 13) {
    write(path, whole.substr(0, length));
    const auto before = verify_audit_log(directory.path());
    ASSERT_OK(before);
    EXPECT_EQ(before->torn, length != 0 && length != second);
    fill(directory.path(), 3, 1);
    const auto verified = verify_audit_log(directory.path());
    ASSERT_OK(verified);
    EXPECT_FALSE(verified->torn);
    EXPECT_EQ(verified->records, length < second ? 1u : 2u) << length;
  }
}

TEST(Audit, LooksUpNewestFirstByPages) {
  TemporaryDirectory directory;
  auto log = open_audit_log(directory.path(), {.file_bytes_max = 2'000});
  ASSERT_OK(log);
  for (int i = 0; i < 30; ++i) {
    const Instant at = kNoon + i * 1h;
    ASSERT_OK((*log)->append(
        event(i, at, i % 3 ? "DescribeTrainingJob" : "CreateTrainingJob", i % 2 ? "ana" : "ben"),
        at));
  }
  ASSERT_OK((*log)->flush());
  AuditQuery query{.count_max = 7};
  std::vector<std::string> all;
  int pages = 0;
  do {
    const auto page = (*log)->lookup(query);
    ASSERT_OK(page);
    ASSERT_LE(page->events.size(), 7u);
    for (const std::string& id : ids(*page)) all.push_back(id);
    query.token = page->next_token;
  } while (!query.token.empty() && ++pages < 20);
  ASSERT_EQ(all.size(), 30u);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(all[size_t(i)], "id-" + std::to_string(29 - i));

  const auto find = [&](AuditFilter filter) {
    const auto page = (*log)->lookup({.filter = std::move(filter)});
    EXPECT_TRUE(page);
    return page ? page->events.size() : 0;
  };
  const auto by = [&](AuditAttribute attribute, std::string value) {
    return find({{}, {}, {{attribute, std::move(value)}}});
  };
  EXPECT_EQ(find({kNoon + 10h, kNoon + 19h, {}}), 10u);
  EXPECT_EQ(find({kNoon + 29h, {}, {}}), 1u);
  EXPECT_EQ(by(AuditAttribute::event_name, "CreateTrainingJob"), 10u);
  EXPECT_EQ(by(AuditAttribute::username, "ben"), 15u);
  EXPECT_EQ(by(AuditAttribute::access_key_id, "AKIAana"), 15u);
  EXPECT_EQ(by(AuditAttribute::event_id, "id-7"), 1u);
  EXPECT_EQ(by(AuditAttribute::resource_name, "job-7"), 1u);
  EXPECT_EQ(by(AuditAttribute::resource_name, "arn:aws:sagemaker:eu-west-1:1:training-job/job-7"),
            1u);
  EXPECT_EQ(by(AuditAttribute::resource_type, "AWS::SageMaker::TrainingJob"), 30u);
  EXPECT_EQ(by(AuditAttribute::event_source, "s3.amazonaws.com"), 0u);
  EXPECT_EQ(by(AuditAttribute::read_only, "false"), 10u);
  EXPECT_FALSE((*log)->lookup({.token = "x"}));
  EXPECT_FALSE((*log)->lookup({.token = "-1/2"}));
}

TEST(Audit, ChainsRecordsOfManyThreads) {
  TemporaryDirectory directory;
  {
    auto log = open_audit_log(directory.path(), {.queue_records_max = 4});
    ASSERT_OK(log);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) EXPECT_TRUE((*log)->append(event(t * 50 + i, kNoon), kNoon));
      });
    for (std::thread& thread : threads) thread.join();
  }
  const auto verified = verify_audit_log(directory.path());
  ASSERT_OK(verified);
  EXPECT_EQ(verified->records, 400u) << "the destructor writes what is queued";
}

// A record that cannot be written delays its request, which then fails. Queued records are written
// later.
TEST(Audit, WritesDroppableRecordsWithTheNextOtherRecord) {
  TemporaryDirectory place;
  AuditLimits limits;
  limits.gather_droppable_for = 24h;
  const auto log = open_audit_log(place.path() + "/audit", limits);
  ASSERT_OK(log);
  ASSERT_OK((*log)->append(event(1, kNoon), kNoon, WhenFull::drop));
  ASSERT_OK((*log)->append(event(2, kNoon), kNoon, WhenFull::drop));
  ASSERT_OK((*log)->append(event(3, kNoon), kNoon));
  const auto found = [&] { return (*log)->lookup({})->events.size(); };
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (found() < 3 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(found(), 3U);
  ASSERT_OK((*log)->append(event(4, kNoon), kNoon, WhenFull::drop));
  ASSERT_OK((*log)->flush());
  EXPECT_EQ(found(), 4U);
}

TEST(Audit, WaitsForADiskThatFails) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/audit";
  auto log = open_audit_log(path, {.queue_records_max = 2, .append_wait_max = 200ms});
  ASSERT_OK(log);
  write(path + "-moved", "");
  std::filesystem::remove_all(path);
  write(path, "a file where the directory was");
  Result<void> last = ok();
  int accepted = 0;
  for (; accepted < 10 && (last = (*log)->append(event(accepted, kNoon), kNoon)); ++accepted) {
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().kind, Kind::unavailable);
  EXPECT_EQ(accepted, 2);
  EXPECT_FALSE((*log)->append(event(9, kNoon), kNoon, WhenFull::drop));
  std::filesystem::remove(path);
  while (!(*log)->flush()) {
  }
  const auto verified = verify_audit_log(path);
  ASSERT_OK(verified);
  EXPECT_EQ(verified->records, 2u);
}

TEST(Audit, RejectsRecordsThatAreTooLong) {
  TemporaryDirectory directory;
  auto log = open_audit_log(directory.path());
  ASSERT_OK(log);
  const auto appended =
      (*log)->append(dump(Json{{"userAgent", std::string(kAuditRecordBytesMax, 'x')}}), kNoon);
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().kind, Kind::invalid);
  ASSERT_OK((*log)->append(event(1, kNoon), kNoon));
  ASSERT_OK((*log)->flush());
  const auto page = (*log)->lookup({});
  ASSERT_OK(page);
  EXPECT_EQ(page->events.size(), 1u);
}

constexpr int kAuditKills = 20;
constexpr int kAuditPollMilliseconds =
    20'000;  // a child that writes nothing within this time has failed
constexpr int kAuditThreads = 3;

// Never returns. Each thread appends records, and writes the number of each that is on disk to the
// pipe.
[[noreturn]] void append_until_killed(const std::string& directory, int pipe, int first) {
  auto log = open_audit_log(directory, {.file_bytes_max = 5'000});
  if (!log) ::_exit(3);
  std::atomic<int> next = first;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kAuditThreads; ++thread)
    threads.emplace_back([&] {
      for (;;) {
        const int number = next++;
        if (!(*log)->append(event(number, kNoon), kNoon) || !(*log)->flush()) ::_exit(4);
        if (::write(pipe, &number, sizeof number) != sizeof number) ::_exit(5);
      }
    });
  for (auto& thread : threads) thread.join();
  ::_exit(6);
}

// Returns the numbers of the records in the files, in order.
std::vector<int> numbers_in(const std::string& directory) {
  std::vector<int> numbers;
  for (const auto& path : files_in(directory)) {
    const std::string bytes = read(path);
    for (size_t at = 0, end; (end = bytes.find('\n', at)) != std::string::npos; at = end + 1) {
      const auto record = parse_json(std::string_view(bytes).substr(at, end - at));
      EXPECT_TRUE(record) << path;
      if (record) numbers.push_back(std::stoi(record->at("eventID").get<std::string>().substr(3)));
    }
  }
  return numbers;
}

TEST(AuditKill, KeepsTheChainUpToTheLastCompleteRecordAndContinues) {
  TemporaryDirectory directory;
  SeededRandom random(11);
  std::set<int> acknowledged;
  int first = 0;
  for (int kill = 0; kill < kAuditKills; ++kill) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe[0]);
      append_until_killed(directory.path(), pipe[1], first);
    }
    ::close(pipe[1]);
    int number = 0;
    for (uint64_t left = 1 + random.below(30); left-- > 0;) {
      pollfd waiting{.fd = pipe[0], .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&waiting, 1, kAuditPollMilliseconds), 1) << "the child hangs";
      ASSERT_EQ(::read(pipe[0], &number, sizeof number), ssize_t(sizeof number))
          << "the child failed";
      acknowledged.insert(number);
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed before the kill: " << WEXITSTATUS(status);
    while (::read(pipe[0], &number, sizeof number) == ssize_t(sizeof number))
      acknowledged.insert(number);
    ::close(pipe[0]);

    // A power failure may leave a part of the last write.
    const auto files = files_in(directory.path());
    ASSERT_FALSE(files.empty());
    const bool tears = random.below(2) == 1;
    if (tears) write(files.back(), read(files.back()) + R"({"eventID": "id-)");
    const auto verified = verify_audit_log(directory.path());
    ASSERT_TRUE(verified) << verified.error().message;
    EXPECT_TRUE(verified->from_beginning);
    if (tears) {
      EXPECT_TRUE(verified->torn);
    }
    const auto numbers = numbers_in(directory.path());
    EXPECT_EQ(verified->records, numbers.size());
    const std::set<int> once(numbers.begin(), numbers.end());
    EXPECT_EQ(once.size(), numbers.size()) << "no record is stored twice";
    for (const int each : acknowledged) EXPECT_TRUE(once.contains(each)) << each;

    first = *once.rbegin() + 1;
    fill(directory.path(), first++, 1, kNoon, {.file_bytes_max = 5'000});
    const auto again = verify_audit_log(directory.path());
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_FALSE(again->torn) << "the incomplete line was cut off";
    EXPECT_EQ(again->records, verified->records + 1);
    EXPECT_NE(again->digest, verified->digest);
  }
}

}  // namespace
}  // namespace trainyard::observe
