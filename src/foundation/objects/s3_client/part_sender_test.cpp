#include "objects/s3_client/part_sender.hpp"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <set>

#include "base/time.hpp"

namespace trainyard::objects {
namespace {

constexpr Duration kWaitMax = 60s;
constexpr size_t kPartBytes = 1 << 16;

// A simulated endpoint whose parts wait until the test answers them.
class HeldParts {
 public:
  PartSender::Send send() {
    return [this](uint32_t number, std::string_view bytes, const std::atomic<bool>& abandoned) {
      return receive(number, bytes, abandoned);
    };
  }
  void wait_for(size_t count) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kWaitMax,
                                  [&]() REQUIRES(mutex_) { return held_.size() == count; }));
  }
  void answer(uint32_t number, std::optional<Error> error = {}) {
    {
      const MutexLock lock(mutex_);
      EXPECT_EQ(held_.erase(number), 1u) << number;
      if (error) errors_.emplace(number, *std::move(error));
      answered_.insert(number);
    }
    changed_.notify_all();
  }
  std::set<uint32_t> held() {
    const MutexLock lock(mutex_);
    return held_;
  }
  std::set<uint32_t> answered() {
    const MutexLock lock(mutex_);
    return answered_;
  }

 private:
  Result<PartInfo> receive(uint32_t number, std::string_view bytes,
                           const std::atomic<bool>& abandoned) {
    MutexLock lock(mutex_);
    held_.insert(number);
    changed_.notify_all();
    // An abandoned part is not notified, so it looks again.
    while (!answered_.contains(number) && !abandoned) changed_.wait_for(lock, 1ms);
    held_.erase(number);
    changed_.notify_all();
    const auto error = errors_.find(number);
    if (error != errors_.end()) return error->second;
    if (!answered_.contains(number)) return cancelled("abandoned");
    return PartInfo{number, "e" + std::to_string(number), bytes.size()};
  }

  Mutex mutex_;
  ConditionVariable changed_;
  std::set<uint32_t> held_ GUARDED_BY(mutex_), answered_ GUARDED_BY(mutex_);
  std::map<uint32_t, Error> errors_ GUARDED_BY(mutex_);
};

Result<void> send_one(PartSender& sender, size_t bytes = kPartBytes) {
  std::string part(bytes, 'p');
  TRY(sender.send(part));
  EXPECT_TRUE(part.empty());
  return ok();
}

TEST(PartSender, SendsSeveralPartsAtOnceAndReturnsThemInOrder) {
  HeldParts held;
  PartSender sender(held.send());
  for (size_t i = 0; i < kPartsAtOnceMax; ++i) ASSERT_TRUE(send_one(sender));
  held.wait_for(kPartsAtOnceMax);
  auto fifth = std::async(std::launch::async, [&] { return send_one(sender, 5); });
  for (const uint32_t number : {4, 2, 3, 1}) held.answer(number);
  ASSERT_TRUE(fifth.get());
  held.wait_for(1);
  held.answer(5);
  const auto parts = sender.finish();
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 5u);
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ((*parts)[i].number, i + 1);
    EXPECT_EQ((*parts)[i].etag, "e" + std::to_string(i + 1));
  }
  EXPECT_EQ((*parts)[4].bytes, 5u);
}

// The number of parts that were given to the sender and not yet sent is counted at the beginning of
// each part, and buffers are distinguished by their addresses.
TEST(PartSender, LimitsThePartsAndTheBuffersInMemory) {
  std::atomic<int> given = 0, done = 0, most = 0;
  std::string buffer(kPartBytes, 'b');
  std::set<const char*> buffers{buffer.data()};
  {
    PartSender sender([&](uint32_t number, std::string_view bytes, const std::atomic<bool>&) {
      int now = given - done, seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      ++done;
      return Result<PartInfo>(PartInfo{number, "e", bytes.size()});
    });
    for (int i = 0; i < 1000; ++i) {
      buffer.resize(kPartBytes);
      buffers.insert(buffer.data());
      ASSERT_TRUE(sender.send(buffer));
      ++given;
    }
    ASSERT_TRUE(sender.finish());
  }
  EXPECT_LE(most, int(kPartsAtOnceMax));
  EXPECT_LE(buffers.size(), kPartsAtOnceMax + 1);
}

TEST(PartSender, SendsLargePartsOneAfterAnother) {
  HeldParts held;
  PartSender sender(held.send());
  ASSERT_TRUE(send_one(sender, kBytesAtOnceMax));
  held.wait_for(1);
  auto second = std::async(std::launch::async, [&] { return send_one(sender, kBytesAtOnceMax); });
  EXPECT_EQ(held.held(), std::set<uint32_t>{1});
  held.answer(1);
  ASSERT_TRUE(second.get());
  held.wait_for(1);
  held.answer(2);
  EXPECT_TRUE(sender.finish());
}

TEST(PartSender, TheFirstErrorEndsAttemptsAndFailsLaterParts) {
  HeldParts held;
  PartSender sender(held.send());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(send_one(sender));
  held.wait_for(3);
  held.answer(2, denied("no"));
  held.wait_for(0);  // parts 1 and 3 were abandoned
  EXPECT_EQ(held.answered(), std::set<uint32_t>{2});
  for (int i = 0; i < 3; ++i) {
    const auto failed = send_one(sender);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message, "no");
  }
  EXPECT_EQ(sender.finish().error().message, "no");
}

TEST(PartSender, AWaitingPartFailsWithTheFirstError) {
  HeldParts held;
  PartSender sender(held.send());
  for (size_t i = 0; i < kPartsAtOnceMax; ++i) ASSERT_TRUE(send_one(sender));
  held.wait_for(kPartsAtOnceMax);
  auto waiting = std::async(std::launch::async, [&] { return send_one(sender); });
  held.answer(1, denied("no"));
  EXPECT_EQ(waiting.get().error().message, "no");
}

TEST(PartSender, TheDestructorEndsAttemptsAndWaitsForThem) {
  HeldParts held;
  {
    PartSender sender(held.send());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(send_one(sender));
    held.wait_for(3);
  }
  EXPECT_EQ(held.held(), std::set<uint32_t>());
  EXPECT_EQ(held.answered(), std::set<uint32_t>());
}

}  // namespace
}  // namespace trainyard::objects
