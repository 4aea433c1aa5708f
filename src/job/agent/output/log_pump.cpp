#include "agent/output/log_pump.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include "agent/output/lines.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::agent {
namespace {

// The largest pipe that Linux permits ordinary users: heavy output then causes fewer wake-ups.
constexpr int kPipeBytes = 1 << 20;
constexpr size_t kReadBytesMax = 256 << 10;
constexpr auto kNever = std::chrono::nanoseconds::max();

// Lines and points that are not yet sent.
class LineBatch {
 public:
  LineBatch(const MetricMatcher& metrics, Facts& facts) : metrics_(metrics), facts_(facts) {}

  void add(std::vector<std::string> lines, Instant at) {
    for (auto& line : lines) {
      metrics_.match(line, at, points_);
      bytes_ += line.size() + 16;  // and the overhead of a line
      lines_.push_back({at, std::move(line)});
      if (bytes_ >= kBatchBytesMax || points_.size() >= kBatchPointsMax) send();
    }
  }
  bool empty() const { return lines_.empty(); }
  void send() {
    if (!lines_.empty()) facts_.lines(std::move(lines_));
    if (!points_.empty()) facts_.points(std::move(points_));
    lines_ = {};
    points_ = {};
    bytes_ = 0;
  }

 private:
  const MetricMatcher& metrics_;
  Facts& facts_;
  std::vector<wire::LogLine> lines_;
  std::vector<wire::MetricPoint> points_;
  size_t bytes_ = 0;
};

}  // namespace

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return from_errno("making a pipe");
  Pipe pipe{os::File(ends[0]), os::File(ends[1])};
  // Only the read end: the other is the standard output of programs, which expect it to block.
  ::fcntl(pipe.read_end.descriptor(), F_SETFL, O_NONBLOCK);
  ::fcntl(pipe.read_end.descriptor(), F_SETPIPE_SZ, kPipeBytes);
  return pipe;
}

LogPump::LogPump(os::File read_end, const MetricMatcher& metrics, Facts& facts, Clock& clock)
    : read_end_(std::move(read_end)), metrics_(metrics), facts_(facts), clock_(clock) {
  auto stop = make_pipe();
  if (stop) stop_ = std::move(*stop);
  thread_ = std::thread([this] { loop(); });
}

LogPump::~LogPump() { finish(0ms); }

void LogPump::finish(Duration at_most) {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    changed_.wait_for(lock, at_most, [&]() REQUIRES(mutex_) { return ended_; });
  }
  stop_.write_end.close();
  thread_.join();
}

std::string LogPump::last_output() const {
  const MutexLock lock(mutex_);
  std::string lines;
  for (const auto& line : last_lines_) lines += (lines.empty() ? "" : "\n") + line;
  return lines;
}

// Keeps the last lines, up to kLastOutputBytesMax.
void LogPump::keep_last(const std::vector<std::string>& lines) {
  size_t first = lines.size();
  for (size_t bytes = 0; first > 0 && bytes <= kLastOutputBytesMax;)
    bytes += lines[--first].size() + 1;
  const MutexLock lock(mutex_);
  for (; first < lines.size(); ++first) {
    last_lines_.push_back(shorten(lines[first], kLastOutputBytesMax));
    last_bytes_ += last_lines_.back().size() + 1;
    while (last_bytes_ > kLastOutputBytesMax && last_lines_.size() > 1) {
      last_bytes_ -= last_lines_.front().size() + 1;
      last_lines_.pop_front();
    }
  }
}

void LogPump::loop() {
  LineSplitter splitter;
  LineBatch batch(metrics_, facts_);
  // Not zeroed: most jobs print little, and so touch little of the buffer's memory.
  const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytesMax);
  std::vector<std::string> lines;
  std::chrono::nanoseconds batch_due = kNever, partial_due = kNever;
  for (;;) {
    // Waits for bytes, for a stop, or until unsent lines are due.
    const auto due = std::min(batch_due, partial_due);
    const auto wait = std::max(due - clock_.monotonic(), std::chrono::nanoseconds(0));
    pollfd waited[2] = {{read_end_.descriptor(), POLLIN, 0},
                        {stop_.read_end.descriptor(), POLLIN, 0}};
    ::poll(waited, 2,
           due == kNever ? -1 : static_cast<int>(std::chrono::ceil<Duration>(wait).count()));

    const ssize_t got = ::read(read_end_.descriptor(), buffer.get(), kReadBytesMax);
    if (got > 0) {
      bytes_read_ += static_cast<uint64_t>(got);
      splitter.add({buffer.get(), static_cast<size_t>(got)}, lines);
      partial_due = splitter.pending() ? clock_.monotonic() + kPartialLineMax : kNever;
    }
    const bool ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    const bool last = ended || (got <= 0 && (waited[1].revents & (POLLHUP | POLLIN)) != 0);
    if (last || clock_.monotonic() >= partial_due) {
      splitter.flush(lines);
      partial_due = kNever;
    }
    keep_last(lines);
    if (!lines.empty()) batch.add(std::move(lines), clock_.now());
    lines.clear();
    if (batch.empty()) {
      batch_due = kNever;
    } else if (batch_due == kNever) {
      batch_due = clock_.monotonic() + kBatchAgeMax;
    }
    if (last || clock_.monotonic() >= batch_due) {
      batch.send();
      batch_due = kNever;
    }
    if (last) break;
  }
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

}  // namespace trainyard::agent
