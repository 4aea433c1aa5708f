// Tests the use of NCCL without a GPU: how it is loaded, its calls, and the errors when it is
// missing or a rank is lost. testing/programs/nccl_in_memory.cpp replaces NCCL, with the same
// functions and numbers.
#include "collectives/device/device_group.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "collectives/testing/groups.hpp"

namespace trainyard::collectives {
namespace {

using namespace testing;

DeviceOptions in_ordinary_memory() { return {.nccl = NCCL_IN_MEMORY, .cuda = NCCL_IN_MEMORY}; }

void on_devices(int ranks, const std::function<void(DeviceGroup&, Group&)>& play) {
  run_ranks_in_memory(ranks, [&](Group& group) {
    auto device = DeviceGroup::make(group, in_ordinary_memory());
    ASSERT_TRUE(device) << device.error().message;
    play(**device, group);
  });
}

TEST(Nccl, ReportsAMissingLibraryOrFunction) {
  const auto without = nccl::load("libno-such-nccl.so.2", NCCL_IN_MEMORY);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().kind, Kind::unavailable);
  EXPECT_TRUE(without.error().message.starts_with(
      "NCCL is not available on this machine: libno-such-nccl.so.2: "))
      << without.error().message;
  const auto without_driver = nccl::load(NCCL_IN_MEMORY, "libno-such-driver.so.1");
  ASSERT_FALSE(without_driver);
  EXPECT_TRUE(
      without_driver.error().message.starts_with("CUDA driver is not available on this machine: "))
      << without_driver.error().message;
  const auto another = nccl::load("libm.so.6", NCCL_IN_MEMORY);
  ASSERT_FALSE(another);
  EXPECT_TRUE(another.error().message.starts_with("libm.so.6 has no ncclGetVersion"))
      << another.error().message;
  EXPECT_TRUE(nccl::load(NCCL_IN_MEMORY, NCCL_IN_MEMORY));
}

TEST(DeviceGroup, NamesARankWithoutNcclOnAllRanks) {
  run_ranks_in_memory(3, [](Group& group) {
    auto options = in_ordinary_memory();
    if (group.rank() == 1) options.nccl = "libno-such-nccl.so.2";
    const auto device = DeviceGroup::make(group, options);
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().kind, Kind::unavailable);
    EXPECT_TRUE(device.error().message.starts_with("rank 1: NCCL is not available on this machine"))
        << device.error().message;
    expect_ok(group.barrier());
  });
}

TEST(DeviceGroup, EveryOperationGivesTheSameResultAsTheGroup) {
  on_devices(3, [](DeviceGroup& device, Group& group) {
    const int rank = group.rank();
    const auto values = [&](size_t count, int of) {
      std::vector<float> all(count);
      std::iota(all.begin(), all.end(), float(of * 100));
      return all;
    };
    const std::vector<size_t> uneven{2, 0, 5};
    const size_t own = uneven[size_t(rank)];
    // Runs the same call on the same values through the device group and through the group.
    const auto compare = [&](size_t inputs, size_t outputs, auto make) {
      auto input = values(inputs, rank), input_again = input;
      std::vector<float> output(outputs, -1), output_again = output;
      expect_ok(device.run(make(buffer_view(std::span(input)), buffer_view(std::span(output)))));
      expect_ok(group.run(
          make(buffer_view(std::span(input_again)), buffer_view(std::span(output_again)))));
      EXPECT_EQ(output, output_again) << "rank " << rank;
    };
    for (const Reduction reduction :
         {Reduction::sum, Reduction::minimum, Reduction::maximum, Reduction::product}) {
      compare(5, 5, [&](ConstBufferView in, BufferView out) {
        return calls::allreduce(in, out, {.reduction = reduction});
      });
      compare(5, 5, [&](ConstBufferView in, BufferView out) {
        return calls::reduce(in, out, 1, {.reduction = reduction});
      });
    }
    compare(6, 6, [&](ConstBufferView in, BufferView out) {
      return calls::allreduce(in, out, {.reduction = Reduction::average});
    });
    compare(7, own, [&](ConstBufferView in, BufferView out) {
      return calls::reduce_scatter(in, out, {}, uneven);
    });
    compare(6, 2,
            [&](ConstBufferView in, BufferView out) { return calls::reduce_scatter(in, out); });
    compare(own, 7,
            [&](ConstBufferView in, BufferView out) { return calls::all_gather(in, out, uneven); });
    compare(4, 12, [&](ConstBufferView in, BufferView out) { return calls::all_gather(in, out); });
    compare(own, 7,
            [&](ConstBufferView in, BufferView out) { return calls::gather(in, out, 2, uneven); });
    compare(7, own,
            [&](ConstBufferView in, BufferView out) { return calls::scatter(in, out, 0, uneven); });
    compare(6, 6, [&](ConstBufferView in, BufferView out) { return calls::all_to_all(in, out); });
    compare(6, 6, [&](ConstBufferView in, BufferView out) {
      // Rank r sends (r + p) % 3 + 1 elements to rank p, and receives as many from it.
      std::vector<size_t> sent, received;
      for (int peer = 0; peer < 3; ++peer) {
        sent.push_back(size_t((peer + rank) % 3 + 1));
        received.push_back(size_t((peer + rank) % 3 + 1));
      }
      return calls::all_to_all(in, out, sent, received);
    });
  });
}

