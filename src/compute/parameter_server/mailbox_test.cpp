#include "parameter_server/mailbox.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/testing/transports.hpp"
#include "collectives/transport/memory/memory_transport.hpp"

namespace trainyard::parameter_server {
namespace {

// Lets the peer run right before each poll, and reports every wait as a deadlock.
class PeerActsFirst final : public collectives::testing::ForwardingTransport {
 public:
  PeerActsFirst(std::unique_ptr<collectives::Transport> transport, std::function<void()> act)
      : ForwardingTransport(std::move(transport)), act_(std::move(act)) {}
  Result<void> advance() override {
    act_();
    return ForwardingTransport::advance();
  }
  Result<void> wait() override { return unavailable("deadlock: both peers wait"); }

 private:
  const std::function<void()> act_;
};

TEST(Mailbox, SendsAMessageAfterTheOneBeforeItWasReadConcurrently) {
  auto transports = collectives::connect_in_memory(2);
  Mailbox peer(std::move(transports[1]));
  const int first = 0, second = 1;
  std::vector<std::string> read;
  Mailbox mailbox(std::make_unique<PeerActsFirst>(std::move(transports[0]), [&] {
    if (read.size() == 2) return;
    const auto received = peer.receive(std::span(&first, 1));
    ASSERT_TRUE(received) << received.error().message;
    read.push_back(received->text);
    if (read.size() == 2) peer.send(first, "answer");
  }));
  mailbox.send(second, "one");
  mailbox.send(second, "two");  // queued behind the first until that is read
  const auto answer = mailbox.receive(std::span(&second, 1));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "answer");
  EXPECT_EQ(read, (std::vector<std::string>{"one", "two"}));
}

}  // namespace
}  // namespace trainyard::parameter_server
