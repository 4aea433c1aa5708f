#include "data/feed.hpp"

#include <algorithm>

#include "base/bytes/record_io.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "objects/verifier.hpp"

namespace trainyard::data {
namespace {

// The buffer for reading a stream only to measure its length.
constexpr size_t kCountingBytes = 256 << 10;

Result<void> check_record(uint64_t bytes) {
  if (bytes <= kRecordBytesMax) return {};
  return invalid("it has " + human_bytes(bytes) +
                 ", and one RecordIO record holds less than 512 MiB");
}

std::string name_of(const objects::Location& from) {
  return shorten(to_utf8("s3://" + from.bucket + "/" + from.key), 300);
}

}  // namespace

Feed::Feed(objects::Objects& objects, Clock& clock, Form form, Source source)
    : objects_(objects), clock_(clock), form_(form), source_(std::move(source)) {
  for (size_t i = 0; i < kAheadItems; ++i) threads_.emplace_back([this] { work(); });
}

void Feed::stop() {
  stop_.order();
  { const MutexLock lock(mutex_); }
  changed_.notify_all();
}

Feed::~Feed() {
  stop();
  for (auto& thread : threads_) thread.join();
}

Result<std::optional<std::vector<char>>> Feed::next() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() REQUIRES(mutex_) {
      if (stop_.ordered()) return true;
      if (backlogs_.empty()) return exhausted_;
      return !backlogs_.front()->chunks.empty() || backlogs_.front()->done;
    });
    if (stop_.ordered()) return cancelled("stopped");
    if (backlogs_.empty()) return std::optional<std::vector<char>>();
    auto& first = *backlogs_.front();
    if (!first.chunks.empty()) {
      auto chunk = std::move(first.chunks.front());
      first.chunks.pop_front();
      changed_.notify_all();
      return std::optional(std::move(chunk));
    }
    auto outcome = first.outcome;
    if (!outcome) return std::move(outcome).error();  // repeated at each further call
    backlogs_.pop_front();
    changed_.notify_all();
  }
}

void Feed::work() {
  while (!stop_.ordered()) {
    std::shared_ptr<Backlog> backlog;
    std::optional<Item> item;
    {
      // Takes the item and adds its backlog under one lock, so both have the same order.
      const MutexLock source_lock(source_mutex_);
      {
        MutexLock lock(mutex_);
        changed_.wait(lock, [&]() REQUIRES(mutex_) {
          return backlogs_.size() < kAheadItems || stop_.ordered();
        });
        if (exhausted_ || stop_.ordered()) return;
      }
      auto next = source_();
      const MutexLock lock(mutex_);
      if (next && !*next) {
        exhausted_ = true;
        changed_.notify_all();
        return;
      }
      backlog = backlogs_.emplace_back(std::make_shared<Backlog>());
      if (next) {
        item = std::move(**next);
      } else {
        backlog->outcome = std::move(next).error();
        backlog->done = exhausted_ = true;
        changed_.notify_all();
        return;
      }
    }
    auto outcome = fetch_undamaged(*item, *backlog);
    if (!outcome && item->from) outcome = std::move(outcome).error().in(name_of(*item->from));
    const MutexLock lock(mutex_);
    backlog->outcome = std::move(outcome);
    backlog->done = true;
    changed_.notify_all();
  }
}

Result<void> Feed::push(Backlog& backlog, std::vector<char> chunk) {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() REQUIRES(mutex_) {
    return backlog.chunks.size() < kAheadChunks || stop_.ordered();
  });
  if (stop_.ordered()) return cancelled("stopped");
  backlog.pushed = true;
  backlog.chunks.push_back(std::move(chunk));
  changed_.notify_all();
  return {};
}

Result<std::unique_ptr<ByteStream>> Feed::open(const objects::Location& from, uint64_t& bytes) {
  auto stream = TRY(ObjectStream::open(objects_, from, clock_, stop_));
  bytes = stream->bytes();
  if (!form_.gunzip) return std::unique_ptr<ByteStream>(std::move(stream));
  return decompressed(std::move(stream));
}

Result<void> Feed::fetch_undamaged(const Item& item, Backlog& backlog) {
  auto outcome = fetch(item, backlog);
  if (outcome || !objects::is_damaged(outcome.error())) return outcome;
  if (!backlog.pushed) return fetch(item, backlog);
  return std::move(outcome).error().in("the job may have read wrong bytes");
}

Result<void> Feed::fetch(const Item& item, Backlog& backlog) {
  uint64_t bytes = item.text.size();
  std::unique_ptr<ByteStream> stream;
  if (item.from) stream = TRY(open(*item.from, bytes));
  std::vector<char> chunk;
  if (form_.record_io) {
    if (item.from && form_.gunzip) {
      // Reads the object twice: a record begins with its length, which gzip has at its end.
      std::vector<char> counted(kCountingBytes);
      bytes = 0;
      while (const size_t got = TRY(stream->read(counted))) {
        bytes += got;
        TRY(check_record(bytes));  // a small gzip file may expand to any length
      }
      uint64_t compressed = 0;
      stream = TRY(open(*item.from, compressed));
    }
    TRY(check_record(bytes));
    const auto head = record_head(bytes);
    chunk.assign(head.begin(), head.end());
  }
  if (stream) {
    const uint64_t sent = TRY(copy(*stream, bytes, chunk, backlog));
    if (form_.record_io && sent != bytes) return conflict("it was replaced while it was read");
  } else {
    chunk.insert(chunk.end(), item.text.begin(), item.text.end());
  }
  if (form_.record_io) chunk.resize(chunk.size() + record_padding(bytes), '\0');
  if (chunk.empty()) return {};
  return push(backlog, std::move(chunk));
}

// Moves complete chunks into the backlog; the rest stays in `chunk`. `expected`: the maximum
// length.
Result<uint64_t> Feed::copy(ByteStream& stream, uint64_t expected, std::vector<char>& chunk,
                            Backlog& backlog) {
  for (uint64_t sent = 0;;) {
    const size_t have = chunk.size();
    const uint64_t likely = form_.gunzip ? kChunkBytes : expected - std::min(expected, sent) + 1;
    chunk.resize(std::min<uint64_t>(kChunkBytes, have + likely));
    const size_t got = TRY(stream.read(std::span(chunk).subspan(have)));
    chunk.resize(have + got);
    sent += got;
    if (got == 0) return sent;
    if (chunk.size() < kChunkBytes) continue;
    TRY(push(backlog, std::move(chunk)));
    chunk.clear();
  }
}

}  // namespace trainyard::data
