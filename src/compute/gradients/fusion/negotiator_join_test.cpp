// Tests ranks that have joined (have no more data) while the others continue.
#include <gtest/gtest.h>

#include "gradients/fusion/negotiator.hpp"
#include "gradients/testing/negotiators.hpp"

namespace trainyard::gradients {
namespace {

using testing::expect_done;
using testing::expect_failed;
using testing::reduce_request;
using testing::run_negotiators;

TEST(JoinedRanks, ContributeZerosToSums) {
  constexpr int ranks = 3;
  run_negotiators(ranks, [](Negotiator& negotiator) {
    for (int round = 0; round < 2; ++round) {
      // Rank r has r + 1 batches.
      for (int batch = 0; batch <= negotiator.rank(); ++batch) {
        std::vector<float> values(100, 1.0f), other(7, 2.0f);
        std::vector<Handle> handles{negotiator.submit(reduce_request("values", values)),
                                    negotiator.submit(reduce_request("other", other))};
        for (Handle& handle : handles) expect_done(handle);
        EXPECT_EQ(values, std::vector<float>(100, float(ranks - batch)));
        EXPECT_EQ(other, std::vector<float>(7, 2 * float(ranks - batch)));
      }
      const auto outcome = negotiator.join().wait();
      ASSERT_TRUE(outcome) << outcome.error().message;
      EXPECT_EQ(outcome->last, ranks - 1);
    }
    // Operations that zeros would change are rejected meanwhile.
    std::vector<float> values(4, 1.0f);
    Handle warm =
        negotiator.submit(reduce_request("extreme", values, collectives::Reduction::minimum));
    expect_done(warm);
    if (negotiator.rank() == 0) {
      EXPECT_TRUE(negotiator.join().wait());
    } else {
      Handle handle =
          negotiator.submit(reduce_request("extreme", values, collectives::Reduction::minimum));
      expect_failed(handle, "rank 0 has joined");
      EXPECT_TRUE(negotiator.join().wait());
    }
  });
}

// With cached tensors and with new ones: if a rank has joined, they fail on the other ranks, and
// the negotiation continues.
TEST(JoinedRanks, FailOperationsThatMoveRowsOnTheOtherRanks) {
  constexpr int ranks = 3;
  run_negotiators(ranks, [](Negotiator& negotiator) {
    std::vector<float> values(6, 1.0f), own(2), exchanged(6), everyones(18);
    const auto requests = [&](int root) {
      Request gather{.name = "gather", .operation = Operation::all_gather};
      gather.input = collectives::buffer_view(std::span(values));
      gather.output = collectives::buffer_view(std::span(everyones));
      Request scatter{.name = "scatter", .operation = Operation::reduce_scatter};
      scatter.input = collectives::buffer_view(std::span(values));
      scatter.output = collectives::buffer_view(std::span(own));
      Request exchange{.name = "exchange", .operation = Operation::all_to_all};
      exchange.input = collectives::buffer_view(std::span(values));
      exchange.output = collectives::buffer_view(std::span(exchanged));
      Request broadcast{.name = "broadcast", .operation = Operation::broadcast};
      broadcast.output = collectives::buffer_view(std::span(values));
      broadcast.root = root;
      return std::vector{gather, scatter, exchange, broadcast};
    };
    for (int first = 0; first < ranks; ++first) {
      const int root = (first + 1) % ranks;  // has not joined
      if (first > 0) {
        for (Request& request : requests(root)) {
          Handle handle = negotiator.submit(std::move(request));
          expect_done(handle);
        }
      }
      if (negotiator.rank() != first) {
        for (Request& request : requests(root)) {
          Handle handle = negotiator.submit(std::move(request));
          expect_failed(handle, "rank " + std::to_string(first) + " has joined");
        }
        std::vector<float> sum(3, 1.0f);
        Handle handle = negotiator.submit(reduce_request("sum", sum));
        expect_done(handle);
        EXPECT_EQ(sum, std::vector<float>(3, float(ranks - 1)));
      }
      const auto outcome = negotiator.join().wait();
      ASSERT_TRUE(outcome) << outcome.error().message;
      EXPECT_NE(outcome->last, first);
    }
  });
}

}  // namespace
}  // namespace trainyard::gradients