TEST(DeviceGroup, SupportsOperationsInPlaceOnOtherTypes) {
  on_devices(3, [](DeviceGroup& device, Group& group) {
    const int rank = group.rank();
    std::vector<float> values(4, float(rank));
    expect_ok(device.run(calls::broadcast(buffer_view(std::span(values)), 2)));
    EXPECT_EQ(values, std::vector<float>(4, 2.0f));
    std::vector<int64_t> large{int64_t{1} << 40, rank};
    expect_ok(device.run(calls::allreduce(buffer_view(std::span(large)))));
    EXPECT_EQ(large, (std::vector<int64_t>{int64_t{3} << 40, 3}));
    uint8_t flags[] = {uint8_t(rank == 1), 0, 1};
    expect_ok(device.run(calls::allreduce(BufferView{flags, 3, Type::boolean})));
    EXPECT_EQ(std::vector<uint8_t>(flags, flags + 3), (std::vector<uint8_t>{1, 0, 1}));
    expect_ok(device.run(calls::barrier()));
  });
}

TEST(DeviceGroup, RejectsOperationsThatNcclLacksBeforeSending) {
  on_devices(2, [](DeviceGroup& device, Group&) {
    int32_t memory[4]{};
    const struct {
      Type type;
      ReduceOptions reducing;
    } rows[] = {{Type::i32, {.reduction = Reduction::bits_and}},
                {Type::i16, {.reduction = Reduction::sum}},
                {Type::i32, {.reduction = Reduction::average}},
                {Type::f8e4m3, {.reduction = Reduction::sum}},  // not in this version
                {Type::f32, {.prescale = 0.5}}};
    for (const auto& row : rows) {
      const auto refused =
          device.run(calls::allreduce(BufferView{memory, 4, row.type}, row.reducing));
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().kind, Kind::invalid) << refused.error().message;
    }
    const auto uneven = device.run(
        calls::allreduce(ConstBufferView(memory, 3, Type::i32), BufferView{memory, 4, Type::i32}));
    EXPECT_EQ(uneven.error().kind, Kind::invalid);
    memory[0] = 1;
    expect_ok(device.run(calls::allreduce(BufferView{memory, 4, Type::i32})));
    EXPECT_EQ(memory[0], 2);
  });
}

TEST(DeviceGroup, NamesARankThatLeftWhenAnOperationDoesNotEnd) {
  run_owning_ranks(LinkKind::shared, 3, [](std::unique_ptr<Group> group) {
    auto options = in_ordinary_memory();
    options.peer_timeout = 200ms;
    auto device = DeviceGroup::make(*group, options);
    ASSERT_TRUE(device) << device.error().message;
    if (group->rank() == 2) return device->reset();
    std::vector<float> values(10, 1.0f);
    const auto call = calls::allreduce(buffer_view(std::span(values)), {.name = "layer1"});
    const auto result = (*device)->run(call);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, Kind::unavailable);
    EXPECT_TRUE(result.error().message.starts_with("allreduce of layer1: "))
        << result.error().message;
    EXPECT_NE(result.error().message.find("rank 2 ("), std::string::npos) << result.error().message;
    EXPECT_EQ((*device)->run(call).error().message, result.error().message)
        << "the group keeps its first error";
  });
}

TEST(DeviceGroup, AWaitCanBeCancelled) {
  run_ranks_in_memory(2, [](Group& group) {
    auto options = in_ordinary_memory();
    options.cancelled = [] { return true; };
    auto device = DeviceGroup::make(group, options);
    ASSERT_TRUE(device) << device.error().message;
    std::vector<float> values(10, 1.0f);
    if (group.rank() == 0) {
      EXPECT_EQ((*device)->run(calls::allreduce(buffer_view(std::span(values)))).error().kind,
                Kind::cancelled);
    }
  });
}

}  // namespace
}  // namespace trainyard::collectives
