// Tests memory that is registered in place: it keeps its content, sums over it are equal, and it
// becomes private again.
#include "collectives/transport/shm/registered_memory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "collectives/testing/circle.hpp"
#include "collectives/testing/groups.hpp"

namespace trainyard::collectives {
namespace {

using namespace testing;

// A buffer at an arbitrary address, as an allocator returns it, which contains whole pages.
struct Buffer {
  explicit Buffer(size_t bytes, size_t beyond = 64)
      : allocation(static_cast<std::byte*>(std::malloc(bytes + beyond))),
        bytes(allocation.get() + beyond, bytes) {
    for (size_t i = 0; i < bytes; ++i) this->bytes[i] = std::byte(i * 7 % 251);
  }
  bool is_as_filled() const {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != std::byte(i * 7 % 251)) return false;
    }
    return true;
  }
  struct Free {
    void operator()(std::byte* begin) const { std::free(begin); }
  };
  std::unique_ptr<std::byte, Free> allocation;
  std::span<std::byte> bytes;
};

TEST(InPlaceMemory, KeepsItsContentAndIsSharedUntilReleased) {
  const auto registered = std::make_shared<RegisteredMemory>();
  Buffer buffer(300'000);
  auto in_place = registered->register_in_place(buffer.bytes);
  ASSERT_TRUE(in_place) << in_place.error().message;
  EXPECT_TRUE(buffer.is_as_filled());
  const auto pages = (*in_place)->pages();
  EXPECT_GE(pages.size(), 300'000 - 2 * 4096);
  EXPECT_EQ(registered->find(buffer.bytes).region, 0u) << "partial pages are not registered";
  const auto location = registered->find(pages.subspan(100, 1000));
  ASSERT_NE(location.region, 0u);
  EXPECT_EQ(location.offset, 100u);

  const auto seen = map_of(::getpid(), location.descriptor, location.region_bytes);
  ASSERT_TRUE(seen) << seen.error().message;
  pages[100] = std::byte(1);
  EXPECT_EQ(seen->begin()[100], std::byte(1));
  seen->begin()[100] = std::byte(100 * 7 % 251);
  pages[100] = seen->begin()[100];

  const auto before = pages[5000];
  in_place->reset();
  EXPECT_TRUE(registered->empty());
  EXPECT_EQ(pages[5000], before);
  seen->begin()[5000] = std::byte(255);  // a late write of a peer
  EXPECT_EQ(pages[5000], before);
}

TEST(InPlaceMemory, KeepsItsContentWhenItIsReleased) {
  const auto registered = std::make_shared<RegisteredMemory>();
  for (int round = 0; round < 30; ++round) {
    Buffer buffer(20'000 + size_t(round) * 50'000);
    const auto in_place = registered->register_in_place(buffer.bytes);
    ASSERT_TRUE(in_place) << in_place.error().message;
  }
  EXPECT_TRUE(registered->empty());
}

TEST(InPlaceMemory, IsNotSharedWithForkedChildren) {
  const auto registered = std::make_shared<RegisteredMemory>();
  Buffer buffer(100'000);
  auto in_place = registered->register_in_place(buffer.bytes);
  ASSERT_TRUE(in_place);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool same = buffer.is_as_filled();
    std::fill(buffer.bytes.begin(), buffer.bytes.end(), std::byte(0));
    in_place->reset();
    _exit(same ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(buffer.is_as_filled());
}

TEST(InPlaceMemory, HasLimits) {
  const auto registered = std::make_shared<RegisteredMemory>();
  Buffer small(100);
  EXPECT_EQ(registered->register_in_place(small.bytes.first(0)).error().kind, Kind::invalid);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::unique_ptr<InPlaceMemory>> all;
  for (size_t i = 0; i + 1 < kRegionsMax; ++i) {
    buffers.push_back(std::make_unique<Buffer>(10'000));
    auto in_place = registered->register_in_place(buffers.back()->bytes);
    ASSERT_TRUE(in_place) << in_place.error().message;
    all.push_back(*std::move(in_place));
  }
  Buffer more(10'000);
  EXPECT_EQ(registered->register_in_place(more.bytes).error().kind, Kind::exhausted);
  all.pop_back();
  EXPECT_TRUE(registered->register_in_place(more.bytes));
}

// Only some ranks register their buffers. Reduces in and out of place, and with memory freed in
// between.
TEST(InPlaceMemory, GivesTheSameSums) {
  for (const char* plans : {"", "allreduce=direct:0-", "allreduce=ring:0-"}) {
    run_ranks(
        LinkKind::shared, 3,
        [](Group& group) {
          for (const size_t elements : {size_t(3'000), size_t(300'001)}) {
            const auto inputs = awkward_inputs(Type::i32, group.size(), elements);
            const Bytes expected =
                reference::reduced(Type::i32, Reduction::sum, inputs, [](size_t) {
                  return plan::Expression{0, {{0, {}}, {1, {}}, {2, {}}}};
                });
            for (int round = 0; round < 4; ++round) {
              Buffer buffer(elements * 4, 16 + size_t(round) * 256);
              std::unique_ptr<InPlaceMemory> in_place;
              if (group.rank() == 0 || round % 2 == 1) {
                auto taken = group.register_in_place(buffer.bytes);
                ASSERT_TRUE(taken) << taken.error().message;
                in_place = *std::move(taken);
              }
              for (int again = 0; again < 2; ++again) {
                const Bytes& mine = inputs[size_t(group.rank())];
                std::copy(mine.begin(), mine.end(), buffer.bytes.begin());
                const BufferView values{buffer.bytes.data(), elements, Type::i32};
                Bytes apart(again == 0 ? 0 : mine.size());
                const BufferView output =
                    again == 0 ? values : BufferView{apart.data(), elements, Type::i32};
                expect_ok(group.run(calls::allreduce(values, output)));
                EXPECT_EQ(std::memcmp(expected.data(), output.data, expected.size()), 0)
                    << elements << " elements, round " << round;
                EXPECT_TRUE(again == 0 || std::memcmp(mine.data(), values.data, mine.size()) == 0);
              }
              expect_ok(group.barrier());
            }
          }
        },
        plans);
  }
}

TEST(InPlaceMemory, IsUnavailableIfRanksShareNoMemory) {
  run_ranks(LinkKind::tcp, 2, [](Group& group) {
    Buffer buffer(100'000);
    EXPECT_EQ(group.register_in_place(buffer.bytes).error().kind, Kind::unavailable);
    EXPECT_TRUE(buffer.is_as_filled());
  });
}

}  // namespace
}  // namespace trainyard::collectives
