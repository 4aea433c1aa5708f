#include "parameter_server/mail.hpp"

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

// Lets the peer act right before each look at what has arrived, and takes every wait for one that never ends.
class PeerActsFirst final : public collectives::testing::Around {
 public:
  PeerActsFirst(std::unique_ptr<collectives::Transport> transport, std::function<void()> act)
      : Around(std::move(transport)), act_(std::move(act)) {}
  Result<void> advance() override {
    act_();
    return Around::advance();
  }
  Result<void> wait() override { return unavailable("waits for a peer that waits"); }

 private:
  const std::function<void()> act_;
};

TEST(Mail, a_message_goes_when_the_one_before_it_was_read_meanwhile) {
  auto transports = collectives::connect_in_memory(2);
  Mail peer(std::move(transports[1]));
  const int first = 0, second = 1;
  std::vector<std::string> read;
  Mail mail(std::make_unique<PeerActsFirst>(std::move(transports[0]), [&] {
    if (read.size() == 2) return;
    const auto letter = peer.receive(std::span(&first, 1));
    ASSERT_TRUE(letter) << letter.error().message;
    read.push_back(letter->text);
    if (read.size() == 2) peer.send(first, "answer");
  }));
  mail.send(second, "one");
  mail.send(second, "two");  // stays behind the first, until that was read
  const auto answer = mail.receive(std::span(&second, 1));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "answer");
  EXPECT_EQ(read, (std::vector<std::string>{"one", "two"}));
}

}  // namespace
}  // namespace trainyard::parameter_server
